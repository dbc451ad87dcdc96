"""Semi-supervised classification: what the attributes promise, bad input."""

import pickle
from typing import ClassVar

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import make_blobs, make_circles
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import ShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import widemargin
from widemargin import (
    SVC,
    GaussianMixtureClassifier,
    LinearSVC,
    MultipleKernelSVC,
    MultipleKernelSVR,
    SemiSupervisedSVC,
    SVCSearchCV,
    tune,
)


def few_labels(seed=0, rows=300, labelled=10):
    X, y = make_blobs(rows, centers=[[-1.2, 0], [1.2, 0]], cluster_std=0.8, random_state=seed)
    known = np.where(np.arange(rows) < labelled, y, -1)
    return X, y, known


@pytest.mark.parametrize("method", ["annealing", "switching"])
def test_unlabelled_rows_help(method):
    ours, told, theirs = [], [], []
    for seed in range(5):
        X, y, known = few_labels(seed)
        hidden = known == -1
        model = SemiSupervisedSVC(method=method).fit(X, known)
        ours.append((model.transduction_ != y)[hidden].mean())
        share = y[hidden].mean()
        best = SemiSupervisedSVC(method=method, class_prior=share).fit(X, known)
        told.append((best.transduction_ != y)[hidden].mean())
        plain = LinearSVC().fit(X[~hidden], y[~hidden])
        theirs.append((plain.predict(X) != y)[hidden].mean())
        np.testing.assert_array_equal(model.transduction_[hidden], model.predict(X[hidden]))
        np.testing.assert_array_equal(model.transduction_[~hidden], y[~hidden])
        assert 0 < model.bound_ <= model.objective_
        assert model.gap_ == pytest.approx(model.objective_ / model.bound_ - 1)
        assert model.status_ == "solved"
        assert model.class_prior_.sum() == pytest.approx(1)
    assert np.mean(ours) < np.mean(theirs)
    # The best possible classifier is wrong on 6.7 % of such rows.
    assert np.mean(told) < 0.09


def test_shares_move_the_boundary():
    X, y, known = few_labels()
    found = []
    for share in (0.3, y[known == -1].mean(), 0.7):
        model = SemiSupervisedSVC(class_prior=share).fit(X, known)
        found.append(model.transduction_[known == -1].mean())
        np.testing.assert_allclose(model.class_prior_, [1 - share, share])
        both = SemiSupervisedSVC(class_prior=[1 - share, share]).fit(X, known)
        np.testing.assert_array_equal(both.transduction_, model.transduction_)
    # A share that is wrong moves the boundary against the losses of the rows near it.
    assert found[0] + 0.03 < found[1] < found[2] - 0.01
    assert abs(found[1] - y[known == -1].mean()) < 0.06
    model = SemiSupervisedSVC(class_prior="labelled").fit(X, known)
    share = ((known == 1).sum() + 1) / ((known >= 0).sum() + 2)
    np.testing.assert_allclose(model.class_prior_, [1 - share, share])


def test_labels_of_every_kind_and_sparse_rows():
    X, y, known = few_labels()
    expected = SemiSupervisedSVC().fit(X, known).transduction_
    words = np.array(["no", "yes"])[y]
    marked = np.where(known == -1, "?", words)
    model = SemiSupervisedSVC(unlabeled="?").fit(sp.csr_matrix(X), marked)
    assert model.classes_.tolist() == ["no", "yes"]
    np.testing.assert_array_equal(model.transduction_, np.array(["no", "yes"])[expected])
    assert ((model.decision_function(X) > 0) == (model.predict(X) == "yes")).all()


def test_a_kernel_and_several_classes():
    X, y = make_circles(200, factor=0.4, noise=0.05, random_state=0)
    known = np.where(np.arange(200) < 12, y, -1)
    model = SemiSupervisedSVC("rbf", class_prior=0.5, gamma=1.0, random_state=0).fit(X, known)
    assert (model.transduction_ != y).mean() < 0.03
    centers = [[0, 0], [4, 0], [2, 4]]
    X, y = make_blobs(150, centers=centers, random_state=1)
    known = np.where(np.arange(150) < 9, y, -1)
    model = SemiSupervisedSVC(class_prior=[1 / 3] * 3).fit(X, known)
    assert (model.transduction_ != y).mean() < 0.05
    assert model.decision_function(X).shape == (150, 3)


def test_the_relaxation_proves_a_bound():
    X, y, known = few_labels(rows=30, labelled=6)
    share = y[6:].mean()
    for kernel in ("linear", "rbf"):
        parameters = {"kernel": kernel, "class_prior": share, "C": 1.0, "random_state": 0}
        model = SemiSupervisedSVC(method="relaxation", **parameters).fit(X, known)
        assert model.status_ == "solved"
        assert 0 < model.bound_ <= model.relaxation_ * (1 + 1e-9)
        assert model.relaxation_ <= model.objective_ * (1 + 1e-9)
        assert model.relaxation_ - model.bound_ <= 2e-3 * model.relaxation_
        assert model.gap_ < 0.5
        assert (model.transduction_ != y).mean() < 0.2
        assert np.isnan(SemiSupervisedSVC(**parameters).fit(X, known).relaxation_)
    three = np.where(np.arange(30) < 9, np.arange(30) % 3, -1)
    with pytest.raises(ValueError, match="two classes"):
        SemiSupervisedSVC(method="relaxation").fit(X, three)


