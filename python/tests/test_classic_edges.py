"""The classical machines at the edges: sparse and degenerate rows, files, mistakes."""

import pickle
from xml.etree import ElementTree

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import clone, datasets

import widemargin
from widemargin import (
    FisherDiscriminant,
    GaussianMixture,
    GaussianMixtureClassifier,
    KernelDensity,
    KernelFisherDiscriminant,
    KMeans,
    KNeighborsClassifier,
    KNeighborsRegressor,
    ParzenClassifier,
    ProbabilisticNeuralNetwork,
    SpectralClustering,
)

IRIS = datasets.load_iris(return_X_y=True)
WINE = datasets.load_wine(return_X_y=True)
WDBC = datasets.load_breast_cancer(return_X_y=True)
DIGITS = datasets.load_digits(return_X_y=True)


@pytest.mark.parametrize(
    "estimator",
    [
        KernelFisherDiscriminant(gamma=0.001),
        ParzenClassifier(),
        ParzenClassifier(bandwidth=20.0, kernel="epanechnikov"),
        KernelDensity(bandwidth="cv"),
        ProbabilisticNeuralNetwork(),
        ProbabilisticNeuralNetwork(input="unit-norm"),
        ProbabilisticNeuralNetwork(input="lifted"),
        KMeans(10, random_state=0),
        SpectralClustering(10, affinity="nearest_neighbors", random_state=0),
        SpectralClustering(10, gamma=0.001, random_state=0),
    ],
    ids=repr,
)
@pytest.mark.parametrize("format", [sp.csr_array, sp.csc_matrix])
def test_sparse_rows_have_the_same_answers(estimator, format):
    X, y = DIGITS[0][:500], DIGITS[1][:500]
    X = np.where(X > 6, X, 0.0)
    dense, sparse = clone(estimator).fit(X, y), clone(estimator).fit(format(X), y)
    for method in ("predict", "predict_proba", "score_samples", "transform", "decision_function"):
        if hasattr(estimator, method):
            expected = getattr(dense, method)(X)
            for model, rows in ((sparse, X), (sparse, format(X)), (dense, format(X))):
                found = getattr(model, method)(rows)
                np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize(
    "estimator", [FisherDiscriminant(), GaussianMixture(), GaussianMixtureClassifier()]
)
def test_covariances_need_dense_rows(estimator):
    with pytest.raises(TypeError, match="dense data is required"):
        estimator.fit(sp.csr_array(DIGITS[0]), DIGITS[1])


def test_sparse_rows_have_the_same_neighbours():
    X, y = DIGITS
    dense = KNeighborsClassifier(n_neighbors=3).fit(X[:900], y[:900])
    sparse = KNeighborsClassifier(n_neighbors=3).fit(sp.csr_array(X[:900]), y[:900])
    for ours, theirs in zip(
        sparse.kneighbors(sp.csr_array(X[900:])), dense.kneighbors(X[900:]), strict=True
    ):
        np.testing.assert_array_equal(ours, theirs)


def test_edges_are_told():
    X, y = IRIS
    with pytest.warns(UserWarning, match="singular"):
        FisherDiscriminant().fit(np.column_stack([X, X[:, 0], np.ones(len(X))]), y)
    with pytest.warns(UserWarning, match="nearest class mean"):
        model = FisherDiscriminant().fit(X[[0, 60, 120]], [0, 1, 2])
    assert model.predict(X[[0, 60, 120]]).tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="n_neighbors <= n_samples"):
        KNeighborsClassifier(n_neighbors=4).fit(X[:3], [0, 1, 1])
    with pytest.raises(ValueError, match="NaN"):
        KNeighborsClassifier().fit(np.full((10, 2), np.nan), [0, 1] * 5)
    with pytest.raises(ValueError, match="bandwidth"):
        ParzenClassifier(bandwidth=0.0).fit(X, y)
    with pytest.raises(ValueError, match="singular"):
        GaussianMixture(reg_covar=0.0).fit(np.ones((20, 2)))
    with pytest.raises(ValueError, match="direction"):
        ProbabilisticNeuralNetwork(input="unit-norm").fit(X - X[0], y)
    with pytest.warns(UserWarning, match="even number"):
        KNeighborsClassifier(n_neighbors=4).fit(X[50:], y[50:])
    with pytest.warns(UserWarning, match="feature 13 varies"):
        KNeighborsClassifier().fit(*WINE)
    with pytest.warns(UserWarning, match="width 1"):
        ParzenClassifier().fit([[1.0], [1.0], [5.0], [5.0]], [0, 0, 1, 1])
    with pytest.raises(ValueError, match="one component"):
        GaussianMixtureClassifier(2, unbiased=True).fit(X, y)
    with pytest.warns(UserWarning, match="only 3 rows"):
        GaussianMixtureClassifier(n_components=4).fit(
            X[[0, 1, 2, 60, 61, 62, 63]], [0] * 3 + [1] * 4
        )


