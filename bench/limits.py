"""Whether every command keeps its time limit: at most 10 % and half a second more than --max-time.

    WIDEMARGIN=path/to/widemargin python bench/limits.py [NAME ...]

The problems are made up and large enough to take longer than the limit. Needs a release build and
Linux; exits with 1 if a command was late or lost its exit code. Where other programs run beside it,
seconds say little: late is what also took more processor time after the limit than it may.
"""

import math
import os
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

OURS = Path(
    os.environ.get(
        "WIDEMARGIN", Path(__file__).resolve().parent.parent / "target/release/widemargin"
    )
).resolve()
LIMIT = 3.0
ALLOWED = 1.1 * LIMIT + 0.5
# Done in time, not converged, time limit.
EXITS = (0, 3, 124)


def make_data(folder: Path) -> None:
    """Tables in NPY files with their labels in others, and one long text."""
    random = np.random.default_rng(0)

    def table(name: str, rows: int, columns: int, classes: int) -> None:
        labels = random.integers(0, classes, rows)
        centres = random.normal(size=(classes, columns))
        features = 0.4 * centres[labels] + random.normal(size=(rows, columns))
        np.save(folder / f"{name}.npy", features)
        np.save(folder / f"{name}-labels.npy", labels)
        np.save(folder / f"{name}-values.npy", features[:, 0] + random.normal(size=rows))

    table("large", 150_000, 30, 2)
    table("middle", 20_000, 20, 3)
    table("queries", 300_000, 20, 3)
    table("small", 3_000, 20, 2)
    table("pair", 8_000, 20, 2)
    table("tiny", 500, 20, 2)
    table("wide", 6_000, 2_500, 2)
    table("classes", 20_000, 400, 1_000)
    for length, name in ((40, "few"), (400, "many")):
        positions = random.integers(0, 8, (60 * length, 25))
        tags = (positions[:, 0] + positions[:, 1]) % 12
        lines = [
            " ".join(f"w{word}" for word in words) + f" T{tag}\n" + "\n" * (at % 25 == 24)
            for at, (words, tag) in enumerate(zip(positions, tags, strict=True))
        ]
        (folder / f"{name}.conll").write_text("".join(lines))
    np.save(folder / "line.npy", random.normal(size=(20_000, 1)))
    columns = random.normal(size=(4_000, 20))
    with (folder / "half.csv").open("w") as file:
        file.write(",".join(f"x{j}" for j in range(20)) + ",label\n")
        for at, row in enumerate(columns):
            label = "?" if at % 10 else str(int(row[0] > 0))
            file.write(",".join(f"{value:.4f}" for value in row) + f",{label}\n")
    with (folder / "strings.csv").open("w") as file:
        file.write("text,label\n")
        for at in range(2_000):
            file.write("".join(random.choice(list("acgt"), 400)) + f",{at % 2}\n")
    line = b"1 " + b" ".join(b"%d:0.%d" % (j, 1000 + 7 * j) for j in range(1, 41)) + b"\n"
    (folder / "long.txt").write_bytes((line + b"2" + line[1:]) * 400_000)


