"""`SVCSearchCV` beside scikit-learn's `GridSearchCV`."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import load_diabetes, load_iris, load_wine, make_classification
from sklearn.exceptions import FitFailedWarning
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    RepeatedStratifiedKFold,
    ShuffleSplit,
)
from sklearn.preprocessing import StandardScaler

from widemargin import SVC, SVR, NuSVC, NuSVR, SVCSearchCV, tune

GRID = {"C": [0.1, 1.0, 10.0, 100.0], "gamma": [0.01, 0.1, 1.0]}


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True)
    return StandardScaler().fit_transform(X), y


def same(estimator, grid, X, y, params=None, **options):
    params = params or {}
    ours = SVCSearchCV(estimator, grid, **options).fit(X, y, **params)
    theirs = GridSearchCV(estimator, grid, **options).fit(X, y, **params)
    assert set(ours.cv_results_) == set(theirs.cv_results_)
    for name, column in theirs.cv_results_.items():
        if name.endswith("_time"):
            assert (ours.cv_results_[name] >= 0).all()
        elif name.startswith("param"):
            assert list(ours.cv_results_[name]) == list(column), name
        elif not name.startswith("rank"):
            assert_allclose(ours.cv_results_[name], column, atol=2e-3, err_msg=name)
    if options.get("refit", True):
        assert ours.best_params_ == theirs.best_params_
        assert_allclose(ours.best_score_, theirs.best_score_, atol=2e-3)
        assert (ours.predict(X) == theirs.predict(X)).mean() > 0.99
    return ours


def test_scores_equal_those_of_single_trainings(wine):
    X, y = wine
    same(SVC(tol=1e-6), GRID, X, y)
    same(SVC(tol=1e-6), GRID, X, y, return_train_score=True, cv=3, n_jobs=2)
    same(SVC(tol=1e-6, gamma="scale"), {"C": [0.1, 1, 10], "kernel": ["rbf", "linear"]}, X, y)
    same(NuSVC(tol=1e-6), {"nu": [0.1, 0.3], "gamma": [0.01, 0.1]}, X, y)
    same(
        SVC(tol=1e-6),
        [{"C": [1.0]}, {"gamma": [0.1, 0.2], "class_weight": [None, "balanced"]}],
        X,
        y,
    )


def test_names_of_classes_survive(wine):
    X, y = wine
    names = np.array(["red", "white", "rosé"])[y]
    search = same(SVC(tol=1e-6), {"C": [0.1, 1.0]}, X, names, scoring="f1_macro")
    assert list(search.classes_) == sorted(set(names))


def test_every_kind_of_split(wine):
    X, y = wine
    same(
        SVC(tol=1e-6),
        GRID,
        X,
        y,
        cv=RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=0),
    )
    same(SVC(tol=1e-6), GRID, X, y, cv=ShuffleSplit(4, test_size=0.3, random_state=1))
    groups = np.arange(len(y)) % 7
    same(SVC(tol=1e-6), GRID, X, y, cv=GroupKFold(4), params={"groups": groups})


def test_binary_scores_and_several_metrics():
    X, y = make_classification(200, 8, random_state=0)
    same(SVC(tol=1e-6), GRID, X, y, scoring="roc_auc")
    same(SVC(tol=1e-6), GRID, X, y, scoring=["accuracy", "roc_auc"], refit="roc_auc")
    same(SVC(tol=1e-6), GRID, X, y, scoring={"a": "accuracy"}, refit=False)


def test_regression():
    X, y = load_diabetes(return_X_y=True)
    y = (y - y.mean()) / y.std()
    same(SVR(tol=1e-6), {"C": [0.1, 1.0, 10.0], "epsilon": [0.05, 0.2], "gamma": [1.0, 10.0]}, X, y)
    same(
        NuSVR(tol=1e-6, gamma=5.0),
        {"C": [1.0, 10.0], "nu": [0.3, 0.6]},
        X,
        y,
        scoring="neg_mean_absolute_error",
    )


def test_weights_count_in_training_and_scores(wine):
    X, y = wine
    weights = np.random.default_rng(0).uniform(0.2, 3.0, len(y))
    search = same(SVC(tol=1e-6), GRID, X, y, params={"sample_weight": weights})
    assert search.best_estimator_.n_features_in_ == X.shape[1]


def test_failures_are_scored_as_asked(wine):
    X, y = wine
    grid = {"nu": [0.1, 0.99]}
    with pytest.warns(FitFailedWarning, match="fits failed"):
        search = SVCSearchCV(NuSVC(), grid).fit(X, y)
    assert search.best_params_ == {"nu": 0.1}
    assert np.isnan(search.cv_results_["mean_test_score"][1])
    with pytest.raises(ValueError, match="nu"):
        SVCSearchCV(NuSVC(), grid, error_score="raise").fit(X, y)


def test_bad_parameters_are_refused(wine):
    X, y = wine
    with pytest.raises(ValueError, match="'C' parameter"):
        SVCSearchCV(SVC(), {"C": [-1.0]}).fit(X, y)
    with pytest.raises(ValueError, match="NaN"):
        SVCSearchCV(SVC(), GRID).fit(np.where(X > 2, np.nan, X), y)


def test_what_cannot_be_shared_is_searched_all_the_same(wine):
    X, y = wine
    search = SVCSearchCV(SVC(kernel=lambda a, b: a @ b.T), {"C": [0.1, 1.0]}).fit(X, y)
    assert search.best_score_ > 0.9


def test_the_usual_grid():
    X, y = load_iris(return_X_y=True)
    search = tune(SVC(), X, y, cv=3)
    assert len(search.cv_results_["params"]) == 110
    assert search.best_score_ > 0.96


def test_a_finer_grid_is_no_worse(wine):
    X, y = wine
    coarse = tune(SVC(), X, y, GRID, cv=3)
    fine = tune(SVC(), X, y, [GRID, {"kernel": ["linear"]}], method="refine", rounds=2, cv=3)
    assert fine.best_score_ >= coarse.best_score_
    best = fine.best_params_
    assert best["C"] not in GRID["C"] or fine.best_score_ == coarse.best_score_
    assert len(fine.cv_results_["params"]) == 5 ** len(GRID)


def test_random_points_lie_between_the_ends(wine):
    X, y = wine
    space = {"C": [0.1, 100.0], "kernel": ["rbf", "poly"], "degree": [2, 3], "coef0": [-1.0, 1.0]}
    first, second = (
        tune(SVC(), X, y, space, method="random", n_iter=12, random_state=3, cv=3) for _ in range(2)
    )
    points = first.cv_results_["params"]
    assert len(points) == 12
    assert points == second.cv_results_["params"]
    assert all(0.1 <= point["C"] <= 100.0 for point in points)
    assert all(-1.0 <= point["coef0"] <= 1.0 for point in points)
    assert {point["degree"] for point in points} == {2, 3}
    assert {point["kernel"] for point in points} == {"rbf", "poly"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "hyperband"}, "'race', 'shift', 'pattern', 'surrogate', not 'hyperband'"),
        ({"method": "random", "n_iter": 0}, "n_iter has to be an integer of at least 1, not 0"),
        ({"method": "refine", "rounds": 1.5}, "rounds has to be an integer of at least 1"),
        (
            {"method": "refine", "scoring": ["accuracy", "f1_macro"], "refit": False},
            "needs one metric",
        ),
    ],
)
def test_what_tune_refuses(wine, options, message):
    X, y = wine
    with pytest.raises(ValueError, match=message):
        tune(SVC(), X, y, GRID, **options)


def test_verbose_tells_the_parameters(wine, capsys):
    X, y = wine
    grid = {"C": [0.1, 10.0], "gamma": [0.05]}
    search = SVCSearchCV(SVC(), grid, cv=3, verbose=3).fit(X, y)
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("[CV")]
    assert len(lines) == 6
    assert "candidate" not in "".join(lines)
    score = search.cv_results_["split1_test_score"][1]
    assert lines[4].startswith(f"[CV 2/3] END C=10.0, gamma=0.05; score={score:.3f}; total time=")
    SVCSearchCV(SVC(), grid, cv=3, verbose=2, scoring=["accuracy", "f1_macro"], refit=False).fit(
        X, y
    )
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("[CV")]
    assert lines[0].startswith("[CV 1/3] END C=0.1, gamma=0.05; total time=")
