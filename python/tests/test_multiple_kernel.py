"""Learnt kernel weights: values of the document, every way to give kernels, and messages."""

import pickle
import warnings

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.metrics.pairwise import linear_kernel, polynomial_kernel, rbf_kernel
from sklearn.svm import SVC as PeerSVC

import widemargin
from widemargin import MultipleKernelOneClassSVM, MultipleKernelSVC, MultipleKernelSVR, gram

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


@pytest.mark.filterwarnings("default")
def test_an_indefinite_kernel_of_one_machine_is_told():
    X, y = rows(30)
    K = np.tanh(linear_kernel(X) - 1)
    smallest = np.linalg.eigvalsh(K)[0]
    sigmoid = {"kernel": "sigmoid", "gamma": 1.0, "coef0": -1.0}
    for model, data in [
        (widemargin.SVC(**sigmoid), X),
        (widemargin.SVC(kernel=lambda A, B: np.tanh(A @ B.T - 1)), X),
        (widemargin.SVC(kernel="precomputed"), K),
        (widemargin.SVR(**sigmoid), X),
        (widemargin.OneClassSVM(**sigmoid), X),
        (widemargin.MulticlassSVC(**sigmoid), X),
    ]:
        with pytest.warns(UserWarning, match="not positive semidefinite") as told:
            model.fit(data, y)
        message = next(str(w.message) for w in told if "semidefinite" in str(w.message))
        found = float(message.split("the eigenvalue ")[1].split(",")[0])
        assert found == pytest.approx(smallest, rel=1e-3)
    with pytest.warns(UserWarning, match="not symmetric"):
        widemargin.SVC(kernel="precomputed").fit(np.triu(linear_kernel(X)), y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        widemargin.SVC(kernel="precomputed").fit(linear_kernel(X), y)


@pytest.mark.parametrize("weights", ["nonnegative", "signed"])
def test_indefinite_kernels_are_repaired_or_refused(weights):
    X, y = rows()
    K = np.tanh(linear_kernel(X) - 1)
    smallest = np.linalg.eigvalsh(K)[0]
    kernels = ["linear", "sigmoid(gamma=1, coef0=-1)"]
    shared = {"weights": weights, "tol": 1e-6, "jitter": 1e-4}
    with pytest.warns(UserWarning, match=f"smallest eigenvalue {smallest:.2e}"[:-4]):
        model = MultipleKernelSVC(kernels, repair="shift", **shared).fit(X, y)
    np.testing.assert_allclose(model.diagonal_shifts_, [0, -smallest], rtol=1e-5)
    tables = [linear_kernel(X), K - smallest * np.eye(len(X))]
    given = MultipleKernelSVC("precomputed", **shared).fit(tables, y)
    assert given.objective_ == pytest.approx(model.objective_, rel=1e-5)
    assert (given.diagonal_shifts_ == 0).all()
    with pytest.raises(ValueError, match="the eigenvalue -"):
        MultipleKernelSVC(kernels, repair="refuse", **shared).fit(X, y)


@pytest.mark.parametrize("machine", ["cs", "c-svc"])
@pytest.mark.parametrize("weights", ["nonnegative", "signed"])
def test_unlabeled_rows_count_for_the_kernels_and_are_answered(machine, weights):
    X, truth = rows(60, 3)
    X = X + 5 * np.array([[0, 0], [1, 0], [0, 1]])[truth]
    hidden = np.arange(60) % 4 == 1
    named = np.array(["a", "b", "c"])[truth]
    shared = {"weights": weights, "machine": machine, "tol": 1e-6, "jitter": 1e-4}
    expected = None
    for labels, mark in [(truth, -1), (truth.astype(float), -1.0), (named, "?")]:
        y = np.where(hidden, mark, labels)
        model = MultipleKernelSVC(KERNELS, unlabeled=mark, **shared).fit(X, y)
        np.testing.assert_array_equal(model.classes_, np.unique(labels))
        np.testing.assert_array_equal(model.transduction_, model.predict(X[hidden]))
        assert (model.transduction_ == labels[hidden]).mean() > 0.9
        expected = model.objective_ if expected is None else expected
        assert model.objective_ == pytest.approx(expected, rel=1e-9)
    given = MultipleKernelSVC("precomputed", unlabeled="?", **shared).fit(grams(X, X), y)
    assert given.objective_ == pytest.approx(expected, rel=2e-6)
    # The traces are those of all rows.
    tables = [table[np.ix_(~hidden, ~hidden)] for table in scaled(grams(X, X))]
    K = sum(w * (t + 1e-4 * np.eye(45)) for w, t in zip(given.kernel_weights_, tables, strict=True))
    share = np.trace(K) / 45 / (1 + 1e-4)
    alone = MultipleKernelSVC("precomputed", weights="uniform", machine=machine, tol=1e-7, C=share)
    alone.fit([K], truth[~hidden])
    assert alone.objective_ / share == pytest.approx(expected, rel=1e-5)
    model.set_params(unlabeled=None).fit(X, truth)
    assert not hasattr(model, "transduction_")


def test_targets_that_are_nan_are_answered():
    X = np.linspace(0, 5, 40)[:, None]
    y = np.sin(X[:, 0])
    hidden = np.arange(40) % 4 == 1
    model = MultipleKernelSVR(["linear", "rbf"], C=100, epsilon=0.01, unlabeled="nan")
    model.fit(X, np.where(hidden, np.nan, y))
    np.testing.assert_allclose(model.transduction_, y[hidden], atol=0.05)
    with pytest.raises(ValueError, match="NaN"):
        model.set_params(unlabeled=None).fit(X, np.where(hidden, np.nan, y))


def test_views_take_columns_as_a_column_transformer_does():
    rng = np.random.default_rng(0)
    y = np.arange(50) % 2
    X = rng.normal(size=(50, 5)) + y[:, None]
    shared = {"tol": 1e-6, "C": 2}
    expression = ["view(1-2: rbf(gamma=0.5))", "view(3,5: linear)"]
    expected = MultipleKernelSVC(expression, **shared).fit(X, y)
    rbf = {"kernel": "rbf", "gamma": 0.5}
    for first, second in [
        ([0, 1], [4, 2]),
        (slice(0, 2), [False, False, True, False, True]),
        (lambda X: [0, 1], np.array([2, -1])),
    ]:
        views = [("shape", rbf, first), ("colour", "linear", second)]
        model = MultipleKernelSVC(views=views, **shared).fit(X, y)
        assert model.objective_ == pytest.approx(expected.objective_, rel=1e-12)
        np.testing.assert_array_equal(model.decision_function(X), expected.decision_function(X))
    function = [("shape", lambda A, B: rbf_kernel(A, B, 0.5), [0, 1]), ("colour", "linear", [2, 4])]
    model = MultipleKernelSVC(views=function, **shared).fit(X, y)
    assert model.objective_ == pytest.approx(expected.objective_, rel=2e-6)
    table = np.hstack([X, rbf_kernel(X[:, :2], gamma=0.5)])
    tables = [("shape", "precomputed", slice(5, None)), ("colour", "linear", [2, 4])]
    model = MultipleKernelSVC(views=tables, **shared).fit(table, y)
    assert model.objective_ == pytest.approx(expected.objective_, rel=2e-6)
    for views, message in [
        ([], "at least one view"),
        ([("a", "rbf")], "expected .name, kernel, columns."),
        ([("a", "rbf", [])], "columns of 'a', found none"),
        ([("a", "rbf", ["x"])], "string"),
        ([("a", "rbf", [7])], "all features must be in"),
        ([("a", "precomputed", [1, 0])], "ascending"),
    ]:
        with pytest.raises((ValueError, IndexError), match=message):
            MultipleKernelSVC(views=views).fit(X, y)


def test_unlabeled_rows_only_and_one_class_have_messages_of_their_own():
    X, y = rows(20, 2)
    model = MultipleKernelSVC(KERNELS, unlabeled=-1)
    with pytest.raises(ValueError, match="unlabeled rows only"):
        model.fit(X, np.full(20, -1))
    with pytest.raises(ValueError, match="greater than one; got 1 class"):
        model.fit(X, np.where(y == 0, -1, y))
    with pytest.raises(ValueError, match="unlabeled rows only"):
        MultipleKernelSVR(KERNELS, unlabeled="nan").fit(X, np.full(20, np.nan))


def test_the_penalty_of_crammer_and_singer_is_a_quarter_of_that_of_the_other_machines():
    X, y = rows()
    ours = MultipleKernelSVC(["rbf(gamma=0.5)"], weights="uniform", C=1.5, tol=1e-8).fit(X, y)
    other = widemargin.MulticlassSVC(machine="cs", gamma=0.5, C=6, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(ours.decision_function(X), other.decision_function(X) / 2, atol=1e-4)


def test_gram_matrices_are_scaled_centred_repaired_and_aligned():
    X, y = rows(20, 2)
    K = rbf_kernel(X, gamma=0.5) * 3
    H = np.eye(20) - 1 / 20
    np.testing.assert_allclose(np.trace(gram.scale_to_trace(K)), 20)
    np.testing.assert_allclose(gram.center(K), H @ K @ H, atol=1e-12)
    np.testing.assert_allclose(gram.cosine(K), K / 3, atol=1e-12)
    ideal = np.where(y[:, None] == y, 1.0, -1.0)
    left, right = H @ K @ H, H @ ideal @ H
    expected = (left * right).sum() / np.linalg.norm(left) / np.linalg.norm(right)
    assert gram.centered_alignment(K, ideal) == pytest.approx(expected)
    indefinite = np.tanh(linear_kernel(X) - 1)
    values, vectors = np.linalg.eigh(indefinite)
    for how, changed in [("shift", values - values[0]), ("clip", np.maximum(values, 0))]:
        repaired, smallest = gram.repair(indefinite, how)
        assert smallest == pytest.approx(values[0])
        np.testing.assert_allclose(repaired, (vectors * changed) @ vectors.T, atol=1e-10)
    for call, message in [
        (lambda: gram.repair(indefinite, "refuse"), "eigenvalue -"),
        (lambda: gram.repair(indefinite, "mend"), "shift, clip, flip, refuse"),
        (lambda: gram.center(np.triu(K)), "symmetric"),
        (lambda: gram.cosine(K[:, :3]), "square matrix of 20 rows"),
        (lambda: gram.scale_to_trace(0 * K), "positive trace"),
        (lambda: gram.centered_alignment(K, K[:3, :3]), "expected 20, found 3"),
        (lambda: gram.center(np.full((2, 2), np.nan)), "NaN"),
    ]:
        with pytest.raises(ValueError, match=message):
            call()


def one_class_dual(K, nu):
    """Return the minimum of ½αᵀKα over 0 ≤ α ≤ 1, Σα = nu n, and α, by a general solver."""
    n = len(K)
    found = minimize(
        lambda a: 0.5 * a @ K @ a,
        np.full(n, nu),
        jac=lambda a: K @ a,
        bounds=[(0, 1)] * n,
        constraints={"type": "eq", "fun": lambda a: a.sum() - nu * n},
        method="SLSQP",
        options={"ftol": 1e-12, "maxiter": 500},
    )
    return found.fun, found.x


def test_one_class_weights_have_the_value_of_a_general_solver():
    X, _ = rows(40, 1)
    model = MultipleKernelOneClassSVM(KERNELS, nu=0.3, tol=1e-6).fit(X)
    tables = scaled(grams(X, X))

    def objective(weights):
        K = sum(w * table for w, table in zip(weights, tables, strict=True))
        return -one_class_dual(K, 0.3)[0]

    assert model.objective_ == pytest.approx(objective(model.kernel_weights_), rel=1e-4)
    # No other weights have a lower optimum.
    rng = np.random.default_rng(0)
    for weights in np.vstack([rng.dirichlet(np.ones(3), 10), np.eye(3)]):
        assert objective(weights) >= model.bound_ - 1e-4 * abs(model.bound_)
    inside = model.predict(X)
    assert set(inside) <= {-1, 1}
    assert (inside == -1).mean() <= 0.3 + 1 / 40
    values = model.decision_function(X)
    np.testing.assert_allclose(model.score_samples(X), values + model.offset_)
    given = MultipleKernelOneClassSVM("precomputed", nu=0.3, tol=1e-6).fit(grams(X, X))
    assert given.objective_ == pytest.approx(model.objective_, rel=2e-6)
    np.testing.assert_allclose(given.decision_function(grams(X, X)), values, atol=2e-2)


def test_one_class_weights_reach_no_labels():
    X, _ = rows(20, 1)
    with pytest.raises(ValueError, match="'weights' parameter"):
        MultipleKernelOneClassSVM(KERNELS, weights="alignment").fit(X)


def test_raw_weights_make_the_learnt_kernel_of_the_kernels_as_given():
    X, y = rows(classes=2)
    model = MultipleKernelSVC(KERNELS, machine="c-svc", C=2, tol=1e-7).fit(X, y)
    tables = grams(X, X)
    factors = np.array([len(X) / np.trace(table) for table in tables])
    np.testing.assert_allclose(model.raw_kernel_weights_, model.kernel_weights_ * factors)
    K = sum(w * table for w, table in zip(model.raw_kernel_weights_, tables, strict=True))
    peer = PeerSVC(kernel="precomputed", C=2, tol=1e-9).fit(K, y)
    np.testing.assert_allclose(model.decision_function(X), peer.decision_function(K), atol=2e-2)


@pytest.mark.filterwarnings("default")
def test_a_negative_eigenvalue_that_few_rows_hide_is_told():
    # The identity but for one pair of rows, which a sample of every second row would miss.
    n = 500
    K = np.eye(n)
    K[301, 303] = K[303, 301] = 1.5
    y = np.arange(n) % 2
    tables = [np.eye(n) + 0.1, K]
    with pytest.warns(UserWarning, match="over 500 rows has the eigenvalue -5.000e-1"):
        MultipleKernelSVC("precomputed", tol=1e-2).fit(tables, y)


@pytest.mark.parametrize("machine", ["cs", "c-svc"])
def test_features_of_all_rows_are_the_exact_machine(machine, tmp_path):
    X, y = rows(40)
    shared = {"machine": machine, "C": 2, "tol": 1e-6}
    exact = MultipleKernelSVC(KERNELS, **shared).fit(X, y)
    model = MultipleKernelSVC(KERNELS, approximate="nystroem:40", **shared).fit(X, y)
    assert model.objective_ == pytest.approx(exact.objective_, rel=1e-5)
    assert 0 <= model.gap_ <= 1e-6
    assert model.bound_ <= exact.objective_ * (1 + 1e-5)
    np.testing.assert_allclose(model.kernel_weights_, exact.kernel_weights_, atol=0.02)
    np.testing.assert_allclose(model.decision_function(X), exact.decision_function(X), atol=0.05)
    assert len(model.support_) == 0
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    model.save(tmp_path / "model.wm")
    # The file is that of a linear model over the features.
    assert (tmp_path / "model.wm").stat().st_size > 0


def test_random_features_learn_from_more_rows_than_a_table_may_have():
    rng = np.random.default_rng(2)
    y = np.arange(3000) % 2
    X = rng.normal(size=(3000, 3)) + 1.5 * y[:, None] * [1, 1, 0]
    kernels = [f"view({part}: rbf(gamma=0.3))" for part in ["1-2", "3"]]
    # The tables of three thousand rows do not fit in a tenth of a megabyte.
    model = MultipleKernelSVC(
        kernels, machine="c-svc", approximate="rff:60", cache_size=0.1, tol=1e-3
    ).fit(X, y)
    assert model.gap_ <= 1e-3
    assert model.kernel_weights_[1] < 0.05
    assert model.score(X, y) > 0.8
    regression = MultipleKernelSVR(kernels, approximate="rff:60", tol=1e-3)
    assert regression.fit(X, np.sin(X[:, 0])).score(X, np.sin(X[:, 0])) > 0.9
    novelty = MultipleKernelOneClassSVM(kernels, nu=0.2, approximate="nystroem:60", tol=1e-3)
    assert abs((novelty.fit(X).predict(X) == -1).mean() - 0.2) < 0.05


def test_what_features_cannot_be_has_messages_of_its_own():
    X, y = rows(20, 2)
    for kernels, data, options, message in [
        ("precomputed", grams(X, X), {}, "None with Gram matrices"),
        ([linear_kernel, "rbf"], X, {}, "no functions with approximate"),
        (KERNELS, X, {"weights": "signed"}, "nonnegative, lp=P or uniform"),
        (KERNELS, X, {"weights": "margin"}, "nonnegative, lp=P or uniform"),
        (KERNELS, X, {"jitter": 0.1}, "jitter"),
        (KERNELS, X, {"repair": "shift"}, "repair"),
        (KERNELS, X, {"approximate": "rff"}, "rff:NUMBER or nystroem:NUMBER"),
        (["poly"], X, {"approximate": "rff:10"}, "random Fourier features"),
    ]:
        with pytest.raises(ValueError, match=message):
            MultipleKernelSVC(kernels, **{"approximate": "nystroem:9", **options}).fit(data, y)