KERNEL_MACHINES = ["nu-svc", "one-class", "svdd", "ls-svc", "ww", "cs", "llw", "mmr", "reinforced"]
CASES = {
    "k-means": "train large.npy -s kmeans --clusters 300 --starts 50",
    "spectral": "train middle.npy -s spectral --clusters 20",
    "fisher": "train classes.npy --labels classes-labels.npy -s fisher",
    "kernel-fisher": "train middle.npy --labels middle-labels.npy -s kernel-fisher",
    "gmm": "train large.npy -s gmm --components 50 --starts 20 --tol 1e-12",
    "gmm-bayes": "train large.npy --labels large-labels.npy -s gmm-bayes --components 40 "
    "--tol 1e-12",
    "parzen": "train large.npy --labels large-labels.npy -s parzen",
    "pnn": "train large.npy --labels large-labels.npy -s pnn",
    "density": "train large.npy -s density",
    "knn": "train large.npy --labels large-labels.npy -s knn",
    "c-svc": "train large.npy --labels large-labels.npy --c 100",
    "c-svc probability": "train middle.npy --labels middle-labels.npy --c 1e4 --probability",
    "epsilon-svr": "train large.npy --labels large-values.npy -s epsilon-svr --c 100",
    "nu-svr": "train large.npy --labels large-values.npy -s nu-svr --c 100",
    "ls-svr": "train large.npy --labels large-values.npy -s ls-svr",
    **{m: f"train large.npy --labels large-labels.npy -s {m}" for m in KERNEL_MACHINES},
    "lasvm": "train large.npy --labels large-labels.npy --online --epochs inf",
    "ww online": "train large.npy --labels large-labels.npy -s ww --online --epochs inf",
    "hinge": "train wide.npy --labels wide-labels.npy -s linear-svc --loss hinge --c 1e6 "
    "--tol 1e-12",
    "squared-hinge": "train wide.npy --labels wide-labels.npy -s linear-svc --c 1e6 --tol 1e-14",
    "l1": "train wide.npy --labels wide-labels.npy -s linear-svc --penalty l1 --c 1e4 --tol 1e-12",
    "logistic": "train wide.npy --labels wide-labels.npy -s logistic --c 1e6 --tol 1e-14",
    "logistic l1": "train wide.npy --labels wide-labels.npy -s logistic --penalty l1 --c 1e4",
    "linear-svr": "train wide.npy --labels wide-values.npy -s linear-svr --c 1e6 --tol 1e-12",
    "linear-one-class": "train wide.npy -s linear-one-class --tol 1e-14",
    "crammer-singer": "train middle.npy --labels middle-labels.npy -s linear-svc --c 1e4 "
    "--tol 1e-12 --multiclass crammer-singer",
    "approximate": "train large.npy --labels large-labels.npy --linear --approximate rff:2000",
    "cross-validate": "cross-validate middle.npy --labels middle-labels.npy --c 100",
    "tune": "tune middle.npy --labels middle-labels.npy",
    "tune knn": "tune middle.npy --labels middle-labels.npy -s knn",
    "tune random": "tune small.npy --labels small-labels.npy --method random --points 500",
    "tune surrogate": "tune small.npy --labels small-labels.npy --method surrogate --points 500",
    "compare": "compare middle.npy --labels middle-labels.npy",
    "predict": "predict queries.npy --labels queries-labels.npy --model kernel.wm",
    "predict knn": "predict queries.npy --labels queries-labels.npy --model knn.wm",
    "compress": "compress kernel.wm --vectors 20 --data middle.npy --labels middle-labels.npy",
    "learnt kernels": "train middle.npy --labels middle-labels.npy "
    '--kernels "linear, rbf(gamma=0.1), rbf(gamma=1)"',
    "learnt kernels of cs": "train middle.npy --labels middle-labels.npy -s cs "
    '--kernels "linear, rbf(gamma=0.1), rbf(gamma=1)"',
    "signed kernels": "train small.npy --labels small-labels.npy --weights signed "
    '--kernels "linear, rbf(gamma=0.1), rbf(gamma=1)"',
    "rank-svm": "train wide.npy --labels wide-values.npy -s rank-svm --c 1e6 --gap 1e-12",
    "sites": "train large.npy --labels large-labels.npy --sites 4 --c 100",
    "random working sets": "train large.npy --labels large-labels.npy --site-method prsvm --c 100",
    "mmc": "cluster small.npy --labelling relaxation",
    "mmc alternation": "cluster small.npy --labelling alternation",
    "cluster": "cluster large.npy -s kmeans --clusters 300 --starts 50",
    "cross-validate knn": "cross-validate middle.npy --labels middle-labels.npy -s knn --folds 50",
    "predict parzen": "predict queries.npy --labels queries-labels.npy --model parzen.wm",
    "predict gmm": "predict queries.npy --labels queries-labels.npy --model gmm.wm",
    **{
        f"robust {loss}": f"train small.npy --labels small-labels.npy --robust {loss}"
        for loss in ("ramp", "eta", "trimmed", "centroid", "leave-one-out", "power")
    },
    "robust relaxation": "train small.npy --labels small-labels.npy --robust ramp "
    "--robust-method relaxation",
    "semi-supervised gmm": "train middle.npy --labels middle-labels.npy -s gmm-bayes "
    "--components 40 --tol 1e-12 --unlabelled 0",
    "nystroem": "train large.npy --labels large-labels.npy --linear --approximate nystroem:6000",
    "mmc of 4": "cluster small.npy --labelling relaxation --clusters 4",
    "mmc of 4 alternation": "cluster small.npy --labelling alternation --clusters 4",
    "mmc iterative": "cluster large.npy --labelling iterative --clusters 3",
    "tune linear": "tune wide.npy --labels wide-labels.npy --linear",
    "tune rff": "tune large.npy --labels large-labels.npy --linear --approximate rff:2000",
    "compare kernels": "compare middle.npy --labels middle-labels.npy "
    '--kernels "linear, rbf(gamma=0.1), rbf(gamma=1)"',
    "linear sites": "train wide.npy --labels wide-labels.npy -s linear-svc --c 1e6 --tol 1e-14 "
    "--sites 4",
    "sequence train": "sequence train many.conll --c 1e4 --tol 1e-12 --max-iter 100000",
    "sequence train kernel": "sequence train few.conll --kernel rbf(gamma=0.1) --c 1e4 --tol 1e-12",
    "sequence label": "sequence label many.conll --model chain.wm",
    "sequence label n-best": "sequence label many.conll --model chain.wm --n-best 1000",
    "plot": "plot confusion queries.npy --labels queries-labels.npy --model kernel.wm -o c.svg",
    "plot regions": "plot regions middle.npy --labels middle-labels.npy --model kernel.wm "
    "--cells 500 -o r.svg",
    "threshold": "threshold two.wm large.npy --labels large-labels.npy --false-positives 0.1",
    "reading": "train long.txt",
    **{
        f"semi-svc {method}": "train half.csv -s semi-svc --kernel rbf --gamma 0.05 --tol 1e-12 "
        f"--landmarks 3000 --labelling {method}"
        for method in ("annealing", "switching", "relaxation")
    },
    "semi-svc linear": "train middle.npy --labels middle-labels.npy -s semi-svc --unlabelled 0 "
    "--tol 1e-14",
    "learnt kernels of a half": "train half.csv --unlabelled ? "
    '--kernels "linear, rbf(gamma=0.1), rbf(gamma=1)"',
    "cross-validate half": "cross-validate half.csv -s semi-svc --kernel rbf --folds 20",
    "tune half": "tune half.csv -s semi-svc --kernel rbf",
    "certified-gmm": "train line.npy -s certified-gmm --components 4 --gap 1e-12",
    "knn-regressor": "train large.npy --labels large-values.npy -s knn-regressor",
    "cross-validate knn-regressor": "cross-validate middle.npy --labels middle-values.npy "
    "-s knn-regressor --folds 50",
    "gmm-bayes full": "train wide.npy --labels wide-labels.npy -s gmm-bayes --components 4 "
    "--covariance full",
    "view": "train middle.npy --labels middle-labels.npy --view a=1-10:rbf:gamma=0.1 "
    "--view b=11-20:rbf:gamma=0.1",
    **{
        f"strings {kernel}": f"train strings.csv --text text --kernel {kernel} --c 100"
        for kernel in ("spectrum", "subsequence", "alignment")
    },
    "tune strings": "tune strings.csv --text text --kernel alignment",
    "tune robust": "tune small.npy --labels small-labels.npy --robust ramp",
    "cluster gmm": "cluster large.npy -s gmm --components 50 --starts 20 --tol 1e-12",
    "lossless": "compress kernel.wm --lossless",
    "lossless quadratic": "compress quadratic.wm --lossless",
    "compress half": "compress kernel.wm --ratio 0.5 --refine 0",
    "compress to a difference": "compress kernel.wm --max-difference 0.5",
    "compress to a loss": "compress kernel.wm --max-loss 1% --data middle.npy "
    "--labels middle-labels.npy",
    "compress greedy": "compress kernel.wm --vectors 500 --method greedy",
    **{
        f"compress {method}": f"compress {model}.wm --method {method} --vectors {count}"
        for method, model, count in (
            ("fixed-point", "kernel", 500),
            ("gradient", "kernel", 500),
            ("prune", "pair", 1000),
            ("l1", "pair", 1000),
            ("kernel-pca", "tiny", 10),
        )
    },
    **{
        f"gmm {shape}": f"train wide.npy -s gmm --components 3 --covariance {shape}"
        for shape in ("full", "tied", "diag", "eev", "vev")
    },
    "gmm random full": "train wide.npy -s gmm --components 3 --init random",
    "gmm criterion": "train large.npy -s gmm --components 30 --criterion bic --tol 1e-12",
    "knn mahalanobis": "train wide.npy --labels wide-labels.npy -s knn --metric mahalanobis",
    "knn within": "train wide.npy --labels wide-labels.npy -s knn --metric mahalanobis-within",
    "predict mahalanobis": "predict wide.npy --model mahalanobis.wm",
    "fisher wide": "train wide.npy --labels wide-labels.npy -s fisher --shrinkage auto",
    "kernel-fisher classes": "train classes.npy --labels classes-labels.npy -s kernel-fisher",
    "gmm-bayes classes": "train classes.npy --labels classes-labels.npy -s gmm-bayes",
    "c-svc classes": "train classes.npy --labels classes-labels.npy",
    "linear classes": "train classes.npy --labels classes-labels.npy --linear",
    "logistic classes": "train classes.npy --labels classes-labels.npy -s logistic",
    "ww classes": "train classes.npy --labels classes-labels.npy -s ww",
    "parzen wide": "train wide.npy --labels wide-labels.npy -s parzen",
    "spectral wide": "train wide.npy -s spectral --clusters 20",
    "isotonic": "train middle.npy --labels middle-labels.npy --c 1e4 --probability=isotonic",
    "repair": "train pair.npy --labels pair-labels.npy --repair shift "
    '--kernels "sigmoid(gamma=1), rbf(gamma=0.1)"',
    "ls-svc small": "train pair.npy --labels pair-labels.npy -s ls-svc",
    "hinge tall": "train large.npy --labels large-labels.npy -s linear-svc --loss hinge --c 1e6 "
    "--tol 1e-12",
    "squared-hinge classes": "train classes.npy --labels classes-labels.npy -s linear-svc --c 1e6 "
    "--tol 1e-14",
    "links": "cluster small.npy --labelling relaxation --links 0=3,1!5",
    "mmc enumeration": "cluster tiny.npy --labelling enumeration",
    "transduce": "train half.csv --unlabelled ? -s semi-svc --kernel rbf --transduce half.csv "
    "--transduced answers.txt --tol 1e-12",
}

