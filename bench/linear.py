"""Linear machines beside LIBLINEAR and Snap ML: same optimum, time at equal tolerance, end to end.

    python bench/linear.py [optimum|speed|snap|threads|programs][=DATA,...]...

Needs the packages `liblinear-official` and `snapml`, the data sets in WIDEMARGIN_DATA, and for
`programs` LIBLINEAR's own `train` and `predict` in the folder LIBLINEAR_BIN. Writes tables in
Markdown to standard output. Seconds are processor time of one thread, runs of both in turn, the
best of REPEATS; `threads` compares wall time.
"""

import gzip
import json
import lzma
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

# Threads of a BLAS go on looking out for work, in the place of those that are measured.
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file, load_svmlight_file
from sklearn.feature_extraction.text import TfidfTransformer

ROOT = Path(__file__).resolve().parents[1]
PROGRAM = Path(os.environ.get("WIDEMARGIN", ROOT / "target" / "release" / "widemargin"))
CACHE = ROOT / "bench" / ".cache" / "linear"
REPEATS = 5

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
    21: "--machine linear-one-class --nu 0.5",
}
#: LIBLINEAR's default tolerances, 0.1 for the others.
TOLERANCE = {0: 0.01, 2: 0.01, 5: 0.01, 6: 0.01, 11: 0.0001, 21: 0.01}
#: Tolerances near the precision of numbers.
TIGHT = {0: 1e-6, 2: 1e-6, 4: 2e-5, 5: 1e-5, 6: 1e-5, 11: 1e-7, 12: 1e-6, 13: 1e-5, 21: 1e-5}
#: Ours where LIBLINEAR's own tolerance is not met within its limit of passes, or means less.
TIGHTER = {4: 5e-6, 13: 3e-6}
#: Objectives this close, relative to their size, are the same.
SAME = 1e-3


def read(name, part):
    """Return rows and labels of a shared data set."""
    folder = Path(os.environ["WIDEMARGIN_DATA"]) / name
    with lzma.open(folder / f"{name}.{part}.libsvm.xz") as file:
        return load_svmlight_file(file)


def digits(part):
    """Return MNIST, `train` or `t10k`, scaled to [0, 1]."""
    folder = Path(os.environ["WIDEMARGIN_DATA"]) / "mnist"
    with gzip.open(folder / f"{part}-images-idx3-ubyte.gz") as file:
        pixels = np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, 784)
    with gzip.open(folder / f"{part}-labels-idx1-ubyte.gz") as file:
        labels = np.frombuffer(file.read(), np.uint8, offset=8)
    return sp.csr_matrix(pixels / 255.0), labels.astype(float)


def mnist():
    """Return MNIST, odd digits against even ones."""
    X, y = digits("train")
    return X, np.where(y % 2 == 1, 1.0, -1.0)


def table(name):
    """Return rows and labels; texts are weighted by tf-idf."""
    if name.startswith("mnist"):
        X, y = mnist()
        return (X[:10_000], y[:10_000]) if name == "mnist10k" else (X, y)
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


def objective(X, y, labels, W, solver, offset=0.0, epsilon=0.1, nu=0.5):
    """Return the objective of weights, the bias last, C = 1."""
    if solver == 21:
        z = X[:, : len(W)] @ W[:, 0]
        hinge = np.maximum(0, offset - z).sum()
        return 0.5 * W[:, 0] @ W[:, 0] - nu * len(z) * offset + hinge
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


class Theirs:
    """LIBLINEAR on one table."""

    def __init__(self, X, y):
        from liblinear.liblinear import problem

        self.X, self.y = X, y
        self.rows = {True: problem(y, X), False: problem(y, X)}

    def run(self, solver, tolerance):
        """Return processor seconds and the model."""
        from liblinear.liblinear import parameter
        from liblinear.liblinearutil import train

        bias = "" if solver == 21 else "-B 1 "
        options = parameter(f"-s {solver} -e {tolerance} {bias}-q")
        start = time.process_time()
        model = train(self.rows[solver == 21], options)
        return time.process_time() - start, model

    def objective(self, solver, model):
        """Return the objective of a model."""
        one = solver > 10 or (model.nr_class == 2 and solver != 4)
        functions = 1 if one else model.nr_class
        count = (model.nr_feature + (solver != 21)) * functions
        W = np.array(model.w[:count]).reshape(-1, functions)
        labels = list(model.label[: model.nr_class]) if solver < 10 else None
        return objective(self.X, self.y, labels, W, solver, offset=model.rho)