def test_files_pickles_and_clones_keep_the_model(tmp_path):
    X, _, known = few_labels()
    for kernel in ("linear", "rbf"):
        model = clone(SemiSupervisedSVC(kernel, random_state=0)).fit(X, known)
        model.save(tmp_path / "m.wm")
        for again in (widemargin.load(tmp_path / "m.wm"), pickle.loads(pickle.dumps(model))):
            np.testing.assert_array_equal(again.predict(X), model.predict(X))
            assert again.objective_ == model.objective_
            assert again.bound_ == model.bound_


def test_bad_input():
    X, _, known = few_labels()

    def refused(pattern, y=known, rows=X, **parameters):
        with pytest.raises(ValueError, match=pattern):
            SemiSupervisedSVC(**parameters).fit(rows, y)

    refused("unlabeled rows only", np.full(300, -1))
    refused("greater than one; got 1 class", np.where(known == 1, -1, known))
    refused("NaN", rows=np.where(np.arange(300)[:, None] == 5, np.nan, X))
    refused("class_prior", class_prior=1.5)
    refused("add up to 1", class_prior=[0.2, 0.2])
    refused("each of 2 classes", class_prior=[0.2, 0.3, 0.5])
    refused("above 0 and below 1", class_prior=[0.0, 1.0])
    refused("rows that differ", rows=np.ones_like(X))
    refused("'C' parameter", C=0.0)
    with pytest.warns(UserWarning, match="no row is without a label"):
        SemiSupervisedSVC().fit(X, np.arange(300) % 2)
    with pytest.raises(ValueError, match="finite numbers of at least 0"):
        SemiSupervisedSVC().fit(X, known, np.full(300, -1.0))
    with pytest.raises(ValueError, match="all samples have zero"):
        SemiSupervisedSVC().fit(X, known, np.zeros(300))


def test_time_is_limited():
    X, _, known = few_labels(rows=3000)
    with pytest.warns(ConvergenceWarning, match="max_time"):
        model = SemiSupervisedSVC(max_time=1e-9).fit(X, known)
    assert model.status_ == "time limit reached"
    assert model.transduction_.shape == (3000,)


class Watched(SemiSupervisedSVC):
    """Remembers which rows it learnt from."""

    seen: ClassVar[list[np.ndarray]] = []

    def fit(self, X, y, sample_weight=None):
        Watched.seen.append(np.asarray(y))
        return super().fit(X, y, sample_weight)


@pytest.mark.parametrize("cv", [3, None, "splitter", "rows"])
def test_searches_do_not_hold_out_rows_without_labels(cv):
    X, _, known = few_labels(rows=90, labelled=30)
    hidden = (known == -1).sum()
    cv = {
        "splitter": ShuffleSplit(2, test_size=0.5, random_state=0),
        "rows": [(np.arange(90), np.arange(0, 90, 2)), (np.arange(90), np.arange(1, 90, 2))],
    }.get(cv, cv)
    Watched.seen.clear()
    search = SVCSearchCV(Watched(), {"C": [0.1, 1.0]}, cv=cv, scoring="accuracy").fit(X, known)
    assert all((labels == -1).sum() == hidden for labels in Watched.seen)
    # Were rows without labels counted, two thirds would be wrong.
    assert search.best_score_ > 0.7
    assert search.cv is cv


@pytest.mark.parametrize("method", ["grid", "refine", "random", "halving", "race", "surrogate"])
def test_every_way_to_search_leaves_rows_without_labels_to_the_training(method):
    X, _, known = few_labels(rows=90, labelled=30)
    options = {"method": method, "cv": 3, "n_iter": 4, "random_state": 0, "min_rows": 40}
    search = tune(SemiSupervisedSVC(), X, known, {"C": [0.1, 1.0, 10.0]}, **options)
    assert search.best_score_ > 0.7


def test_other_machines_with_rows_without_labels_are_searched():
    X, _, known = few_labels(rows=90, labelled=30)
    mixture = GaussianMixtureClassifier(unlabeled=-1)
    search = SVCSearchCV(mixture, {"n_components": [1, 2]}, cv=3).fit(X, known)
    assert search.best_score_ > 0.7
    kernels = MultipleKernelSVC(["linear", "rbf"], unlabeled=-1)
    search = SVCSearchCV(make_pipeline(StandardScaler(), kernels), {}, cv=3).fit(X, known)
    assert search.best_score_ > 0.7
    targets = np.where(known == -1, np.nan, X[:, 0] * 2)
    kernels = MultipleKernelSVR(["linear", "rbf"], unlabeled="nan", C=10)
    search = SVCSearchCV(kernels, {"C": [10.0]}, cv=3).fit(X, targets)
    assert search.best_score_ > 0.9
    # Others have no such rows: -1 is a class.
    assert SVCSearchCV(SVC(), {"C": [1.0]}, cv=3).fit(X, known).classes_.tolist() == [-1, 0, 1]
