"""At a tight tolerance every estimator finds scikit-learn's optimum, attribute by attribute."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import svm
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, load_wine
from sklearn.preprocessing import StandardScaler

import widemargin

TIGHT = {"tol": 1e-8}
KERNELS = [
    {"kernel": "linear"},
    {"kernel": "rbf"},
    {"kernel": "rbf", "gamma": "auto"},
    {"kernel": "poly", "degree": 2, "coef0": 1.0},
    {"kernel": "sigmoid", "gamma": 0.01},
]


def scaled(load, rows=None):
    X, y = load(return_X_y=True)
    return StandardScaler().fit_transform(X)[:rows], y[:rows]


def pair(name, **parameters):
    """Return our estimator and scikit-learn's."""
    ours = getattr(widemargin, name)(**TIGHT, **parameters)
    return ours, getattr(svm, name)(**TIGHT, cache_size=1000, **parameters)


def assert_same(ours, theirs, X, atol=1e-5, attributes=("support_", "n_support_")):
    for values in ("decision_function", "predict"):
        if hasattr(theirs, values) and not (values == "predict" and hasattr(theirs, "offset_")):
            np.testing.assert_allclose(
                getattr(ours, values)(X), getattr(theirs, values)(X), atol=atol, rtol=1e-5
            )
    for name in attributes:
        np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name))
    for name in ("dual_coef_", "intercept_", "support_vectors_"):
        found, expected = getattr(ours, name), getattr(theirs, name)
        assert sp.issparse(found) == sp.issparse(expected)
        if sp.issparse(found):
            found, expected = found.toarray(), expected.toarray()
        scale = np.abs(expected).max(initial=1.0)
        np.testing.assert_allclose(found, expected, atol=atol * scale)
    assert type(ours.n_iter_) is type(theirs.n_iter_)
    assert ours.shape_fit_ == theirs.shape_fit_
    assert ours.fit_status_ == theirs.fit_status_ == 0
    assert hasattr(ours, "coef_") == hasattr(theirs, "coef_")
    if hasattr(theirs, "coef_"):
        np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=atol, rtol=1e-4)


@pytest.mark.parametrize("parameters", KERNELS, ids=str)
@pytest.mark.parametrize("load", [load_wine, load_breast_cancer])
@pytest.mark.parametrize("name", ["SVC", "NuSVC"])
def test_classifiers(name, load, parameters):
    X, y = scaled(load)
    extra = {"C": 2.0} if name == "SVC" else {"nu": 0.2}
    ours, theirs = pair(name, **parameters, **extra)
    assert_same(ours.fit(X, y), theirs.fit(X, y), X, atol=1e-4)
    np.testing.assert_array_equal(ours.class_weight_, theirs.class_weight_)


@pytest.mark.parametrize("parameters", KERNELS[:4], ids=str)
@pytest.mark.parametrize("name", ["SVR", "NuSVR"])
def test_regressors(name, parameters):
    X, y = scaled(load_diabetes, 200)
    y = (y - y.mean()) / y.std()
    ours, theirs = pair(name, **parameters)
    assert_same(ours.fit(X, y), theirs.fit(X, y), X, atol=1e-4)


@pytest.mark.parametrize("parameters", KERNELS[:4], ids=str)
def test_one_class(parameters):
    # Moved away from the origin: LIBSVM does not end at this tolerance where a mean of zero makes
    # w = 0 the answer of the linear kernel.
    X = scaled(load_wine)[0] + 1.0
    ours, theirs = pair("OneClassSVM", nu=0.3, **parameters)
    assert_same(ours.fit(X), theirs.fit(X), X, atol=1e-4)
    np.testing.assert_allclose(ours.offset_, theirs.offset_, rtol=1e-5)
    np.testing.assert_allclose(ours.score_samples(X), theirs.score_samples(X), rtol=1e-5, atol=1e-4)


def test_svdd_agrees_with_one_class_for_a_constant_diagonal():
    X, _ = scaled(load_wine)
    ball = widemargin.SVDD(nu=0.3, gamma=0.05, tol=1e-9).fit(X)
    theirs = svm.OneClassSVM(nu=0.3, gamma=0.05, tol=1e-9).fit(X)
    np.testing.assert_array_equal(ball.support_, theirs.support_)
    # Coefficients 2α with Σα = 1 against α with Σα = νn.
    scale = 2.0 / (0.3 * len(X))
    np.testing.assert_allclose(ball.dual_coef_, scale * theirs.dual_coef_, atol=1e-7)
    np.testing.assert_allclose(
        ball.decision_function(X), scale * theirs.decision_function(X), atol=1e-7
    )


