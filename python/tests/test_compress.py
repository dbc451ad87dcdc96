"""Smaller models: sizes, answers, calibration and wishes that make no sense."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import widemargin
from widemargin import SVC, SVDD, SVR, MulticlassSVC, NuSVC, NuSVR, OneClassSVM

X, y = load_digits(return_X_y=True)
X = X / 16.0
TRAIN, TEST, y_train, y_test = train_test_split(X, y, random_state=0, stratify=y)


@pytest.mark.parametrize(
    "machine",
    [
        SVC(gamma=0.1, C=10),
        SVC(gamma=0.1, C=10, multi_class="ovr"),
        NuSVC(gamma=0.1, nu=0.05),
        MulticlassSVC(gamma=0.1, C=10),
    ],
)
def test_a_fifth_of_the_vectors_of_a_classifier_answers_nearly_as_well(machine):
    machine.fit(TRAIN, y_train)
    small = machine.compress(ratio=0.2, refine=20)
    assert type(small) is type(machine)
    assert small.get_params() == machine.get_params()
    assert small.n_support_.sum() == round(0.2 * machine.n_support_.sum())
    assert small.support_vectors_.shape == (small.n_support_.sum(), X.shape[1])
    assert small.score(TEST, y_test) >= machine.score(TEST, y_test) - 0.01
    again = pickle.loads(pickle.dumps(small))
    assert np.array_equal(again.decision_function(TEST), small.decision_function(TEST))
    assert machine.n_support_.sum() > small.n_support_.sum()


@pytest.mark.parametrize("machine", [SVR(gamma=0.1, C=10), NuSVR(gamma=0.1, C=10)])
def test_a_regressor_keeps_its_values(machine):
    machine.fit(TRAIN, y_train)
    small = machine.compress(ratio=0.5, refine=50)
    moved = np.abs(small.predict(TEST) - machine.predict(TEST)).max()
    assert moved < 1.0
    assert small.score(TEST, y_test) > machine.score(TEST, y_test) - 0.02
    least = machine.compress(TEST, y_test, max_loss=0.02, refine=5)
    assert least.score(TEST, y_test) >= machine.score(TEST, y_test) - 0.02


@pytest.mark.parametrize("machine", [OneClassSVM(gamma=0.1, nu=0.2), SVDD(gamma=0.1, nu=0.2)])
def test_a_novelty_detector_keeps_its_answers(machine):
    machine.fit(TRAIN)
    small = machine.compress(ratio=0.3, refine=50)
    assert (small.predict(TEST) == machine.predict(TEST)).mean() > 0.95
    with pytest.raises(ValueError, match="no score"):
        machine.compress(TEST, y_test, ratio=0.3)


def test_probabilities_are_calibrated_again_on_given_rows():
    machine = SVC(gamma=0.1, C=10, probability=True, random_state=0).fit(TRAIN, y_train)
    kept = machine.compress(ratio=0.2)
    fresh = machine.compress(TEST, y_test, ratio=0.2)
    assert np.array_equal(kept.probA_, machine.probA_)
    assert not np.array_equal(fresh.probA_, machine.probA_)
    assert np.allclose(fresh.predict_proba(TEST).sum(axis=1), 1)


def test_the_loss_allowed_is_not_exceeded_and_two_runs_are_the_same():
    machine = SVC(gamma=0.1, C=10).fit(TRAIN, y_train)
    small = machine.compress(TEST, y_test, max_loss=0.01, refine=10)
    assert small.score(TEST, y_test) >= machine.score(TEST, y_test) - 0.01
    assert small.n_support_.sum() * 4 < machine.n_support_.sum()
    again = machine.compress(TEST, y_test, max_loss=0.01, refine=10)
    assert np.array_equal(small.support_vectors_, again.support_vectors_)


def test_other_kernels_are_selected_from_and_linear_ones_collapse():
    machine = SVC(kernel="laplacian", gamma=0.1).fit(TRAIN[:300], y_train[:300])
    with pytest.raises(ValueError, match="prune"):
        machine.compress(ratio=0.5)
    small = machine.compress(ratio=0.5, method="prune")
    rows = {row.tobytes() for row in machine.support_vectors_}
    # The pixels of digits are trained on, and kept, in single precision, which holds them exactly.
    kept = small.support_vectors_.astype(machine.support_vectors_.dtype)
    assert all(row.tobytes() in rows for row in kept)
    linear = SVC(kernel="linear").fit(TRAIN, y_train)
    exact = linear.compress(lossless=True)
    assert exact.n_support_.sum() == 45
    assert np.allclose(exact.decision_function(TEST), linear.decision_function(TEST), atol=1e-6)
    assert np.allclose(exact.coef_, linear.coef_)


def test_files_of_a_smaller_model_answer_as_it_does(tmp_path):
    small = SVC(gamma=0.1, C=10).fit(TRAIN, y_train).compress(ratio=0.2, refine=5)
    small.save(tmp_path / "small.wm")
    (tmp_path / "small.model").write_text(small.to_libsvm())
    values = small.decision_function(TEST)
    for name in ("small.wm", "small.model"):
        again = widemargin.load(tmp_path / name)
        assert np.array_equal(again.predict(TEST), small.predict(TEST))
        assert np.allclose(again.decision_function(TEST), values, atol=1e-6)


def test_sparse_machines_stay_sparse():
    machine = SVC(gamma=0.1).fit(sp.csr_array(TRAIN), y_train)
    small = machine.compress(ratio=0.3, refine=5)
    assert sp.issparse(small.support_vectors_)
    assert small.score(sp.csr_array(TEST), y_test) > 0.95


@pytest.mark.parametrize(
    ("wish", "words"),
    [
        ({}, "expected one of"),
        ({"ratio": 0.1, "vectors": 5}, "ratio, vectors"),
        ({"ratio": 0.0}, "above 0"),
        ({"vectors": 0}, "at least 1"),
        ({"mmd": -1.0}, "at least 0"),
        ({"max_loss": 0.1}, "needs X and y"),
        ({"ratio": 0.5, "method": "magic"}, "one of"),
        ({"ratio": 0.5, "refine": -1}, "at least 0"),
        ({"ratio": 0.5, "X": TEST}, "together"),
        ({"ratio": 0.5, "X": TEST, "y": np.full(len(TEST), 77)}, "77"),
    ],
)
def test_wishes_that_make_no_sense(wish, words):
    machine = SVC(gamma=0.1).fit(TRAIN[:200], y_train[:200])
    with pytest.raises(ValueError, match=words):
        machine.compress(**wish)
