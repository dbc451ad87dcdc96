"""Pictures show what the estimator says."""

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_blobs

from widemargin import (
    SVC,
    SVR,
    LabelOutlierDetector,
    MaxMarginClustering,
    OneClassSVM,
    RobustSVC,
)

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("agg")

from widemargin.plot import (  # noqa: E402
    BoundDisplay,
    ConfusionMatrixDisplay,
    ConvergenceDisplay,
    MarginDisplay,
    OutlierDisplay,
)


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


def test_margins_go_through_the_free_support_vectors(iris):
    X, y = iris[0][:100, :2], iris[1][:100]
    model = SVC(kernel="linear", C=1, tol=1e-8).fit(X, y)
    display = MarginDisplay.from_estimator(model, X, y)
    free = np.abs(model.dual_coef_[0]) < 0.999
    segments = [path.vertices for path in display.margins_.get_paths()]
    assert len(segments) == 3
    edges = np.vstack([segments[0], segments[2]])
    step = np.ptp(X, axis=0).max() / 100
    for vector in model.support_vectors_[free]:
        assert np.linalg.norm(edges - vector, axis=1).min() < step
    assert len(display.support_.get_offsets()) == len(model.support_)


def test_regions_are_the_predictions(iris):
    X, y = iris[0][:, :2], np.array(["a", "b", "c"])[iris[1]]
    model = SVC().fit(X, y)
    display = MarginDisplay.from_estimator(model, X, y, resolution=20)
    grid = np.column_stack([display.xx0.ravel(), display.xx1.ravel()])
    np.testing.assert_array_equal(model.classes_[display.response.ravel()], model.predict(grid))


@pytest.mark.parametrize("Estimator", [SVR, OneClassSVM])
def test_other_machines(iris, Estimator):
    X, y = iris[0][:, :2], iris[0][:, 2]
    display = MarginDisplay.from_estimator(Estimator().fit(X, y), X, y, resolution=10)
    assert display.response.shape == (10, 10)


def test_more_than_two_features_are_refused(iris):
    X, y = iris
    with pytest.raises(ValueError, match="2 features"):
        MarginDisplay.from_estimator(SVC().fit(X, y), X, y)


def test_convergence_ends_below_the_tolerance(iris):
    X, y = iris
    model = SVC()
    display = ConvergenceDisplay.from_estimator(model, X, y)
    assert not hasattr(model, "support_")
    assert len(display.lines_) == 3
    for line in display.lines_:
        assert line.get_ydata()[-1] <= 1e-3


def test_confusion_matrix(iris):
    X, y = iris
    display = ConfusionMatrixDisplay.from_estimator(SVC().fit(X, y), X, y)
    assert display.confusion_matrix.sum() == 150


def test_clusters_and_their_margin():
    X, _ = make_blobs(60, centers=[[-3, 0], [3, 0]], random_state=0)
    model = MaxMarginClustering(gamma=0.1, random_state=0).fit(X)
    display = MarginDisplay.from_estimator(model, X, resolution=30)
    grid = np.column_stack([display.xx0.ravel(), display.xx1.ravel()])
    np.testing.assert_array_equal(display.response.ravel(), model.predict(grid))
    np.testing.assert_array_equal(display.y, model.labels_)
    assert display.levels == [-1, 0, 1]
    three = MaxMarginClustering(3, gamma=0.1, tol=1e-2, random_state=0).fit(X)
    assert MarginDisplay.from_estimator(three, X, resolution=10).values is None


def test_the_bound_closes():
    X, _ = make_blobs(60, centers=[[-1, 0], [1, 0]], random_state=0)
    display = BoundDisplay.from_estimator(MaxMarginClustering(gamma=0.3, random_state=0), X)
    assert (np.diff(display.bounds) >= 0).all()
    assert display.values[-1] == pytest.approx(display.bounds[-1], rel=1e-5)
    assert len(display.bound_line_.get_xdata()) == len(display.steps)


def test_outliers_are_ranked(iris):
    X, y = iris[0][:100], iris[1][:100].copy()
    y[[3, 70]] = 1 - y[[3, 70]]
    model = RobustSVC(loss="trimmed", keep=0.95, gamma=0.1, random_state=0).fit(X, y)
    display = OutlierDisplay.from_estimator(model)
    assert set(display.order[:2]) == {3, 70}
    assert len(display.given_up_.get_offsets()) == (~display.kept).sum() > 0
    found = LabelOutlierDetector(contamination=0.05, random_state=0).fit(X, y)
    assert set(OutlierDisplay.from_estimator(found).order[:2]) == {3, 70}
