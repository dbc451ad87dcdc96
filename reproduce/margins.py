"""Margins without labels and with wrong labels, ours beside the numbers of Xu's thesis (2007).

Tables 3.1, 3.2, 4.1 and 4.2, figures 3.1 and 4.1, the curves of chapter 6, and label noise on real
data.

    python reproduce/margins.py [PART ...] [--quick]

Parts are sphere, clusters, labelled, outliers, phonemes and noise; without a name all run. Data:
scikit-learn's digits and generated shapes; `clusters`, `labelled` and `noise` also read data/ and,
where WIDEMARGIN_DATA names their folder, further sets; what is missing is skipped with a message.
"""

from __future__ import annotations

import lzma
import os
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.cluster import KMeans, SpectralClustering
from sklearn.datasets import load_breast_cancer, load_digits, load_svmlight_file
from sklearn.metrics import confusion_matrix
from sklearn.svm import SVC

from widemargin import MaxMarginClustering, RobustSVC, SemiSupervisedSVC

HERE = Path(__file__).resolve().parent.parent
FOLDER = os.environ.get("WIDEMARGIN_DATA")
QUICK = "--quick" in sys.argv
WIDTHS = (0.1, 0.2, 0.35, 0.6, 1.0)


def mis_assigned(truth, labels):
    """Return the percentage of rows that the best matching of clusters with classes gets wrong."""
    table = confusion_matrix(np.unique(truth, return_inverse=True)[1], labels)
    rows, columns = linear_sum_assignment(-table)
    return 100 * (1 - table[rows, columns].sum() / len(truth))


def table(title, header, rows):
    """Print a table of Markdown."""
    print(f"\n## {title}\n")
    print("| " + " | ".join(header) + " |")
    print("|" + " --- |" * len(header))
    for row in rows:
        print("| " + " | ".join(str(cell) for cell in row) + " |", flush=True)


# Shapes: the generators of the thesis are not given.


def circles(rng, radii, count, noise):
    """Return rings with noise."""
    angle = rng.uniform(0, 2 * np.pi, count * len(radii))
    radius = np.repeat(radii, count) + rng.normal(0, noise, count * len(radii))
    X = np.c_[radius * np.cos(angle), radius * np.sin(angle)]
    return X, np.repeat(np.arange(len(radii)), count)


def strokes(rng, lines, count, noise):
    """Return rows on strokes."""
    ends = np.array(lines, float)
    lengths = np.linalg.norm(ends[:, 2:] - ends[:, :2], axis=1)
    which = rng.choice(len(ends), count, p=lengths / lengths.sum())
    at = rng.uniform(size=count)[:, None]
    X = ends[which, :2] * (1 - at) + ends[which, 2:] * at
    return X + rng.normal(0, noise, X.shape)


A = [(0, 0, 0.5, 1), (0.5, 1, 1, 0), (0.25, 0.5, 0.75, 0.5)]
BAR = [(1.6, 0, 1.6, 1)]


def joined(rng, count, classes, step, noise):
    """Return rings in a line."""
    X, y = [], []
    for r in range(classes):
        ring, _ = circles(rng, [1.0], count, noise)
        X.append(ring + np.array([r * step, 0]))
        y += [r] * count
    return np.concatenate(X), np.array(y)


def digits(rng, classes, count):
    """Return images of some digits."""
    X, y = load_digits(return_X_y=True)
    rows = np.concatenate([rng.permutation(np.flatnonzero(y == c))[:count] for c in classes])
    return X[rows] / 16, y[rows]


def two_class_sets(rng):
    """Yield the sets of table 3.1 and the published errors."""
    gaussians = rng.normal(0, 0.9, (80, 2)) + np.repeat([[-1.8, 0], [1.8, 0]], 40, axis=0)
    yield "Gaussians", (gaussians, np.repeat([0, 1], 40)), (1.2, 1.2, 5)
    yield "Circles", circles(rng, [1.0, 2.5], 40, 0.1), (0, 0, 50)
    letters = np.r_[strokes(rng, A, 26, 0.03), strokes(rng, BAR, 26, 0.03)]
    yield "AI", (letters, np.repeat([0, 1], 26)), (0, 0, 38.5)
    yield "Joined circles", joined(rng, 50, 2, 1.0, 0.06), (1.0, 24.0, 50)
    yield "Digits 2-3 (8×8)", digits(rng, (2, 3), 50), (3, 6, 7)
    faces = read("yale32")
    if faces is not None:
        rows = np.isin(faces[1], rng.permutation(np.unique(faces[1]))[:2])
        yield "Two faces (Yale)", (faces[0][rows] / 255, faces[1][rows]), (0, 16.7, 24.4)


