"""Semi-supervised classification beside SVMlin's measurements, k-means, spectral clustering and plain SVMs.

    WIDEMARGIN_DATA=folder python bench/semi_supervised.py [splits] [large]

needs the package with an optimised build. `splits`: 5 splits `default_rng(s).permutation(n)` of eight data
sets, the first L rows labelled, text as tf-idf; the share of the classes given and not given. Where SVMLIN names the
program of Sindhwani and Keerthi (svmlin 1.0), its multi-switch machine runs beside ours on the same rows for the
times. `large`: 50 000 rows and more on two threads.
"""

from __future__ import annotations

import lzma
import os
import subprocess
import sys
import tempfile
import time
from functools import lru_cache
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.cluster import KMeans
from sklearn.datasets import load_svmlight_file
from sklearn.feature_extraction.text import TfidfTransformer

import widemargin

#: Rows and labelled rows, the best measured errors of others with the share given (with their standard error)
#: and not given, and the processor time of SVMlin's multi-switch machine.
SETS = {
    "pcmac": (None, 50, (16.2, 1.6), 18.5, 0.33),
    "relathe": (None, 50, (16.2, 0.5), 16.7, 0.35),
    "usps 3/8": (None, 20, (4.3, 0.8), 5.1, 0.41),
    "usps 1/7": (100, 10, (0.2, 0.2), 0.8, 0.02),
    "usps 2/3": (100, 10, (6.0, 1.0), 7.6, 0.02),
    "australian": (100, 10, (23.6, 1.5), 23.6, 0.02),
    "news20 comp.*": (None, 100, (11.7, 0.1), 12.2, 2.3),
    "a9a": (None, 200, (18.6, 0.3), 18.5, 1.9),
}
SPLITS = 5


def read(name: str):
    """Return rows and labels of a compressed LIBSVM file."""
    with lzma.open(Path(os.environ["WIDEMARGIN_DATA"]) / name) as file:
        return load_svmlight_file(file)


@lru_cache(maxsize=1)
def load(name: str):
    """Return rows and labels 0 and 1 of a data set."""
    if name in ("pcmac", "relathe"):
        X, y = read(f"{name}/{name}.libsvm.xz")
        return TfidfTransformer().fit_transform(X).tocsr(), (y == y.max()).astype(int)
    if name.startswith("usps"):
        X, y = read("usps/usps.train.libsvm.xz")
        first, second = (int(digit) for digit in name[5:].split("/"))
        chosen = (y == first) | (y == second)
        return X[chosen].toarray(), (y[chosen] == second).astype(int)
    if name == "australian":
        X, y = read("australian/australian.libsvm.xz")
        return X.toarray(), (y > y.min()).astype(int)
    if name == "a9a":
        X, y = read("a9a/a9a.train.libsvm.xz")
        return X, (y > 0).astype(int)
    X, y = read("news20-bydate-counts/news20-bydate-counts.train.libsvm.xz")
    return TfidfTransformer().fit_transform(X).tocsr(), ((y >= 1) & (y <= 5)).astype(int)


def split(name: str, seed: int):
    """Return rows, labels and the number of labelled rows of a split."""
    rows, labelled = SETS[name][:2]
    X, y = load(name)
    order = np.random.default_rng(seed).permutation(X.shape[0])[:rows]
    X, y = X[order], y[order]
    if name == "australian":
        deviation = X.std(axis=0)
        X = (X - X.mean(axis=0)) / np.where(deviation > 0, deviation, 1)
    return X, y, labelled


