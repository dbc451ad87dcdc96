"""Maximum-margin clustering: recorded optima, bounds and files."""

import numpy as np
import pytest
from sklearn.datasets import load_digits, make_blobs

import widemargin
from widemargin import MaxMarginClustering


def test_digits_have_the_optimum_of_other_solvers():
    # Clarabel and SCS find 0.0539 for 50 rows of the classes 3 and 8.
    X, y = load_digits(return_X_y=True)
    rows = np.r_[np.where(y == 3)[0][:25], np.where(y == 8)[0][:25]]
    X = X[rows] / 16
    distances = np.sqrt(((X[:, None] - X[None]) ** 2).sum(-1))
    width = 0.6 * np.median(distances[np.triu_indices(50, 1)])
    model = MaxMarginClustering(gamma=1 / width**2, balance=5, tol=1e-8, random_state=0).fit(X)
    assert model.relaxation_ == pytest.approx(0.05392582, rel=1e-6)
    assert model.gap_ <= 1e-8
    assert model.bound_ <= model.relaxation_ <= model.objective_ * (1 + 1e-8)
    assert abs((model.labels_ == 0).sum() - (model.labels_ == 1).sum()) <= 5


def test_files_keep_labels_and_bounds(tmp_path):
    X, _ = make_blobs(30, centers=[[-2, 0], [2, 0]], random_state=1)
    model = MaxMarginClustering(gamma=0.2, random_state=0).fit(X)
    model.save(tmp_path / "clusters.wm")
    again = widemargin.load(tmp_path / "clusters.wm")
    assert isinstance(again, MaxMarginClustering)
    assert (again.labels_ == model.labels_).all()
    assert again.bound_ == model.bound_
    assert (again.predict(X) == model.predict(X)).all()
    assert ((model.decision_function(X) > 0) == (model.predict(X) == 0)).all()


def test_bad_input_is_refused():
    X = np.arange(5.0)[:, None]
    with pytest.raises(ValueError, match="no equal halves"):
        MaxMarginClustering(balance=0).fit(X)
    with pytest.raises(ValueError, match="n_clusters"):
        MaxMarginClustering(1).fit(X)
    with pytest.raises(ValueError, match="no equal 3 parts"):
        MaxMarginClustering(3, balance=0).fit(X)
    with pytest.raises(ValueError, match="tell rows apart"):
        MaxMarginClustering(gamma=1.0).fit(np.ones((4, 1)))
