"""Learnt kernels against conic programs: values to 1e-6, the same predictions, and their order."""

import numpy as np
import pytest

from widemargin import MultipleKernelSVC, MultipleKernelSVR

pytest.importorskip("clarabel", reason="the conic solver that is the oracle")

import conic

pytestmark = pytest.mark.filterwarnings("ignore:some kernels have negative weights")

JITTER = 1e-3


def candidates(X, singular):
    """Return matrices of trace n; those of few dimensions are singular and need jitter."""
    n = len(X)
    distances = ((X[:, None] - X) ** 2).sum(-1)
    found = [X @ X.T, (1 + X @ X.T) ** 2, np.exp(-distances / 2)]
    if singular:
        found.append((1 + X @ X.T) ** 3)
    found = [K + (JITTER if singular else 0) * np.trace(K) / n * np.eye(n) for K in found]
    return [K * n / np.trace(K) for K in found]


def rows(seed, n, classes):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % classes
    X = (rng.normal(size=(classes, 2)) * 1.5)[y] + rng.normal(size=(n, 2))
    return X, y


def split(seed, classes, singular):
    """Return matrices over labelled rows, which come first, and others, and the labels."""
    n, labelled = 18, 13
    X, y = rows(seed, n, classes)
    return candidates(X, singular), y[:labelled], np.concatenate([y[:labelled], [-1] * 5])


def close(model, t, tol=1e-6):
    assert 2 * model.objective_ == pytest.approx(t, rel=tol)
    assert 2 * model.bound_ == pytest.approx(t, rel=tol)
    assert 2 * model.bound_ <= t * (1 + 4e-7)


CASES = [(seed, 2 + seed % 4, seed % 3 == 0) for seed in range(9)]


@pytest.mark.parametrize("rule", ["nonnegative", "signed"])
@pytest.mark.parametrize(("seed", "classes", "singular"), CASES)
def test_crammer_singer_has_the_value_of_the_semidefinite_program(seed, classes, singular, rule):
    grams, y, labels = split(seed, classes, singular)
    C = [0.3, 1.5, 8.0][seed % 3]
    weights, t = conic.split(grams, y, C, rule)
    model = MultipleKernelSVC(
        "precomputed", weights=rule, C=C, tol=2e-7, jitter=0, unlabeled=-1
    ).fit(grams, labels)
    close(model, t)
    K = sum(w * gram for w, gram in zip(weights, grams, strict=True))
    scores = conic.scores(K, y, C)
    np.testing.assert_allclose(model.decision_function(grams), centred(scores), atol=2e-3)
    ordered = np.sort(scores, axis=1)
    clear = ordered[:, -1] - ordered[:, -2] > 1e-2
    assert clear.sum() > 9
    np.testing.assert_array_equal(model.predict(grams)[clear], scores.argmax(1)[clear])
    if rule == "nonnegative":
        assert conic.quadratically_constrained(grams, y, C) == pytest.approx(t, rel=1e-6)


def centred(scores):
    """Return what decision_function returns."""
    return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores


@pytest.mark.parametrize("rule", ["nonnegative", "signed"])
@pytest.mark.parametrize("seed", range(4))
def test_regression_has_the_value_of_the_semidefinite_program(seed, rule):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (18, 2))
    y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.2 * rng.normal(size=18)
    grams = candidates(X, seed % 2 == 0)
    C, epsilon = [0.5, 5.0][seed % 2], 0.1
    weights, t = conic.regression(grams, y[:13], C, epsilon, rule)
    model = MultipleKernelSVR(
        "precomputed", weights=rule, C=C, epsilon=epsilon, tol=2e-7, jitter=0, unlabeled="nan"
    ).fit(grams, np.concatenate([y[:13], np.full(5, np.nan)]))
    close(model, t)
    K = sum(w * gram for w, gram in zip(weights, grams, strict=True))
    fixed = MultipleKernelSVR("precomputed", weights="uniform", C=C, epsilon=epsilon, tol=1e-8)
    fixed.fit([K[:13, :13]], y[:13])
    # Traces: those of the thirteen rows alone are made 13.
    share = np.trace(K[:13, :13]) / 13
    fixed.set_params(C=C * share).fit([K[:13, :13]], y[:13])
    np.testing.assert_allclose(model.predict(grams), fixed.predict([K[:, :13]]), atol=2e-3)


