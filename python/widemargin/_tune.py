"""`tune`: which points a search tries."""

from __future__ import annotations

from numbers import Integral
from typing import Any, Literal, get_args

import numpy as np
from sklearn.utils import check_random_state

from widemargin import _core
from widemargin._base import BaseMachine
from widemargin._classic.base import ClassicMachine
from widemargin._linear import LINEAR
from widemargin._rounds import Rounds
from widemargin._search import SVCSearchCV, check_max_time
from widemargin._space import Space, is_range, is_whole

#: How points are chosen; "model" is the old name of "surrogate".
Method = Literal[
    "grid", "refine", "random", "halving", "race", "shift", "pattern", "surrogate", "model"
]

#: The parameters of searches, by their names in the compiled half.
_NAMES = {
    "c": "C",
    "neighbours": "n_neighbors",
    "components": "n_components",
    "covariance": "covariance_type",
    "width": "bandwidth",
}


def tune(
    estimator: Any,
    X: Any,
    y: Any,
    param_grid: Any = None,
    *,
    method: Method = "grid",
    n_iter: int = 50,
    rounds: int = 2,
    factor: int = 3,
    min_rows: int = 200,
    random_state: Any = None,
    **options: Any,
) -> SVCSearchCV:
    """Find good parameters: a fitted :class:`SVCSearchCV`.

    Parameters
    ----------
    estimator : estimator object
        The machine whose parameters are searched.
    X, y
        Rows and what they are labelled with.
    param_grid : dict or list of dict, default=None
        Values of parameters. Without it those that the machine is usually searched over: for
        support vector machines the penalty and, for kernels that have it, gamma over the ranges of
        LIBSVM's ``grid.py``. Of a pipeline the last step is searched.
    method : {"grid", "refine", "random", "halving", "race", "shift", "pattern", "surrogate"}, \
            default="grid"
        Which points are tried.

        - "grid": every combination of values.
        - "refine": the same, then `rounds` grids of half the distance around the best, beyond an
          end if it lies there, of which the last is returned.
        - "random": `n_iter` points between the ends of the values, at equal ratios where all are
          positive. Consecutive whole numbers and values that are no numbers are taken as they are.
        - "halving": the grid with training parts of `min_rows` rows, then one in `factor` points
          with `factor` times more, until these are all rows. ``cv_results_`` says in "iter" and
          "n_resources" which round a line is of and how many rows it learnt from; the best is that
          of the last round.
        - "race": the grid, split by split, without the points that are three standard errors
          worse than the leader after three splits or more. What these were not tried on is NaN in
          ``cv_results_``.
        - "shift": the grid, and as long as the best point lies at an end of its numbers, of equal
          points the one with the smallest C and then gamma, further values beyond that end.
        - "pattern": from the middle of ranges of positive numbers a step of the grid up and down
          in every parameter, to the best of these points as long as one is better; else the steps
          are halved, `rounds` times in all.
        - "surrogate": `n_iter` points as for "random": the first few at random, each other one
          where a Gaussian process through the scores so far expects the largest improvement.
    n_iter : int, default=50
        Points of ``method="random"`` and ``method="surrogate"``.
    rounds : int, default=2
        Finer grids of ``method="refine"``, halved steps of ``method="pattern"``.
    factor : int, default=3
        One in how many points ``method="halving"`` keeps, and how many times more rows it gives
        them.
    min_rows : int, default=200
        Rows of the first round of ``method="halving"``.
    random_state : int, RandomState instance or None, default=None
        What ``method="random"`` and ``method="surrogate"`` draw from.
    **options : dict
        Options of :class:`SVCSearchCV`. Of several metrics, `refit` names the one that "refine",
        "halving", "race", "shift", "pattern" and "surrogate" go by. `max_time` is for all rounds
        together, with "refine" for every grid; the best of what was finished in time is kept.

    Returns
    -------
    search : SVCSearchCV
        The fitted search.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import SVC, tune
    >>> X, y = load_iris(return_X_y=True)
    >>> search = tune(SVC(), X, y, {"C": [1, 10]}, cv=3)
    >>> search.n_splits_
    3
    >>> search = tune(SVC(), X, y, {"C": [1, 100]}, method="random", n_iter=7, random_state=0)
    >>> len(search.cv_results_["params"])
    7
    >>> search = tune(SVC(), X, y, method="halving", min_rows=20)
    >>> search.cv_results_["n_resources"][[0, -1]]
    array([ 20, 120])
    """
    if method not in get_args(Method):
        expected = ", ".join(map(repr, get_args(Method)[:-1]))
        raise ValueError(f"method has to be one of {expected}, not {method!r}")
    grid = _default_grid(estimator) if param_grid is None else param_grid
    if method == "refine":
        return _refined(estimator, X, y, grid, rounds, options)
    search = SVCSearchCV(estimator, grid, **options)
    check_max_time(search.max_time)
    if method == "halving":
        _at_least("factor", factor, 2)
        _at_least("min_rows", min_rows, 2)
        return Rounds(search, X, y).halve(factor, min_rows)
    if method in ("shift", "pattern"):
        axes = _one_grid(grid, method)
        if method == "shift":
            return Rounds(search, X, y).shift(axes)
        _at_least("rounds", rounds, 0)
        _check_ranges(axes)
        return Rounds(search, X, y).pattern(axes, rounds)
    if method == "race":
        return Rounds(search, X, y).race()
    if method in ("random", "surrogate", "model"):
        _at_least("n_iter", n_iter, 1)
        space, generator = Space(grid), check_random_state(random_state)
        if method != "random":
            seed = int(generator.randint(np.iinfo("i").max))
            return Rounds(search, X, y).surrogate(space, n_iter, seed)
        points = [space.at(row)[0] for row in generator.uniform(size=(n_iter, space.dimensions))]
        search.param_grid = [{name: [value] for name, value in one.items()} for one in points]
    return search.fit(X, y)


