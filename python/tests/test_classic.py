"""The classical machines: scikit-learn's contract and its answers."""

import warnings

import numpy as np
import pytest
from scipy import stats
from scipy.linalg import cho_solve, cholesky
from sklearn import cluster, datasets, discriminant_analysis, mixture, neighbors
from sklearn.metrics import adjusted_rand_score, pairwise
from sklearn.utils.estimator_checks import parametrize_with_checks

from widemargin import (
    FisherDiscriminant,
    GaussianMixture,
    GaussianMixtureClassifier,
    KernelDensity,
    KernelFisherDiscriminant,
    KMeans,
    KNeighborsClassifier,
    KNeighborsRegressor,
    ParzenClassifier,
    ProbabilisticNeuralNetwork,
    SpectralClustering,
)

IRIS = datasets.load_iris(return_X_y=True)
WINE = datasets.load_wine(return_X_y=True)
WDBC = datasets.load_breast_cancer(return_X_y=True)
DIGITS = datasets.load_digits(return_X_y=True)


@parametrize_with_checks(
    [
        FisherDiscriminant(),
        FisherDiscriminant(shrinkage="auto"),
        KernelFisherDiscriminant(),
        GaussianMixture(),
        GaussianMixtureClassifier(),
        KNeighborsClassifier(),
        KNeighborsRegressor(),
        ParzenClassifier(),
        KernelDensity(),
        ProbabilisticNeuralNetwork(),
        KMeans(),
        SpectralClustering(),
    ]
)
def test_contract(estimator, check):
    with warnings.catch_warnings():
        # Checks fit all kinds of degenerate rows.
        warnings.simplefilter("ignore")
        check(estimator)


@pytest.mark.parametrize("data", [IRIS, WINE, WDBC], ids=["iris", "wine", "wdbc"])
@pytest.mark.parametrize("shrinkage", [None, "auto", 0.3])
@pytest.mark.parametrize("priors", [None, "equal"])
def test_fisher_is_linear_discriminant_analysis(data, shrinkage, priors):
    X, y = data
    count = len(np.unique(y))
    theirs = discriminant_analysis.LinearDiscriminantAnalysis(
        solver="lsqr",
        shrinkage=shrinkage,
        priors=None if priors is None else np.full(count, 1 / count),
    ).fit(X, y)
    ours = FisherDiscriminant(shrinkage=shrinkage, priors=priors).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-5, atol=1e-7)
    values, expected = ours.decision_function(X), theirs.decision_function(X)
    # scikit-learn leaves out ln P where there are two classes and priors are equal; so do we.
    np.testing.assert_allclose(values, expected, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-6)


