"""Semi-supervised classification beside scikit-learn's machines and SVMlin's measurements.

    WIDEMARGIN_DATA=folder python bench/semi_supervised.py [splits] [large] [names ...]

needs the package with an optimised build. `splits`: 5 splits `default_rng(s).permutation(n)` of
eight data sets, the first L rows labelled, text as tf-idf; the share of the classes given and not
given. Where SVMLIN names the program of Sindhwani and Keerthi (svmlin 1.0), its multi-switch
machine runs beside ours on the same rows for the times. `large`: 50 000 rows and more on two
threads. Names of data sets keep to those.
"""

from __future__ import annotations

import lzma
import os
import subprocess
import sys
import tempfile
import time
import warnings
from functools import lru_cache
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.cluster import KMeans
from sklearn.datasets import load_svmlight_file
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier
from sklearn.svm import SVC

import widemargin

#: Rows and labelled rows, the best measured errors of SVMlin, UniverSVM, SVM-light and
#: scikit-learn with the share given (with their standard error) and not given, and the processor
#: time of SVMlin's multi-switch machine, all from an earlier measurement.
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

#: Most rows that scikit-learn's machines of many rows are asked to take.
MOST_ROWS = 5000


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


def others(X, y, labelled: int) -> dict[str, float]:
    """Return errors of scikit-learn's machines on the same split, some only for few rows."""
    known = np.where(np.arange(len(y)) < labelled, y, -1)
    truth = y[labelled:]

    def error(machine, rows, labels) -> float:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = machine.fit(rows, labels).predict(X[labelled:])
        return float(100 * (found != truth).mean())

    linear = SVC(kernel="linear", random_state=0)
    errors = {"SVC": error(linear, X[:labelled], y[:labelled])}
    if len(y) <= MOST_ROWS:
        sure = SVC(kernel="linear", probability=True, random_state=0)
        errors["self-training"] = error(SelfTrainingClassifier(sure), X, known)
        dense = X.toarray() if sp.issparse(X) else X
        spreading = LabelSpreading(kernel="knn", n_neighbors=10)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = spreading.fit(dense, known).transduction_
        errors["label spreading"] = float(100 * (found[labelled:] != truth).mean())
    return errors


def mean(values: list[float]) -> str:
    """Return mean and standard error as text."""
    if not values:
        return "–"
    middle, error = spread(values)
    return f"{middle:.1f} ± {error:.1f}"


def spread(values: list[float]) -> tuple[float, float]:
    """Return mean and standard error."""
    return float(np.mean(values)), float(np.std(values, ddof=1) / len(values) ** 0.5)


#: Methods, and whether the share of the classes is told.
CASES = {
    "ours, share given": {"method": "auto"},
    "ours, share not given": {"method": "auto"},
    "ours, switching, share given": {"method": "switching"},
}
PEERS = ("SVC", "self-training", "label spreading")


def measure(name: str) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
    """Return errors and processor seconds of all splits of a data set."""
    errors: dict[str, list[float]] = {case: [] for case in (*CASES, *PEERS, "svmlin")}
    times: dict[str, list[float]] = {case: [] for case in (*CASES, "svmlin")}
    for seed in range(SPLITS):
        X, y, labelled = split(name, seed)
        if len(np.unique(y[:labelled])) < 2:
            continue
        known = np.where(np.arange(len(y)) < labelled, y, -1)
        truth, share = y[labelled:], y[labelled:].mean()
        for case, parameters in CASES.items():
            prior = "auto" if "not" in case else share
            model = widemargin.SemiSupervisedSVC(class_prior=prior, n_jobs=1, **parameters)
            started = time.process_time()
            model.fit(X, known)
            times[case].append(time.process_time() - started)
            errors[case].append(100 * (model.transduction_[labelled:] != truth).mean())
        for case, error in others(X, y, labelled).items():
            errors[case].append(error)
        if "SVMLIN" in os.environ:
            error, seconds = svmlin(X, y, labelled, share)
            errors["svmlin"].append(error)
            times["svmlin"].append(seconds)
    return errors, times


def splits(names: list[str]) -> None:
    """Errors on the unlabelled rows and processor seconds of a fit."""
    columns = [*PEERS, "ours, switching, share given", "ours, share given", "best of others"]
    columns += ["", "ours, share not given", "best of others", "", "ours, CPU s"]
    columns += ["switching, CPU s", "SVMlin multi-switch, CPU s"]
    print("| data (rows, labelled) | " + " | ".join(columns) + " |")
    print("|---" * (len(columns) + 1) + "|")
    passed = {"share given": 0, "share not given": 0}
    for name in names:
        rows, labelled, (given_best, given_error), best, recorded = SETS[name]
        errors, times = measure(name)
        rows = rows or load(name)[0].shape[0]
        cells = [f"{name} ({rows}, {labelled})", *(mean(errors[peer]) for peer in PEERS)]
        cells.append(mean(errors["ours, switching, share given"]))
        for case, peers in (("share given", given_best), ("share not given", best)):
            middle, error = spread(errors[f"ours, {case}"])
            holds = middle <= peers + max(error, given_error)
            passed[case] += holds
            cells += [f"{middle:.1f} ± {error:.1f}", f"{peers:.1f}", "pass" if holds else "FAIL"]
        seconds = [np.mean(times[c]) for c in CASES if "not" not in c]
        theirs = np.nanmean(times["svmlin"]) if times["svmlin"] else recorded
        cells += [*(f"{value:.2f}" for value in seconds), f"{theirs:.2f}"]
        print("| " + " | ".join(cells) + " |", flush=True)
    print(f"\nRows no worse by more than one standard error: {passed} of {len(names)}")


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
    names = [name for name in asked if name in SETS]
    if "splits" in asked or names:
        splits(names or list(SETS))
    if "large" in asked:
        large()


if __name__ == "__main__":
    main()
