"""Hidden Markov models against enumeration of all paths."""

import pickle
from itertools import pairwise, product

import numpy as np
import pytest
from scipy.stats import multivariate_normal, poisson
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import widemargin
from widemargin import CategoricalHMM, GaussianHMM, PoissonHMM

LENGTHS = [5, 1, 4]


def random_rows(rng, rows, columns):
    return rng.dirichlet(np.ones(columns), size=rows)


def models(rng):
    """Models with parameters set by hand, and the density of a state at a row."""
    means, rates = rng.randn(3, 2), rng.gamma(2.0, size=(3, 2))
    table = random_rows(rng, 3, 4)
    spread = rng.randn(3, 2, 2)
    matrices = np.einsum("kij,klj->kil", spread, spread) + np.eye(2)
    variances = rng.gamma(2.0, size=(3, 2))
    covariances = {
        "full": matrices,
        "tied": matrices[0],
        "diag": variances,
        "spherical": variances[:, 0],
    }
    as_matrix = {
        "full": lambda k: matrices[k],
        "tied": lambda k: matrices[0],
        "diag": lambda k: np.diag(variances[k]),
        "spherical": lambda k: variances[k, 0] * np.eye(2),
    }
    model = CategoricalHMM(3)
    model.emissionprob_ = table
    yield model, lambda k, x: table[k, int(x[0])], lambda n: rng.randint(4, size=(n, 1))
    model = PoissonHMM(3)
    model.lambdas_ = rates
    yield model, lambda k, x: poisson.pmf(x, rates[k]).prod(), lambda n: rng.poisson(2.0, (n, 2))
    for shape, values in covariances.items():
        model = GaussianHMM(3, shape)
        model.means_, model.covars_ = means, values
        matrix = as_matrix[shape]

        def density(k, x, matrix=matrix):
            return multivariate_normal.pdf(x, means[k], matrix(k))

        yield model, density, lambda n: rng.randn(n, 2)


def test_likelihood_posteriors_and_paths_are_those_of_all_paths():
    rng = np.random.RandomState(0)
    for model, density, draw in models(rng):
        model.startprob_ = random_rows(rng, 1, 3)[0]
        model.transmat_ = random_rows(rng, 3, 3)
        X = draw(sum(LENGTHS))
        total, best, states, expected = 0.0, 0.0, [], []
        for part in np.split(X, np.cumsum(LENGTHS)[:-1]):
            paths = list(product(range(3), repeat=len(part)))
            weights = []
            for path in paths:
                densities = [density(k, x) for k, x in zip(path, part, strict=True)]
                p = model.startprob_[path[0]] * np.prod(densities)
                weights.append(p * np.prod([model.transmat_[a, b] for a, b in pairwise(path)]))
            weights = np.array(weights)
            total += np.log(weights.sum())
            best += np.log(weights.max())
            states.extend(paths[weights.argmax()])
            at = np.array(paths)
            expected.extend(
                [weights[at[:, k] == s].sum() / weights.sum() for s in range(3)]
                for k in range(len(part))
            )
        assert model.score(X, LENGTHS) == pytest.approx(total)
        found, posteriors = model.score_samples(X, LENGTHS)
        assert found == pytest.approx(total)
        np.testing.assert_allclose(posteriors, expected, atol=1e-10)
        np.testing.assert_array_equal(model.predict(X, LENGTHS), states)
        assert model.decode(X, LENGTHS)[0] == pytest.approx(best)
        mapped = model.decode(X, LENGTHS, algorithm="map")[1]
        np.testing.assert_array_equal(mapped, np.argmax(expected, axis=1))
        again = pickle.loads(pickle.dumps(model))
        assert again.score(X, LENGTHS) == model.score(X, LENGTHS)


@pytest.mark.parametrize("implementation", ["scaling", "log"])
def test_training_grows_the_likelihood_and_finds_the_model(implementation):
    truth = GaussianHMM(2, random_state=3)
    truth.startprob_, truth.transmat_ = np.array([0.6, 0.4]), np.array([[0.9, 0.1], [0.2, 0.8]])
    truth.means_, truth.covars_ = np.array([[0.0], [4.0]]), np.ones((2, 1))
    X, states = truth.sample(3000)
    model = GaussianHMM(2, random_state=0, n_iter=100, tol=1e-6, implementation=implementation)
    model.fit(X, [1000, 1500, 500])
    assert model.monitor_.converged
    assert (np.diff(model.monitor_.history) > -1e-6).all()
    order = np.argsort(model.means_.ravel())
    np.testing.assert_allclose(model.means_[order], truth.means_, atol=0.2)
    np.testing.assert_allclose(model.transmat_[order][:, order], truth.transmat_, atol=0.05)
    assert np.mean(np.argsort(order)[model.predict(X)] == states) > 0.95
    assert model.bic(X) < GaussianHMM(1, random_state=0).fit(X).bic(X)
    assert clone(model).get_params() == model.get_params()


