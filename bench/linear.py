"""Linear machines beside LIBLINEAR and Snap ML: same optimum, time at equal tolerance, end to end.

    python bench/linear.py [optimum|speed|threads|programs]...

Needs the packages `liblinear-official` and `snapml`, the data sets in WIDEMARGIN_DATA, and for
`programs` LIBLINEAR's own `liblinear-train` and `liblinear-predict` (Debian's `liblinear-tools`) in
PATH or in the folder LIBLINEAR_BIN. Writes tables in Markdown to standard output. Seconds are
processor time of one thread, the best of three; `threads` compares wall time.
"""

import gzip
import json
import lzma
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file, load_svmlight_file
from sklearn.feature_extraction.text import TfidfTransformer

ROOT = Path(__file__).resolve().parents[1]
PROGRAM = Path(os.environ.get("WIDEMARGIN", ROOT / "target" / "release" / "widemargin"))
CACHE = ROOT / "bench" / ".cache" / "linear"
REPEATS = 3

#: Our options for LIBLINEAR's solvers.
SOLVERS = {
    0: "--loss logistic --solver newton",
    1: "--loss squared-hinge --solver dual",
    2: "--loss squared-hinge --solver newton",
    3: "--loss hinge --solver dual",
    4: "--multiclass crammer-singer",
    5: "--loss squared-hinge --penalty l1",
    6: "--loss logistic --penalty l1",
    7: "--loss logistic --solver dual",
    11: "--machine linear-svr --loss squared-hinge --solver newton",
    12: "--machine linear-svr --loss squared-hinge --solver dual",
    13: "--machine linear-svr --loss hinge --solver dual",
}
#: LIBLINEAR's default tolerances.
TOLERANCE = {0: 0.01, 2: 0.01, 5: 0.01, 6: 0.01, 11: 0.0001}


def read(name, part):
    """Return rows and labels of a shared data set."""
    folder = Path(os.environ["WIDEMARGIN_DATA"]) / name
    with lzma.open(folder / f"{name}.{part}.libsvm.xz") as file:
        return load_svmlight_file(file)


def mnist():
    """Return MNIST, odd digits against even ones, scaled to [0, 1]."""
    folder = Path(os.environ["WIDEMARGIN_DATA"]) / "mnist"
    with gzip.open(folder / "train-images-idx3-ubyte.gz") as file:
        pixels = np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, 784)
    with gzip.open(folder / "train-labels-idx1-ubyte.gz") as file:
        digits = np.frombuffer(file.read(), np.uint8, offset=8)
    return sp.csr_matrix(pixels / 255.0), np.where(digits % 2 == 1, 1.0, -1.0)


def table(name):
    """Return rows and labels; texts are weighted by tf-idf."""
    if name == "mnist":
        return mnist()
    full = {"news20": "news20-bydate-counts", "reuters": "reuters-r8-counts"}
    X, y = read(full.get(name, name), "train")
    return (TfidfTransformer().fit_transform(X) if name in full else X), y


def text(name, part="train"):
    """Return the path of a data set as LIBSVM text, made once."""
    CACHE.mkdir(parents=True, exist_ok=True)
    path = CACHE / f"{name}.{part}.txt"
    if not path.exists():
        full = {"news20": "news20-bydate-counts", "reuters": "reuters-r8-counts"}.get(name, name)
        if part == "train":
            X, y = table(name)
        else:
            X, y = read(full, part)
            width = read(full, "train")[0]
            X.resize(X.shape[0], width.shape[1])
            if full != name:
                X = TfidfTransformer().fit(width).transform(X)
        dump_svmlight_file(X, y, str(path), zero_based=False)
    return path


def objective(X, y, labels, W, solver, epsilon=0.1):
    """Return the objective of weights, the bias last, C = 1."""
    # Features that are 0 in all rows have no weight in files.
    X = sp.hstack([X[:, : len(W) - 1], np.ones((X.shape[0], 1))]).tocsr()
    Z = X @ W
    if solver == 4:
        own = np.array([labels.index(int(label)) for label in y])
        rows = np.arange(len(y))
        right = Z[rows, own].copy()
        Z += 1
        Z[rows, own] -= 1
        return 0.5 * (W**2).sum() + (Z.max(1) - right).sum()
    total = 0.0
    for k in range(W.shape[1]):
        w, z = W[:, k], Z[:, k]
        if solver > 10:
            excess = np.maximum(0, np.abs(z - y) - epsilon)
            loss = excess if solver == 13 else excess**2
        else:
            margin = np.where(y == labels[k], z, -z)
            if solver in (0, 6, 7):
                loss = np.logaddexp(0, -margin)
            else:
                loss = np.maximum(0, 1 - margin) ** (1 if solver == 3 else 2)
        total += loss.sum() + (np.abs(w).sum() if solver in (5, 6) else 0.5 * w @ w)
    return total


