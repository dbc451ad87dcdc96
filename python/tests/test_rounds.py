"""`tune` in rounds: halving, races, and a model of the scores."""

import contextlib
import re
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from sklearn import svm
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_wine
from sklearn.exceptions import FitFailedWarning
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.model_selection import (
    GridSearchCV,
    HalvingGridSearchCV,
    KFold,
    StratifiedKFold,
    cross_val_score,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from widemargin import (
    SVC,
    SVR,
    FisherDiscriminant,
    GaussianMixtureClassifier,
    KNeighborsClassifier,
    LinearSVC,
    LogisticRegression,
    NuSVC,
    SVCSearchCV,
    tune,
)

GRID = {"C": [0.1, 1.0, 10.0, 100.0], "gamma": [0.001, 0.01, 0.1, 1.0]}


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True)
    return StandardScaler().fit_transform(X), y


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X), y


def deterministic(results):
    return {name: column for name, column in results.items() if "_time" not in name}


@pytest.mark.parametrize(("factor", "min_rows"), [(2, 20), (3, 20), (4, 50)])
def test_halving_keeps_as_many_as_scikit_learn(cancer, factor, min_rows):
    X, y = cancer
    cv = KFold(5)
    ours = tune(SVC(), X, y, GRID, method="halving", factor=factor, min_rows=min_rows, cv=cv)
    largest = len(next(cv.split(X))[0])
    theirs = HalvingGridSearchCV(
        SVC(), GRID, factor=factor, min_resources=min_rows, max_resources=largest, cv=cv
    ).fit(X, y)
    iteration = ours.cv_results_["iter"]
    candidates = np.bincount(iteration)
    rows = [int(ours.cv_results_["n_resources"][iteration == i][0]) for i in range(iteration.max())]
    # Theirs ends where few are left, ours on all rows.
    common = min(len(candidates), theirs.n_iterations_)
    assert common > 1
    assert_array_equal(candidates[:common], theirs.n_candidates_[:common])
    shared = min(common, len(rows))
    assert rows[:shared] == theirs.n_resources_[:shared]
    assert ours.cv_results_["n_resources"][-1] == largest
    assert set(theirs.cv_results_) - set(ours.cv_results_) <= {
        name for name in theirs.cv_results_ if "train" in name
    }


def test_the_last_round_of_halving_has_the_scores_of_the_grid(cancer):
    X, y = cancer
    search = tune(SVC(tol=1e-6), X, y, GRID, method="halving", min_rows=40)
    grid = GridSearchCV(SVC(tol=1e-6), GRID).fit(X, y)
    last = np.flatnonzero(search.cv_results_["iter"] == search.cv_results_["iter"].max())
    assert search.best_index_ in last
    for k in last:
        place = grid.cv_results_["params"].index(search.cv_results_["params"][k])
        for name in ("split0_test_score", "mean_test_score", "std_test_score"):
            assert_allclose(search.cv_results_[name][k], grid.cv_results_[name][place], atol=2e-3)
    assert search.best_score_ == search.cv_results_["mean_test_score"][last].max()
    # The best survivors of a round are those with the best means.
    for i in range(search.cv_results_["iter"].max()):
        here, there = (np.flatnonzero(search.cv_results_["iter"] == j) for j in (i, i + 1))
        survivors = [search.cv_results_["params"][k] for k in there]
        survived = np.array([search.cv_results_["params"][k] in survivors for k in here])
        means = search.cv_results_["mean_test_score"][here]
        assert means[survived].min() >= means[~survived].max()


def test_thin_parts_have_the_shares_of_the_classes(wine):
    X, y = wine
    order = np.argsort(y, kind="stable")  # Without care the first rows are of one class.
    X, y = X[order], y[order]
    seen = []

    class Watched(SVC):
        def fit(self, X, y, sample_weight=None):
            seen.append(np.bincount(y, minlength=3))
            return super().fit(X, y, sample_weight)

    tune(Watched(), X, y, {"C": [0.1, 1.0, 10.0]}, method="halving", min_rows=30, cv=3)
    first = np.array(seen[:9])
    assert (first.sum(axis=1) == 30).all()
    expected = 30 * np.bincount(y) / len(y)
    assert (abs(first - expected) <= 2).all()
    # The machine that shares nothing sees the same rows as the one that shares.
    options = {"method": "halving", "min_rows": 30, "cv": 3}
    apart = tune(Watched(tol=1e-6), X, y, {"C": [0.1, 1.0, 10.0]}, **options).cv_results_
    shared = tune(SVC(tol=1e-6), X, y, {"C": [0.1, 1.0, 10.0]}, **options).cv_results_
    assert_allclose(shared["mean_test_score"], apart["mean_test_score"], atol=2e-3)


