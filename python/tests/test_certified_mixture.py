"""Mixtures of known variances: recorded optima, bounds, limits and files."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture as Peer

import widemargin
from widemargin import CertifiedGaussianMixture

#: Four groups, of which EM joins the wrong ones from most starts.
ROWS = np.concatenate([a + 0.02 * np.arange(4) for a in (0.05, 0.30, 0.60, 0.90)])[:, None]


def test_the_optimum_is_the_one_of_a_grid_with_a_bound_above():
    # By a grid over means with EM from each point.
    model = CertifiedGaussianMixture(3, variances=0.002, tol=1e-5).fit(ROWS)
    assert model.converged_
    assert model.status_ == "solved"
    assert model.log_likelihood_ == pytest.approx(-14.8717, abs=1e-4)
    assert model.log_likelihood_ <= model.bound_ <= model.log_likelihood_ + 1e-5
    assert model.gap_ == model.bound_ - model.log_likelihood_
    np.testing.assert_allclose(model.means_.ravel(), [0.205, 0.63, 0.93], atol=2e-3)
    np.testing.assert_allclose(model.weights_, [0.5, 0.25, 0.25], atol=2e-3)
    assert model.score_samples(ROWS).sum() == pytest.approx(model.log_likelihood_, rel=1e-6)
    assert (model.predict(ROWS) == np.repeat([0, 1, 2], [8, 4, 4])).all()


def test_no_mixture_of_another_program_is_above_the_bound():
    rng = np.random.RandomState(3)
    for _ in range(5):
        X = np.concatenate([rng.normal(0, 1, (30, 1)), rng.normal(2, 1, (20, 1))])
        model = CertifiedGaussianMixture(2, variances=1.0).fit(X)
        for seed in range(10):
            peer = Peer(2, covariance_type="spherical", init_params="random", random_state=seed)
            peer.fit(X)
            means, weights = peer.means_.ravel(), peer.weights_
            density = np.exp(-((X - means) ** 2) / 2) / np.sqrt(2 * np.pi)
            assert np.log(density @ weights).sum() <= model.bound_


def test_limits_leave_an_interval_and_say_so():
    with pytest.warns(ConvergenceWarning, match="did not end .*: .* within"):
        model = CertifiedGaussianMixture(3, variances=0.002, tol=1e-9, max_iter=40).fit(ROWS)
    assert not model.converged_
    assert model.gap_ > 1e-9
    assert model.log_likelihood_ <= -14.8716 <= model.bound_
    rows = np.random.RandomState(0).normal(size=(2000, 3))
    with pytest.warns(ConvergenceWarning, match="did not end .*: .* within"):
        model = CertifiedGaussianMixture(4, max_time=0.3, random_state=0).fit(rows)
    assert model.status_ == "time limit reached"
    assert np.isfinite(model.bound_)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"variances": [1.0, 2.0, 3.0]}, "variances: expected 2, found 3"),
        ({"variances": [1.0, 0.0]}, "finite numbers above 0"),
        ({"variances": [1.0, -1.0]}, "finite numbers above 0"),
        ({"n_components": 13}, r"at most 12, because .* \(here 1\)"),
    ],
)
def test_what_cannot_be_is_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        CertifiedGaussianMixture(**{"n_components": 2, **settings}).fit(ROWS)


def test_a_model_is_read_again(tmp_path):
    model = CertifiedGaussianMixture(2, variances=[0.01, 0.02], random_state=0).fit(ROWS)
    model.save(tmp_path / "mixture.wm")
    again = widemargin.load(tmp_path / "mixture.wm")
    assert isinstance(again, CertifiedGaussianMixture)
    assert again.bound_ == model.bound_
    assert again.gap_ == model.gap_
    np.testing.assert_array_equal(again.predict_proba(ROWS), model.predict_proba(ROWS))
    assert again.bic(ROWS) == pytest.approx(3 * np.log(16) - 2 * model.log_likelihood_)
