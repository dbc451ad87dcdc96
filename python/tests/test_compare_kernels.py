"""Weights by rules against their definitions, and the table of ways to use several kernels."""

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.datasets import load_iris, load_wine
from sklearn.metrics.pairwise import linear_kernel, polynomial_kernel, rbf_kernel

import widemargin
from widemargin import MultipleKernelSVC, MultipleKernelSVR

KERNELS = ["linear", "poly(gamma=1, coef0=1, degree=2)", "rbf(gamma=0.5)"]


def grams(X):
    tables = [linear_kernel(X), polynomial_kernel(X, degree=2, gamma=1, coef0=1)]
    tables.append(rbf_kernel(X, gamma=0.5))
    return [table * len(X) / np.trace(table) for table in tables]


def rows(n=30, classes=3, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % classes
    return rng.normal(size=(classes, 2))[y] * 2 + rng.normal(size=(n, 2)), y


def aligned(tables, target):
    H = np.eye(len(target)) - 1 / len(target)
    ideal = H @ target @ H
    found = [(H @ K @ H * ideal).sum() / np.linalg.norm(H @ K @ H) for K in tables]
    found = np.maximum(found, 0)
    return found / found.sum()


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("machine", ["cs", "c-svc"])
def test_alignment_weights_are_those_of_their_definition(machine, classes):
    X, y = rows(classes=classes)
    model = MultipleKernelSVC(KERNELS, weights="alignment", machine=machine).fit(X, y)
    expected = aligned(grams(X), (y[:, None] == y).astype(float))
    np.testing.assert_allclose(model.kernel_weights_, expected, atol=1e-5)
    assert model.gap_ <= 1e-4
    values = X[:, 0] + X[:, 1] ** 2
    model = MultipleKernelSVR(KERNELS, weights="alignment").fit(X, values)
    expected = aligned(grams(X), np.outer(values, values))
    np.testing.assert_allclose(model.kernel_weights_, expected, atol=1e-5)


def shares(tables, side, regularisation):
    """Return EasyMKL's weights by a general solver."""
    n, total = len(side), sum(tables)
    sign = np.where(side, 1.0, -1.0)
    Q = (1 - regularisation) * total * np.outer(sign, sign) + regularisation * np.eye(n)
    found = minimize(
        lambda g: g @ Q @ g,
        np.where(side, 1 / side.sum(), 1 / (~side).sum()),
        jac=lambda g: 2 * Q @ g,
        bounds=[(0, 1)] * n,
        constraints=[
            {"type": "eq", "fun": lambda g: g[side].sum() - 1},
            {"type": "eq", "fun": lambda g: g[~side].sum() - 1},
        ],
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    beta = found.x * sign
    forms = np.array([beta @ K @ beta for K in tables])
    return forms / forms.sum()


@pytest.mark.parametrize("classes", [2, 3])
def test_margin_weights_are_those_of_their_definition(classes):
    X, y = rows(classes=classes, seed=1)
    model = MultipleKernelSVC(KERNELS, weights="margin", machine="c-svc", tol=1e-6).fit(X, y)
    sides = [y == c for c in range(1 if classes == 2 else classes)]
    expected = np.mean([shares(grams(X), side, 0.1) for side in sides], axis=0)
    np.testing.assert_allclose(model.kernel_weights_, expected, atol=2e-3)


def test_rules_that_a_machine_cannot_follow_are_refused():
    X, y = rows()
    with pytest.raises(ValueError, match="weights"):
        MultipleKernelSVR(KERNELS, weights="margin").fit(X, y.astype(float))
    # A kernel that is the same for all rows has nothing to do with their labels.
    with pytest.raises(ValueError, match="tells the labels apart"):
        MultipleKernelSVC("precomputed", weights="alignment").fit([np.ones((30, 30))], y)


def test_ways_to_use_views_are_compared():
    X, y = load_wine(return_X_y=True)
    X = (X - X.mean(0)) / X.std(0)
    views = [("acids", "rbf", slice(0, 5)), ("rest", "linear", slice(5, 13))]
    found = widemargin.compare_kernels(
        X,
        y,
        views=views,
        C=(1, 10),
        subsets=True,
        repeats=1,
        bootstrap=20,
        random_state=0,
        max_time=None,
    )
    names = {way["machine"]: way for way in found}
    expected = {
        "nonnegative",
        "signed",
        "lp=2",
        "uniform",
        "alignment",
        "margin",
        "best-single",
        "voting",
        "concatenation",
        "concatenation-zscore",
        "concatenation-unit-block",
        "kernel 1",
        "kernel 2",
        "best-subset",
    }
    assert set(names) == expected
    assert found.folds == 5
    assert names["nonnegative"]["accuracy"] > names["kernel 1"]["accuracy"]
    assert names["nonnegative"]["accuracy"] > 0.93
    for kernel in found.kernels:
        low, high = kernel["weight_interval"]
        assert 0 <= low <= high <= 1
    assert sum(kernel["weight"] for kernel in found.kernels) == pytest.approx(1)
    assert sum(kernel["contribution"] for kernel in found.kernels) == pytest.approx(1)
    assert "concatenation-unit-block" in repr(found)
    assert "view(1-5: rbf)" in repr(found)


def test_the_learnt_row_of_the_table_is_a_cross_validation_of_the_estimator():
    X, y = load_iris(return_X_y=True)
    kernels = ["rbf(gamma=0.1)", "linear"]
    settings = {"C": 10, "repeats": 1, "folds": 3, "bootstrap": 0, "max_time": None}
    found = widemargin.compare_kernels(X, y, kernels, random_state=0, **settings)
    ways = {way["machine"]: way for way in found}
    # Which rows are in a fold is the comparison's; the mean is near that of other folds.
    from sklearn.model_selection import cross_val_score

    model = MultipleKernelSVC(kernels, machine="c-svc", C=10)
    assert abs(cross_val_score(model, X, y, cv=3).mean() - ways["nonnegative"]["accuracy"]) < 0.04
    assert found.kernels == []
    again = widemargin.compare_kernels(X, y, kernels, random_state=0, n_jobs=2, **settings)
    assert {way["machine"]: way["accuracies"] for way in again} == {
        way["machine"]: way["accuracies"] for way in found
    }


def test_precomputed_kernels_and_grids_are_compared():
    X, y = load_iris(return_X_y=True)
    tables = [linear_kernel(X), rbf_kernel(X, gamma=0.1)]
    settings = {"C": 10, "repeats": 1, "folds": 3, "bootstrap": 0, "max_time": None}
    given = widemargin.compare_kernels(tables, y, "precomputed", random_state=0, **settings)
    named = widemargin.compare_kernels(
        X, y, ["linear", "rbf(gamma=0.1)"], random_state=0, **settings
    )
    accuracies = [{way["machine"]: way["accuracies"] for way in found} for found in (given, named)]
    for name in ("nonnegative", "uniform", "alignment", "kernel 1", "voting"):
        np.testing.assert_allclose(accuracies[0][name], accuracies[1][name], atol=0.021)
    grid = widemargin.compare_kernels(
        X, y, "rbf(gamma=2^-3:2:3)", random_state=0, **{**settings, "bootstrap": 3}
    )
    # Samples drawn with replacement take the same rows and columns of tables.
    shares = {**settings, "bootstrap": 5}
    given = widemargin.compare_kernels(tables, y, "precomputed", random_state=0, **shares)
    named = widemargin.compare_kernels(X, y, ["linear", "rbf(gamma=0.1)"], random_state=0, **shares)
    for table, kernel in zip(given.kernels, named.kernels, strict=True):
        for name in ("weight", "contribution", "weight_interval", "contribution_interval"):
            np.testing.assert_allclose(table[name], kernel[name], atol=2e-3)
    gammas = [kernel["kernel"] for kernel in grid.kernels]
    assert gammas == ["rbf(gamma=0.125)", "rbf(gamma=0.5)", "rbf(gamma=2)"]


def test_kernels_for_numbers_are_compared_by_their_errors():
    rng = np.random.default_rng(2)
    X = rng.uniform(-3, 3, (90, 2))
    y = np.sin(2 * X[:, 0]) + 0.3 * X[:, 1] + 0.05 * rng.normal(size=90)
    kernels = ["linear", "rbf(gamma=1)", "rbf(gamma=100)"]
    found = widemargin.compare_kernels(
        X,
        y,
        kernels,
        machine="epsilon-svr",
        C=10,
        epsilon=0.05,
        subsets=True,
        folds=3,
        repeats=1,
        bootstrap=5,
        random_state=0,
        max_time=None,
    )
    ways = {way["machine"]: way for way in found}
    assert {"nonnegative", "signed", "uniform", "alignment", "voting", "best-subset"} <= set(ways)
    assert "margin" not in ways
    errors = [way["rmse"] for way in found]
    assert errors == sorted(errors)
    assert ways["best-single"]["rmse"] == ways["kernel 2"]["rmse"] < ways["kernel 3"]["rmse"]
    for way in found:
        assert way["rmse"] == pytest.approx(np.mean(way["rmses"]))
    # Another implementation at the best single kernel, on other folds.
    from sklearn.model_selection import cross_val_score
    from sklearn.svm import SVR

    other = SVR(gamma=1, C=10, epsilon=0.05)
    score = cross_val_score(other, X, y, cv=3, scoring="neg_root_mean_squared_error")
    assert ways["kernel 2"]["rmse"] == pytest.approx(-score.mean(), rel=0.3)
    assert sum(kernel["weight"] for kernel in found.kernels) == pytest.approx(1)
    assert found.mcnemar is None
    assert "rmse" in repr(found)
    assert "%" not in repr(found)
    assert "rmse" in found._repr_html_()
    with pytest.raises(ValueError, match="at most the 90 rows"):
        widemargin.compare_kernels(X, y, kernels, machine="epsilon-svr", folds=91)


def test_kernels_are_drawn_with_their_intervals():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    X, y = load_iris(return_X_y=True)
    settings = {"C": 10, "folds": 3, "repeats": 1, "random_state": 0}
    found = widemargin.compare_kernels(X, y, ["linear", "rbf"], bootstrap=5, **settings)
    ax = found.plot_kernels()
    assert [label.get_text() for label in ax.get_yticklabels()] == ["linear", "rbf"]
    drawn = [line for bars in ax.containers for line in bars[0].get_xdata()]
    expected = [kernel[name] for name in ("weight", "contribution") for kernel in found.kernels]
    np.testing.assert_allclose(drawn, expected)
    with pytest.raises(ValueError, match="bootstrap"):
        widemargin.compare_kernels(X, y, ["linear"], bootstrap=0, **settings).plot_kernels()


def test_comparisons_that_are_impossible_are_refused():
    X, y = load_iris(return_X_y=True)
    for kernels, settings, message in [
        ([], {}, "at least one kernel"),
        ([lambda A, B: A @ B.T], {}, "found a function"),
        (["linear"] * 9, {"subsets": True}, "at most 8 kernels"),
        (["linear"], {"machine": "one-class"}, "c-svc, an all-in-one machine or epsilon-svr"),
        (["linear"], {"epsilon": 0.1}, "epsilon"),
        (["linear"], {"C": ()}, "at least one penalty"),
        (["rbf(gamma=3:1:2)"], {}, "LOW:HIGH:COUNT"),
        (["linear"], {"folds": 60}, "smallest class"),
    ]:
        with pytest.raises(ValueError, match=message):
            widemargin.compare_kernels(X, y, kernels, **settings)


def test_a_comparison_of_kernels_is_frames_and_tables():
    pytest.importorskip("pandas")
    X, y = load_iris(return_X_y=True)
    found = widemargin.compare_kernels(
        X, y, ["linear", "rbf"], C=10, folds=3, repeats=1, bootstrap=5, random_state=0
    )
    frame = found.kernels_to_frame()
    assert frame["weight"].tolist() == [kernel["weight"] for kernel in found.kernels]
    assert (frame["weight_interval_low"] <= frame["weight_interval_high"]).all()
    text = found._repr_html_()
    assert text.count("<table>") == 2
    assert text.count("<tr>") == len(found) + len(found.kernels) + 2