def test_known_states_are_counted():
    X, states = [[0], [1], [1], [0], [1]], [0, 0, 1, 1, 1]
    model = CategoricalHMM(2).fit_states(X, states, [3, 2])
    np.testing.assert_allclose(model.startprob_, [0.5, 0.5])
    np.testing.assert_allclose(model.transmat_, [[0.5, 0.5], [0.0, 1.0]])
    np.testing.assert_allclose(model.emissionprob_, [[0.5, 0.5], [1 / 3, 2 / 3]])
    smooth = CategoricalHMM(2, n_features=3).fit_states(X, states, [3, 2], smoothing=1.0)
    np.testing.assert_allclose(smooth.emissionprob_[1], [2 / 6, 3 / 6, 1 / 6])


def test_parts_that_were_set_are_kept():
    rng = np.random.RandomState(1)
    X = rng.poisson(3.0, (60, 1))
    model = PoissonHMM(2, params="l", init_params="l", random_state=0)
    model.startprob_, model.transmat_ = np.array([1.0, 0.0]), np.array([[0.5, 0.5], [0.0, 1.0]])
    model.fit(X)
    np.testing.assert_array_equal(model.transmat_, [[0.5, 0.5], [0.0, 1.0]])
    several = PoissonHMM(2, params="l", init_params="l", random_state=0, n_init=6, n_iter=30)
    several.startprob_, several.transmat_ = model.startprob_, model.transmat_
    several.fit(X)
    np.testing.assert_array_equal(several.startprob_, [1.0, 0.0])
    np.testing.assert_array_equal(several.transmat_, [[0.5, 0.5], [0.0, 1.0]])
    assert several.start_log_likelihoods_.shape == (6,)
    assert len(set(several.start_log_likelihoods_)) > 1
    with pytest.raises(ValueError, match="startprob_ must be set"):
        PoissonHMM(2, init_params="tl").fit(X)
    with pytest.raises(ValueError, match="letters of 'stl'"):
        PoissonHMM(2, params="stm").fit(X)


def test_learning_is_watched_and_stopped():
    rng = np.random.RandomState(1)
    X = rng.poisson(3.0, (200, 1))
    seen = []
    model = PoissonHMM(2, random_state=0, n_iter=8, tol=-1, callbacks=seen.append).fit(X)
    np.testing.assert_allclose([step.objective for step in seen], model.monitor_.history)
    stopped = PoissonHMM(
        2, random_state=0, n_iter=50, tol=-1, callbacks=lambda step: step.iteration == 3
    ).fit(X)
    assert stopped.status_ == "interrupted"
    assert 3 <= stopped.n_iter_ < 50
    with pytest.warns(ConvergenceWarning, match="max_time=1e-09"):
        late = PoissonHMM(2, random_state=0, n_iter=50, tol=-1, max_time=1e-9).fit(X)
    assert late.status_ == "time limit reached"
    assert np.isfinite(late.score(X))


def test_long_answers_are_those_of_short_ones():
    # Beyond some millions of sums the interpreter is asked for signals meanwhile.
    X, lengths = np.tile([[0], [1], [1], [2]], (70_000, 1)), [4] * 70_000
    model = CategoricalHMM(8, n_features=3, random_state=0).fit(X[:40], lengths[:10])
    score, states = model.decode(X, lengths)
    short, path = model.decode(X[:4])
    assert score == pytest.approx(70_000 * short)
    assert (states.reshape(-1, 4) == path).all()
    assert model.score(X, lengths) == pytest.approx(70_000 * model.score(X[:4]))
    posteriors = model.predict_proba(X, lengths)
    np.testing.assert_allclose(posteriors[-4:], model.predict_proba(X[:4]))


def test_bad_input_is_told():
    model = CategoricalHMM(2, random_state=0).fit([[0], [1], [1]])
    with pytest.raises(ValueError, match="symbols from 0 to 1"):
        model.score([[2]])
    with pytest.raises(ValueError, match="whole numbers"):
        model.score([[0.5]])
    with pytest.raises(ValueError, match="positions of all sequences"):
        model.score([[0], [1]], [3])
    with pytest.raises(ValueError, match="counts"):
        PoissonHMM(2).fit([[-1.0], [2.0]])
    with pytest.raises(ValueError, match="infinity"):
        GaussianHMM(2).fit([[np.inf], [2.0]])
    fitted = GaussianHMM(1).fit([[0.0], [1.0], [2.0]])
    with pytest.raises(ValueError, match="features"):
        fitted.predict([[0.0, 1.0]])


