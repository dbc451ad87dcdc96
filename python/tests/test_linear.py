"""Linear estimators agree with scikit-learn's, whose LIBLINEAR solves the same problems."""

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.linear_model
import sklearn.svm
from sklearn.datasets import load_breast_cancer, load_iris
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