#: Models that cases use: data, and the options of their training.
MODELS = {
    "kernel": ("middle", "--gamma 0.5"),
    "knn": ("middle", "-s knn"),
    "parzen": ("middle", "-s parzen --width 1"),
    "gmm": ("middle", "-s gmm-bayes --components 20"),
    "two": ("large", "--gamma 0.1 --c 100 --max-iter 20000"),
    "pair": ("pair", "--gamma 0.5"),
    "tiny": ("tiny", "--gamma 0.5"),
    "quadratic": ("wide", "--kernel poly --degree 2 --coef0 1"),
    "mahalanobis": ("wide", "-s knn --metric mahalanobis"),
}

#: A chain that cases use: its data and the options of its training.
CHAIN = ("few", "--max-iter 3")


def processor_seconds(process: int) -> float:
    """Seconds that a process which runs has used."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except FileNotFoundError:
        return math.inf
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def run_case(command: str, folder: Path) -> tuple[float, float, int, str]:
    """Seconds, processor seconds after the limit, exit code and the last line of standard error."""
    words = shlex.split(command)
    if {words[0], words[1]} & {"train", "compress", "tune", "threshold"}:
        words += ["-o", "out.wm"]
    limit = 0.5 if "long.txt" in words else LIMIT
    started = time.monotonic()
    with (folder / "errors").open("w+") as errors:
        child = subprocess.Popen(
            [str(OURS), *words, "-q", "--max-time", str(limit)],
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stderr=errors,
        )
        before = math.inf
        try:
            child.wait(limit)
        except subprocess.TimeoutExpired:
            before = processor_seconds(child.pid)
        _, status, usage = os.wait4(child.pid, 0) if child.returncode is None else (0, 0, None)
        seconds = time.monotonic() - started - limit + LIMIT
        errors.seek(0)
        message = (errors.read().strip().splitlines() or [""])[-1]
    if usage is None:
        return seconds, 0.0, child.returncode, message
    child.returncode = os.waitstatus_to_exitcode(status)
    after = max(usage.ru_utime + usage.ru_stime - before, 0.0)
    return seconds, after, child.returncode, message


def main() -> int:
    """Run the chosen cases, or all."""
    chosen = sys.argv[1:] or list(CASES)
    late = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_data(folder)
        for model, (data, options) in MODELS.items():
            if any(f"{model}.wm" in CASES[case] for case in chosen):
                files = [f"{data}.npy", "--labels", f"{data}-labels.npy", "-o", f"{model}.wm"]
                command = [str(OURS), "train", *files, *options.split(), "-q", "--max-time", "30"]
                subprocess.run(command, cwd=folder, check=False)
        if any("chain.wm" in CASES[case] for case in chosen):
            data, options = CHAIN
            command = [str(OURS), "sequence", "train", f"{data}.conll", "-o", "chain.wm", "-q"]
            subprocess.run([*command, *options.split()], cwd=folder, check=False)
        heading = f"{'case':22} {'seconds':>8} {'CPU after':>9} {'exit':>4}"
        print(f"{heading}  at most {ALLOWED:.1f} s of {LIMIT}")
        for case in chosen:
            seconds, after, code, message = run_case(CASES[case], folder)
            bad = (seconds > ALLOWED and after > ALLOWED - LIMIT) or code not in EXITS
            late += bad
            verdict = f"{'LATE ' if bad else ''}{message}"
            print(f"{case:22} {seconds:8.2f} {after:9.2f} {code:4}  {verdict}", flush=True)
    print(f"{len(chosen) - late} passed, {late} failed")
    return int(late > 0)


if __name__ == "__main__":
    sys.exit(main())
