"""The all-in-one machines: contract, agreement with scikit-learn, batch against online."""

import pickle

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.svm import SVC as SklearnSVC
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

import widemargin
from widemargin import MulticlassSVC, OnlineSVC

MACHINES = ["ww", "cs", "llw", "adm", "atm", "ats", "mmr", "ova", "reinforced"]
TOLERANCE = {
    "check_sample_weight_equivalence_on_dense_data": "solved to tol=1e-3, compared to 1e-7",
    "check_sample_weight_equivalence_on_sparse_data": "solved to tol=1e-3, compared to 1e-7",
}
X, y = load_iris(return_X_y=True)


@parametrize_with_checks(
    [
        MulticlassSVC(),
        MulticlassSVC(machine="cs", bias=True),
        MulticlassSVC(kernel="precomputed", bias=True),
        OnlineSVC(),
        OnlineSVC(machine="cs", epochs="inf"),
    ],
    expected_failed_checks=lambda estimator: TOLERANCE,
)
def test_contract(estimator, check):
    check(estimator)


def test_crammer_singer_is_that_of_liblinear_at_four_times_its_price():
    theirs = LinearSVC(
        multi_class="crammer_singer", fit_intercept=False, C=0.25, tol=1e-8, max_iter=1_000_000
    ).fit(X, y)
    ours = MulticlassSVC(machine="cs", C=1.0, kernel="linear", tol=1e-8, precision="double")
    ours.fit(X, y)
    np.testing.assert_allclose(ours.coef_, 2 * theirs.coef_, atol=1e-3)


@pytest.mark.parametrize("machine", MACHINES)
def test_two_classes_are_the_binary_machine(machine):
    rows = y < 2
    noisy = X[rows][:, :2]
    factor = 1.0 if machine in ("ats", "ova", "reinforced") else 0.5
    theirs = SklearnSVC(C=factor, gamma=0.5, tol=1e-8).fit(noisy, y[rows])
    ours = MulticlassSVC(machine=machine, C=1.0, gamma=0.5, bias=True, tol=1e-8).fit(noisy, y[rows])
    expected = theirs.decision_function(noisy)
    np.testing.assert_allclose(ours.decision_function(noisy) / 2, expected, atol=1e-4)


@pytest.mark.parametrize("machine", MACHINES)
def test_online_until_optimal_is_the_batch_machine(machine):
    batch = MulticlassSVC(machine=machine, C=5.0, tol=1e-5).fit(X, y)
    online = OnlineSVC(machine=machine, C=5.0, epochs="inf", tol=1e-5, random_state=0).fit(X, y)
    assert online.status_ == batch.status_ == "solved"
    assert online.objective_ == pytest.approx(batch.objective_, rel=1e-5)
    assert batch.score(X, y) > 0.9


def test_streams_and_budgets():
    model = OnlineSVC(machine="cs", C=5.0, budget=25, random_state=0)
    with pytest.raises(ValueError, match="classes must be passed"):
        model.partial_fit(X, y)
    order = np.random.default_rng(0).permutation(len(X))
    for part in np.array_split(order, 10):
        model.partial_fit(X[part], y[part], classes=[0, 1, 2])
    assert len(model.support_vectors_) <= 25
    assert model.score(X, y) > 0.85
    with pytest.raises(ValueError, match="not among"):
        model.partial_fit(X[:3], [7, 7, 7])


def test_files(tmp_path):
    model = MulticlassSVC(machine="llw", C=3.0, bias=True).fit(X, y)
    model.save(tmp_path / "iris.wm")
    again = widemargin.load(tmp_path / "iris.wm")
    assert isinstance(again, MulticlassSVC)
    assert again.machine == "llw"
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))


def test_a_pickled_learner_goes_on():
    X, y = load_iris(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    first, second = order[:75], order[75:]
    model = OnlineSVC(machine="cs", C=10, gamma=0.5, random_state=0)
    model.partial_fit(X[first], y[first], classes=[0, 1, 2])
    copy = pickle.loads(pickle.dumps(model))
    copy.partial_fit(X[second], y[second])
    anew = OnlineSVC(machine="cs", C=10, gamma=0.5, random_state=0)
    anew.partial_fit(X[second], y[second], classes=[0, 1, 2])
    assert copy.n_support_.sum() > anew.n_support_.sum()
    kept = {tuple(row) for row in copy.support_vectors_}
    assert kept & {tuple(row) for row in X[first]}
    assert copy.score(X, y) > 0.9
