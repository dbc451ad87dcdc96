"""Linear estimators agree with scikit-learn's, whose LIBLINEAR solves the same problems."""

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.linear_model
import sklearn.svm
from sklearn.base import clone
from sklearn.datasets import dump_svmlight_file, load_breast_cancer, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

import widemargin
from widemargin import LinearSVC, LinearSVR, LogisticRegression


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    return StandardScaler().fit_transform(X), y


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X), y


@pytest.mark.parametrize("data", ["iris", "cancer"])
@pytest.mark.parametrize(
    "parameters",
    [
        {"loss": "hinge", "C": 0.1},
        {"loss": "squared_hinge", "C": 0.1},
        {"loss": "squared_hinge", "dual": False},
        {"loss": "squared_hinge", "penalty": "l1", "dual": False, "C": 0.1},
        {"multi_class": "crammer_singer", "C": 0.1},
        {"class_weight": "balanced", "dual": False},
        {"fit_intercept": False, "dual": False},
        {"intercept_scaling": 10.0, "dual": False},
    ],
)
def test_classifiers_agree(data, parameters, request):
    X, y = request.getfixturevalue(data)
    given = {"tol": 1e-6, "max_iter": 1_000_000, "random_state": 0, **parameters}
    theirs = sklearn.svm.LinearSVC(**given).fit(X, y)
    for rows in (X, sp.csr_array(X)):
        ours = LinearSVC(**given).fit(rows, y)
        np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=2e-3)
        np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=2e-3)
        assert (ours.predict(rows) == theirs.predict(rows)).mean() > 0.99


@pytest.mark.parametrize("penalty", ["l1", "l2"])
def test_logistic_regression_agrees(cancer, penalty):
    X, y = cancer
    ours = LogisticRegression(penalty, C=0.1, tol=1e-6).fit(X, y)
    theirs = sklearn.linear_model.LogisticRegression(
        l1_ratio=float(penalty == "l1"), C=0.1, tol=1e-8, solver="liblinear", max_iter=10_000
    ).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-3)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-3)


@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive"])
def test_regressors_agree(iris, loss):
    X, _ = iris
    y = X @ [1.0, -2.0, 0.5, 0.0] + np.sin(np.arange(len(X)))
    given = {"loss": loss, "epsilon": 0.2, "tol": 1e-6, "max_iter": 1_000_000, "dual": True}
    theirs = sklearn.svm.LinearSVR(**given, random_state=0).fit(X, y)
    ours = LinearSVR(**given).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=2e-3)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=5e-3)


@pytest.mark.parametrize("estimator", [LinearSVC(), LogisticRegression(), LinearSVR(tol=1e-2)])
def test_files(estimator, iris, tmp_path):
    X, y = iris
    estimator.fit(X, y)
    estimator.save(tmp_path / "model.wm")
    (tmp_path / "model.txt").write_text(estimator.to_liblinear())
    for name in ("model.wm", "model.txt"):
        again = widemargin.load(tmp_path / name)
        assert type(again) is type(estimator)
        np.testing.assert_array_equal(again.predict(X), estimator.predict(X))


def test_threads_and_starts_change_nothing(iris):
    X, y = iris
    one = LinearSVC(random_state=0).fit(X, y)
    two = LinearSVC(random_state=0, n_jobs=2).fit(X, y)
    np.testing.assert_array_equal(one.coef_, two.coef_)
    again = LinearSVC(warm_start=True, dual=False, tol=1e-6).fit(X, y)
    before = again.coef_.copy()
    np.testing.assert_allclose(again.fit(X, y).coef_, before, atol=1e-6)


@pytest.mark.parametrize(
    "model",
    [LinearSVC(max_iter=1), LinearSVC(max_iter=2, dual=True), LinearSVR(max_iter=2)],
    ids=repr,
)
def test_an_iteration_limit_warns(model):
    X = np.array([[-2, -1], [-1, -1], [-1, -2], [1, 1], [1, 2], [2, 1]])
    y = np.array([1, 1, 1, 2, 2, 2])
    if isinstance(model, LinearSVR):
        X, y = load_iris(return_X_y=True)
    with pytest.warns(ConvergenceWarning, match="Liblinear failed to converge"):
        model.fit(X, y)
    assert isinstance(model.n_iter_, int)
    assert model.n_iter_ == model.max_iter