def many_class_sets(rng):
    """Yield the sets of table 4.1 and the published errors."""
    shifted = [
        strokes(rng, [(x + 2 * r, y, u + 2 * r, v) for x, y, u, v in A], 20, 0.03) for r in range(3)
    ]
    letters = np.concatenate([*shifted, strokes(rng, [(7, 0, 7, 1)], 20, 0.03)])
    yield "AAAI", (letters, np.repeat(range(4), 20)), (0, 0, 0)
    ring, _ = circles(rng, [3.0], 25, 0.15)
    balls = [rng.normal(0, 0.25, (25, 2)) + np.array([s, 0]) for s in (-1, 1)]
    yield "Circle&Balls", (np.concatenate([ring, *balls]), np.repeat(range(3), 25)), (0, 0, 18.7)
    yield "3Circles", joined(rng, 50, 3, 1.5, 0.06), (4, 4, 47.3)
    x = rng.uniform(0, 3, 90)
    strands = np.repeat([0, 0.6, 1.2], 30)
    y = 0.4 * np.sin(3 * x) + strands + rng.normal(0, 0.04, 90)
    yield "Squiggles", (np.c_[x, y], np.repeat(range(3), 30)), (0, 0, 28.3)
    yield "Digits 6-8-9 (8×8)", digits(rng, (6, 8, 9), 30), (7.2, 12.3, 14.0)
    yield "Digits 0-6-8-9 (8×8)", digits(rng, (0, 6, 8, 9), 30), (11.6, 20.4, 24.1)


def clustered(X, y):
    """Return errors of k-means, spectral clustering at its best width, ours there and at best."""
    classes = len(np.unique(y))
    kmeans = KMeans(classes, n_init=20, random_state=0).fit_predict(X)
    median = median_distance(X)
    spectral, ours, seconds = [], [], 0.0
    for width in WIDTHS:
        gamma = 1 / (width * median) ** 2
        model = SpectralClustering(classes, gamma=gamma, random_state=0)
        spectral.append(mis_assigned(y, model.fit_predict(X)))
        start = time.process_time()
        margin = MaxMarginClustering(
            classes, gamma=gamma, beta=0.01, tol=1e-3, centre=True, random_state=0
        )
        ours.append(mis_assigned(y, margin.fit(X).labels_))
        seconds += time.process_time() - start
    best = int(np.argmin(spectral))
    return mis_assigned(y, kmeans), spectral[best], ours[best], min(ours), seconds / len(WIDTHS)


def clusters():
    """Tables 3.1 and 4.1."""
    header = [
        "data",
        "k-means",
        "spectral",
        "margin, that width",
        "margin, its best width",
        "CPU s a fit",
        "published: SDP",
        "spectral",
        "k-means",
    ]
    draws = 1 if QUICK else 3
    for title, sets in (
        ("Table 3.1: two clusters, % mis-assigned", two_class_sets),
        ("Table 4.1: several clusters, % mis-assigned", many_class_sets),
    ):
        found, published = {}, {}
        for draw in range(draws):
            for name, (X, y), paper in sets(np.random.default_rng(draw)):
                found.setdefault(name, []).append(clustered(X, y))
                published[name] = paper
        rows = []
        for name, results in found.items():
            mean = np.mean(results, axis=0)
            rows.append(
                [name, *(f"{value:.1f}" for value in mean[:4]), f"{mean[4]:.2f}", *published[name]]
            )
        table(f"{title}, mean of {draws} draws", header, rows)


# Figures 3.1 and 4.1: an outlier near the clusters or far from them, on the unit sphere.


def on_sphere(rng, centres, outlier):
    """Return ten rows around every centre (in angles), and an outlier."""
    angles = [rng.uniform(-0.15, 0.15, (10, 2)) + centre for centre in centres]
    phi, theta = np.concatenate([*angles, [outlier]]).T
    X = np.c_[np.sin(theta) * np.cos(phi), np.sin(theta) * np.sin(phi), np.cos(theta)]
    return X, np.repeat(range(len(centres)), 10)


