"""Exported graphs, run by onnxruntime, return what the methods return."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import MinMaxScaler

import widemargin

onnxruntime = pytest.importorskip("onnxruntime")

METHODS = ("predict", "decision_function", "predict_proba", "score_samples", "transform")
KERNELS = [
    {"kernel": "linear"},
    {"kernel": "poly", "degree": 3, "coef0": 1.0, "gamma": 0.5},
    {"kernel": "rbf"},
    {"kernel": "sigmoid", "gamma": 0.05},
    {"kernel": "laplacian", "gamma": 0.3},
    {"kernel": "chi2", "gamma": 0.5},
    {"kernel": "cosine"},
    {"kernel": "0.5*rbf(gamma=0.2) + 2*linear*cosine"},
]


def data(load=load_wine):
    X, y = load(return_X_y=True)
    return MinMaxScaler().fit_transform(X), y


def fit(estimator, X, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        return estimator.fit(X, y)


def assert_exported(estimator, X, dtype=np.float64, tolerance=1e-5):
    content = estimator.to_onnx(dtype=dtype).SerializeToString()
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    found = dict(zip(names, session.run(names, {"X": X.astype(dtype)}), strict=True))
    expected = {name for name in METHODS if hasattr(estimator, name)}
    assert set(found) == expected
    for name in expected:
        answer = getattr(estimator, name)(X)
        if name == "predict" and answer.dtype.kind in "iuUOb":
            # Rows on a boundary may fall on either side of it.
            assert np.mean(found[name] == answer) >= (1 if dtype == np.float64 else 0.98)
        else:
            assert found[name].shape == answer.shape
            scale = max(1.0, np.abs(answer).max())
            np.testing.assert_allclose(found[name], answer, atol=tolerance * scale)


@pytest.mark.parametrize("parameters", KERNELS, ids=lambda p: p["kernel"])
@pytest.mark.parametrize("name", ["SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM", "SVDD"])
def test_every_machine_and_kernel(name, parameters):
    X, y = data()
    extra = {"nu": 0.2} if name in ("NuSVC", "OneClassSVM", "SVDD") else {}
    estimator = getattr(widemargin, name)(**parameters, **extra).fit(X, y)
    if name in ("OneClassSVM", "SVDD"):
        X = X + 1e-3  # off the boundary, where the support vectors are
    assert_exported(estimator, X)


@pytest.mark.parametrize("calibration", ["sigmoid", "isotonic"])
@pytest.mark.parametrize("scheme", ["ovo", "ovr", "dag", "ecoc"])
@pytest.mark.parametrize("shape", ["ovr", "ovo"])
def test_every_scheme_and_calibration(scheme, calibration, shape):
    X, y = data(load_iris)
    X = np.vstack([X, X + 0.07])
    y = np.concatenate([y, (y + (np.arange(len(y)) % 3 == 0)) % 4])  # four classes, with noise
    estimator = widemargin.SVC(
        multi_class=scheme,
        calibration=calibration,
        decision_function_shape=shape,
        probability=True,
        random_state=0,
    )
    assert_exported(fit(estimator, X, y), X)


def test_two_classes_and_words():
    X, y = data()
    words = np.array(["no", "yes"])[(y == 1).astype(int)]
    assert_exported(fit(widemargin.SVC(probability=True, random_state=0), X, words), X)


def test_break_ties():
    X, y = data()
    assert_exported(widemargin.SVC(break_ties=True).fit(X, y), X)


def test_precomputed_kernel():
    X, y = data()
    assert_exported(widemargin.SVC(kernel="precomputed").fit(X @ X.T, y), X @ X.T)


def test_single_precision():
    X, y = data(load_diabetes)
    assert_exported(widemargin.SVR().fit(X, y), X, np.float32)
    X, y = data()
    assert_exported(widemargin.SVC(gamma=0.5).fit(X, y), X, np.float32)


def test_callable_kernels_are_refused():
    X, y = data()
    estimator = widemargin.SVC(kernel=lambda a, b: a @ b.T).fit(X, y)
    with pytest.raises(ValueError, match="Python function cannot be kept in ONNX"):
        estimator.to_onnx()


@pytest.mark.parametrize("scheme", ["ovo", "ovr"])
def test_a_compressed_model_is_exported_like_any_other(scheme):
    X, y = load_wine(return_X_y=True)
    X = MinMaxScaler().fit_transform(X)
    machine = widemargin.SVC(gamma=0.5, multi_class=scheme).fit(X, y)
    small = machine.compress(ratio=0.3, refine=10)
    assert small.n_support_.sum() < machine.n_support_.sum() / 2
    assert_exported(small, X)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("name", ["MulticlassSVC", "OnlineSVC"])
def test_all_in_one_machines(name, classes):
    X, y = data()
    machine = getattr(widemargin, name)(machine="cs", gamma=0.5, random_state=0)
    assert_exported(machine.fit(X[y < classes], y[y < classes]), X)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("name", ["LinearSVC", "LogisticRegression"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_linear_classifiers(name, classes, dtype):
    X, y = data()
    words = np.array(["a", "b", "c"])[y]
    machine = getattr(widemargin, name)(random_state=0).fit(X[y < classes], words[y < classes])
    assert_exported(machine, X, dtype)
    machine.fit_intercept = False
    assert_exported(machine.fit(X, y), X, dtype)
    assert_exported(machine.sparsify(), X, dtype)


def test_linear_regression():
    X, y = data(load_diabetes)
    assert_exported(widemargin.LinearSVR(random_state=0).fit(X, y), X)


@pytest.mark.parametrize("scheme", ["ovo", "ovr", "dag", "ecoc"])
def test_two_classes_of_every_scheme(scheme):
    X, y = data()
    X, y = X[y < 2], y[y < 2]
    estimator = widemargin.SVC(multi_class=scheme).fit(X, y)
    values = estimator.decision_function(X)
    assert values.shape == (len(X),)
    assert ((values > 0) == (estimator.predict(X) == 1)).all()
    assert_exported(estimator, X)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize(
    "estimator",
    [
        widemargin.FisherDiscriminant(),
        widemargin.FisherDiscriminant(threshold="midpoint", n_components=1),
        widemargin.KernelFisherDiscriminant(gamma=0.5),
        widemargin.GaussianMixtureClassifier(),
        widemargin.GaussianMixtureClassifier(2, covariance_type="tied", random_state=0),
        widemargin.GaussianMixtureClassifier(2, covariance_type="diag", random_state=0),
        widemargin.GaussianMixtureClassifier(2, covariance_type="eii", random_state=0),
    ],
    ids=repr,
)
def test_discriminants_and_bayes_classifiers(estimator, classes):
    X, y = data(load_iris)
    words = np.array(["a", "b", "c"])[y]
    estimator = clone(estimator).fit(X[y < classes], words[y < classes])
    assert_exported(estimator, X)
    if not isinstance(estimator, widemargin.GaussianMixtureClassifier):
        assert_exported(estimator, X, np.float32, tolerance=1e-3)


def test_losses_decide_what_is_predicted():
    X, y = data(load_iris)
    plain = widemargin.GaussianMixtureClassifier().fit(X, y)
    dear = np.array([[0, 1, 1], [1, 0, 1], [1, 50, 0]])
    careful = widemargin.GaussianMixtureClassifier(loss_matrix=dear).fit(X, y)
    assert (careful.predict(X) != plain.predict(X)).any()
    assert_exported(careful, X)


SHAPES = ["full", "tied", "diag", "spherical", "eii", "eev", "vev"]


@pytest.mark.parametrize("shape", SHAPES)
def test_mixtures_of_every_shape(shape):
    X, _ = data(load_iris)
    mixture = widemargin.GaussianMixture(3, covariance_type=shape, random_state=0, max_iter=20)
    assert_exported(fit(mixture, X, None), X)


def test_clusters():
    X, _ = data()
    assert_exported(widemargin.KMeans(5, random_state=0).fit(X), X)
    assert_exported(widemargin.KMeans(5, random_state=0).fit(X), X, np.float32)


@pytest.mark.parametrize(
    "name",
    [
        "KNeighborsClassifier",
        "KNeighborsRegressor",
        "KernelDensity",
        "ParzenClassifier",
        "ProbabilisticNeuralNetwork",
        "SpectralClustering",
        "MaxMarginClustering",
        "SemiSupervisedSVC",
    ],
)
def test_machines_without_an_export_say_so(name):
    with pytest.raises(NotImplementedError, match=f"{name} has no ONNX export"):
        getattr(widemargin, name)().to_onnx()