def test_a_race_takes_out_who_is_clearly_behind(cancer):
    X, y = cancer
    cv = StratifiedKFold(6, shuffle=True, random_state=0)
    search = tune(SVC(tol=1e-6), X, y, GRID, method="race", cv=cv, return_train_score=True)
    grid = GridSearchCV(SVC(tol=1e-6), GRID, cv=cv, return_train_score=True).fit(X, y)
    assert set(search.cv_results_) == set(grid.cv_results_)
    assert search.best_params_ == grid.best_params_
    assert_allclose(search.best_score_, grid.best_score_, atol=2e-3)
    columns = [f"split{s}_test_score" for s in range(6)]
    ours = np.column_stack([search.cv_results_[name] for name in columns])
    theirs = np.column_stack([grid.cv_results_[name] for name in columns])
    tried = ~np.isnan(ours)
    assert_allclose(ours[tried], theirs[tried], atol=2e-3)
    assert not tried.all()
    running = np.ones(len(ours), dtype=bool)
    for done in range(1, 7):
        assert_array_equal(tried[:, done - 1], running)
        if done < 3:
            continue
        so_far = np.where(running[:, None], ours[:, :done], -np.inf)
        leader = so_far[np.argmax(so_far.mean(axis=1))]
        for k in np.flatnonzero(running):
            difference = leader - so_far[k]
            if difference.any() and np.ptp(difference) > 0:
                running[k] = stats.ttest_1samp(difference, 0.0).statistic <= 3.0
            else:
                running[k] = difference[0] <= 0
    ranks = search.cv_results_["rank_test_score"]
    complete = tried.all(axis=1)
    assert ranks[complete].max() < ranks[~complete].min()
    assert ranks[search.best_index_] == 1


def test_a_model_finds_the_best_of_a_dense_grid_in_few_looks():
    X, y = load_digits(return_X_y=True)
    X, y = X[:600] / 16.0, y[:600]
    space = {"C": list(np.geomspace(0.01, 1000, 15)), "gamma": list(np.geomspace(1e-5, 10, 15))}
    options = {"cv": StratifiedKFold(3, shuffle=True, random_state=0)}
    dense = SVCSearchCV(SVC(), space, **options).fit(X, y)
    error = dense.cv_results_["std_test_score"][dense.best_index_] / np.sqrt(3)
    options |= {"method": "model", "n_iter": 20}
    for seed in range(3):
        search = tune(SVC(), X, y, space, random_state=seed, **options)
        scores = search.cv_results_["mean_test_score"]
        assert len(scores) == 20 < len(dense.cv_results_["params"]) / 10
        assert search.best_score_ >= dense.best_score_ - error
        # After six looks at random it looks where scores are higher than anywhere.
        assert np.mean(scores[6:]) > np.mean(dense.cv_results_["mean_test_score"]) + 0.1


@pytest.mark.parametrize("method", ["halving", "race", "model"])
def test_two_searches_are_the_same(wine, method):
    X, y = wine
    options = {"method": method, "min_rows": 30, "n_iter": 9, "random_state": 5}
    options["cv"] = StratifiedKFold(4, shuffle=True, random_state=1)
    first, second = (tune(SVC(), X, y, GRID, **options) for _ in range(2))
    assert first.best_params_ == second.best_params_
    one, other = (deterministic(search.cv_results_) for search in (first, second))
    assert list(one) == list(other)
    for name in one:
        assert_array_equal(one[name], other[name])
    if method == "model":
        another = tune(SVC(), X, y, GRID, **{**options, "random_state": 6})
        assert another.cv_results_["params"] != first.cv_results_["params"]