def sphere():
    """Figures 3.1 and 4.1, in numbers: errors on the rows that are no outliers."""
    two, three = [(0.6, 0.8), (1.0, 0.8)], [(0.6, 0.8), (1.0, 0.8), (0.8, 0.4)]
    rows = []
    for centres in (two, three):
        for height in (1.1, 1.4):
            errors = []
            for seed in range(10):
                rng = np.random.default_rng(seed)
                X, y = on_sphere(rng, centres, (0.8, height))
                k = len(centres)
                gamma = 1 / (0.35 * median_distance(X)) ** 2
                kmeans = KMeans(k, n_init=20, random_state=0)
                spectral = SpectralClustering(k, gamma=gamma, random_state=0)
                margin = MaxMarginClustering(
                    k, kernel="linear", beta=0.01, tol=1e-3, centre=True, random_state=0
                )
                found = [machine.fit(X).labels_ for machine in (kmeans, spectral, margin)]
                errors.append([mis_assigned(y, labels[:-1]) for labels in found])
            rows.append([k, height, *(f"{value:.1f}" for value in np.mean(errors, axis=0))])
    table(
        "Figures 3.1 and 4.1: % mis-assigned beside an outlier, mean of 10 draws, linear kernel",
        ["clusters", "θ of the outlier", "k-means", "spectral", "margin"],
        rows,
    )


# Tables 3.2 and 4.2: few labels.


def read(name):
    """Return rows and labels of a set in WIDEMARGIN_DATA, or nothing."""
    path = Path(FOLDER or "") / name.split(".")[0] / f"{name}.libsvm.xz"
    if FOLDER is None or not path.exists():
        print(f"\n{name}: skipped, not in WIDEMARGIN_DATA")
        return None
    with lzma.open(path) as file:
        X, y = load_svmlight_file(file)
    return X.toarray(), y


def median_distance(X):
    """Return the median distance of two rows."""
    distances = np.sqrt(((X[:, None] - X[None]) ** 2).sum(-1))
    return np.median(distances[np.triu_indices(len(X), 1)])


def named_clusters(X, known, gamma):
    """Return labels of spectral clusters named so that the labelled rows are wrong least often."""
    classes = np.unique(known[known >= 0])
    model = SpectralClustering(len(classes), gamma=gamma, random_state=0)
    clusters = model.fit_predict(X)
    votes = np.array([[np.sum((clusters == r) & (known == c)) for c in classes] for r in classes])
    rows, columns = linear_sum_assignment(-votes)
    return classes[columns[np.argsort(rows)][clusters]]


