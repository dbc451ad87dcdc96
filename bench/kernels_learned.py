"""Learnt kernel weights beside other programs; writes kernels-learned.md.

    WIDEMARGIN_DATA=folder python bench/kernels_learned.py [binary|crammer-singer|signed|growth]...

Data and settings: MNIST, rows ``default_rng(0).permutation(60000)[:n]`` of unit norm; the kernels linear,
(1 + x'z)², (1 + x'z)³ and Gaussians with γ = ``logspace(-3, 3, p - 3, base=2)``, each of trace n; test rows
are the first 1 000 of t10k; two classes are odd and even digits; growth by classes is that of the data set
letter, 26 letters of which the first are taken; t is twice the primal objective. Every training is a process of its own with
one thread; seconds are processor time of the training, kernel values included, the best of REPEATS in
turn with the peers; memory is the most that the process had, less what it had before the training.

Peers: a cutting plane (SILP) on scikit-learn's SVC with precomputed kernels, MKLpy's EasyMKL and that SVC
(``pip install MKLpy torch cvxopt``), Clarabel and SCS on the conic forms of python/tests/conic.py.
`long` adds the trainings of minutes.
"""

import importlib
import json
import lzma
import os
import platform
import resource
import subprocess
import sys
import time
from pathlib import Path

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
REPORT = ROOT / "bench" / "kernels-learned.md"
REPEATS = 3
LIMIT = 1200

sys.path.insert(0, str(ROOT / "python" / "tests"))


def table(n, p):
    """Return rows, labels and kernels for training, and rows and labels for testing."""
    X, y, held, truth = digits_of(n)
    poly = [{"kernel": "poly", "gamma": 1, "coef0": 1, "degree": degree} for degree in (2, 3)]
    widths = np.logspace(-3, 3, max(p - 3, 1), base=2)
    gaussian = [{"kernel": "rbf", "gamma": float(width)} for width in widths]
    return X, y.astype(int), ["linear", *poly, *gaussian][:p], held, truth.astype(int)


def digits_of(n):
    """Return n rows and 1 000 for testing, from a file of their own: all of MNIST takes memory."""
    path = ROOT / "bench" / ".cache" / f"kernels-{n}.npz"
    if not path.exists():
        from linear import digits

        (X, y), (held, truth) = digits("train"), digits("t10k")
        chosen = np.random.default_rng(0).permutation(60000)[:n]
        path.parent.mkdir(parents=True, exist_ok=True)
        np.savez(path, dense(X[chosen]), y[chosen], dense(held[:1000]), truth[:1000])
    return list(np.load(path).values())


def letters(n, classes):
    """Return n rows of the first letters, and 1 000 others of them for testing."""
    from sklearn.datasets import load_svmlight_file

    found = []
    for part, most in (("train", n), ("test", 1000)):
        path = Path(os.environ["WIDEMARGIN_DATA"]) / "letter" / f"letter.{part}.libsvm.xz"
        with lzma.open(path) as file:
            X, y = load_svmlight_file(file, n_features=16)
        y = np.unique(y, return_inverse=True)[1]
        chosen = np.random.default_rng(0).permutation(np.flatnonzero(y < classes))[:most]
        found += [dense(X[chosen]), y[chosen]]
    return found


def dense(rows):
    """Return rows of unit norm."""
    rows = rows.toarray() if hasattr(rows, "toarray") else np.asarray(rows)
    rows = rows.astype(np.float64)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def values(kernel, products):
    """Return kernel values of rows of unit norm from their products."""
    if kernel == "linear":
        return products
    if kernel["kernel"] == "poly":
        return (1 + products) ** kernel["degree"]
    return np.exp(-2 * kernel["gamma"] * (1 - products))


def tables(X, kernels):
    """Return matrices of trace n and their factors."""
    products = X @ X.T
    found = [values(kernel, products) for kernel in kernels]
    factors = [len(X) / np.trace(K) for K in found]
    for K, factor in zip(found, factors, strict=True):
        K *= factor
    return found, factors


def widemargin(X, y, kernels, job):
    """Train ours."""
    from widemargin import MultipleKernelSVC

    model = MultipleKernelSVC(
        kernels,
        machine=job["machine"],
        C=job["C"],
        tol=job["gap"],
        weights=job.get("weights", "nonnegative"),
        cache_size=job.get("cache", 3000),
        n_jobs=job.get("threads", 1),
    ).fit(X, y)
    least = model.smallest_eigenvalue_
    told = {
        "t": 2 * model.objective_,
        "gap": model.gap_,
        "rounds": model.n_iter_,
        "solves": model.n_solves_,
        "smallest": least,
        "weights": [round(float(w), 4) for w in model.kernel_weights_[:12]],
    }
    return told, model.predict