def processor():
    """Return the processor time of this process."""
    times = os.times()
    return times.user + times.system


def liblinear(X, y, solver, tolerance, repeats=REPEATS):
    """Return processor seconds and objective of LIBLINEAR."""
    from liblinear.liblinear import parameter, problem
    from liblinear.liblinearutil import train

    rows = problem(y, X)
    best = np.inf
    for _ in range(repeats):
        start = processor()
        model = train(rows, parameter(f"-s {solver} -e {tolerance} -B 1 -q"))
        best = min(best, processor() - start)
    functions = 1 if solver > 10 or (model.nr_class == 2 and solver != 4) else model.nr_class
    count = (model.nr_feature + 1) * functions
    W = np.array(model.w[:count]).reshape(-1, functions)
    labels = list(model.label[: model.nr_class]) if solver < 10 else None
    return best, objective(X, y, labels, W, solver)


def ours(name, X, y, solver, tolerance, threads=1, extra="", repeats=REPEATS):
    """Return processor seconds, wall seconds and objective of ours."""
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "model"
        command = f"{PROGRAM} train {text(name)} --linear {SOLVERS[solver]} --tol {tolerance} "
        command += f"--threads {threads} --model-format liblinear -o {model} --json {extra}"
        if "linear-svr" in SOLVERS[solver]:
            command = command.replace("--linear ", "")
        cpu = wall = np.inf
        for _ in range(repeats):
            done = subprocess.run(command.split(), capture_output=True, text=True, check=False)
            if done.returncode not in (0, 3):
                raise RuntimeError(done.stderr)
            told = json.loads(done.stdout)
            cpu, wall = min(cpu, told["fit_cpu_seconds"]), min(wall, told["fit_seconds"])
        lines = model.read_text().split("\n")
        start = lines.index("w")
        named = [line.split()[1:] for line in lines[:start] if line.startswith("label")]
        labels = [int(label) for label in named[0]] if named else None
        W = np.array([[float(w) for w in line.split()] for line in lines[start + 1 :] if line])
    return cpu, wall, objective(X, y, labels, W, solver), told


def head(*names):
    """Print the head of a table."""
    line(*names)
    line(*["--"] * len(names))


def line(*cells):
    """Print a row of a table."""
    print("|", " | ".join(str(cell) for cell in cells), "|", flush=True)


def optimum(names):
    """Compare objectives at a tight tolerance."""
    print(
        "| data | solver | LIBLINEAR | ours | relative difference | our gap |\n|--|--|--|--|--|--|"
    )
    global REPEATS
    REPEATS = 1
    for name in names:
        X, y = table(name)
        for solver in SOLVERS:
            if name == "mnist" and solver in (4, 5, 6, 12, 13):
                continue
            dual = solver in (1, 3, 4, 7, 12, 13)
            tolerance = (1e-2 if solver == 4 else 1e-3) if dual else 1e-6
            _, theirs = liblinear(X, y, solver, tolerance, 1)
            double = "--precision f64"
            _, _, found, told = ours(name, X, y, solver, tolerance, extra=double, repeats=1)
            gap = (told["gap"] or np.nan) / abs(told["primal"])
            difference = (found - theirs) / abs(theirs)
            difference, gap = f"{difference:+.1e}", f"{gap:.1e}"
            line(name, solver, f"{theirs:.6f}", f"{found:.6f}", difference, gap)


def speed(names):
    """Compare times at LIBLINEAR's default tolerances."""
    head("data", "solver", "LIBLINEAR s", "ours s", "ratio", "objective, relative")
    for name in names:
        X, y = table(name)
        for solver in SOLVERS:
            if name == "mnist" and solver in (4, 5, 6, 12, 13):
                continue
            tolerance = TOLERANCE.get(solver, 0.1)
            theirs, expected = liblinear(X, y, solver, tolerance)
            cpu, _, found, _ = ours(name, X, y, solver, tolerance)
            worse = (found - expected) / abs(expected)
            ratio, worse = f"{theirs / cpu:.2f}", f"{worse:+.0e}"
            line(name, solver, f"{theirs:.3f}", f"{cpu:.3f}", ratio, worse)