@pytest.mark.parametrize("method", ["halving", "race", "model"])
def test_the_best_is_trained_on_all_rows(wine, method):
    X, y = wine
    names = np.array(["red", "rosé", "white"])[y]
    cv = StratifiedKFold(4)
    search = tune(
        SVC(), X, names, GRID, method=method, min_rows=30, n_iter=9, random_state=0, cv=cv
    )
    best = clone(SVC()).set_params(**search.best_params_)
    assert_array_equal(search.predict(X), best.fit(X, names).predict(X))
    assert list(search.classes_) == sorted(set(names))
    assert search.n_splits_ == 4
    assert search.n_features_in_ == X.shape[1]
    assert search.best_params_ == search.cv_results_["params"][search.best_index_]
    assert_allclose(search.best_score_, cross_val_score(best, X, names, cv=cv).mean(), atol=6e-3)
    unfitted = tune(SVC(), X, names, GRID, method=method, n_iter=9, random_state=0, refit=False)
    assert not hasattr(unfitted, "best_estimator_")
    assert unfitted.best_params_


@pytest.mark.parametrize("method", ["halving", "race", "model"])
def test_anything_can_be_searched(wine, method):
    X, y = wine
    pipeline = make_pipeline(StandardScaler(), SVC())
    grid = {"svc__C": [0.01, 1.0, 100.0], "svc__gamma": [0.001, 0.1]}
    options = {"method": method, "min_rows": 40, "n_iter": 8, "random_state": 0, "cv": 4}
    search = tune(pipeline, X, y, grid, **options)
    assert search.best_score_ > 0.95
    assert search.predict(X).shape == y.shape
    X, y = load_diabetes(return_X_y=True)
    y = (y - y.mean()) / y.std()
    metrics = ["r2", "neg_mean_absolute_error"]
    grid = {"C": [0.1, 1.0, 10.0], "gamma": [0.1, 10.0]}
    search = tune(SVR(), X, y, grid, scoring=metrics, refit=metrics[1], **options)
    best = search.cv_results_[f"mean_test_{metrics[1]}"][search.best_index_]
    assert search.best_score_ == best
    assert -0.6 < best < -0.4
    by_hand = tune(SVR(), X, y, grid, refit=lambda results: len(results["params"]) - 1, **options)
    assert by_hand.best_params_ == by_hand.cv_results_["params"][-1]


def test_a_model_knows_lists_of_grids_and_names(wine):
    X, y = wine
    grids = [
        {"kernel": ["rbf"], "C": [0.01, 1000.0], "gamma": [1e-4, 10.0]},
        {"kernel": ["poly"], "degree": [2, 3], "coef0": [-1.0, 1.0]},
    ]
    search = tune(SVC(), X, y, grids, method="model", n_iter=25, random_state=0, cv=3)
    points = search.cv_results_["params"]
    assert {point["kernel"] for point in points} == {"rbf", "poly"}
    for point in points:
        if point["kernel"] == "rbf":
            assert set(point) == {"kernel", "C", "gamma"}
            assert 0.01 <= point["C"] <= 1000.0
        else:
            assert set(point) == {"kernel", "degree", "coef0"}
            assert point["degree"] in (2, 3)
            assert -1.0 <= point["coef0"] <= 1.0
    assert search.cv_results_["param_degree"].mask.any()
    assert search.best_score_ > 0.95


def test_points_that_fail_are_passed_over():
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    # Of 212 and 357 rows nu can be at most 0.745.
    grid = {"nu": [0.05, 0.999], "gamma": [0.001, 1.0]}
    for method in ("model", "halving", "race"):
        with pytest.warns(FitFailedWarning):
            search = tune(
                NuSVC(), X, y, grid, method=method, n_iter=20, random_state=0, min_rows=100, cv=3
            )
        assert search.best_params_["nu"] < 0.75
        assert np.isnan(search.cv_results_["mean_test_score"]).any()
        assert search.best_score_ > 0.85
    with pytest.raises(ValueError, match="nu"):
        tune(NuSVC(), X, y, grid, method="race", error_score="raise")


def test_splits_may_learn_from_the_same_rows(wine):
    X, y = wine
    order = np.random.default_rng(0).permutation(len(y))
    splits = [(order[:90], order[90:130]), (order[:90], order[130:])]
    ours = SVCSearchCV(SVC(tol=1e-6), GRID, cv=splits).fit(X, y).cv_results_
    theirs = GridSearchCV(SVC(tol=1e-6), GRID, cv=splits).fit(X, y).cv_results_
    for name in ("split0_test_score", "split1_test_score"):
        assert_allclose(ours[name], theirs[name], atol=1e-6)