def silp(X, y, kernels, job):
    """Train by a cutting plane on scikit-learn's SVC."""
    from scipy.optimize import linprog
    from sklearn.svm import SVC

    found, factors = tables(X, kernels)
    p, C = len(kernels), job["C"]
    weights, cuts, constants, best, rounds = np.full(p, 1 / p), [], [], np.inf, 0
    while True:
        rounds += 1
        machine = SVC(kernel="precomputed", C=C, tol=1e-4, cache_size=1000)
        machine.fit(sum(w * K for w, K in zip(weights, found, strict=True) if w > 0), y)
        at, beta = machine.support_, machine.dual_coef_[0]
        forms = np.array([beta @ K[np.ix_(at, at)] @ beta for K in found])
        total = np.abs(beta).sum()
        objective = total - 0.5 * weights @ forms
        if objective < best:
            best, kept = objective, (weights, machine)
        cuts.append(0.5 * forms)
        constants.append(total)
        rows = -np.hstack([np.array(cuts), np.ones((len(cuts), 1))])
        lowest = linprog(
            np.append(np.zeros(p), 1),
            A_ub=rows,
            b_ub=-np.array(constants),
            A_eq=[np.append(np.ones(p), 0)],
            b_eq=[1],
            bounds=[(0, None)] * p + [(None, None)],
        )
        if best - lowest.fun <= job["gap"] * best:
            break
        weights = np.maximum(lowest.x[:p], 0)
    weights, machine = kept

    def predict(new):
        terms = zip(weights, factors, kernels, strict=True)
        products = new @ X.T
        return machine.predict(sum(w * f * values(k, products) for w, f, k in terms if w > 0))

    return {"t": 2 * best, "rounds": rounds}, predict


def easymkl(X, y, kernels, job):
    """Train by MKLpy's EasyMKL and scikit-learn's SVC."""
    import torch
    from MKLpy.algorithms import EasyMKL
    from sklearn.svm import SVC

    torch.set_num_threads(1)
    found, factors = tables(X, kernels)
    found = [torch.tensor(K) for K in found]
    machine = EasyMKL(lam=0.1, learner=SVC(C=job["C"]))
    machine.fit(found, torch.tensor(y))

    def predict(new):
        products = new @ X.T
        pairs = zip(factors, kernels, strict=True)
        return np.asarray(
            machine.predict([torch.tensor(f * values(k, products)) for f, k in pairs])
        )

    return {}, predict


def conic_program(X, y, kernels, job):
    """Return the conic form and the sign of its value."""
    import conic

    codes = np.unique(y, return_inverse=True)[1]
    found = tables(X, kernels)[0]
    if job.get("weights") == "signed":
        found = [K + 1e-6 * np.eye(len(K)) for K in found]
        found = [K * len(K) / np.trace(K) for K in found]
        return conic.split_program(found, codes, job["C"], "signed")[0], 1
    return conic.quadratically_constrained_program(found, codes, job["C"]), -1


def clarabel(X, y, kernels, job):
    """Solve the conic form by Clarabel."""
    program, sign = conic_program(X, y, kernels, job)
    return {"t": sign * program.solve(min(job["gap"], 1e-6))[1]}, None


def scs(X, y, kernels, job):
    """Solve the conic form by SCS."""
    program, sign = conic_program(X, y, kernels, job)
    return {"t": sign * program.solve_by_scs(1e-5)[1]}, None


TRAININGS = {
    "widemargin": widemargin,
    "SILP on SVC": silp,
    "EasyMKL + SVC": easymkl,
    "Clarabel": clarabel,
    "SCS": scs,
}

#: What is imported before the clock starts.
MODULES = {
    "widemargin": ["widemargin"],
    "SILP on SVC": ["scipy.optimize", "sklearn.svm"],
    "EasyMKL + SVC": ["torch", "MKLpy.algorithms", "sklearn.svm"],
    "Clarabel": ["conic", "clarabel"],
    "SCS": ["conic", "scs"],
}


def one(job):
    """Train once and print what came of it."""
    X, y, kernels, held, truth = table(job["n"], job["p"])
    if job["binary"]:
        y, truth = y % 2, truth % 2
    if "classes" in job:
        X, y, held, truth = letters(job["n"], job["classes"])
    train = TRAININGS[job["who"]]
    for module in MODULES[job["who"]]:
        importlib.import_module(module)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begin = time.process_time()
    told, predict = train(X, y, kernels, job)
    told["seconds"] = time.process_time() - begin
    told["memory"] = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    if predict is not None:
        told["accuracy"] = float((predict(held) == truth).mean())
    print(json.dumps(told))


