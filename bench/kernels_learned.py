"""Learnt kernel weights beside a cutting plane written on scikit-learn's precomputed SVC.

    WIDEMARGIN_DATA=folder python bench/kernels_learned.py [binary] [crammer-singer] [signed]

Data and settings: MNIST, rows ``default_rng(0).permutation(60000)[:n]`` of unit norm; the kernels linear,
(1 + x'z)², (1 + x'z)³ and Gaussians with γ = ``logspace(-3, 3, p - 3, base=2)``; test rows are the first
1 000 of t10k; C = 10, digits below 5 against the rest. Processor seconds of one thread, kernel values
included on both sides; t is twice the primal objective.
"""

import resource
import sys
import time

import numpy as np
from linear import digits
from scipy.optimize import linprog
from sklearn.svm import SVC

from widemargin import MultipleKernelSVC

GAP = 1e-4


def table(n, p):
    """Return rows, labels and kernels for training, and rows and labels for testing."""
    (X, y), (held, truth) = digits("train"), digits("t10k")
    chosen = np.random.default_rng(0).permutation(60000)[:n]
    X, y, held, truth = dense(X[chosen]), y[chosen], dense(held[:1000]), truth[:1000]
    poly = [{"kernel": "poly", "gamma": 1, "coef0": 1, "degree": degree} for degree in (2, 3)]
    widths = np.logspace(-3, 3, p - 3, base=2)
    gaussian = [{"kernel": "rbf", "gamma": float(width)} for width in widths]
    return X, y, ["linear", *poly, *gaussian], held, truth


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


def silp(X, y, kernels, held, C):
    """Return t, the labels of `held` and the rounds of a cutting plane on scikit-learn's SVC."""
    n, p = len(y), len(kernels)
    products = X @ X.T
    tables = [values(kernel, products) for kernel in kernels]
    factors = [n / np.trace(K) for K in tables]
    tables = [K * factor for K, factor in zip(tables, factors, strict=True)]
    weights, cuts, constants, best, rounds = np.full(p, 1 / p), [], [], np.inf, 0
    while True:
        rounds += 1
        machine = SVC(kernel="precomputed", C=C, tol=1e-4, cache_size=1000)
        machine.fit(sum(w * K for w, K in zip(weights, tables, strict=True) if w > 0), y)
        at, beta = machine.support_, machine.dual_coef_[0]
        forms = np.array([beta @ K[np.ix_(at, at)] @ beta for K in tables])
        total = np.abs(beta).sum()
        objective = total - 0.5 * weights @ forms
        if objective < best:
            best, kept = objective, (weights, machine)
        cuts.append(0.5 * forms)
        constants.append(total)
        rows = -np.hstack([np.array(cuts), np.ones((len(cuts), 1))])
        found = linprog(
            np.append(np.zeros(p), 1),
            A_ub=rows,
            b_ub=-np.array(constants),
            A_eq=[np.append(np.ones(p), 0)],
            b_eq=[1],
            bounds=[(0, None)] * p + [(None, None)],
        )
        if best - found.fun <= GAP * best:
            break
        weights = np.maximum(found.x[:p], 0)
    weights, machine = kept
    new = held @ X.T
    terms = zip(weights, factors, kernels, strict=True)
    K = sum(w * factor * values(kernel, new) for w, factor, kernel in terms if w > 0)
    return 2 * best, machine.predict(K), rounds


def binary():
    """Print the table of two classes and non-negative weights."""
    print("| n | kernels | machine | s | t | accuracy | rounds |\n|--|--|--|--|--|--|--|")
    for n, p in [(1000, 10), (3000, 10), (5000, 10), (1000, 100), (300, 1000)]:
        X, y, kernels, held, truth = table(n, p)
        y, truth = (y < 5).astype(int), (truth < 5).astype(int)
        begin = time.process_time()
        model = MultipleKernelSVC(
            kernels, machine="c-svc", C=10, tol=GAP, cache_size=3000, n_jobs=1
        ).fit(X, y)
        ours = time.process_time() - begin
        line = f"{2 * model.objective_:.2f} | {model.score(held, truth):.3f} | {model.n_iter_} |"
        print(f"| {n} | {p} | widemargin | {ours:.2f} | {line}", flush=True)
        begin = time.process_time()
        t, labels, rounds = silp(X, y, kernels, held, 10)
        theirs = time.process_time() - begin
        print(
            f"| {n} | {p} | cutting plane on SVC | {theirs:.2f} | {t:.2f} | "
            f"{(labels == truth).mean():.3f} | {rounds} |",
            flush=True,
        )


def crammer_singer():
    """Print the table of ten classes and ten kernels."""
    print("| n | gap | s | t | accuracy |\n|--|--|--|--|--|")
    for n, gap in [(200, 1e-6), (2000, 1e-3)]:
        X, y, kernels, held, truth = table(n, 10)
        begin = time.process_time()
        model = MultipleKernelSVC(kernels, C=1.5, tol=gap, cache_size=3000, n_jobs=1).fit(X, y)
        spent = time.process_time() - begin
        t, right = 2 * model.objective_, model.score(held, truth)
        print(f"| {n} | {model.gap_:.1e} | {spent:.2f} | {t:.3f} | {right:.3f} |", flush=True)


def signed():
    """Print the table of signed weights, ten classes."""
    print("| n | kernels | gap | s | t | smallest eigenvalue |\n|--|--|--|--|--|--|")
    for n, p in [(50, 3), (100, 3), (1000, 3), (50, 10)]:
        X, y, kernels, _, _ = table(n, max(p, 4))
        begin = time.process_time()
        model = MultipleKernelSVC(
            kernels[:p], C=1.5, tol=1e-4, weights="signed", cache_size=3000, n_jobs=1
        ).fit(X, y)
        spent = time.process_time() - begin
        t, least = 2 * model.objective_, model.smallest_eigenvalue_
        print(f"| {n} | {p} | {model.gap_:.1e} | {spent:.2f} | {t:.4f} | {least:.1e} |", flush=True)


PARTS = {"binary": binary, "crammer-singer": crammer_singer, "signed": signed}

if __name__ == "__main__":
    for part in sys.argv[1:] or PARTS:
        print(f"\n{part}\n")
        PARTS[part]()
    print(f"\nmost memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")
