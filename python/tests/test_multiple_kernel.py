"""Learnt kernel weights: values of the document, every way to give kernels, and messages."""

import pickle

import numpy as np
import pytest
from sklearn.metrics.pairwise import linear_kernel, polynomial_kernel, rbf_kernel
from sklearn.svm import SVC as PeerSVC

import widemargin
from widemargin import MultipleKernelSVC, MultipleKernelSVR

KERNELS = [
    "linear",
    {"kernel": "poly", "gamma": 1, "coef0": 1, "degree": 2},
    {"kernel": "rbf", "gamma": 0.5},
]


def grams(X, Y):
    return [linear_kernel(X, Y), polynomial_kernel(X, Y, 2, 1, 1), rbf_kernel(X, Y, 0.5)]


def rows(n=60, classes=3, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % classes
    return rng.normal(size=(classes, 2))[y] * 2 + rng.normal(size=(n, 2)), y


def scaled(tables):
    return [table * len(table) / np.trace(table) for table in tables]


@pytest.mark.parametrize("machine", ["cs", "c-svc"])
@pytest.mark.parametrize("weights", ["nonnegative", "signed", "uniform", 2.0])
def test_names_dictionaries_functions_and_tables_agree(machine, weights):
    X, y = rows()
    new, _ = rows(seed=1)
    shared = {"weights": weights, "machine": machine, "C": 1.5, "tol": 1e-6, "jitter": 1e-4}
    named = MultipleKernelSVC(KERNELS, **shared).fit(X, y)
    functions = [KERNELS[0], lambda A, B: polynomial_kernel(A, B, 2, 1, 1), KERNELS[2]]
    mixed = MultipleKernelSVC(functions, **shared).fit(X, y)
    given = MultipleKernelSVC("precomputed", **shared).fit(grams(X, X), y)
    assert named.kernel_weights_.sum() == pytest.approx(1)
    for other in (mixed, given):
        assert other.objective_ == pytest.approx(named.objective_, rel=2e-6)
    assert (mixed.predict(new) == named.predict(new)).mean() > 0.98
    assert (given.predict(grams(new, X)) == named.predict(new)).mean() > 0.98
    assert named.bound_ <= named.objective_
    assert named.gap_ <= 1e-6
    assert (named.smallest_eigenvalue_ is None) == (weights != "signed")


def test_the_objective_is_that_of_another_solver_at_the_learnt_kernel():
    X, y = rows(classes=2)
    model = MultipleKernelSVC(KERNELS, machine="c-svc", C=2, tol=1e-7).fit(X, y)
    tables = scaled(grams(X, X))
    K = sum(w * table for w, table in zip(model.kernel_weights_, tables, strict=True))

    def primal(K):
        peer = PeerSVC(kernel="precomputed", C=2, tol=1e-9).fit(K, y)
        beta = np.zeros(len(y))
        beta[peer.support_] = peer.dual_coef_[0]
        slack = np.maximum(0, 1 - np.where(y == 1, 1, -1) * peer.decision_function(K))
        return beta @ K @ beta / 2 + 2 * slack.sum()

    assert model.objective_ == pytest.approx(primal(K), rel=1e-6)
    rng = np.random.default_rng(0)
    for weights in np.vstack([rng.dirichlet(np.ones(3), 20), np.eye(3)]):
        other = sum(w * table for w, table in zip(weights, tables, strict=True))
        assert primal(other) >= model.bound_ * (1 - 1e-7)


def test_values_of_the_document():
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(3, 2)) * 1.5
    y = np.arange(20) % 3
    X = centres[y] + rng.normal(size=(20, 2))
    # All twenty rows give the traces there; here the fourteen labelled ones do.
    tables = [table[:14, :14] for table in scaled(grams(X, X))]
    model = MultipleKernelSVC("precomputed", weights="uniform", C=1.5, tol=1e-7)
    factor = np.trace(tables[2]) / 14
    model.set_params(C=1.5 * factor).fit(tables[2:], y[:14])
    assert model.objective_ / factor == pytest.approx(9.491435, rel=1e-6)


def test_regression_by_names_and_by_tables():
    rng = np.random.default_rng(1)
    X = rng.uniform(-3, 3, (50, 1))
    y = 0.2 * (X[:, 0] ** 2 + 1) + rng.uniform(-0.1, 0.1, 50)
    model = MultipleKernelSVR(KERNELS, C=10, tol=1e-6).fit(X, y)
    given = MultipleKernelSVR(["precomputed"] * 3, C=10, tol=1e-6).fit(grams(X, X), y)
    assert given.objective_ == pytest.approx(model.objective_, rel=2e-6)
    np.testing.assert_allclose(given.predict(grams(X, X)), model.predict(X), atol=1e-2)
    assert model.score(X, y) > 0.95


def test_a_saved_and_a_pickled_model_predict_the_same(tmp_path):
    X, y = rows()
    model = MultipleKernelSVC(KERNELS, C=2).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    model.save(tmp_path / "model.wm")
    loaded = widemargin.load(tmp_path / "model.wm")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


def test_bad_input_has_messages_of_its_own():
    X, y = rows(20, 2)
    tables = grams(X, X)
    for kernels, data, labels, message in [
        ([], X, y, "at least one kernel"),
        ("precomputed", [tables[0], tables[1][:10, :10]], y, "for kernel 2"),
        ("precomputed", [tables[0][:, :10]], y, "20 x 20"),
        ("precomputed", [tables[0], np.triu(tables[1])], y, "symmetric"),
        ("precomputed", [np.full((20, 20), np.nan)], y, "NaN"),
        ("precomputed", [tables[0], np.zeros((20, 20))], y, "positive trace"),
        (["precomputed"], tables, y, "expected 1 Gram matrices, found 3"),
        (["linear", "precomputed"], tables[:2], y, "for all kernels or for none"),
        (["linear", 3], X, y, "expected names, dictionaries"),
        (["linear", "rbff"], X, y, "rbff"),
        (["linear"], X, np.zeros(20), "greater than one"),
    ]:
        with pytest.raises(ValueError, match=message):
            MultipleKernelSVC(kernels).fit(data, labels)


@pytest.mark.filterwarnings("default")
def test_indefinite_and_collinear_kernels_are_reported():
    X, y = rows()
    with pytest.warns(UserWarning, match="not positive semidefinite: .* has the eigenvalue -"):
        MultipleKernelSVC(["linear", "sigmoid(gamma=1, coef0=-1)"]).fit(X, y)
    with pytest.warns(UserWarning, match="nearly multiples of each other"):
        MultipleKernelSVC(["linear", "poly(gamma=3, degree=1)"]).fit(X, y)