def svmlin(X, y, labelled: int, share: float) -> tuple[float, float]:
    """Return error and processor time of SVMlin's multi-switch machine, which tells its time."""
    table = sp.csr_matrix(X)
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/x", "w") as file:
            for i in range(table.shape[0]):
                part = slice(table.indptr[i], table.indptr[i + 1])
                pairs = zip(table.indices[part], table.data[part], strict=True)
                file.write(" ".join(f"{j + 1}:{v:.7g}" for j, v in sorted(pairs)) + "\n")
        signs = np.where(np.arange(len(y)) < labelled, 2 * y - 1, 0)
        Path(f"{folder}/y").write_text("".join(f"{sign}\n" for sign in signs))
        options = ["-A", "2", "-W", "0.001", "-U", "1", "-R", f"{share:.6f}"]
        command = [os.environ["SVMLIN"], *options, "x", "y"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if not os.path.exists(f"{folder}/x.outputs"):
            return np.nan, np.nan
        values = np.loadtxt(f"{folder}/x.outputs")
    took = [line for line in done.stdout.splitlines() if "Transductive" in line and "took" in line]
    wrong = (values[labelled:] > 0) != (y[labelled:] == 1)
    return 100 * wrong.mean(), float(took[-1].split("took")[1].split()[0])


def mean(values: list[float]) -> tuple[float, float]:
    """Return mean and standard error."""
    return float(np.mean(values)), float(np.std(values, ddof=1) / len(values) ** 0.5)


def splits() -> None:
    """Errors on the unlabelled rows and processor seconds of a fit."""
    print(
        "| data | L | plain SVM | ours, share given | best of others | | ours, share not given | "
        "best of others | | ours, CPU s | SVMlin multi-switch, CPU s | |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|---|---|")
    passed = {"given": 0, "not given": 0, "time": 0}
    for name, (_, labelled, (given_best, given_error), best, recorded) in SETS.items():
        errors: dict[str, list[float]] = {"plain": [], "given": [], "not given": [], "svmlin": []}
        times: list[float] = []
        peer: list[float] = []
        for seed in range(SPLITS):
            X, y, _ = split(name, seed)
            if len(np.unique(y[:labelled])) < 2:
                continue
            known = np.where(np.arange(len(y)) < labelled, y, -1)
            truth, share = y[labelled:], y[labelled:].mean()
            plain = widemargin.LinearSVC().fit(X[:labelled], y[:labelled])
            errors["plain"].append(100 * (plain.predict(X[labelled:]) != truth).mean())
            for case, prior in (("given", share), ("not given", "auto")):
                least = np.inf
                for _ in range(3):
                    started = time.process_time()
                    model = widemargin.SemiSupervisedSVC(class_prior=prior, n_jobs=1)
                    model.fit(X, known)
                    least = min(least, time.process_time() - started)
                errors[case].append(100 * (model.transduction_[labelled:] != truth).mean())
                if case == "given":
                    times.append(least)
            if "SVMLIN" in os.environ:
                error, seconds = svmlin(X, y, labelled, share)
                errors["svmlin"].append(error)
                peer.append(seconds)
        ours, others = np.mean(times), np.nanmean(peer) if peer else np.nan
        others = recorded if np.isnan(others) else others
        cells = [f"{name} ({len(y)})", str(labelled), f"{np.mean(errors['plain']):.1f}"]
        for case, peers in (("given", given_best), ("not given", best)):
            value, error = mean(errors[case])
            wide = max(error, given_error)
            passed[case] += value <= peers + wide
            verdict = "pass" if value <= peers + wide else "FAIL"
            cells += [f"{value:.1f} ± {error:.1f}", f"{peers:.1f}", verdict]
        passed["time"] += ours <= others
        cells += [f"{ours:.3f}", f"{others:.2f}", "pass" if ours <= others else "FAIL"]
        print("| " + " | ".join(cells) + " |", flush=True)
    print(f"\nRows no worse by more than one standard error: {passed} of {len(SETS)}")


def digits():
    """Return MNIST, even against odd digits."""
    folder = Path(os.environ["WIDEMARGIN_DATA"]) / "mnist"
    import gzip

    rows = gzip.decompress((folder / "train-images-idx3-ubyte.gz").read_bytes())[16:]
    labels = gzip.decompress((folder / "train-labels-idx1-ubyte.gz").read_bytes())[8:]
    X = np.frombuffer(rows, np.uint8).reshape(-1, 784).astype(np.float32) / 255
    return X, np.frombuffer(labels, np.uint8).astype(int)


def scaled(X):
    """Return dense rows with mean 0 and deviation 1."""
    X = X.toarray() if sp.issparse(X) else X
    return ((X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-9)).astype(np.float32)


def large() -> None:
    """Time on two threads and errors, beside k-means and a plain SVM on the labelled rows."""
    X, y = digits()
    ijcnn, sides = read("ijcnn1/ijcnn1.train.libsvm.xz")
    cover, kinds = read("covtype-15120/covtype-15120.libsvm.xz")
    problems = {
        "MNIST, odd digits": (X, y % 2, 500, {}),
        "MNIST, digits 0-4": (X, (y < 5).astype(int), 500, {}),
        "MNIST, ten digits": (X, y, 500, {}),
        "MNIST, odd digits, Gaussian": (X, y % 2, 500, {"kernel": "rbf", "gamma": 0.02}),
        "ijcnn1": (scaled(ijcnn), (sides > 0).astype(int), 500, {}),
        "ijcnn1, Gaussian": (scaled(ijcnn), (sides > 0).astype(int), 500, {"kernel": "rbf"}),
        "covtype, types 1-2": (scaled(cover), (kinds <= 2).astype(int), 500, {}),
    }
    print("| data | rows | L | ours, s | CPU s | error | plain SVM | k-means, matched | status |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name, (rows, labels, labelled, options) in problems.items():
        order = np.random.default_rng(0).permutation(len(labels))
        table, truth = rows[order], labels[order]
        known = np.where(np.arange(len(truth)) < labelled, truth, -1)
        started, spent = time.perf_counter(), time.process_time()
        model = widemargin.SemiSupervisedSVC(n_jobs=2, random_state=0, **options).fit(table, known)
        wall, spent = time.perf_counter() - started, time.process_time() - spent
        hidden = truth[labelled:]
        error = 100 * (model.transduction_[labelled:] != hidden).mean()
        kernel = {k: v for k, v in options.items() if k == "gamma"}
        plain = widemargin.SVC(**kernel) if options else widemargin.LinearSVC()
        plain.fit(table[:labelled], truth[:labelled])
        supervised = 100 * (plain.predict(table[labelled:]) != hidden).mean()
        clusters = KMeans(len(np.unique(truth)), n_init=1, random_state=0).fit_predict(table)
        matched = 100 - 100 * sum(
            np.bincount(truth[clusters == c]).max() for c in np.unique(clusters)
        ) / len(truth)
        cells = [name, str(len(truth)), str(labelled), f"{wall:.1f}", f"{spent:.1f}"]
        cells += [f"{error:.1f}", f"{supervised:.1f}", f"{matched:.1f}", model.status_]
        print("| " + " | ".join(cells) + " |", flush=True)


def main() -> None:
    """Run what is asked for."""
    if "WIDEMARGIN_DATA" not in os.environ:
        print("WIDEMARGIN_DATA is not set: nothing to measure")
        return
    asked = sys.argv[1:] or ["splits", "large"]
    if "splits" in asked:
        splits()
    if "large" in asked:
        large()


if __name__ == "__main__":
    main()
