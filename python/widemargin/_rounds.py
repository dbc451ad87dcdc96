"""Searches in rounds: halving, races and a surrogate of the scores.

The compiled half decides which points are tried on which rows. Every round is a search of its own,
for estimators of any library; the rounds are then shown as one table.
"""

from __future__ import annotations

import time
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import rankdata
from sklearn.base import is_classifier
from sklearn.model_selection import ParameterGrid
from sklearn.utils import indexable
from sklearn.utils.multiclass import type_of_target

from widemargin import _core
from widemargin._search import STOPPED, TOO_SHORT, SVCSearchCV, parameter_columns, splits_of
from widemargin._space import between, is_range, is_whole

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from widemargin._space import Space

    Point = dict[str, Any]
    Splits = Sequence[tuple[NDArray[Any], NDArray[Any]]]
    Parts = list[tuple[int, NDArray[np.int64]]]
    Table = dict[str, NDArray[Any]]

#: How often a grid is shifted at most.
_MOST_SHIFTS = 50

#: What scikit-learn says where every training of a search failed.
_ALL_FAILED = "fits failed"


class Rounds:
    """A search whose points are tried in rounds over the same splits."""

    def __init__(self, search: SVCSearchCV, X: Any, y: Any) -> None:
        self._search = search
        self._X, self._y = indexable(X, y)
        self._splits = splits_of(search, self._X, self._y)
        self._trains = [train for train, _ in self._splits]
        limit = search.max_time
        self._ends = np.inf if limit is None else time.monotonic() + limit
        self._first: SVCSearchCV | None = None
        self._metric = "score"

    def halve(self, factor: int, smallest: int) -> SVCSearchCV:
        """Try the grid on few rows, then the best points on more."""
        points = list(ParameterGrid(self._search.param_grid))
        classes = None
        kind = type_of_target(self._y) if is_classifier(self._search.estimator) else None
        if kind in ("binary", "multiclass"):
            classes = np.unique(np.ravel(self._y), return_inverse=True)[1].astype(np.uint32)
        tables: list[Table] = []
        tried: list[Point] = []

        def evaluate(candidates: list[int], rows: int, parts: Parts) -> list[list[float]]:
            chosen = [points[k] for k in candidates]
            table = self._try(chosen, [(train, self._splits[s][1]) for s, train in parts])
            marks = {"iter": len(tables), "n_resources": rows}
            tables.append({n: np.full(len(chosen), v) for n, v in marks.items()} | table)
            tried.extend(chosen)
            return self._split_scores(table)

        _core.halving(
            len(points), self._trains, classes, factor, smallest, self._search.max_time, evaluate
        )
        results = _stacked(tables)
        finished = results["iter"][~np.isnan(self._means(results))]
        return self._conclude(results, tried, results["iter"] == max(finished, default=0))

    def race(self) -> SVCSearchCV:
        """Try the grid split by split, without points that are clearly worse than the best."""
        points = list(ParameterGrid(self._search.param_grid))
        columns: Table = {}

        def evaluate(candidates: list[int], _: int, parts: Parts) -> list[list[float]]:
            split = parts[0][0]
            table = self._try([points[k] for k in candidates], [self._splits[split]])
            for kind, column in _of_one_split(table).items():
                empty = np.full((len(points), len(self._splits)), np.nan)
                columns.setdefault(kind, empty)[candidates, split] = column
            return self._split_scores(table)

        _core.race(len(points), self._trains, self._search.max_time, evaluate)
        return self._conclude(_of_all_splits(columns), points)

    def surrogate(self, space: Space, count: int, seed: int) -> SVCSearchCV:
        """Try points at random, then those where a surrogate of the scores expects most."""
        tables: list[Table] = []
        tried: list[Point] = []

        def evaluate(shares: list[list[float]]) -> list[tuple[list[float], float]]:
            chosen = [space.at(each) for each in shares]
            tables.append(self._try([point for point, _ in chosen], self._splits))
            tried.extend(point for point, _ in chosen)
            means = self._means(tables[-1]).tolist()
            return [(place, mean) for (_, place), mean in zip(chosen, means, strict=True)]

        _core.surrogate(space.dimensions, count, seed, self._search.max_time, evaluate)
        return self._conclude(_stacked(tables), tried)

    def shift(self, grid: Mapping[str, Any]) -> SVCSearchCV:
        """Try a grid, then values beyond an end as long as the best point lies there."""
        axes = {name: list(values) for name, values in grid.items()}
        tables = [self._try(list(ParameterGrid(axes)), self._splits)]
        tried: list[Point] = list(ParameterGrid(axes))
        for _ in range(_MOST_SHIFTS):
            best = self._smallest_best(tables, tried)
            if best is None:
                break
            wider = {name: _beyond(values, tried[best][name]) for name, values in axes.items()}
            fresh = [
                point
                for point in ParameterGrid(wider)
                if any(point[name] not in axes[name] for name in axes)
            ]
            if not fresh:
                break
            axes = wider
            before = np.nanmax(self._means(_stacked(tables)))
            tables.append(self._try(fresh, self._splits))
            tried.extend(fresh)
            if not np.nanmax(self._means(_stacked(tables))) > before:
                break
        return self._conclude(_stacked(tables), tried)

    def pattern(self, grid: Mapping[str, Any], halvings: int) -> SVCSearchCV:
        """Step from the middle of the ranges to better neighbours, with ever smaller steps."""
        axes = {name: [float(value) for value in values] for name, values in grid.items()}
        point = {name: between(min(v), max(v), 0.5) for name, v in axes.items()}
        steps = {n: (max(v) / min(v)) ** (1.0 / (len(v) - 1)) for n, v in axes.items()}
        tables: list[Table] = []
        tried: list[Point] = []
        while True:
            near = [point] + [
                {**point, name: point[name] * factor}
                for name, step in steps.items()
                for factor in (1.0 / step, step)
            ]
            fresh = [one for one in near if one not in tried]
            if fresh:
                tables.append(self._try(fresh, self._splits))
                tried.extend(fresh)
            means = self._means(_stacked(tables))
            scores = [means[tried.index(one)] for one in near]
            if np.isnan(scores).all() or time.monotonic() > self._ends:
                break
            best = near[int(np.nanargmax(scores))]
            if best != point:
                point = best
            elif halvings == 0:
                break
            else:
                halvings -= 1
                steps = {name: float(np.sqrt(step)) for name, step in steps.items()}
        return self._conclude(_stacked(tables), tried)

    def _smallest_best(self, tables: list[Table], tried: list[Point]) -> int | None:
        """Return the place of the best point, of equals that with the smallest C, then gamma."""
        means = self._means(_stacked(tables))
        if np.isnan(means).all() or time.monotonic() > self._ends:
            return None
        equal = np.flatnonzero(means == np.nanmax(means))
        return int(min(equal, key=lambda place: _size(tried[place])))

    def _split_scores(self, table: Table) -> list[list[float]]:
        """Return the scores of every point of a round, split by split."""
        names = (f"split{s}_test_{self._metric}" for s in range(len(self._splits)))
        scores: list[list[float]] = np.column_stack(
            [table[n] for n in names if n in table]
        ).tolist()
        return scores

    def _means(self, table: Table) -> NDArray[Any]:
        return table[f"mean_test_{self._metric}"]

    def _try(self, points: list[Point], splits: Splits) -> Table:
        """Search some points on some splits; NaN where a later round failed as a whole."""
        left = max(self._ends - time.monotonic(), 1e-3)
        changes = {
            "param_grid": [{name: [value] for name, value in point.items()} for point in points],
            "cv": splits,
            "refit": False,
            "max_time": None if np.isinf(left) else left,
        }
        search = SVCSearchCV(**{**self._search.get_params(deep=False), **changes})
        try:
            search.fit(self._X, self._y)
        except ValueError as error:
            later = (_ALL_FAILED, STOPPED, TOO_SHORT)
            if self._first is None or not any(message in str(error) for message in later):
                raise
            return {name: np.full(len(points), np.nan) for name in _scores(self._first)}
        if self._first is not None and search.n_splits_ < len(splits):
            return {name: np.full(len(points), np.nan) for name in _scores(self._first)}
        if self._first is None:
            self._first = search
            if search.multimetric_:
                self._metric = self._search.refit
                if f"mean_test_{self._metric}" not in search.cv_results_:
                    raise ValueError("this method needs one metric to go by: name it in refit")
        return _scores(search)

    def _conclude(
        self, results: Table, points: list[Point], eligible: NDArray[Any] | bool = True
    ) -> SVCSearchCV:
        """Show the rounds as one search, and train the best point on all rows."""
        search, first = self._search, self._first
        assert first is not None
        times = {name: results.pop(name) for name in list(results) if name.endswith("_time")}
        search.cv_results_ = {**times, **parameter_columns(points), "params": points, **results}
        search.scorer_, search.multimetric_ = first.scorer_, first.multimetric_
        search.n_splits_ = len(self._splits)
        means = np.where(eligible, self._means(results), np.nan)
        if np.isnan(means).all():
            reason = "all failed on some, or max_time was too short"
            raise ValueError(f"no point has a score on every split: {reason}")
        if callable(search.refit):
            search.best_index_ = search.refit(search.cv_results_)
            if not isinstance(search.best_index_, Integral):
                raise TypeError(f"refit has to return an integer, not {search.best_index_!r}")
        else:
            search.best_index_ = int(np.nanargmax(means))
            search.best_score_ = float(means[search.best_index_])
        search.best_params_ = points[search.best_index_]
        if search.refit:
            search._refit(self._X, self._y)
        return search


