"""Whether every command keeps its time limit: at most 10 % and half a second more than --max-time.

    WIDEMARGIN=path/to/widemargin python bench/limits.py [NAME ...]

The problems are made up and large enough to take longer than the limit. Needs a release build on
an idle machine; exits with 1 if a command was late or lost its exit code.
"""

import os
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
    table("wide", 6_000, 2_500, 2)
    table("classes", 20_000, 400, 1_000)
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
    "reading": "train long.txt",
}


def run_case(command: str, folder: Path) -> tuple[float, int, str]:
    """Seconds, exit code and the last line of standard error."""
    words = command.split()
    if words[0] in ("train", "compress", "tune"):
        words += ["-o", "out.wm"]
    limit = 0.5 if "long.txt" in words else LIMIT
    started = time.monotonic()
    done = subprocess.run(
        [str(OURS), *words, "-q", "--max-time", str(limit)],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    seconds = time.monotonic() - started - limit + LIMIT
    return seconds, done.returncode, (done.stderr.strip().splitlines() or [""])[-1]


def main() -> int:
    """Run the chosen cases, or all."""
    chosen = sys.argv[1:] or list(CASES)
    late = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_data(folder)
        small = ["--labels", "middle-labels.npy", "-q", "--max-time", "20"]
        for model, options in {"kernel": ["--gamma", "0.5"], "knn": ["-s", "knn"]}.items():
            command = [str(OURS), "train", "middle.npy", "-o", f"{model}.wm", *small, *options]
            subprocess.run(command, cwd=folder, check=False)
        print(f"{'case':18} {'seconds':>8} {'exit':>4}  at most {ALLOWED:.1f} s of {LIMIT}")
        for case in chosen:
            seconds, code, message = run_case(CASES[case], folder)
            bad = seconds > ALLOWED or code not in EXITS
            late += bad
            print(
                f"{case:18} {seconds:8.2f} {code:4}  {'LATE ' if bad else ''}{message}", flush=True
            )
    print(f"{len(chosen) - late} passed, {late} failed")
    return int(late > 0)


if __name__ == "__main__":
    sys.exit(main())