def test_a_search_keeps_to_its_time(cancer):
    X, y = cancer
    X, y = np.repeat(X, 4, axis=0), np.repeat(y, 4)
    started = time.monotonic()
    search = tune(
        SVC(), X, y, method="model", n_iter=100_000, random_state=0, cv=3, max_time=1.5, n_jobs=1
    )
    assert 1.0 < time.monotonic() - started < 10.0
    assert 5 < len(search.cv_results_["params"]) < 100_000
    assert search.best_score_ > 0.95
    with pytest.raises(ValueError, match="max_time was too short"):
        SVCSearchCV(SVC(), GRID, max_time=1e-9).fit(X, y)


@pytest.mark.parametrize("method", ["halving", "model"])
def test_the_first_round_is_kept_when_time_is_over(wine, method):
    X, y = wine
    pipeline = make_pipeline(StandardScaler(), SVC())
    grid = {"svc__C": [0.01, 1.0, 100.0], "svc__gamma": [0.001, 0.1]}
    search = tune(
        pipeline, X, y, grid, method=method, min_rows=40, random_state=0, cv=3, max_time=1e-6
    )
    scores = search.cv_results_["mean_test_score"]
    assert len(scores) == 6
    assert search.best_score_ == scores.max()
    with pytest.raises(ValueError, match="no point has a score on every split"):
        tune(pipeline, X, y, grid, method="race", cv=3, max_time=1e-6)


def test_interruption():
    script = textwrap.dedent(
        """
        import os, signal, threading, time
        import numpy as np
        from widemargin import SVC, tune
        # A shell that put the tests into the background hands SIGINT down ignored.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        rng = np.random.RandomState(0)
        X, y = rng.randn(3000, 50), rng.randint(0, 2, 3000)
        threading.Timer(1.0, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        try:
            tune(SVC(tol=1e-6), X, y, method="model", random_state=0)
            print("ended before the signal")
        except KeyboardInterrupt:
            print("interrupted")
        """
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert ran.stdout.strip() == "interrupted", ran.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "halving", "factor": 1}, "factor has to be an integer of at least 2, not 1"),
        ({"method": "halving", "min_rows": 1.5}, "min_rows has to be an integer of at least 2"),
        ({"method": "model", "n_iter": 0}, "n_iter has to be an integer of at least 1, not 0"),
        ({"method": "race", "max_time": -1}, "max_time has to be a number of seconds above 0"),
        ({"method": "grid", "max_time": "1"}, "max_time has to be a number of seconds above 0"),
        ({"method": "race", "scoring": ["accuracy", "f1_macro"]}, "needs one metric"),
        ({"method": "model", "param_grid": {"C": []}}, "at least one|non-empty"),
        ({"method": "halving", "param_grid": {"C": [-1.0]}}, "'C' parameter"),
    ],
)
def test_what_is_refused(wine, options, message):
    X, y = wine
    with pytest.raises(ValueError, match=message):
        tune(SVC(), X, y, **{"param_grid": GRID, **options})


def test_grids_may_come_as_any_sequence(wine):
    X, y = wine
    grids = ({"kernel": ["linear"], "C": [0.1, 10.0]}, {"C": [0.1, 10.0], "gamma": [0.01, 0.1]})
    options = {"method": "model", "n_iter": 5, "random_state": 0, "cv": 3}
    by_list = tune(SVC(), X, y, list(grids), **options)
    for given in (grids, (grid for grid in grids)):
        found = tune(SVC(), X, y, given, **options)
        assert found.cv_results_["params"] == by_list.cv_results_["params"]


@pytest.mark.filterwarnings("ignore:A column-vector y")
def test_halving_takes_targets_as_a_column(wine):
    X, y = wine
    options = {"method": "halving", "min_rows": 20, "cv": 3}
    column, row = (tune(SVC(), X, target, GRID, **options) for target in (y[:, None], y))
    assert column.best_params_ == row.best_params_


def _stopped_search(X, y):
    """A search that ends at its limit; a busy machine takes a while for its first candidate."""
    for seconds in (1.0, 4.0):
        with contextlib.suppress(ValueError):
            return tune(SVC(), X, y, cv=5, max_time=seconds, n_jobs=1)
    return tune(SVC(), X, y, cv=5, max_time=16.0, n_jobs=1)