@pytest.mark.parametrize(
    "estimator",
    [
        FisherDiscriminant(),
        KernelFisherDiscriminant(),
        GaussianMixture(3, random_state=0),
        GaussianMixtureClassifier(2, random_state=0),
        KNeighborsClassifier(),
        KNeighborsRegressor(),
        ParzenClassifier(),
        KernelDensity(),
        ProbabilisticNeuralNetwork(),
        KMeans(3, random_state=0),
        SpectralClustering(3, random_state=0),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_files_and_pickles_answer_the_same(estimator, tmp_path):
    X, y = IRIS
    estimator.fit(X, y)
    estimator.save(tmp_path / "model.wm")
    again = widemargin.load(tmp_path / "model.wm")
    assert type(again) is type(estimator)
    copy = pickle.loads(pickle.dumps(estimator))
    for method in ("predict", "predict_proba", "score_samples", "transform", "decision_function"):
        if hasattr(estimator, method):
            expected = getattr(estimator, method)(X)
            np.testing.assert_array_equal(getattr(again, method)(X), expected)
            np.testing.assert_array_equal(getattr(copy, method)(X), expected)


@pytest.mark.parametrize(
    "estimator",
    [
        FisherDiscriminant(),
        KernelFisherDiscriminant(),
        GaussianMixture(2),
        GaussianMixtureClassifier(),
        KNeighborsClassifier(1),
        KNeighborsRegressor(1),
        ParzenClassifier(),
        KernelDensity(),
        ProbabilisticNeuralNetwork(),
        KMeans(2),
        SpectralClustering(2),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
@pytest.mark.filterwarnings("ignore")
def test_degenerate_rows_leave_finite_answers(estimator):
    X, y = IRIS
    constant = np.column_stack([X, X[:, 0], np.ones(len(X))])
    one_each = constant[[0, 60, 120]]
    equal = np.tile([1.5, 2.0], (9, 1))
    for rows, labels in ((constant, y), (one_each, [0, 1, 2]), (equal, [0, 1, 2] * 3)):
        model = clone(estimator).fit(rows, labels)
        for method in ("predict", "predict_proba", "score_samples", "decision_function"):
            if hasattr(model, method):
                assert np.isfinite(getattr(model, method)(rows)).all()
    with pytest.raises(ValueError, match="NaN"):
        clone(estimator).fit(np.where(constant > 5, np.nan, constant), y)


def test_machines_are_compared():
    X, y = datasets.make_circles(160, noise=0.1, factor=0.4, random_state=0)
    result = widemargin.compare(X, y, repeats=1, random_state=0, n_jobs=2)
    assert len(result) == 9
    assert result.folds == result.planned_folds == 5
    names = [machine["machine"] for machine in result]
    assert names.index("fisher") > names.index("svm-rbf")
    worst = result.machines[names.index("fisher")]
    assert worst["p_value"] < 0.05
    low, high = result.machines[0]["interval"]
    assert low <= result.machines[0]["accuracy"] <= high
    assert "svm-rbf" in repr(result)
    pair = widemargin.compare(X, y, machines=["fisher", "knn"], repeats=1, random_state=0)
    assert pair.mcnemar is not None
    assert pair.mcnemar[2] < 1e-6
    with pytest.raises(ValueError, match="one of"):
        widemargin.compare(X, y, machines=["oracle"])


def test_a_comparison_is_a_frame_a_table_and_a_picture():
    pd = pytest.importorskip("pandas")
    pytest.importorskip("matplotlib").use("agg")
    X, y = datasets.load_iris(return_X_y=True)
    machines = ["fisher", "knn"]
    result = widemargin.compare(X, y, machines=machines, repeats=1, folds=3, random_state=0)
    frame = result.to_frame()
    assert isinstance(frame, pd.DataFrame)
    assert list(frame.index) == [machine["machine"] for machine in result]
    assert frame["accuracy"].tolist() == [machine["accuracy"] for machine in result]
    ends = frame[["interval_low", "interval_high"]].to_numpy()
    np.testing.assert_array_equal(ends, [machine["interval"] for machine in result])
    text = result._repr_html_()
    cells = [[cell.text for cell in line] for line in ElementTree.fromstring(text).iter("tr")]
    assert cells[0][:2] == ["machine", "accuracy"]
    assert [line[0] for line in cells[1:]] == list(frame.index)
    result.machines[0]["settings"] = "<script>"
    assert "<script>" not in result._repr_html_()
    axes = result.plot()
    assert [label.get_text() for label in axes.get_yticklabels()] == list(frame.index)
    folds = np.sort(axes.lines[0].get_xdata())
    expected = np.sort(np.ravel([machine["accuracies"] for machine in result]))
    np.testing.assert_array_equal(folds, expected)
    assert axes.get_legend() is not None