def run(job):
    """Train in a process of its own."""
    digits_of(job["n"])
    words = [sys.executable, __file__, "one", json.dumps(job)]
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=LIMIT)
    except subprocess.TimeoutExpired:
        return {"error": f"over {LIMIT} s"}
    if done.returncode:
        return {"error": (done.stderr.strip().splitlines() or ["failed"])[-1][:80]}
    return json.loads(done.stdout.splitlines()[-1])


def race(job, names, repeats=REPEATS):
    """Return what every program did, its best time of several in turn."""
    best = {}
    for _ in range(repeats):
        for name in names:
            if "error" in best.get(name, {}):
                continue
            told = run({**job, "who": name})
            if name not in best or told.get("seconds", 0) < best[name]["seconds"]:
                best[name] = told
    return best


def cell(told):
    """Return one program's columns."""
    if "error" in told:
        return f"{told['error']} | | | |"
    t = f"{told['t']:.4f}" if "t" in told else ""
    accuracy = f"{100 * told['accuracy']:.1f}" if "accuracy" in told else ""
    return f"{told['seconds']:.2f} | {t} | {accuracy} | {told['memory']:.0f} |"


class Report:
    """The bars and the tables."""

    def __init__(self):
        self.bars, self.text = [], []

    def bar(self, what, found, wanted, good):
        verdict = "pass" if good else "**FAIL**"
        self.bars.append(f"| {what} | {found} | {wanted} | {verdict} |")
        print(self.bars[-1], flush=True)

    def line(self, text):
        self.text.append(text)
        print(text, flush=True)

    def rows(self, job, best):
        for name, told in best.items():
            rounds = told.get("rounds", "")
            gap = f"{told['gap']:.0e}" if "gap" in told else ""
            self.line(f"| {job['n']} | {job['p']} | {name} | {cell(told)} {gap} | {rounds} |")

    def head(self, title):
        self.line(f"\n## {title}\n")
        self.line("| n | kernels | program | s | t | accuracy % | MB | gap | rounds |")
        self.line("|--|--|--|--|--|--|--|--|--|")


def ratio(best, peer):
    """Return how many times longer a peer takes."""
    ours, theirs = best["widemargin"], best[peer]
    return (
        float("nan")
        if "error" in ours or "error" in theirs
        else theirs["seconds"] / ours["seconds"]
    )


def binary(report, long):
    """Two classes, weights that are not negative, gap 1e-4."""
    report.head("Two classes, weights that are not negative, C = 10, gap 1e-4")
    for n, p in [(1000, 10), (3000, 10), (5000, 10), (1000, 100), (300, 1000)]:
        job = {"n": n, "p": p, "binary": True, "machine": "c-svc", "C": 10, "gap": 1e-4}
        names = ["widemargin", "SILP on SVC"] + (["EasyMKL + SVC"] if p == 10 else [])
        best = race(job, names, REPEATS if n < 5000 else 2)
        report.rows(job, best)
        times, ours = ratio(best, "SILP on SVC"), best["widemargin"]
        report.bar(f"n {n}, p {p}: SILP over ours", f"{times:.1f}×", "≥ 4×", times >= 4)
        off = ours["t"] / best["SILP on SVC"]["t"] - 1
        report.bar(f"n {n}, p {p}: t beside SILP's", f"{off:+.0e}", "within 1e-4", abs(off) <= 1e-4)
        if n == 5000:
            times = ratio(best, "EasyMKL + SVC")
            report.bar("n 5000: EasyMKL + SVC over ours", f"{times:.1f}×", "≥ 6×", times >= 6)
            gained = 100 * (ours["accuracy"] - best["EasyMKL + SVC"].get("accuracy", 1))
            report.bar(
                "n 5000: accuracy above EasyMKL's", f"{gained:+.1f} points", "≥ 0", gained >= 0
            )
            report.bar(
                "n 5000: memory", f"{ours['memory']:.0f} MB", "≤ 1000 MB", ours["memory"] <= 1000
            )