class Ours:
    """Our program on one table."""

    def __init__(self, name, X, y):
        self.name, self.X, self.y = name, X, y

    def run(self, solver, tolerance, threads=1, extra="", options=None):
        """Return what the program tells, and the objective of its model."""
        options = options or SOLVERS[solver]
        linear = "" if "--machine" in options else "--linear "
        with tempfile.TemporaryDirectory() as folder:
            model = Path(folder) / "model"
            command = f"{PROGRAM} train {text(self.name)} {linear}{options} --tol {tolerance} "
            command += f"--threads {threads} --model-format liblinear -o {model} --json {extra}"
            done = subprocess.run(command.split(), capture_output=True, text=True, check=False)
            if done.returncode not in (0, 3, 124):
                raise RuntimeError(done.stderr)
            told = json.loads(done.stdout)
            lines = model.read_text().split("\n")
        start = lines.index("w")
        head = {line.split()[0]: line.split()[1:] for line in lines[:start]}
        labels = [int(label) for label in head.get("label", [])]
        W = np.array([[float(w) for w in line.split()] for line in lines[start + 1 :] if line])
        offset = float(head.get("rho", [0.0])[0])
        told["objective"] = objective(self.X, self.y, labels, W, solver, offset=offset)
        return told


def head(*names):
    """Print the head of a table."""
    line(*names)
    line(*["--"] * len(names))


def line(*cells):
    """Print a row of a table."""
    print("|", " | ".join(str(cell) for cell in cells), "|", flush=True)


def skipped(name, solver):
    """Whether a pair is left out because LIBLINEAR takes minutes for it."""
    return name == "mnist" and solver in (4, 5, 6, 12, 13, 21)


def optimum(names):
    """Compare objectives at a tight tolerance."""
    head("data", "solver", "LIBLINEAR", "ours", "relative difference", "our gap")
    for name in names:
        X, y = table(name)
        theirs, own = Theirs(X, y), Ours(name, X, y)
        for solver in SOLVERS:
            if skipped(name, solver):
                continue
            tolerance = TIGHT.get(solver, 1e-4)
            _, model = theirs.run(solver, tolerance)
            expected = theirs.objective(solver, model)
            tighter = TIGHTER.get(solver, tolerance)
            told = own.run(solver, tighter, extra="--precision f64 --max-time 100")
            found, size = told["objective"], abs(told["primal"])
            gap = "–" if told["gap"] is None else f"{told['gap'] / size:.0e}"
            difference = f"{(found - expected) / abs(expected):+.1e}"
            line(name, solver, f"{expected:.6f}", f"{found:.6f}", difference, gap)


def speed(names):
    """Compare times: LIBLINEAR's default tolerance, ours such that its objective is no worse."""
    head("data", "solver", "LIBLINEAR s", "ours s", "ratio", "objective, relative", "tolerance")
    for name in names:
        X, y = table(name)
        theirs, own = Theirs(X, y), Ours(name, X, y)
        for solver in SOLVERS:
            if skipped(name, solver):
                continue
            default = tolerance = TOLERANCE.get(solver, 0.1)
            slow, model = theirs.run(solver, default)
            expected = theirs.objective(solver, model)
            told = own.run(solver, tolerance)
            while (
                told["objective"] > expected + SAME * abs(expected) and tolerance > 1e-4 * default
            ):
                tolerance *= 0.5
                told = own.run(solver, tolerance)
            quick = told["fit_cpu_seconds"]
            for _ in range(REPEATS - 1):
                slow = min(slow, theirs.run(solver, default)[0])
                quick = min(quick, own.run(solver, tolerance)["fit_cpu_seconds"])
            worse = f"{(told['objective'] - expected) / abs(expected):+.0e}"
            scale = "same" if tolerance == default else f"× {tolerance / default:g}"
            line(name, solver, f"{slow:.4f}", f"{quick:.4f}", f"{slow / quick:.2f}", worse, scale)


