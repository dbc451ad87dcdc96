"""Semi-supervised classification: scikit-learn's contract, what the attributes promise, bad input."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import make_blobs, make_circles
from sklearn.utils.estimator_checks import parametrize_with_checks

import widemargin
from widemargin import LinearSVC, SemiSupervisedSVC

# -1 marks rows without labels; scikit-learn's own semi-supervised classifiers are excused by name.
MARKS = {"check_classifiers_classes": "-1 is no class", "check_classifiers_train": "-1 is no class"}
WEIGHTS = {
    "check_sample_weight_equivalence_on_dense_data": "the choice of C counts rows, not weights",
    "check_sample_weight_equivalence_on_sparse_data": "the choice of C counts rows, not weights",
}


@pytest.mark.filterwarnings("ignore:no row is without a label")
@parametrize_with_checks(
    [SemiSupervisedSVC(), SemiSupervisedSVC(kernel="rbf", method="switching", C=1.0)],
    expected_failed_checks=lambda estimator: {**MARKS, **WEIGHTS},
)
def test_contract(estimator, check):
    check(estimator)


def few_labels(seed=0, rows=300, labelled=10):
    X, y = make_blobs(rows, centers=[[-1.2, 0], [1.2, 0]], cluster_std=0.8, random_state=seed)
    known = np.where(np.arange(rows) < labelled, y, -1)
    return X, y, known


@pytest.mark.parametrize("method", ["annealing", "switching"])
def test_unlabelled_rows_help(method):
    ours, theirs = [], []
    for seed in range(5):
        X, y, known = few_labels(seed)
        hidden = known == -1
        model = SemiSupervisedSVC(method=method).fit(X, known)
        ours.append((model.transduction_ != y)[hidden].mean())
        plain = LinearSVC().fit(X[~hidden], y[~hidden])
        theirs.append((plain.predict(X) != y)[hidden].mean())
        np.testing.assert_array_equal(model.transduction_[hidden], model.predict(X[hidden]))
        np.testing.assert_array_equal(model.transduction_[~hidden], y[~hidden])
        assert 0 < model.bound_ <= model.objective_
        assert model.gap_ == pytest.approx(model.objective_ / model.bound_ - 1)
        assert model.status_ == "solved"
        assert model.class_prior_.sum() == pytest.approx(1)
    assert np.mean(ours) < np.mean(theirs)
    assert np.mean(ours) < 0.09


def test_shares_are_kept():
    X, y, known = few_labels()
    for share in (0.3, 0.5, 0.7):
        model = SemiSupervisedSVC(class_prior=share).fit(X, known)
        found = model.transduction_[known == -1].mean()
        assert abs(found - share) < 0.03
        np.testing.assert_allclose(model.class_prior_, [1 - share, share])
        both = SemiSupervisedSVC(class_prior=[1 - share, share]).fit(X, known)
        np.testing.assert_array_equal(both.transduction_, model.transduction_)
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
    model = SemiSupervisedSVC("rbf", gamma=1.0, random_state=0).fit(X, known)
    assert (model.transduction_ != y).mean() < 0.03
    centers = [[0, 0], [4, 0], [2, 4]]
    X, y = make_blobs(150, centers=centers, random_state=1)
    known = np.where(np.arange(150) < 9, y, -1)
    model = SemiSupervisedSVC(class_prior=[1 / 3] * 3).fit(X, known)
    assert (model.transduction_ != y).mean() < 0.05
    assert model.decision_function(X).shape == (150, 3)


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


def test_time_is_limited():
    X, _, known = few_labels(rows=3000)
    model = SemiSupervisedSVC(max_time=1e-9).fit(X, known)
    assert model.status_ == "time limit reached"
    assert model.transduction_.shape == (3000,)