@pytest.mark.parametrize("rule", ["nonnegative", "signed", 2.0])
@pytest.mark.parametrize(("seed", "classes"), [(0, 2), (1, 3), (2, 2)])
def test_machines_with_offsets_have_the_value_of_the_semidefinite_program(seed, classes, rule):
    X, y = rows(seed, 16, classes)
    grams = candidates(X, seed == 2)
    one = [np.where(y == c, 1.0, -1.0) for c in range(classes if classes > 2 else 1)]
    shared = {"machine": "c-svc", "multi_class": "ovr", "C": 1.2, "tol": 2e-7, "jitter": 0}
    model = MultipleKernelSVC("precomputed", weights=rule, **shared).fit(grams, y)
    radius = float(np.linalg.norm(model.kernel_weights_)) if rule == 2.0 else rule
    _, t = conic.two_classes(grams, one, 1.2, radius)
    close(model, t)


@pytest.mark.parametrize("seed", range(3))
def test_weights_of_a_norm_have_the_value_of_the_conic_program(seed):
    grams, y, labels = split(seed, 3, seed == 2)
    model = MultipleKernelSVC(
        "precomputed", weights=2.0, C=1.5, tol=2e-7, jitter=0, unlabeled=-1
    ).fit(grams, labels)
    close(model, conic.split(grams, y, 1.5, float(np.linalg.norm(model.kernel_weights_)))[1])


@pytest.mark.parametrize("rule", ["nonnegative", "signed"])
def test_the_joined_and_the_split_program_are_one(rule):
    X, y = rows(3, 9, 3)
    grams = candidates(X, False)
    _, one = conic.joined(grams, y[:7], 1.5, rule)
    _, other = conic.split(grams, y[:7], 1.5, rule)
    assert one == pytest.approx(other, rel=1e-6)
    labels = np.concatenate([y[:7], [-1, -1]])
    model = MultipleKernelSVC("precomputed", weights=rule, C=1.5, tol=2e-7, jitter=0, unlabeled=-1)
    close(model.fit(grams, labels), one)


@pytest.mark.parametrize(("seed", "classes", "singular"), CASES[:6])
def test_more_freedom_never_costs(seed, classes, singular):
    grams, _, labels = split(seed, classes, singular)

    def t(tables, weights):
        model = MultipleKernelSVC(
            "precomputed", weights=weights, C=1.5, tol=1e-7, jitter=0, unlabeled=-1
        )
        return 2 * model.fit(tables, labels).objective_

    signed, plain = t(grams, "signed"), t(grams, "nonnegative")
    singles = [t([gram], "uniform") for gram in grams]
    room = 1 + 2e-7
    assert signed <= plain * room
    assert plain <= min(singles) * room
    assert plain <= t(grams, "uniform") * room
    assert plain <= t(grams[:2], "nonnegative") * room


def test_vectors_of_the_document():
    X, y = np.random.default_rng(0), None
    centres = X.normal(size=(3, 2)) * 1.5
    y = np.arange(20) % 3
    rows = centres[y] + X.normal(size=(20, 2))
    grams = [
        K * 20 / np.trace(K)
        for K in (
            rows @ rows.T,
            (1 + rows @ rows.T) ** 2,
            np.exp(-((rows[:, None] - rows) ** 2).sum(-1) / 2),
        )
    ]
    for rule, t in [("signed", 18.062395), ("nonnegative", 18.982870)]:
        assert conic.split(grams, y[:14], 1.5, rule)[1] == pytest.approx(t, rel=1e-6)
        labels = np.where(np.arange(20) < 14, y, -1)
        model = MultipleKernelSVC(
            "precomputed", weights=rule, C=1.5, tol=2e-7, jitter=0, unlabeled=-1
        )
        close(model.fit(grams, labels), t)
    ones = [np.eye(3), np.ones((3, 3))]
    for rule, mu, t in [("signed", (1.5, -0.5), 4 / 3), ("nonnegative", (1, 0), 2)]:
        model = MultipleKernelSVC("precomputed", weights=rule, C=1, tol=1e-8, jitter=0)
        model.fit(ones, [1, 2, 3])
        assert 2 * model.objective_ == pytest.approx(t, rel=1e-6)
        np.testing.assert_allclose(model.kernel_weights_, mu, atol=1e-5)