def _one_grid(grid: Any, method: str) -> dict[str, Any]:
    """Return the only grid."""
    grids = grid if isinstance(grid, list) else [grid]
    if len(grids) != 1:
        raise ValueError(f"method={method!r} takes one grid, not {len(grids)}")
    return dict(grids[0])


def _check_ranges(grid: dict[str, Any]) -> None:
    for name, values in grid.items():
        if not is_range(list(values)) or min(values) <= 0:
            raise ValueError(f"method='pattern' needs a range of positive numbers for {name!r}")


def _refined(
    estimator: Any, X: Any, y: Any, grid: Any, rounds: int, options: dict[str, Any]
) -> SVCSearchCV:
    _at_least("rounds", rounds, 1)
    search = SVCSearchCV(estimator, grid, **options).fit(X, y)
    if not hasattr(search, "best_params_"):
        raise ValueError("this method needs one metric to go by: name it in refit")
    last = _grid_of(search.best_params_, grid)
    for _ in range(rounds):
        last = {name: _around(list(last[name]), best) for name, best in search.best_params_.items()}
        search = SVCSearchCV(estimator, last, **options).fit(X, y)
    return search


def _default_grid(estimator: Any, prefix: str = "") -> dict[str, list[Any]]:
    """Return what a search of an estimator varies by default."""
    if hasattr(estimator, "steps"):
        name, last = estimator.steps[-1]
        return _default_grid(last, f"{prefix}{name}__")
    linear = [kind for kind, one in LINEAR.items() if isinstance(estimator, one)]
    if linear:
        axes = _core.default_grid(linear[0], None)
    elif isinstance(estimator, BaseMachine):
        kernel = estimator.kernel
        axes = _core.default_grid(estimator._kind, "precomputed" if callable(kernel) else kernel)
    elif isinstance(estimator, ClassicMachine):
        # The kernel of density estimates is the shape of their windows.
        kernel = getattr(estimator, "kernel", None) if hasattr(estimator, "degree") else None
        axes = _core.default_grid(estimator._kind, kernel)
    else:
        axes = []
    if not axes:
        raise ValueError(f"{type(estimator).__name__} has no usual grid: give param_grid")
    grid = {f"{prefix}{_NAMES.get(name, name)}": values for name, values in axes}
    if f"{prefix}shrinkage" in grid:
        grid = {name: [None if v == "none" else v for v in values] for name, values in grid.items()}
    return grid


def _at_least(name: str, value: int, least: int) -> None:
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name} has to be an integer of at least {least}, not {value!r}")


def _grid_of(point: dict[str, Any], grid: Any) -> dict[str, Any]:
    """Find the grid that a point is of."""
    grids = grid if isinstance(grid, list) else [grid]
    return next(
        each
        for each in grids
        if set(each) == set(point) and all(point[name] in list(each[name]) for name in each)
    )


def _around(values: list[Any], best: Any) -> list[Any]:
    """Return the values to try next: nearer ones around the best, where they are numbers."""
    if not is_range(values):
        return [best]
    whole = is_whole(values)
    found = _core.refined([float(value) for value in values], float(best), whole)
    return [int(number) for number in found] if whole else found