def test_inputs_choose_the_transition():
    rng = np.random.default_rng(0)
    inputs = rng.integers(0, 2, 3000)
    truth = widemargin.PoissonHMM(2, random_state=1)
    truth.startprob_ = np.array([1.0, 0.0])
    truth.transmat_ = np.array([[[0.9, 0.1], [0.6, 0.4]], [[0.2, 0.8], [0.1, 0.9]]])
    truth.lambdas_ = np.array([[1.0], [20.0]])
    X, states = truth.sample(3000, inputs=inputs)
    model = widemargin.PoissonHMM(2, n_iter=50, random_state=0, n_init=3)
    model.fit(X, inputs=inputs)
    order = np.argsort(model.lambdas_.ravel())
    found = model.transmat_[:, order][:, :, order]
    assert np.abs(found - truth.transmat_).max() < 0.05
    assert np.mean(order[states] == model.predict(X, inputs=inputs)) > 0.99
    assert model.score(X, inputs=inputs) >= truth.score(X, inputs=inputs) - 1e-6
    with pytest.raises(ValueError, match="an input below 2"):
        model.predict(X)
    # All inputs equal: a plain model.
    plain = widemargin.PoissonHMM(2, n_iter=5, random_state=0).fit(X)
    same = widemargin.PoissonHMM(2, n_iter=5, random_state=0).fit(X, inputs=np.zeros(3000, int))
    assert np.allclose(plain.transmat_, same.transmat_, rtol=0, atol=1e-12)


def test_known_states_steer_paths_and_training():
    X = np.array([[0], [1], [0], [1], [1], [0]])
    model = widemargin.CategoricalHMM(2, random_state=0, n_iter=3).fit(X)
    known = np.array([-1, 1, -1, 0, -1, 1])
    for algorithm in ("viterbi", "map"):
        found = model.decode(X, algorithm=algorithm, states=known)[1]
        assert (found[known >= 0] == known[known >= 0]).all()
    posteriors = model.predict_proba(X, states=known)
    assert posteriors[1].tolist() == [0.0, 1.0]
    fitted = widemargin.CategoricalHMM(2, random_state=0, n_iter=20, tol=0).fit(X, states=known)
    history = np.array(fitted.monitor_.history)
    assert (np.diff(history) >= -1e-9).all()


def test_what_was_not_observed_does_not_count(tmp_path):
    model = widemargin.CategoricalHMM(2)
    model.startprob_, model.transmat_ = np.array([0.5, 0.5]), np.array([[0.9, 0.1], [0.2, 0.8]])
    model.emissionprob_ = np.array([[0.7, 0.3], [0.1, 0.9]])
    gap = model.score([[0], [-1], [1]])
    total = sum(np.exp(model.score([[0], [symbol], [1]])) for symbol in (0, 1))
    assert np.isclose(gap, np.log(total), rtol=0, atol=1e-12)
    with pytest.raises(ValueError, match="symbols from 0 to 1"):
        model.score([[0], [2], [1]])
    model.unseen = "missing"
    assert model.score([[0], [2], [1]]) == gap
    words = np.array([["a"], ["b"], ["a"], ["c"]])
    learnt = widemargin.CategoricalHMM(2, unseen="missing", random_state=0).fit(words)
    assert learnt.symbols_.tolist() == ["a", "b", "c"]
    path = tmp_path / "words.wm"
    learnt.save(path)
    again = widemargin.load(path)
    again.unseen = "missing"
    assert again.symbols_.tolist() == ["a", "b", "c"]
    new = np.array([["a"], ["x"], ["c"]])
    assert again.score(new) == learnt.score(new)
    again.unseen = "refuse"
    with pytest.raises(ValueError, match="such as 'x'"):
        again.predict(new)
    rows = np.array([[0.1], [np.nan], [5.0], [5.2]])
    gaussian = widemargin.GaussianHMM(2, random_state=0).fit(rows)
    assert np.isfinite(gaussian.means_).all()
    gaussian.save(tmp_path / "g.wm")
    restored = widemargin.load(tmp_path / "g.wm")
    assert restored.score(rows) == gaussian.score(rows)


def test_densities_of_a_function():
    rows = np.random.default_rng(0).normal(size=(50, 2))
    gaussian = widemargin.GaussianHMM(2, random_state=0, n_iter=3).fit(rows)

    def log_density(X):
        far = (X[:, None, :] - gaussian.means_) ** 2 / gaussian.covars_
        return -0.5 * (far + np.log(2 * np.pi * gaussian.covars_)).sum(axis=2)

    own = widemargin.DensityHMM(log_density, 2)
    own.startprob_, own.transmat_ = gaussian.startprob_, gaussian.transmat_
    assert np.isclose(own.score(rows), gaussian.score(rows), rtol=0, atol=1e-9)
    assert (own.predict(rows) == gaussian.predict(rows)).all()
    fitted = widemargin.DensityHMM(log_density, 2, random_state=0, n_iter=10, tol=0).fit(rows)
    assert (np.diff(fitted.monitor_.history) >= -1e-9).all()
    with pytest.raises(ValueError, match="shape"):
        widemargin.DensityHMM(lambda X: np.zeros(3), 2).fit(rows)
    with pytest.raises(ValueError, match="drawn from"):
        fitted.sample(2)
    with pytest.raises(ValueError, match="a file can keep"):
        fitted.save("never.wm")