def crammer_singer(report, long):
    """Ten classes and ten kernels."""
    report.head("Crammer and Singer's machine, ten classes, weights that are not negative, C = 1.5")
    base = {"p": 10, "binary": False, "machine": "cs", "C": 1.5}
    for n in (50, 100, 200):
        # A tenth of what values are compared to: two programs add their gaps.
        job = {"n": n, "gap": 1e-7, **base}
        best = race(job, ["widemargin", "Clarabel", "SCS"], REPEATS if n < 200 else 2)
        report.rows(job, best)
        off = best["widemargin"]["t"] / best["Clarabel"]["t"] - 1
        report.bar(f"n {n}: t beside Clarabel's", f"{off:+.0e}", "within 1e-6", abs(off) <= 1e-6)
        if n == 200:
            times = ratio(best, "Clarabel")
            report.bar(
                "n 200, gap 1e-7: Clarabel over ours", f"{times:.0f}×", "≥ 100×", times >= 100
            )
    job = {"n": 2000, "gap": 1e-3, **base}
    best = race(job, ["widemargin"], 2)
    report.rows(job, best)
    spent = best["widemargin"]["seconds"]
    report.bar("n 2000, gap 1e-3", f"{spent:.1f} s", "≤ 60 s", spent <= 60)
    if long:
        job = {"n": 10000, "gap": 1e-3, "threads": 2, **base}
        begin = time.time()
        best = race(job, ["widemargin"], 1)
        report.rows(job, best)
        spent = time.time() - begin
        report.bar("n 10000, two threads", f"{spent:.0f} s of wall time", "≤ 900 s", spent <= 900)


def signed(report, long):
    """Signed weights, ten classes."""
    report.head("Signed weights, ten classes, C = 1.5, gap 1e-4, jitter 1e-6")
    sizes = [(n, 3) for n in (20, 30, 50, 100, 400, 600, 1000)]
    for n, p in [*sizes, (50, 10), (100, 10)]:
        job = {"n": n, "p": p, "binary": False, "machine": "cs", "C": 1.5, "gap": 1e-4}
        job["weights"] = "signed"
        names = ["widemargin"]
        if n <= 100 and p == 3:
            names.append("SCS")
        if n <= 30 or (p == 10 and n == 50):
            names.append("Clarabel")
        best = race(job, names, 2 if n <= 100 else 1)
        report.rows(job, best)
        ours = best["widemargin"]
        report.line(
            f"<!-- smallest eigenvalue {ours.get('smallest')}, weights {ours.get('weights')} -->"
        )
        if (n, p) == (100, 3):
            times = ratio(best, "SCS")
            report.bar("n 100, p 3: SCS over ours", f"{times:.0f}×", "≥ 30×", times >= 30)
        if (n, p) == (1000, 3):
            spent = ours.get("seconds", float("inf"))
            report.bar("n 1000, p 3", f"{spent:.0f} s", "≤ 120 s", spent <= 120)
        if p == 10:
            gap = ours.get("gap", float("inf"))
            report.bar(f"n {n}, p 10: certified gap", f"{gap:.0e}", "≤ 1e-4", gap <= 1e-4)


def growth(report, long):
    """Time and memory against rows, kernels and classes."""
    report.head("Growth with the number of rows, two classes, C = 10, gap 1e-3")
    binary = {"p": 10, "binary": True, "machine": "c-svc", "C": 10, "gap": 1e-3}
    for n in (500, 1000, 2000, 4000, 8000):
        job = {"n": n, **binary}
        report.rows(job, race(job, ["widemargin"], 2 if n < 4000 else 1))
    report.head("Growth with the number of kernels, two classes, C = 10, gap 1e-3")
    for p in (2, 4, 8, 16, 32, 64):
        job = {**binary, "n": 1000, "p": p}
        report.rows(job, race(job, ["widemargin"], 2))
    report.head(
        "Growth with the number of classes, Crammer and Singer's machine, C = 1.5, gap 1e-3"
    )
    for classes in (2, 5, 10, 26):
        job = {"n": 1000, "p": 10, "binary": False, "machine": "cs", "C": 1.5, "gap": 1e-3}
        job["classes"] = classes
        report.line(f"| | | {classes} classes | | | | | | |")
        report.rows(job, race(job, ["widemargin"], 1))


PARTS = {"binary": binary, "crammer-singer": crammer_singer, "signed": signed, "growth": growth}


def main(words):
    """Measure, print and write the report of everything."""
    report = Report()
    for part in [word for word in words if word in PARTS] or PARTS:
        PARTS[part](report, "long" in words)
    if any(word in PARTS for word in words):
        return
    import sklearn

    processor = platform.processor() or platform.machine()
    lines = [
        "# Learnt kernels beside other programs\n",
        f"`bench/kernels_learned.py`, {time.strftime('%Y-%m-%d')}, {processor}, {os.cpu_count()} cores, "
        f"scikit-learn {sklearn.__version__}; what is measured and how is said in the script.\n",
        "| | measured | wanted | |\n|--|--|--|--|",
        *report.bars,
        *report.text,
    ]
    REPORT.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    if sys.argv[1:2] == ["one"]:
        one(json.loads(sys.argv[2]))
    else:
        main(sys.argv[1:])