@pytest.mark.parametrize("container", [sp.csr_matrix, sp.csr_array, sp.csc_matrix, sp.coo_matrix])
@pytest.mark.parametrize("name", ["SVC", "SVR", "OneClassSVM"])
def test_sparse_input(name, container):
    X, y = load_digits(return_X_y=True)
    X, y = X[:300] / 16.0, y[:300] % 3
    X[X < 0.6] = 0.0
    ours, theirs = pair(name, gamma=0.1)
    assert_same(ours.fit(container(X), y), theirs.fit(sp.csr_matrix(X), y), sp.csr_matrix(X))


@pytest.mark.parametrize("weight", ["balanced", {0: 3.0, 2: 0.5}])
def test_class_weights(weight):
    X, y = scaled(load_wine)
    ours, theirs = pair("SVC", class_weight=weight)
    assert_same(ours.fit(X, y), theirs.fit(X, y), X)
    np.testing.assert_array_equal(ours.class_weight_, theirs.class_weight_)


@pytest.mark.parametrize("name", ["SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM"])
def test_sample_weights_with_zeros_and_negatives(name):
    X, y = scaled(load_wine)
    weights = np.random.RandomState(0).uniform(-0.3, 2.0, len(X))
    parameters = {"nu": 0.2} if name.startswith("Nu") or name == "OneClassSVM" else {}
    ours, theirs = pair(name, gamma=0.2, **parameters)
    ours.fit(X, y, sample_weight=weights)
    theirs.fit(X, y, sample_weight=weights)
    # scikit-learn's support_ counts the rows that are left; ours are rows of X.
    assert_same(ours, theirs, X, atol=1e-4, attributes=["n_support_"])
    np.testing.assert_array_equal(X[ours.support_], ours.support_vectors_)
    assert (weights[ours.support_] > 0).all()


@pytest.mark.parametrize("shape", ["ovr", "ovo"])
@pytest.mark.parametrize("break_ties", [False, True])
def test_shapes_of_decision_values(shape, break_ties):
    X, y = scaled(load_iris)
    ours, theirs = pair("SVC", decision_function_shape=shape, break_ties=break_ties)
    ours.fit(X, y)
    theirs.fit(X, y)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-5)
    if break_ties and shape == "ovo":
        for model in (ours, theirs):
            with pytest.raises(ValueError, match="break_ties must be False"):
                model.predict(X)
    else:
        np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))


def test_precomputed_and_callable_kernels():
    X, y = scaled(load_iris)
    K = X @ X.T
    ours, theirs = pair("SVC", kernel="precomputed")
    assert_same(ours.fit(K, y), theirs.fit(K, y), K)
    ours, theirs = pair("SVC", kernel=lambda a, b: a @ b.T)
    assert_same(ours.fit(X, y), theirs.fit(X, y), X)


def test_infinite_penalty():
    X, y = scaled(load_iris)
    rows = y < 2
    ours, theirs = pair("SVC", C=np.inf)
    assert_same(ours.fit(X[rows], y[rows]), theirs.fit(X[rows], y[rows]), X)


def test_probabilities_are_near():
    # The folds are drawn differently, so the probabilities agree only roughly.
    X, y = scaled(load_wine)
    ours, theirs = pair("SVC", probability=True, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        found, expected = (model.fit(X, y).predict_proba(X) for model in (ours, theirs))
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    np.testing.assert_allclose(found, expected, atol=0.1)
    assert np.abs(found - expected).mean() < 0.02
    assert ours._probA.shape == theirs._probA.shape


def test_single_precision_is_near():
    X, y = scaled(load_breast_cancer)
    single = widemargin.SVC(C=5).fit(X.astype(np.float32), y)
    double = svm.SVC(C=5).fit(X, y)
    assert single.support_vectors_.dtype == np.float32
    np.testing.assert_allclose(single.decision_function(X), double.decision_function(X), atol=5e-3)