def few_labels(sets, machines, repeats):
    """Return rows of a table: mean and standard error of the errors on rows without a label."""
    rows = []
    for name, X, y, each, published in sets:
        errors = {}
        classes = np.unique(y)
        for seed in range(repeats):
            rng = np.random.default_rng(seed)
            picked = [rng.permutation(np.flatnonzero(y == c))[:each] for c in classes]
            chosen = np.concatenate(picked)
            Z, truth = X[chosen], np.unique(y[chosen], return_inverse=True)[1]
            labelled = np.concatenate(
                [i * each + np.arange(max(1, each // 10)) for i in range(len(classes))]
            )
            known = np.full(len(truth), -1)
            known[labelled] = truth[labelled]
            hidden = known < 0
            for column, machine in machines.items():
                wrong = machine(Z, known)[hidden] != truth[hidden]
                errors.setdefault(column, []).append(100 * wrong.mean())
        cells = [
            f"{np.mean(e):.1f} ± {np.std(e, ddof=1) / np.sqrt(repeats):.1f}"
            for e in errors.values()
        ]
        rows.append([name, *cells, *published])
        print("|", " | ".join(map(str, rows[-1])), "|", flush=True)
    return rows


def transduced(**parameters):
    """Return a function that gives the labels of a semi-supervised machine."""
    return lambda X, known: (
        SemiSupervisedSVC(random_state=0, **parameters).fit(X, known).transduction_
    )


def best_spectral(X, known):
    """Return named clusters of the width that names the labelled rows best."""
    found = [named_clusters(X, known, 1 / (width * median_distance(X)) ** 2) for width in WIDTHS]
    labelled = known >= 0
    return min(found, key=lambda labels: np.sum(labels[labelled] != known[labelled]))


def supervised(X, known):
    """Return the predictions of the support vector machine of the labelled rows."""
    labelled = known >= 0
    return SVC(kernel="linear").fit(X[labelled], known[labelled]).predict(X)


def scaled(X):
    """Return standardised columns."""
    return (X - X.mean(0)) / np.maximum(X.std(0), 1e-12)


def labelled():
    """Tables 3.2 and 4.2."""
    repeats = 2 if QUICK else 5
    two = []
    images = read("usps.train")
    if images is not None:
        X, y = images
        # Classes 1 to 10 are the digits 0 to 9.
        y = y - 1 if y.min() == 1 else y
        for pair, paper in (((1, 7), (3.3, 4.6, 4.2, 5.1)), ((2, 3), (4.7, 5.4, 6.4, 10.9))):
            rows = np.isin(y, pair)
            two.append((f"USPS {pair[0]}-{pair[1]}", X[rows], y[rows], 50, paper))
    credit = read("australian")
    if credit is not None:
        two.append(("Australian", scaled(credit[0]), credit[1], 50, (32.0, 38.7, 48.7, 42.2)))
    X, y = load_digits(return_X_y=True)
    rows = np.isin(y, (3, 8))
    two.append(("Digits 3-8 (8×8)", X[rows] / 16, y[rows], 50, ("", "", "", "")))
    machines = {
        "relaxation": transduced(method="relaxation", class_prior=0.5, tol=1e-3),
        "annealing": transduced(class_prior=0.5),
        "switching": transduced(method="switching", class_prior=0.5),
        "spectral, named": best_spectral,
        "SVM": supervised,
    }
    paper = ["published: SDP", "TSVM", "spectral", "SVM"]
    table(
        f"Table 3.2: few labels of two classes, % wrong, {repeats} repeats, ± standard error",
        ["data", *machines, *paper],
        few_labels(two, machines, repeats),
    )
    many = []
    for digits_of, paper in (((6, 8, 9), (5.6, 16.3, 12.7)), ((0, 6, 8, 9), (6.5, 20.6, 11.8))):
        rows = np.isin(y, digits_of)
        name = f"Digits {'-'.join(map(str, digits_of))} (8×8)"
        many.append((name, X[rows] / 16, y[rows], 39, paper))
    faces = read("orl32")
    if faces is not None:
        for count, paper in ((3, (0, 10.0, 0)), (5, (5.2, 14.4, 0))):
            rows = np.isin(faces[1], np.unique(faces[1])[:count])
            many.append((f"{count} faces (ORL)", faces[0][rows] / 255, faces[1][rows], 10, paper))
    machines = {
        "annealing": transduced(),
        "annealing, rbf": lambda X, known: transduced(
            kernel="rbf", gamma=1 / (0.6 * median_distance(X)) ** 2
        )(X, known),
        "spectral, named": best_spectral,
        "SVM": supervised,
    }
    table(
        f"Table 4.2: few labels of several classes, % wrong, {repeats} repeats, ± standard error",
        ["data", *machines, "published: SDP", "SVM", "spectral"],
        few_labels(many, machines, repeats),
    )


# Chapter 6


def ring_data(rng, radius, count=20, outliers=10):
    """Return two Gaussians with outliers on a ring."""
    root = np.linalg.cholesky([[20, 16], [16, 20]])
    mean = np.array([3, -3])
    X = np.r_[
        rng.normal(size=(count, 2)) @ root.T + mean, rng.normal(size=(count, 2)) @ root.T - mean
    ]
    y = np.repeat([1, -1], count)
    angle = rng.uniform(0, 2 * np.pi, outliers)
    r = np.sqrt(rng.uniform(radius**2, (radius + 1) ** 2, outliers))
    ring = np.c_[r * np.cos(angle), r * np.sin(angle)]
    return np.r_[X, ring], np.r_[y, rng.choice([-1, 1], outliers)]


ROBUST = {
    "ramp, relaxation": {"loss": "ramp", "method": "relaxation"},
    "ramp, CCCP": {"loss": "ramp", "method": "cccp"},
    "eta, alternation": {"loss": "eta", "method": "alternation"},
    "trimmed 0.8, relaxation": {"loss": "trimmed", "method": "relaxation"},
    "trimmed 0.8, alternation": {"loss": "trimmed", "method": "alternation"},
    "centroid": {"loss": "centroid"},
    "leave-one-out": {"loss": "leave-one-out"},
    "hinge^0.5": {"loss": "power"},
}


def outliers():
    """Figures 6.7 to 6.10."""
    repeats = 3 if QUICK else 10
    rows, ranks = [], {}
    for radius in (15, 35, 55, 75):
        errors, objectives = {}, []
        for seed in range(repeats):
            rng = np.random.default_rng(seed)
            X, y = ring_data(rng, radius)
            T, t = ring_data(rng, radius, 1000, 0)
            best = min(
                100 * (1 - SVC(C=c, kernel="linear", tol=1e-4).fit(X, y).score(T, t))
                for c in (1e-4, 1e-2, 1)
            )
            errors.setdefault("SVM, best C on the test", []).append(best)
            best_linear = SVC(C=1.0, kernel="linear").fit(T, t)
            positives = best_linear.predict(X) != y
            for name, parameters in ROBUST.items():
                model = RobustSVC(
                    kernel="linear", fit_intercept=False, random_state=0, **parameters
                )
                model.fit(X, y)
                errors.setdefault(name, []).append(100 * (1 - model.score(T, t)))
                if name.startswith("trimmed 0.8, rel"):
                    ranks.setdefault(radius, []).append(
                        (max_f(model.outlier_scores_, positives), max_f(-model.shares_, positives))
                    )
                if name == "ramp, relaxation":
                    objectives.append((model.objective_, model.bound_))
        mean = [
            f"{np.mean(e):.1f} ± {1.96 * np.std(e) / np.sqrt(repeats):.1f}" for e in errors.values()
        ]
        objective, bound = np.mean(objectives, axis=0)
        rows.append([radius, *mean, f"{objective:.2f}", f"{bound:.2f}"])
    table(
        f"Figures 6.7 and 6.8: test error %, outliers at distance R, C = 1, {repeats} repeats",
        ["R", *errors, "ramp objective", "proven bound"],
        rows,
    )
    print(
        "\nThe Bayes error is 1.7 %. Published (figures only): the SVM grows with R, robust "
        "machines barely; trimmed 0.8 best, ramp by relaxation second and better than CCCP."
    )
    table(
        "Figure 6.10: largest F of the ranking of outliers (published about 0.85 by η)",
        ["R", "by score", "by 1 − η"],
        [[r, *(f"{v:.2f}" for v in np.mean(f, axis=0))] for r, f in ranks.items()],
    )


def max_f(scores, positives):
    """Return the largest F-measure over all thresholds of a ranking."""
    order = np.argsort(-scores, kind="stable")
    hits = np.cumsum(positives[order])
    precision, recall = hits / np.arange(1, len(order) + 1), hits / max(positives.sum(), 1)
    return float(np.max(2 * precision * recall / np.maximum(precision + recall, 1e-12)))


def phonemes():
    """Figure 6.11 with a public substitute for TIMIT."""
    path = Path(FOLDER or "") / "phoneme.data"
    if FOLDER is None or not path.exists():
        print("\nphonemes: skipped, needs phoneme.data in WIDEMARGIN_DATA")
        return
    names = np.genfromtxt(path, delimiter=",", skip_header=1, dtype=str)
    X, y = names[:, 1:257].astype(float), names[:, 257]
    rows = []
    for flips in (0.0, 0.1):
        for pair in (("aa", "ao"), ("dcl", "sh"), ("aa", "iy"), ("ao", "iy")):
            errors = {}
            for seed in range(3 if QUICK else 5):
                rng = np.random.default_rng(seed)
                train = np.concatenate([rng.permutation(np.flatnonzero(y == c))[:50] for c in pair])
                test = np.setdiff1d(np.flatnonzero(np.isin(y, pair)), train)
                labels = np.where(y == pair[0], 1, -1)
                noisy = np.where(rng.uniform(size=100) < flips, -1, 1) * labels[train]
                mean, deviation = X[train].mean(0), X[train].std(0)
                A, B = (X[train] - mean) / deviation, (X[test] - mean) / deviation
                record(errors, A, noisy, B, labels[test], kernel="linear", C=0.01)
            rows.append(
                [
                    f"{pair[0]}-{pair[1]}",
                    f"{flips:.0%}",
                    *(f"{np.mean(e[0]):.1f}" for e in errors.values()),
                ]
            )
    table(
        "Figure 6.11 on ESL phonemes, 50 + 50 rows: test error %", ["pair", "flips", *errors], rows
    )


def record(errors, X, y, T, t, machines=ROBUST, **parameters):
    """Append (test error, CPU seconds) of the SVM and of every robust machine."""
    for name, own in {"SVM": None, **machines}.items():
        start = time.process_time()
        model = SVC(**parameters) if own is None else RobustSVC(random_state=0, **parameters, **own)
        model.fit(X, y)
        seconds = time.process_time() - start
        errors.setdefault(name, [[], []])
        errors[name][0].append(100 * (1 - model.score(T, t)))
        errors[name][1].append(seconds)


#: Sets in WIDEMARGIN_DATA.
FURTHER = (
    "australian",
    "banknote",
    "breast-cancer-wisconsin",
    "german.numer",
    "heart",
    "ionosphere",
    "pima",
)
#: Without the relaxation of trimmed losses, which takes as long as all others together.
NOISE = {name: own for name, own in ROBUST.items() if name != "trimmed 0.8, relaxation"}


def real_sets():
    """Yield real two-class sets."""
    yield "wdbc", *load_breast_cancer(return_X_y=True)
    X, y = load_digits(return_X_y=True)
    rows = np.isin(y, (3, 8))
    yield "digits 3-8", X[rows], y[rows]
    text = np.genfromtxt(HERE / "data" / "sonar.csv", delimiter=",", dtype=str, skip_header=1)
    yield "sonar", text[:, :-1].astype(float), np.unique(text[:, -1], return_inverse=True)[1]
    for name in FURTHER:
        path = Path(FOLDER or "") / name / f"{name}.libsvm.xz"
        if FOLDER is None or not path.exists():
            print(f"\n{name}: skipped, not in WIDEMARGIN_DATA")
            continue
        with lzma.open(path) as file:
            X, y = load_svmlight_file(file)
        yield name, X.toarray(), y


def noise():
    """Test error under label noise."""
    repeats = 1 if QUICK else 3
    rows, seconds = [], {}
    for name, X, y in real_sets():
        labels = np.where(y == np.unique(y)[0], -1, 1)
        X = (X - X.mean(0)) / np.maximum(X.std(0), 1e-12)
        for share in (0.0, 0.1, 0.2, 0.3, 0.4):
            errors = {}
            for seed in range(repeats):
                rng = np.random.default_rng(seed)
                order = rng.permutation(len(X))
                cut = 100
                train, test = order[:cut], order[cut:]
                noisy = np.where(rng.uniform(size=cut) < share, -1, 1) * labels[train]
                if len(np.unique(noisy)) == 2:
                    gamma = 0.5 / X.shape[1]
                    record(
                        errors,
                        X[train],
                        noisy,
                        X[test],
                        labels[test],
                        kernel="rbf",
                        gamma=gamma,
                        C=10.0,
                        machines=NOISE,
                    )
            rows.append(
                [
                    name,
                    f"{share:.0%}",
                    *(f"{np.mean(e):.1f}" for e, _ in errors.values()),
                ]
            )
            for machine, (_, s) in errors.items():
                seconds.setdefault(machine, []).extend(s)
    rows.append(["CPU ms a fit", "", *(f"{1e3 * np.mean(s):.1f}" for s in seconds.values())])
    table(
        f"Label noise: test error %, mean of {repeats} splits, 100 training rows, C = 10",
        ["data", "flipped", "SVM", *NOISE],
        rows,
    )


PARTS = {
    "sphere": sphere,
    "clusters": clusters,
    "labelled": labelled,
    "outliers": outliers,
    "phonemes": phonemes,
    "noise": noise,
}

if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    for part in [arg for arg in sys.argv[1:] if arg in PARTS] or PARTS:
        PARTS[part]()
