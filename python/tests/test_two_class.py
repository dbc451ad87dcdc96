"""LASVM, the Kernel-Adatron, codes of several classes, and hard margins."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.model_selection import LeaveOneOut, cross_val_score
from sklearn.preprocessing import StandardScaler

import widemargin
from widemargin import LASVM, SVC, KernelAdatron, NuSVC, OnlineSVC


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X), y


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    return StandardScaler().fit_transform(X), y


def test_lasvm_until_optimal_is_the_batch_machine(cancer):
    X, y = cancer
    batch = SVC(C=2, gamma=0.02, tol=1e-6).fit(X, y)
    online = LASVM(C=2, gamma=0.02, epochs="inf", tol=1e-6, random_state=0).fit(X, y)
    assert online.status_ == "solved"
    np.testing.assert_allclose(online.decision_function(X), batch.decision_function(X), atol=1e-4)
    np.testing.assert_allclose(online.objective_, batch.objective_, rtol=1e-6)


def test_one_pass_of_lasvm_is_nearly_as_good(cancer):
    X, y = cancer
    once = LASVM(C=2, gamma=0.02, random_state=0).fit(X[::2], y[::2])
    assert once.score(X[1::2], y[1::2]) > 0.95
    weighted = LASVM(C=2, gamma=0.02, epochs="inf", tol=1e-6, class_weight={0: 5.0}, random_state=0)
    batch = SVC(C=2, gamma=0.02, tol=1e-6, class_weight={0: 5.0}).fit(X, y)
    ours = weighted.fit(X, y).decision_function(X)
    np.testing.assert_allclose(ours, batch.decision_function(X), atol=1e-4)


def test_lasvm_without_an_offset(cancer):
    X, y = cancer
    found = LASVM(C=1, gamma=0.02, bias=False, epochs="inf", tol=1e-6, random_state=0).fit(X, y)
    assert found.intercept_ == 0
    # At the optimum: rows with a margin above 1 have no coefficient, those below the bound C.
    margins = np.where(y == 1, 1, -1) * found.decision_function(X)
    alpha = np.zeros(len(y))
    alpha[found.support_] = np.abs(found.dual_coef_.ravel())
    assert (alpha[margins > 1 + 1e-4] == 0).all()
    np.testing.assert_allclose(alpha[margins < 1 - 1e-4], 1.0)


def test_the_adatron_solves_the_problem_with_a_penalised_offset(cancer):
    X, y = cancer
    ours = KernelAdatron(C=1, gamma=0.02, tol=1e-6).fit(X, y)
    # A constant feature in the kernel is a penalised offset.
    gram = np.exp(-0.02 * ((X[:, None] - X[None]) ** 2).sum(-1)) + 1
    kernel = SVC(C=1, kernel="precomputed", tol=1e-8).fit(gram, y)
    margins = np.where(y == 1, 1, -1) * ours.decision_function(X)
    alpha = np.zeros(len(y))
    alpha[ours.support_] = ours.dual_coef_.ravel()
    value = np.abs(alpha).sum() - 0.5 * alpha @ gram @ alpha
    assert (np.abs(alpha)[margins > 1 + 1e-4] == 0).all()
    np.testing.assert_allclose(np.abs(alpha)[margins < 1 - 1e-4], 1.0)
    assert value >= kernel.objective_ - 1e-6


@pytest.mark.parametrize("Machine", [LASVM, KernelAdatron])
def test_they_take_two_classes(iris, Machine):
    with pytest.raises(ValueError, match="Only binary classification"):
        Machine().fit(*iris)


def decoded(code, values, loss):
    """Return the class whose row of the code costs least."""
    z = code[None] * values[:, None, :]
    return loss(z).sum(-1).argmin(1)


LOSSES = {
    "hinge": lambda z: np.maximum(0, 1 - z),
    "hamming": lambda z: (1 - np.sign(z)) / 2,
    "exponential": lambda z: np.exp(-z),
    "linear": lambda z: -z,
}


@pytest.mark.parametrize("Machine", [SVC, NuSVC])
@pytest.mark.parametrize("decoding", list(LOSSES))
def test_codes_are_decoded_by_their_loss(iris, Machine, decoding, tmp_path):
    X, y = iris
    code = np.array([[1, 1, 0, -1], [-1, 1, 1, 1], [-1, -1, -1, 1]])
    options = {"multi_class": "ecoc", "code": code, "decoding": decoding}
    shape = {"decision_function_shape": "ovo"}
    parameter = {"nu": 0.2} if Machine is NuSVC else {"C": 3}
    model = Machine(gamma=0.3, **parameter, **options, **shape).fit(X, y)
    values = model.decision_function(X)
    assert values.shape == (150, 4)
    assert (model.predict(X) == decoded(code, values, LOSSES[decoding])).all()
    model.save(tmp_path / "code.wm")
    again = widemargin.load(tmp_path / "code.wm")
    assert again.decoding == decoding
    np.testing.assert_array_equal(again.code, code)
    assert (again.predict(X) == model.predict(X)).all()


def test_codes_that_do_not_fit_are_refused(iris):
    X, y = iris
    for code, message in [
        ([[1, -1], [-1, 1]], "row of equal length for each of 3 classes"),
        ([[1, 2], [1, -1], [-1, 1]], "entries -1, 0 and 1"),
        ([1, -1, 1], "row per class"),
    ]:
        with pytest.raises(ValueError, match=message):
            SVC(multi_class="ecoc", code=code).fit(X, y)
    with pytest.raises(ValueError, match="ecoc with a code"):
        SVC(decoding="hamming").fit(X, y)


@pytest.mark.parametrize(("rule", "nearest"), [("jaakkola", False), ("jaakkola-nearest", True)])
def test_gamma_by_the_median_distance_of_classes(iris, rule, nearest):
    X, y = iris
    distances = ((X[:, None] - X[None]) ** 2).sum(-1)
    other = y[:, None] != y[None]
    chosen = np.where(other, distances, np.inf).min(1) if nearest else distances[other]
    model = SVC(gamma=rule).fit(X, y)
    same = SVC(gamma=0.5 / np.median(chosen)).fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), same.decision_function(X), atol=1e-6)


def test_a_hard_margin_has_no_errors(iris):
    X, y = iris
    two = y < 2
    model = SVC(kernel="linear", C=np.inf, tol=1e-6).fit(X[two], y[two])
    margins = np.where(y[two] == 1, 1, -1) * model.decision_function(X[two])
    assert margins.min() > 1 - 1e-4
    # No other separating hyperplane has a larger margin: a soft one with a huge C is the same.
    soft = SVC(kernel="linear", C=1e6, tol=1e-6).fit(X[two], y[two])
    np.testing.assert_allclose(model.coef_, soft.coef_, atol=1e-4)


def test_online_controls_reach_the_machine(iris):
    X, y = iris
    exact = OnlineSVC(epochs="inf", gamma=0.3, C=10, random_state=0).fit(X, y)
    early = OnlineSVC(epochs="inf", gamma=0.3, C=10, stop_gap=0.3, random_state=0).fit(X, y)
    assert early.dual_gap_ <= 0.3 * (early.objective_ + early.dual_gap_)
    assert early.n_iter_ <= exact.n_iter_
    target = 0.6 * exact.objective_
    reached = OnlineSVC(epochs="inf", gamma=0.3, C=10, target_dual=target, random_state=0)
    assert target <= reached.fit(X, y).objective_ <= exact.objective_ * (1 + 1e-6)
    fixed = OnlineSVC(steps=(3, 2), multiplier=2, clock="wall", gamma=0.3, random_state=0)
    assert fixed.fit(X, y).score(X, y) > 0.9
    for parameters in ({"rate_step": 0.5}, {"least_share": 0.2}):
        assert OnlineSVC(gamma=0.3, random_state=0, **parameters).fit(X, y).score(X, y) > 0.9
    with pytest.raises(ValueError, match="two whole numbers"):
        OnlineSVC(steps=(1, 2, 3)).fit(X, y)


def test_leave_one_out_estimates_are_near_brute_force(iris):
    X, y = iris
    two = y > 0
    X, y = X[two], y[two]
    model = SVC(C=1, gamma=0.3, tol=1e-8).fit(X, y)
    true = 1 - cross_val_score(clone(model), X, y, cv=LeaveOneOut()).mean()
    assert abs(model.leave_one_out_error(X, y) - true) <= 2 / len(y)
    for bound in ("xi-alpha", "span-bound"):
        assert model.leave_one_out_error(X, y, method=bound) >= true - 1e-12
    with pytest.raises(ValueError, match="xi-alpha"):
        model.leave_one_out_error(X, y, method="guess")