def test_a_free_intercept_is_not_penalised(cancer, tmp_path):
    X, y = cancer
    X = X + 3.0
    ours = LogisticRegression(C=0.5, intercept_scaling="free", tol=1e-10).fit(X, y)
    theirs = sklearn.linear_model.LogisticRegression(C=0.5, tol=1e-10, max_iter=10_000).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, rtol=1e-4)
    target = X[:, 0] + 0.1 * X[:, 1] ** 2
    loss = "squared_epsilon_insensitive"
    svr = LinearSVR(C=0.5, epsilon=0.0, loss=loss, intercept_scaling="free", tol=1e-10)
    svr.fit(X, target)
    ridge = sklearn.linear_model.Ridge(alpha=1.0).fit(X, target)
    np.testing.assert_allclose(svr.coef_, ridge.coef_, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(svr.intercept_, ridge.intercept_, rtol=1e-4)
    # The derivative by the constant of a squared hinge is 0.
    svc = LinearSVC(C=0.1, intercept_scaling="free", tol=1e-10).fit(X, y)
    signs = 2 * y - 1
    slack = np.maximum(0, 1 - signs * svc.decision_function(X))
    assert abs(signs @ slack) < 1e-4 * slack.sum()
    svc.save(tmp_path / "m.wm")
    again = widemargin.load(tmp_path / "m.wm")
    assert again.get_params()["intercept_scaling"] == "free"
    with pytest.raises(ValueError, match="intercept_scaling"):
        LinearSVC(intercept_scaling="none").fit(X, y)


def _columns(seed=0, rows=300, columns=6):
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(rows, columns))
    return X, X @ generator.normal(size=columns) + 0.3 * generator.normal(size=rows)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_a_path_has_the_solutions_of_single_fits(loss):
    X, t = _columns()
    y = np.where(t > 0, "yes", "no")
    penalties = [0.01, 0.1, 1.0, 10.0]
    machine = widemargin.LinearSVC(loss=loss, tol=1e-8, max_iter=100_000)
    path = machine.fit_path(X, y, penalties)
    assert [one.C for one in path] == penalties
    for one in path:
        alone = clone(machine).set_params(C=one.C).fit(X, y)
        np.testing.assert_allclose(one.coef_, alone.coef_, atol=1e-4)
        assert (one.predict(X) == alone.predict(X)).mean() > 0.99
        assert list(one.classes_) == ["no", "yes"]


def test_a_path_of_tubes():
    X, t = _columns()
    machine = widemargin.LinearSVR(tol=1e-8, max_iter=100_000)
    path = machine.fit_path(X, t, [0.1, 1.0], epsilon=[0.5, 0.1])
    assert [(one.C, one.epsilon) for one in path] == [
        (0.1, 0.5),
        (1.0, 0.5),
        (0.1, 0.1),
        (1.0, 0.1),
    ]
    for one in path:
        alone = clone(machine).set_params(C=one.C, epsilon=one.epsilon).fit(X, t)
        np.testing.assert_allclose(one.coef_, alone.coef_, atol=1e-3)
    with pytest.raises(ValueError, match="finite number above 0"):
        machine.fit_path(X, t, [0.0])


def objective(model, X, y):
    """Return the sum of the primal objectives of all classes against the rest."""
    weights = np.column_stack([model.coef_, model.intercept_])
    rows = np.column_stack([X[:, : model.coef_.shape[1]], np.ones(len(X))])
    signs = np.where(y[:, None] == model.classes_[None], 1, -1)
    errors = np.maximum(0, 1 - signs * (rows @ weights.T))
    return 0.5 * (weights**2).sum() + model.C * (errors**2).sum()


# The measure of LIBLINEAR may not be met where the objective is at its optimum, which is checked.
@pytest.mark.filterwarnings("ignore:Liblinear failed to converge")
@pytest.mark.parametrize("kind", ["file", "portions"])
def test_rows_from_disk_give_the_solution_of_memory(tmp_path, kind):
    X, t = _columns(rows=500)
    X[:, 5] = 0.0
    y = np.digitize(t, [-1.0, 1.0]) + 3
    machine = widemargin.LinearSVC(loss="squared_hinge", tol=0.01)
    portions = [(X[i : i + 100], y[i : i + 100]) for i in range(0, 500, 100)]
    if kind == "file":
        dump_svmlight_file(X, y, str(tmp_path / "rows.libsvm"), zero_based=False)
        found = clone(machine).fit_from_disk(tmp_path / "rows.libsvm", memory="64MB")
        width = 5
    else:
        found = clone(machine).fit_from_disk(iter(portions), memory=64 << 20)
        width = 6
    best = sklearn.svm.LinearSVC(loss="squared_hinge", tol=1e-8, max_iter=100_000).fit(X, y)
    assert list(found.classes_) == [3, 4, 5]
    assert found.n_features_in_ == width
    assert objective(found, X, y) <= 1.002 * objective(best, X, y)
    assert (found.predict(X[:, :width]) == best.predict(X)).mean() > 0.98
    with pytest.raises(ValueError, match="'512MB'"):
        machine.fit_from_disk(tmp_path, memory="much")


def test_words_cannot_come_from_disk():
    with pytest.raises(ValueError, match="labels have to be numbers"):
        widemargin.LinearSVC().fit_from_disk([(np.eye(2), ["a", "b"])])


def test_the_linear_one_class_machine_is_that_of_a_linear_kernel():
    generator = np.random.default_rng(3)
    X = generator.normal(size=(200, 4)) + 2.0
    for nu in (0.1, 0.5):
        found = widemargin.LinearOneClassSVM(nu=nu, tol=1e-8, max_iter=100_000).fit(X)
        kernel = sklearn.svm.OneClassSVM(kernel="linear", nu=nu, tol=1e-8).fit(X)
        # The same hyperplane: libsvm's dual variables sum to nu n.
        ours = found.coef_.ravel() / np.linalg.norm(found.coef_)
        theirs = kernel.coef_.ravel() / np.linalg.norm(kernel.coef_)
        np.testing.assert_allclose(ours, theirs, atol=1e-4)
        ratio = found.offset_[0] / np.linalg.norm(found.coef_)
        assert abs(ratio - kernel.offset_[0] / np.linalg.norm(kernel.coef_)) < 1e-3
        assert (found.predict(X) == kernel.predict(X)).mean() > 0.98
        assert (found.predict(X) == -1).mean() <= nu + 0.02
