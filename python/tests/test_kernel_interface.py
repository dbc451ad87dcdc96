"""The interface of learnt kernels to the letter: constructor, attributes and their meaning."""

import inspect

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.metrics.pairwise import linear_kernel, rbf_kernel
from sklearn.svm import SVC as PeerSVC

from widemargin import MultipleKernelSVC, MultipleKernelSVR


def rows(n=45, classes=3, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % classes
    angle = 2 * np.pi * y / classes
    return 3 * np.stack([np.cos(angle), np.sin(angle)], 1) + rng.normal(size=(n, 2)), y


def tables(X, Y):
    return [linear_kernel(X, Y), rbf_kernel(X, Y, 0.1), (1 + X @ Y.T) ** 2]


def square(A, B):
    return (1 + A @ B.T) ** 2


NAMED = ["linear", {"kernel": "rbf", "gamma": 0.1}, square]


def crammer_singer(K, y, C):
    """Return ½‖w‖² + CΣξ of Lu's problem (2.2) by a general solver of its dual (2.3)."""
    n, k = len(y), y.max() + 1
    d = np.eye(k)[y].ravel()

    def value(a):
        A = a.reshape(n, k)
        return 0.5 * np.einsum("il,ij,jl->", A, K, A) - d @ a

    def slope(a):
        return (K @ a.reshape(n, k)).ravel() - d

    bounds = [(-C if not own else 0, C if own else 0) for own in d]
    sums = {"type": "eq", "fun": lambda a: a.reshape(n, k).sum(1)}
    sums["jac"] = lambda a: np.kron(np.eye(n), np.ones(k))
    options = {"ftol": 1e-13, "maxiter": 1000}
    found = minimize(
        value,
        np.zeros(n * k),
        jac=slope,
        bounds=bounds,
        constraints=sums,
        method="SLSQP",
        options=options,
    )
    return -found.fun


def test_the_constructor_has_the_names_that_were_agreed():
    parameters = inspect.signature(MultipleKernelSVC).parameters
    for name in ("kernels", "weights", "machine", "C", "tol"):
        assert name in parameters
    for name in ("kernels", "weights", "C", "epsilon", "tol"):
        assert name in inspect.signature(MultipleKernelSVR).parameters


@pytest.mark.parametrize("machine", ["cs", "c-svc"])
@pytest.mark.parametrize("weights", ["nonnegative", "signed", "uniform", 1.5])
@pytest.mark.parametrize("given", ["named", "precomputed"])
def test_every_combination_has_the_attributes(machine, weights, given):
    X, y = rows()
    shared = {"weights": weights, "machine": machine, "C": 1.5, "tol": 1e-4}
    if given == "named":
        model = MultipleKernelSVC(kernels=NAMED, **shared).fit(X, y)
        answers = model.predict(X)
    else:
        model = MultipleKernelSVC(kernels="precomputed", **shared).fit(tables(X, X), y)
        answers = model.predict(tables(X, X))
    assert model.kernel_weights_.shape == (3,)
    assert model.kernel_weights_.sum() == pytest.approx(1, abs=1e-9)
    assert isinstance(model.objective_, float)
    assert isinstance(model.bound_, float)
    assert isinstance(model.gap_, float)
    assert model.bound_ <= model.objective_ * (1 + 1e-12)
    assert model.gap_ <= 1e-4
    assert model.gap_ == pytest.approx((model.objective_ - model.bound_) / model.objective_)
    assert (answers == y).mean() > 0.8
    if weights == "signed":
        K = learnt(model, X, jitter=1e-6)
        assert np.linalg.eigvalsh(K)[0] > -1e-8 * np.trace(K)
    else:
        assert (model.kernel_weights_ >= 0).all()


def learnt(model, X, jitter=0.0):
    """Return the learnt kernel over the rows, of candidates scaled to the trace n."""
    K = 0
    for w, table in zip(model.kernel_weights_, tables(X, X), strict=True):
        table = table + jitter * np.trace(table) / len(X) * np.eye(len(X))
        K = K + w * table * len(X) / np.trace(table)
    return K


def test_the_objective_of_cs_is_that_of_the_document_at_the_learnt_kernel():
    X, y = rows(24)
    model = MultipleKernelSVC(kernels=NAMED, machine="cs", C=1.5, tol=1e-7).fit(X, y)
    assert model.objective_ == pytest.approx(crammer_singer(learnt(model, X), y, 1.5), rel=1e-6)


def test_the_objective_of_c_svc_is_that_of_another_solver_at_the_learnt_kernel():
    X, y = rows(40, 2)
    model = MultipleKernelSVC(kernels=NAMED, machine="c-svc", C=2, tol=1e-7).fit(X, y)
    K = learnt(model, X)
    peer = PeerSVC(kernel="precomputed", C=2, tol=1e-9).fit(K, y)
    beta = peer.dual_coef_[0]
    form = beta @ K[np.ix_(peer.support_, peer.support_)] @ beta
    assert model.objective_ == pytest.approx(np.abs(beta).sum() - form / 2, rel=1e-6)


def test_the_bound_holds_for_weights_on_the_whole_simplex():
    X, y = rows(30)
    model = MultipleKernelSVC(kernels=NAMED, C=1.5, tol=1e-5).fit(X, y)
    scaled = [table * len(X) / np.trace(table) for table in tables(X, X)]
    rng = np.random.default_rng(0)
    for mu in np.vstack([np.eye(3), rng.dirichlet(np.ones(3), 8)]):
        K = [sum(m * table for m, table in zip(mu, scaled, strict=True))]
        one = MultipleKernelSVC("precomputed", weights="uniform", C=1.5, tol=1e-6).fit(K, y)
        assert one.objective_ >= model.bound_ * (1 - 1e-9)


def test_a_float_is_the_norm_of_the_weights():
    X, y = rows(60)
    found = {
        p: MultipleKernelSVC(NAMED, weights=p, C=1.5).fit(X, y) for p in (1, 1.0, 1.2, 2, 50.0)
    }
    np.testing.assert_allclose(found[1].kernel_weights_, found[1.0].kernel_weights_)
    sparse = MultipleKernelSVC(NAMED, weights="nonnegative", C=1.5).fit(X, y)
    np.testing.assert_allclose(found[1.0].kernel_weights_, sparse.kernel_weights_)
    spread = [found[p].kernel_weights_.std() for p in (1.0, 1.2, 2, 50.0)]
    assert sorted(spread, reverse=True) == spread
    for p in (0.5, 0, -1, np.nan):
        with pytest.raises(ValueError, match="weights"):
            MultipleKernelSVC(NAMED, weights=p).fit(X, y)


def test_two_identical_candidates_and_one_alone_have_the_same_optimum():
    X, y = rows()
    one = MultipleKernelSVC(["rbf(gamma=0.1)"], C=1.5, tol=1e-6).fit(X, y)
    with pytest.warns(UserWarning, match="nearly multiples"):
        two = MultipleKernelSVC(["rbf(gamma=0.1)"] * 2, C=1.5, tol=1e-6).fit(X, y)
    assert two.objective_ == pytest.approx(one.objective_, rel=2e-6)
    assert one.kernel_weights_.tolist() == [1.0]