def snap(names):
    """Compare with Snap ML at its default tolerance and ours at the first as good one."""
    from snapml import LogisticRegression, SupportVectorMachine

    head("data", "loss", "Snap ML s", "ours s", "ratio", "objective, relative")
    for name in names:
        X, y = table(name)
        if len(np.unique(y)) > 2:
            continue
        y = np.where(y > 0, 1.0, -1.0)
        own = Ours(name, X, y)
        rows = X.astype(np.float32).tocsr()
        for solver, loss in ((3, "hinge"), (7, "logistic")):
            machine = SupportVectorMachine if loss == "hinge" else LogisticRegression
            best = np.inf
            for _ in range(REPEATS):
                peer = machine(regularizer=1.0, fit_intercept=True, n_jobs=1)
                start = time.process_time()
                peer.fit(rows, y)
                best = min(best, time.process_time() - start)
            W = np.append(np.ravel(peer.coef_), np.atleast_1d(peer.intercept_))[:, None]
            theirs = objective(X, y, [1, -1], W, solver)
            # The loosest tolerance that is as good, and Newton's method where it is quicker.
            options = [SOLVERS[solver]] + ([SOLVERS[0]] if loss == "logistic" else [])
            quick = (np.inf, np.nan)
            for option in options:
                for tolerance in (3.0, 1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001):
                    told = own.run(solver, tolerance, options=option)
                    if told["objective"] <= theirs * (1 + 1e-6):
                        break
                runs = [own.run(solver, tolerance, options=option) for _ in range(REPEATS)]
                cpu = min(run["fit_cpu_seconds"] for run in runs)
                quick = min(quick, (cpu, told["objective"]))
            worse = (quick[1] - theirs) / abs(theirs)
            line(
                name,
                loss,
                f"{best:.3f}",
                f"{quick[0]:.3f}",
                f"{best / quick[0]:.2f}",
                f"{worse:+.0e}",
            )


def threads(names):
    """Compare two threads with one, in wall time, at LIBLINEAR's default tolerances."""
    head("data", "options", "one thread s", "two threads s", "ratio", "same objective")
    for name in names:
        X, y = table(name)
        own = Ours(name, X, y)
        # Threads take a class each where there are several.
        dual = "dual" if len(np.unique(y)) > 2 else "blocks"
        for solver, options in (
            (3, f"--loss hinge --solver {dual}"),
            (1, f"--loss squared-hinge --solver {dual}"),
            (2, SOLVERS[2]),
            (0, SOLVERS[0]),
        ):
            walls, found = [np.inf, np.inf], [None, None]
            # Some take a few milliseconds, and a second processor is not always there at once.
            for _ in range(3 * REPEATS):
                for at, count in enumerate((1, 2)):
                    told = own.run(solver, TOLERANCE.get(solver, 0.1), count, options=options)
                    walls[at] = min(walls[at], told["fit_seconds"])
                    found[at] = told["objective"]
            ratio, same = f"{walls[0] / walls[1]:.2f}", "yes" if found[0] == found[1] else "**no**"
            line(name, options, f"{walls[0]:.4f}", f"{walls[1]:.4f}", ratio, same)


def chain(train, predict, name, threads):
    """Return processor and wall seconds of training and predicting, files to files."""
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
    with tempfile.TemporaryDirectory() as place:
        model, answers = f"{place}/model", f"{place}/answers"
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        for command in (
            [*train, "-s", "1", "-B", "1", str(text(name)), model],
            [*predict, str(text(name, "test")), model, answers],
        ):
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)
        wall = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime, wall


def programs(names):
    """Read, train and predict with LIBLINEAR's programs and with ours."""
    folder = Path(os.environ.get("LIBLINEAR_BIN", ""))
    theirs = [str(folder / "train")], [str(folder / "predict")]
    ours = [str(PROGRAM), "ll-train"], [str(PROGRAM), "ll-predict"]
    head("data", "LIBLINEAR s", "ours s", "ratio", "two threads: LIBLINEAR wall s", "ours", "ratio")
    for name in names:
        runs = [
            (chain(*theirs, name, 1), chain(*ours, name, 1), chain(*ours, name, 2))
            for _ in range(REPEATS)
        ]
        slow, quick = (min(run[at][0] for run in runs) for at in (0, 1))
        wall, walls = (min(run[at][1] for run in runs) for at in (0, 2))
        cells = f"{slow:.3f}", f"{quick:.3f}", f"{slow / quick:.1f}"
        line(name, *cells, f"{wall:.3f}", f"{walls:.3f}", f"{wall / walls:.1f}")


ALL = ("a9a", "w8a", "ijcnn1", "news20", "reuters", "mnist")
PARTS = {
    "optimum": (optimum, (*ALL[:-1], "mnist10k")),
    "speed": (speed, ALL),
    "snap": (snap, ("a9a", "w8a", "ijcnn1", "mnist")),
    "threads": (threads, ALL),
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