def _size(point: Point) -> tuple[float, ...]:
    """Return C, then gamma, of a point, where they are numbers."""
    found: list[float] = []
    for wanted in ("C", "gamma"):
        values = [v for name, v in point.items() if name.split("__")[-1] == wanted]
        found.extend(float(v) for v in values if isinstance(v, Real))
    return tuple(found)


def _beyond(values: list[Any], best: Any) -> list[Any]:
    """Return values with one more at an equal ratio beyond the end that the best lies at."""
    if not is_range(values) or min(values) <= 0:
        return values
    ordered = sorted(values)
    low, high = ordered[0] ** 2 / ordered[1], ordered[-1] ** 2 / ordered[-2]
    if is_whole(values):
        low, high = max(round(low), 1), round(high)
    wider = list(values)
    if best == ordered[0] and low not in wider:
        wider.append(low)
    if best == ordered[-1] and high not in wider:
        wider.append(high)
    return wider


def _scores(search: SVCSearchCV) -> Table:
    """Return the columns that are about scores and times."""
    columns = search.cv_results_.items()
    return {n: c for n, c in columns if n != "params" and not n.startswith("param_")}


def _of_one_split(table: Table) -> Table:
    """Return what a round of one split found, by kind."""
    scores = {n.removeprefix("split0_"): c for n, c in table.items() if n.startswith("split0_")}
    return scores | {kind: table[f"mean_{kind}"] for kind in ("fit_time", "score_time")}


