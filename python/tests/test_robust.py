"""Robust machines: recorded optima, scores and files."""

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.svm import SVC

import widemargin
from widemargin import LabelOutlierDetector, RobustSVC

#: Six rows on the right sides and two outliers.
X8 = np.array([[2, 1], [1, 2], [3, 2], [-5, -4], [-2, -1], [-1, -2], [-3, -2], [4, 5]], float)
Y8 = np.array([1, 1, 1, 1, -1, -1, -1, -1])


@pytest.mark.parametrize(
    ("C", "loss", "objective", "relaxation"),
    [
        (1.0, "ramp", 2.111111, 0.995862),
        (0.1, "ramp", 3.111111, 2.980581),
        (1.0, "trimmed", 0.111111, 0.108219),
        (0.02, "trimmed", 3.587692, 3.587692),
    ],
)
def test_the_relaxation_has_the_optimum_of_an_interior_point_solver(C, loss, objective, relaxation):
    # Clarabel through CVXPY; the objectives by enumeration of the rows to leave out.
    model = RobustSVC(
        loss=loss, C=C, keep=0.75, kernel="linear", fit_intercept=False, tol=1e-7, random_state=0
    ).fit(X8, Y8)
    assert model.objective_ == pytest.approx(objective, rel=1e-5)
    assert model.relaxation_ == pytest.approx(relaxation, rel=3e-5)
    assert model.bound_ <= model.relaxation_ * (1 + 1e-9)
    assert model.gap_ < 3e-5
    assert (np.flatnonzero(~model.kept_) == [3, 7]).all()
    assert (model.outlier_scores_[[3, 7]] > 0).all()


def test_wrong_labels_pull_less_than_with_hinge_losses():
    rng = np.random.RandomState(0)
    X, y = make_blobs(200, centers=[[-1.5, 0], [1.5, 0]], random_state=0)
    noisy = y.copy()
    wrong = rng.permutation(200)[:40]
    X[wrong] *= 4
    noisy[wrong] = 1 - y[wrong]
    clean, labels = make_blobs(1000, centers=[[-1.5, 0], [1.5, 0]], random_state=1)
    hinge = SVC(kernel="linear").fit(X, noisy).score(clean, labels)
    for loss in ["ramp", "eta", "trimmed"]:
        model = RobustSVC(loss=loss, kernel="linear", keep=0.8, random_state=0).fit(X, noisy)
        assert model.score(clean, labels) >= max(hinge, 0.92)
        assert np.mean(~model.kept_[wrong]) > 0.8
    detector = LabelOutlierDetector(0.2, kernel="linear", random_state=0)
    flags = detector.fit_predict(X, noisy)
    assert (flags == -1).sum() == 40
    assert np.mean(flags[wrong] == -1) > 0.8
    ranks = np.argsort(-detector.outlier_scores_)[:20]
    assert np.isin(ranks, wrong).mean() > 0.9


def test_files_keep_scores(tmp_path):
    X, y = make_blobs(60, centers=3, random_state=3)
    model = RobustSVC(method="cccp", random_state=0).fit(X, y)
    model.save(tmp_path / "robust.wm")
    again = widemargin.load(tmp_path / "robust.wm")
    assert isinstance(again, RobustSVC)
    assert (again.outlier_scores_ == model.outlier_scores_).all()
    assert (again.predict(X) == model.predict(X)).all()
    assert np.isnan(model.relaxation_)
    assert model.bound_ == 0
    assert model.outlier_scores_.shape == (60,)


def test_bad_input_is_refused():
    with pytest.raises(ValueError, match="keep"):
        RobustSVC(loss="trimmed", keep=0).fit(X8, Y8)
    with pytest.raises(ValueError, match="method"):
        RobustSVC(loss="power", method="cccp").fit(X8, Y8)
    with pytest.raises(ValueError, match="weight"):
        RobustSVC(loss="trimmed").fit(X8, Y8, sample_weight=np.arange(1, 9))
    with pytest.raises(ValueError, match="number of classes"):
        RobustSVC().fit(X8, np.ones(8))
    with pytest.raises(ValueError, match="positive semidefinite"):
        RobustSVC(kernel="sigmoid", coef0=-1.0).fit(X8, Y8)