def snap(names):
    """Compare with Snap ML at its default tolerance and ours at the first as good one."""
    from snapml import LogisticRegression, SupportVectorMachine

    head("data", "loss", "Snap ML s", "ours s", "ratio", "objective, relative")
    for name in names:
        X, y = table(name)
        if len(np.unique(y)) > 2:
            continue
        y = np.where(y > 0, 1.0, -1.0)
        for solver, loss in ((3, "hinge"), (7, "logistic")):
            rows = X.astype(np.float32).tocsr()
            best = np.inf
            for _ in range(REPEATS):
                if loss == "hinge":
                    machine = SupportVectorMachine(regularizer=1.0, fit_intercept=True, n_jobs=1)
                else:
                    machine = LogisticRegression(regularizer=1.0, fit_intercept=True, n_jobs=1)
                start = processor()
                machine.fit(rows, y)
                best = min(best, processor() - start)
            bias = np.atleast_1d(machine.intercept_)
            W = np.append(np.ravel(machine.coef_), bias)[:, None]
            theirs = objective(X, y, [1, -1], W, solver)
            for tolerance in (1.0, 0.3, 0.1, 0.01, 0.001):
                cpu, _, found, _ = ours(name, X, y, solver, tolerance)
                if found <= theirs * (1 + 1e-6):
                    break
            worse = (found - theirs) / abs(theirs)
            ratio, worse = f"{best / cpu:.2f}", f"{worse:+.0e}"
            line(name, loss, f"{best:.3f}", f"{cpu:.3f}", ratio, worse)


def threads(names):
    """Compare two threads with one, in wall time."""
    head("data", "solver", "one s", "two s", "ratio")
    for name in names:
        X, y = table(name)
        for solver, extra in (
            (3, ""),
            (1, ""),
            (2, ""),
            (3, "--solver buckets"),
            (1, "--solver buckets"),
        ):
            options = SOLVERS[solver]
            if extra:
                SOLVERS[solver] = options.replace("--solver dual", extra)
            walls = [ours(name, X, y, solver, 0.01, count)[1] for count in (1, 2)]
            named = SOLVERS[solver]
            SOLVERS[solver] = options
            ratio = f"{walls[0] / walls[1]:.2f}"
            line(name, named, f"{walls[0]:.3f}", f"{walls[1]:.3f}", ratio)


def programs(names):
    """Read, train and predict with LIBLINEAR's programs and with ours."""
    folder = os.environ.get("LIBLINEAR_BIN", "")
    print(
        "| data | LIBLINEAR s | ours s | ratio | ours, two threads: wall ratio |\n|--|--|--|--|--|"
    )

    def run(train, predict, name, threads):
        cpu = wall = np.inf
        for _ in range(REPEATS):
            with tempfile.TemporaryDirectory() as place:
                model, answers = f"{place}/model", f"{place}/answers"
                held = text(name, "test")
                environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
                before, start = os.times(), time.perf_counter()
                for command in (
                    [*train, "-s", "1", "-B", "1", str(text(name)), model],
                    [*predict, str(held), model, answers],
                ):
                    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)
                after = os.times()
                wall = min(wall, time.perf_counter() - start)
                spent = after.children_user - before.children_user
                cpu = min(cpu, spent + after.children_system - before.children_system)
        return cpu, wall

    for name in names:
        theirs = run(
            [os.path.join(folder, "liblinear-train")],
            [os.path.join(folder, "liblinear-predict")],
            name,
            1,
        )
        one = run([str(PROGRAM), "ll-train"], [str(PROGRAM), "ll-predict"], name, 1)
        two = run([str(PROGRAM), "ll-train"], [str(PROGRAM), "ll-predict"], name, 2)
        ratios = f"{theirs[0] / one[0]:.1f}", f"{theirs[1] / two[1]:.1f}"
        line(name, f"{theirs[0]:.2f}", f"{one[0]:.2f}", *ratios)


ALL = ("a9a", "w8a", "ijcnn1", "news20", "reuters", "mnist")
PARTS = {
    "optimum": (optimum, ALL),
    "speed": (speed, ALL),
    "snap": (snap, ("a9a", "w8a", "ijcnn1", "mnist")),
    "threads": (threads, ("news20", "mnist")),
    "programs": (programs, ("a9a", "ijcnn1", "news20", "reuters")),
}


def main():
    """Run the parts that are named, or all."""
    if "WIDEMARGIN_DATA" not in os.environ:
        print("WIDEMARGIN_DATA is not set: nothing to measure")
        return
    words = sys.argv[1:] or list(PARTS)
    for word in words:
        part, _, given = word.partition("=")
        work, names = PARTS[part]
        print(f"\n## {part}\n")
        work(given.split(",") if given else names)


if __name__ == "__main__":
    main()