def _of_all_splits(parts: Table) -> Table:
    """Return columns of values by kind, point and split; times are those of the splits tried."""
    results: Table = {}
    for part, values in parts.items():
        if part in ("fit_time", "score_time"):
            values = np.ma.masked_invalid(values)
        else:
            results |= {f"split{s}_{part}": column for s, column in enumerate(values.T)}
        results[f"mean_{part}"] = np.ma.filled(values.mean(axis=1), 0.0)
        results[f"std_{part}"] = np.ma.filled(values.std(axis=1), 0.0)
        if part.startswith("test_"):
            results[f"rank_{part}"] = _ranks(results[f"mean_{part}"])
    return results


def _stacked(tables: list[Table]) -> Table:
    """Return the rows of all rounds, ranked together."""
    results = {name: np.concatenate([table[name] for table in tables]) for name in tables[0]}
    for name in results:
        if name.startswith("rank_"):
            results[name] = _ranks(results[f"mean_{name.removeprefix('rank_')}"])
    return results


def _ranks(means: NDArray[Any]) -> NDArray[np.int32]:
    """Return the ranks of means as `GridSearchCV` gives them: from 1, without a mean last."""
    ranks = rankdata(-np.nan_to_num(means, nan=-np.inf), method="min")
    return np.asarray(ranks, dtype=np.int32)
