"""Maximum-margin clustering and the robust relaxations: time, memory and certified gap, bar by bar.

    python bench/clustering.py [certificates] [scs] [mnist] [large] [robust] [scale] [--threads N]

The certificates are those of MMC-2 on scikit-learn's digits 3 and 8 (first n/2 of each, Gaussian width 0.6 × median
distance, β 0.01, balance ⌈n/10⌉), and `scs` gives the same problems to SCS (the package scs; its accuracy 1e-6, without
a certificate); `mnist` and `scale` read WIDEMARGIN_DATA and are skipped without it. Every part runs in
a process of its own, so that the peak memory is its own. Needs the package with an optimised build. Limits are on wall
time, or on processor time with one thread, which other work on the machine changes less.
"""

from __future__ import annotations

import gzip
import json
import lzma
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import scipy.sparse
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits, load_svmlight_file

from widemargin import MaxMarginClustering, RobustSVC

FOLDER = os.environ.get("WIDEMARGIN_DATA")
THREADS = int(sys.argv[sys.argv.index("--threads") + 1]) if "--threads" in sys.argv else 2


def width_of(X, factor):
    rows = X[:: max(1, len(X) // 1000)]
    square = (rows * rows).sum(1)
    distances = np.sqrt(np.maximum(square[:, None] + square - 2 * rows @ rows.T, 0))
    return factor * np.median(distances[np.triu_indices(len(rows), 1)])


def idx(name):
    with gzip.open(Path(FOLDER) / "mnist" / name) as file:
        data = file.read()
    rank = data[3]
    shape = [int.from_bytes(data[4 + 4 * i : 8 + 4 * i], "big") for i in range(rank)]
    return np.frombuffer(data, np.uint8, offset=4 + 4 * rank).reshape(shape[0], -1)


def mnist(classes, count=None):
    X, y = idx("train-images-idx3-ubyte.gz"), idx("train-labels-idx1-ubyte.gz").ravel()
    if count is None:
        rows = np.flatnonzero(np.isin(y, classes))
    else:
        rows = np.concatenate([np.flatnonzero(y == c)[: count // len(classes)] for c in classes])
    return X[rows] / 255.0, y[rows]


def error(y, labels):
    wrong = np.mean((y == np.unique(y)[0]) == (labels == 0))
    return 100 * min(wrong, 1 - wrong)


def timed(model, *data):
    wall, cpu = time.perf_counter(), time.process_time()
    model.fit(*data)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu, "mib": peak}


def certified(X, y, gap, seconds, repeats=1):
    gamma = 1 / width_of(X, 0.6) ** 2
    best = None
    for _ in range(repeats):
        model = MaxMarginClustering(
            gamma=gamma,
            beta=0.01,
            balance=float(np.ceil(0.1 * len(X))),
            method="relaxation",
            tol=gap,
            random_state=0,
            n_jobs=THREADS,
        )
        spent = timed(model, X)
        if best is None or spent["cpu"] < best["cpu"]:
            best = spent
    return {
        **best,
        "value": model.relaxation_,
        "gap": model.gap_,
        "objective": model.objective_,
        "error": error(y, model.labels_),
        "wanted": [gap, seconds],
    }


def digits(n):
    X, y = load_digits(return_X_y=True)
    rows = np.concatenate([np.flatnonzero(y == c)[: n // 2] for c in (3, 8)])
    return X[rows] / 16, y[rows]


def part_digits(n, seconds):
    return certified(*digits(n), 1e-8, seconds, 5 if n < 300 else 2)


def triangle(order):
    """Rows and columns of a lower triangle, column by column, and what SCS scales its entries with."""
    columns, rows = np.triu_indices(order)
    return rows, columns, np.where(rows == columns, 1.0, np.sqrt(2))


def relaxation(K, beta, balance):
    """The relaxation for SCS: variables are M below its diagonal, mu, nu and zeta (Xu 2007, theorem 1, scaled by beta)."""
    n = len(K)
    pairs = n * (n - 1) // 2
    place = np.full((n, n), -1)
    i, j, _ = triangle(n)
    below = i > j
    place[i[below], j[below]] = np.arange(pairs)
    mu, nu, zeta = pairs, pairs + n, pairs + 2 * n
    parts, constant = [], []

    def add(rows, columns, values, right):
        shape = (len(right), zeta + 1)
        parts.append(scipy.sparse.coo_matrix((values, (rows, columns)), shape))
        constant.append(right)

    # mu, nu >= 0 and balance^2 - sum of M >= 0.
    at = np.arange(2 * n)
    add(at, mu + at, -np.ones(2 * n), np.zeros(2 * n))
    add(np.zeros(pairs, int), np.arange(pairs), 2 * np.ones(pairs), np.array([balance**2 - n]))
    # M.
    add(np.flatnonzero(below), place[i[below], j[below]], -np.full(pairs, np.sqrt(2)), 1.0 - below)
    # [K o M, e + mu - beta nu; ., 2 (zeta - sum of nu)].
    i, j, scale = triangle(n + 1)
    inner, border = np.flatnonzero((i > j) & (i < n)), np.flatnonzero((i == n) & (j < n))
    k, last = j[border], len(i) - 1
    right = np.zeros(len(i))
    diagonal = (i == j) & (i < n)
    right[diagonal] = np.diag(K)
    right[border] = np.sqrt(2)
    rows = [inner, border, border, np.full(n, last), [last]]
    columns = [place[i[inner], j[inner]], mu + k, nu + k, nu + np.arange(n), [zeta]]
    values = [
        -scale[inner] * K[i[inner], j[inner]],
        -np.full(n, np.sqrt(2)),
        np.full(n, np.sqrt(2) * beta),
        np.full(n, 2.0),
        [-2.0],
    ]
    add(*(np.concatenate(group) for group in (rows, columns, values)), right)
    cost = np.zeros(zeta + 1)
    cost[zeta] = beta
    data = {"A": scipy.sparse.vstack(parts).tocsc(), "b": np.concatenate(constant), "c": cost}
    return data, {"l": 2 * n + 1, "s": [n, n + 1]}


def part_scs(n):
    import scs

    X, _ = digits(n)
    square = (X * X).sum(1)
    distances = np.maximum(square[:, None] + square - 2 * X @ X.T, 0)
    data, cone = relaxation(np.exp(-distances / width_of(X, 0.6) ** 2), 0.01, np.ceil(0.1 * n))
    wall, cpu = time.perf_counter(), time.process_time()
    solver = scs.SCS(data, cone, eps_abs=1e-6, eps_rel=1e-6, max_iters=1_000_000, verbose=False)
    found = solver.solve()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    value = found["info"]["pobj"]
    return {"wall": wall, "cpu": cpu, "mib": peak, "value": value, "wanted": [None, None]}


def part_mnist(n, gap, seconds):
    return certified(*mnist((3, 8), n), gap, seconds)


def part_robust(loss, C):
    X, y = load_digits(return_X_y=True)
    rows = np.concatenate([np.flatnonzero(y == c)[:100] for c in (3, 8)])
    labels = np.where(y[rows] == 3, 1, -1) * np.where(
        np.random.default_rng(0).uniform(size=200) < 0.1, -1, 1
    )
    model = RobustSVC(
        loss=loss,
        C=C,
        method="relaxation",
        gamma=0.05,
        tol=1e-3,
        random_state=0,
        n_jobs=THREADS,
    )
    spent = timed(model, X[rows] / 16, labels)
    return {
        **spent,
        "value": model.relaxation_,
        "gap": model.gap_,
        "objective": model.objective_,
        "wanted": [1e-3, None],
    }


def part_scale(name):
    if name == "ijcnn1":
        with lzma.open(Path(FOLDER) / name / "ijcnn1.train.libsvm.xz") as file:
            X, y = load_svmlight_file(file)
        X = X.toarray()
        balance = 0.9
    elif name == "mnist 3-8":
        X, y = mnist((3, 8))
        balance = 0.1
    else:
        X, y = mnist((0, 2, 4, 6, 8, 1, 3, 5, 7, 9))
        X, y, balance = X[:50_000], y[:50_000] % 2, 0.1
    start = time.process_time()
    kmeans = KMeans(2, n_init=3, random_state=0).fit_predict(X)
    peer = time.process_time() - start
    model = MaxMarginClustering(
        gamma=1 / width_of(X, 0.6) ** 2,
        balance=balance,
        beta=1.0,
        method="iterative",
        random_state=0,
        n_jobs=THREADS,
    )
    spent = timed(model, X)
    return {
        **spent,
        "n": len(X),
        "objective": model.objective_,
        "error": error(y, model.labels_),
        "kmeans": error(y, kmeans),
        "kmeans cpu": peer,
        "wanted": [None, 60],
    }


PARTS = {
    "certificates": [("digits", 100, 0.1), ("digits", 200, 0.4), ("digits", 340, 2.0)],
    "scs": [("scs", 100), ("scs", 200), ("scs", 340)],
    "mnist": [("mnist", 1000, 1e-4, 60.0)],
    "large": [("mnist", 5000, 1e-2, 900.0)],
    "robust": [("robust", loss, C) for loss in ("ramp", "trimmed") for C in (1.0, 0.1)],
    "scale": [("scale", "ijcnn1"), ("scale", "mnist 3-8"), ("scale", "mnist even-odd")],
}


def main():
    """Run the parts that were named and print a line each."""
    if "--one" in sys.argv:
        name, *arguments = json.loads(sys.argv[sys.argv.index("--one") + 1])
        print(json.dumps(globals()[f"part_{name}"](*arguments)))
        return
    chosen = [arg for arg in sys.argv[1:] if arg in PARTS] or [
        "certificates",
        "scs",
        "mnist",
        "robust",
        "scale",
    ]
    print("| problem | value or objective | gap | wall s | CPU s | peak MiB | error % | wanted | |")
    print("|" + " --- |" * 9)
    for part in chosen:
        for job in PARTS[part]:
            if job[0] in ("mnist", "scale") and FOLDER is None:
                print(f"{job}: skipped, set WIDEMARGIN_DATA")
                continue
            command = [
                sys.executable,
                __file__,
                "--one",
                json.dumps(job),
                "--threads",
                str(THREADS),
            ]
            found = json.loads(
                subprocess.run(command, check=True, capture_output=True, text=True).stdout
            )
            gap, limit = found["wanted"]
            passed = (gap is None or found["gap"] <= gap) and (
                limit is None or found["cpu" if THREADS == 1 else "wall"] <= limit
            )
            if "gap" in found:
                shown = f"{found['gap']:.1e}"
            elif "kmeans" in found:
                shown = f"k-means {found['kmeans']:.1f} % in {found['kmeans cpu']:.1f} s"
            else:
                shown = ""
            value = found["value"] if "value" in found else found["objective"]
            wrong = f"{found['error']:.1f}" if "error" in found else ""
            wanted = " in ".join(
                filter(None, [f"{gap:.0e}" if gap else "", f"{limit} s" if limit else ""])
            )
            verdict = ("pass" if passed else "FAIL") if wanted else ""
            print(
                f"| {' '.join(map(str, job[:3] if job[0] == 'robust' else job[:2]))} | {value:.6g} | {shown} | {found['wall']:.2f} | {found['cpu']:.2f} | "
                f"{found['mib']:.0f} | {wrong} | {wanted} | {verdict} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