def test_projections_are_those_of_scikit_learn():
    X, y = WINE
    theirs = discriminant_analysis.LinearDiscriminantAnalysis(solver="eigen").fit(X, y)
    ours = FisherDiscriminant().fit(X, y)
    expected = theirs.transform(X)[:, :2]
    expected = expected - expected.mean(axis=0)
    found = ours.transform(X)
    signs = np.sign((found * expected).sum(axis=0))
    np.testing.assert_allclose(found * signs, expected, rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(
        ours.explained_variance_ratio_, theirs.explained_variance_ratio_[:2], rtol=1e-8
    )
    assert ours.get_feature_names_out().tolist() == ["fisherdiscriminant0", "fisherdiscriminant1"]


@pytest.mark.parametrize("shape", ["full", "tied", "diag", "spherical"])
@pytest.mark.parametrize("data", [IRIS, WINE], ids=["iris", "wine"])
def test_mixtures_from_the_same_start_are_scikit_learn_s(data, shape):
    X = (data[0] - data[0].mean(axis=0)) / data[0].std(axis=0)
    count, features = 3, X.shape[1]
    precisions = {
        "full": np.stack([np.eye(features)] * count),
        "tied": np.eye(features),
        "diag": np.ones((count, features)),
        "spherical": np.ones(count),
    }[shape]
    start = {
        "weights_init": np.full(count, 1 / count),
        "means_init": X[[0, 60, 120]],
        "precisions_init": precisions,
    }
    settings = {"n_components": count, "covariance_type": shape, "tol": 1e-6, "max_iter": 500}
    theirs = mixture.GaussianMixture(**settings, **start).fit(X)
    ours = GaussianMixture(**settings, **start).fit(X)
    assert ours.n_iter_ == theirs.n_iter_
    assert ours.converged_
    np.testing.assert_allclose(ours.lower_bound_, theirs.lower_bound_, rtol=1e-9)
    np.testing.assert_allclose(ours.weights_, theirs.weights_, rtol=1e-7)
    np.testing.assert_allclose(ours.means_, theirs.means_, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(ours.covariances_, theirs.covariances_, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(ours.score_samples(X), theirs.score_samples(X), rtol=1e-7)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-7)
    assert ours.bic(X) == pytest.approx(theirs.bic(X), rel=1e-9)
    assert ours.aic(X) == pytest.approx(theirs.aic(X), rel=1e-9)
    assert ours.sample(5)[0].shape == (5, features)


def test_one_gaussian_a_class_is_quadratic_discriminant_analysis():
    X, y = WINE
    for unbiased in (False, True):
        ours = GaussianMixtureClassifier(reg_covar=0.0, unbiased=unbiased).fit(X, y)
        joint = np.stack(
            [
                stats.multivariate_normal(
                    X[y == c].mean(axis=0), np.cov(X[y == c].T, ddof=int(unbiased))
                ).logpdf(X)
                + np.log((y == c).mean())
                for c in range(3)
            ],
            axis=1,
        )
        posterior = np.exp(joint - np.logaddexp.reduce(joint, axis=1, keepdims=True))
        np.testing.assert_allclose(ours.predict_proba(X), posterior, atol=1e-9)
    # scikit-learn divides covariances by n - 1 before 1.9, by n since.
    theirs = discriminant_analysis.QuadraticDiscriminantAnalysis().fit(X, y).predict_proba(X)
    closest = min(
        np.abs(
            GaussianMixtureClassifier(reg_covar=0.0, unbiased=unbiased).fit(X, y).predict_proba(X)
            - theirs
        ).max()
        for unbiased in (False, True)
    )
    assert closest < 1e-9
    costly = np.array([[0, 1, 1], [1, 0, 1], [1e9, 1e9, 0]])
    careful = GaussianMixtureClassifier(loss_matrix=costly).fit(X, y)
    assert (careful.predict(X) == 2).sum() > (y == 2).sum()


def test_rows_without_a_class_are_learnt_from():
    X, y = datasets.make_blobs(400, centers=[[0, 0], [4, 0], [0, 4]], random_state=1)
    hidden = np.where(np.arange(400) % 20 == 0, y, -1)
    known = hidden >= 0
    few = GaussianMixtureClassifier(random_state=0).fit(X[known], hidden[known])
    ours = GaussianMixtureClassifier(unlabeled=-1, random_state=0).fit(X, hidden)
    assert ours.classes_.tolist() == [0, 1, 2]
    assert ours.score(X, y) >= few.score(X, y)
    assert ours.score(X, y) > 0.95
    means = np.array([X[y == c].mean(axis=0) for c in range(3)])
    found = np.array([X[ours.predict(X) == c].mean(axis=0) for c in range(3)])
    assert np.abs(found - means).max() < 0.2
    words = np.array(["?", "a", "b", "c"])[hidden + 1]
    named = GaussianMixtureClassifier(unlabeled="?", random_state=0).fit(X, words)
    np.testing.assert_allclose(named.predict_proba(X), ours.predict_proba(X))
    real = GaussianMixtureClassifier(unlabeled=-1.0, random_state=0).fit(X, hidden.astype(float))
    np.testing.assert_allclose(real.predict_proba(X), ours.predict_proba(X))


@pytest.mark.parametrize("algorithm", ["brute", "kd_tree", "ball_tree"])
@pytest.mark.parametrize("weights", ["uniform", "distance"])
def test_neighbours_are_scikit_learn_s(algorithm, weights):
    X, y = DIGITS
    X = X + np.random.RandomState(0).rand(*X.shape) * 0.01  # no ties
    train, test = slice(0, 1200), slice(1200, None)
    settings = {"n_neighbors": 7, "weights": weights}
    theirs = neighbors.KNeighborsClassifier(**settings).fit(X[train], y[train])
    ours = KNeighborsClassifier(**settings, algorithm=algorithm, n_jobs=2).fit(X[train], y[train])
    distances, places = ours.kneighbors(X[test])
    expected = theirs.kneighbors(X[test])
    np.testing.assert_array_equal(places, expected[1])
    np.testing.assert_allclose(distances, expected[0], rtol=1e-12)
    np.testing.assert_allclose(
        ours.predict_proba(X[test]), theirs.predict_proba(X[test]), atol=1e-12
    )
    theirs = neighbors.KNeighborsRegressor(**settings).fit(X[train], y[train])
    ours = KNeighborsRegressor(**settings, algorithm=algorithm).fit(X[train], y[train])
    np.testing.assert_allclose(ours.predict(X[test]), theirs.predict(X[test]), rtol=1e-12)


def test_neighbours_of_untouched_rows_are_scikit_learn_s():
    X, y = WDBC
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    theirs = neighbors.KNeighborsClassifier(9).fit(X[:400], y[:400])
    expected = theirs.kneighbors(X[400:])
    for algorithm in ("auto", "brute", "kd_tree", "ball_tree"):
        ours = KNeighborsClassifier(9, algorithm=algorithm).fit(X[:400], y[:400])
        distances, places = ours.kneighbors(X[400:])
        np.testing.assert_array_equal(places, expected[1])
        np.testing.assert_allclose(distances, expected[0], rtol=1e-12)
        np.testing.assert_array_equal(ours.predict(X[400:]), theirs.predict(X[400:]))


@pytest.mark.parametrize(
    "kernel", ["gaussian", "tophat", "epanechnikov", "exponential", "linear", "cosine"]
)
@pytest.mark.parametrize("features", [1, 3, 4])
def test_densities_are_scikit_learn_s(kernel, features):
    if kernel == "cosine" and features == 4:
        pytest.skip("scikit-learn's cosine does not integrate to 1 in even dimensions")
    random = np.random.RandomState(features)
    X, Q = random.randn(400, features), random.randn(90, features)
    theirs = neighbors.KernelDensity(kernel=kernel, bandwidth=0.9).fit(X)
    ours = KernelDensity(kernel=kernel, bandwidth=0.9).fit(X)
    found, expected = ours.score_samples(Q), theirs.score_samples(Q)
    reached = np.isfinite(found)
    # Where no window reaches, scikit-learn has a very small density.
    assert (expected[~reached] < -30).all()
    np.testing.assert_allclose(found[reached], expected[reached], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("kernel", ["gaussian", "epanechnikov", "exponential"])
@pytest.mark.parametrize("data", [IRIS, WINE, WDBC], ids=["iris", "wine", "wdbc"])
def test_densities_of_real_rows_are_scikit_learn_s(kernel, data):
    X = (data[0] - data[0].mean(axis=0)) / data[0].std(axis=0)
    width = np.sqrt(X.shape[1])
    theirs = neighbors.KernelDensity(kernel=kernel, bandwidth=width).fit(X[::2])
    ours = KernelDensity(kernel=kernel, bandwidth=width).fit(X[::2])
    found, expected = ours.score_samples(X[1::2]), theirs.score_samples(X[1::2])
    reached = np.isfinite(found)
    assert reached.mean() > 0.5
    # A plain sum; scikit-learn's trees round to about 1e-9.
    np.testing.assert_allclose(found[reached], expected[reached], rtol=1e-8)
    if kernel == "gaussian":
        distances = pairwise.euclidean_distances(X[1::2], X[::2], squared=True)
        constant = X.shape[1] * np.log(width * np.sqrt(2 * np.pi)) + np.log(len(X[::2]))
        plain = np.logaddexp.reduce(-0.5 * distances / width**2, axis=1) - constant
        np.testing.assert_allclose(found, plain, rtol=1e-12)


def test_widths_of_few_errors_beat_the_likeliest():
    X, y = WINE
    X = ((X - X.mean(axis=0)) / X.std(axis=0))[:, [0, 2, 3, 7, 8]]
    errors = []
    for width in ("cv-errors", "cv"):
        widths = ParzenClassifier(bandwidth=width).fit(X, y).bandwidths_
        joint = np.empty((len(X), 3))
        for c in range(3):
            for i in range(len(X)):
                others = X[(y == c) & (np.arange(len(X)) != i)]
                density = neighbors.KernelDensity(bandwidth=widths[c]).fit(others)
                joint[i, c] = density.score_samples(X[i : i + 1])[0] + np.log((y == c).mean())
        errors.append((joint.argmax(axis=1) != y).sum())
    assert errors[0] < errors[1]
    with pytest.raises(ValueError, match="gaussian"):
        ParzenClassifier(bandwidth="cv-errors", kernel="tophat").fit(X, y)
    with pytest.raises(ValueError, match="bandwidth"):
        KernelDensity(bandwidth="cv-errors").fit(X)


def test_parzen_is_bayes_on_densities():
    X, y = IRIS
    ours = ParzenClassifier(bandwidth=0.4).fit(X, y)
    joint = np.stack(
        [
            neighbors.KernelDensity(bandwidth=0.4).fit(X[y == c]).score_samples(X)
            + np.log((y == c).mean())
            for c in range(3)
        ],
        axis=1,
    )
    posterior = np.exp(joint - np.logaddexp.reduce(joint, axis=1, keepdims=True))
    np.testing.assert_allclose(ours.predict_proba(X), posterior, atol=1e-12)
    np.testing.assert_allclose(ours.score_samples(X), np.logaddexp.reduce(joint, axis=1))


@pytest.mark.parametrize("name", ["distance", "unit-norm", "lifted"])
def test_the_network_is_its_formula(name):
    X, y = WINE
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    width = 0.8
    ours = ProbabilisticNeuralNetwork(bandwidth=width, input=name).fit(X, y)
    if name == "unit-norm":
        W = X / np.linalg.norm(X, axis=1, keepdims=True)
    elif name == "lifted":
        lengths = np.linalg.norm(X, axis=1)
        last = np.sqrt(np.maximum(lengths.max() ** 2 - lengths**2, 0))
        W = np.column_stack([X, last]) / lengths.max()
    else:
        W = X
    squares = 0.5 * (W**2).sum(axis=1)
    activation = np.exp((W @ W.T - squares[:, None] - squares) / width**2)
    sums = np.stack([activation[:, y == c].sum(axis=1) for c in range(3)], axis=1)
    expected = sums / sums.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(ours.predict_proba(X), expected, atol=1e-11)


@pytest.mark.parametrize("ridge", ["coefficients", "norm"])
def test_the_kernel_discriminant_is_dense_algebra(ridge):
    X, y = WDBC
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    gamma, mu = 0.02, 0.01
    K = pairwise.rbf_kernel(X, gamma=gamma)
    N = np.zeros_like(K)
    means = []
    for c in (0, 1):
        own = K[:, y == c]
        size = own.shape[1]
        N += own @ (np.eye(size) - 1 / size) @ own.T
        means.append(own.mean(axis=1))
    N += mu * (np.eye(len(K)) if ridge == "coefficients" else K)
    alpha = cho_solve((cholesky(N, lower=True), True), means[1] - means[0])
    ours = KernelFisherDiscriminant(gamma=gamma, mu=mu, ridge=ridge, threshold="midpoint")
    ours.fit(X, y)
    expected = K @ alpha - 0.5 * (means[0] + means[1]) @ alpha
    np.testing.assert_allclose(
        ours.decision_function(X), expected, rtol=1e-5, atol=1e-6 * np.abs(expected).max()
    )
    np.testing.assert_allclose(ours.separability_, (means[1] - means[0]) @ alpha, rtol=1e-6)
    assert ours.transform(X).shape == (len(X), 1)


def test_clusters_are_as_good_as_scikit_learn_s():
    X, y = datasets.make_blobs(600, centers=5, cluster_std=0.7, random_state=3)
    start = X[:5]
    theirs = cluster.KMeans(5, init=start, n_init=1, tol=0).fit(X)
    ours = KMeans(5, init=start, tol=0).fit(X)
    np.testing.assert_array_equal(ours.labels_, theirs.labels_)
    np.testing.assert_allclose(ours.cluster_centers_, theirs.cluster_centers_, rtol=1e-10)
    assert ours.inertia_ == pytest.approx(theirs.inertia_)
    np.testing.assert_allclose(ours.transform(X), theirs.transform(X), rtol=1e-9)
    X, y = datasets.make_moons(400, noise=0.06, random_state=0)
    for settings in ({"gamma": 40.0}, {"affinity": "nearest_neighbors"}):
        found = SpectralClustering(2, random_state=0, **settings).fit_predict(X)
        assert adjusted_rand_score(found, y) == 1
    cut = SpectralClustering(2, gamma=40.0, assign_labels="normalised").fit(X)
    assert adjusted_rand_score(cut.labels_, y) == 1
    np.testing.assert_array_equal(cut.predict(X), cut.labels_)


@pytest.mark.parametrize("spread", ["spherical", "full"])
def test_a_criterion_chooses_the_shape_of_the_covariances(spread):
    generator = np.random.default_rng(1)
    turn = np.eye(2) if spread == "spherical" else np.array([[3.0, 0.0], [2.5, 0.4]])
    X = np.vstack([generator.normal(size=(150, 2)) @ turn, generator.normal(size=(150, 2)) + 12])
    model = GaussianMixture(3, covariance_type="auto", random_state=0, tol=1e-6, max_iter=1000).fit(
        X
    )
    best = min(
        mixture.GaussianMixture(k, covariance_type=shape, random_state=0, tol=1e-6, max_iter=1000)
        .fit(X)
        .bic(X)
        for k in (1, 2, 3)
        for shape in ("full", "tied", "diag", "spherical")
    )
    # Three more shapes were tried.
    shape, count = model._model.attributes["covariance"], len(model.weights_)
    numbers = {"eii": 1, "spherical": 2, "tied": 3, "diag": 4, "full": 6, "eev": 4, "vev": 5}[shape]
    bic = -2 * model.score_samples(X).sum() + (count - 1 + 2 * count + numbers) * np.log(300)
    assert count == 2
    assert bic <= best + 0.1
    assert (shape in ("eii", "spherical")) == (spread == "spherical")