def test_a_search_that_is_stopped_keeps_what_it_has(cancer):
    X, y = cancer
    X, y = np.repeat(X, 6, axis=0), np.repeat(y, 6)
    said = r"the search was stopped: (\d+) of (\d+) candidates were trained on (\d) of 5 splits"
    with pytest.warns(UserWarning, match=said) as caught:
        search = _stopped_search(X, y)
    told = next(match for w in caught if (match := re.search(said, str(w.message))))
    done, count, splits = map(int, told.groups())
    assert search.best_score_ > 0.5
    assert np.isfinite(search.cv_results_["mean_test_score"]).sum() == done
    assert len(search.cv_results_["params"]) == count
    assert done < count or splits < 5
    assert search.predict(X[:5]).shape == (5,)


@pytest.mark.parametrize("method", ["grid", "refine", "random", "halving", "race", "surrogate"])
@pytest.mark.parametrize(
    ("machine", "grid"),
    [
        (SVC(kernel="poly", gamma=0.1), {"degree": [1, 2, 5]}),
        (KNeighborsClassifier(), {"n_neighbors": [1, 5, 15, 25]}),
        (GaussianMixtureClassifier(), {"n_components": [1, 2, 4]}),
    ],
)
def test_whole_numbers_stay_whole(wine, machine, grid, method):
    X, y = wine
    search = tune(machine, X, y, grid, method=method, n_iter=6, min_rows=60, random_state=0, cv=3)
    (name,) = grid
    for point in search.cv_results_["params"]:
        assert isinstance(point[name], int)


@pytest.mark.parametrize(
    ("machine", "names"),
    [
        (LinearSVC(), {"C"}),
        (LogisticRegression(), {"C"}),
        (SVC(kernel="linear"), {"C"}),
        (SVC(), {"C", "gamma"}),
        (NuSVC(), {"nu", "gamma"}),
        (KNeighborsClassifier(), {"n_neighbors", "weights"}),
        (FisherDiscriminant(), {"shrinkage"}),
        (make_pipeline(StandardScaler(), LinearSVC()), {"linearsvc__C"}),
    ],
)
def test_every_machine_has_its_usual_grid(wine, machine, names):
    X, y = wine
    search = tune(machine, StandardScaler().fit_transform(X), y, method="random", n_iter=2, cv=2)
    assert set(search.cv_results_["params"][0]) == names


def test_a_shifted_grid_ends_when_the_best_point_has_neighbours(wine):
    X, y = wine
    search = tune(SVC(gamma=0.1), X, y, {"C": [0.1, 0.2]}, method="shift", cv=5)
    tried = sorted(point["C"] for point in search.cv_results_["params"])
    best = search.cv_results_["mean_test_score"].max()
    equal = [
        point["C"]
        for point, mean in zip(
            search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True
        )
        if mean == best
    ]
    assert tried[0] < min(equal) < tried[-1]
    whole = GridSearchCV(svm.SVC(gamma=0.1), {"C": tried}, cv=5).fit(X, y)
    assert search.best_score_ == pytest.approx(whole.best_score_)


def test_a_pattern_search_ends_where_no_neighbour_is_better(wine):
    X, y = wine
    grid = {"C": [0.1, 1.0, 10.0, 100.0], "gamma": [0.001, 0.01, 0.1, 1.0]}
    search = tune(SVC(), X, y, grid, method="pattern", rounds=1, cv=5)
    C, gamma = search.best_params_["C"], search.best_params_["gamma"]
    step = 10**0.5
    near = {"C": [C / step, C, C * step], "gamma": [gamma]}, {"C": [C], "gamma": [gamma / step]}
    for around in near:
        others = GridSearchCV(svm.SVC(), around, cv=5).fit(X, y)
        assert others.best_score_ <= search.best_score_ + 1e-9
    assert len(search.cv_results_["params"]) < 25
    with pytest.raises(ValueError, match="range of positive numbers"):
        tune(SVC(), X, y, {"kernel": ["rbf", "linear"]}, method="pattern")
    with pytest.raises(ValueError, match="one grid"):
        tune(SVC(), X, y, [{"C": [1, 10]}, {"nu": [1, 2]}], method="shift")
