"""Model selection: `SVCSearchCV`.

The compiled half trains every candidate on every split with all that they share computed once; the
predictions are then replayed to scikit-learn's own `GridSearchCV`, so that scores, ranks, refitting
and every option of it mean what they mean there.
"""

from __future__ import annotations

import time
import warnings
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone, is_classifier
from sklearn.exceptions import FitFailedWarning
from sklearn.metrics import get_scorer, get_scorer_names
from sklearn.model_selection import GridSearchCV, ParameterGrid, check_cv
from sklearn.utils import check_random_state, indexable
from sklearn.utils.validation import check_array

from widemargin import _core
from widemargin._base import BaseMachine
from widemargin._progress import Monitor
from widemargin._strings import strings_of
from widemargin._svc import SVC, BaseSVC, NuSVC
from widemargin._svr import SVR, NuSVR
from widemargin._tables import to_core

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from typing_extensions import Self

#: Kernels whose values do not depend on gamma.
WITHOUT_GAMMA = ("linear", "cosine", "precomputed")

#: Why a candidate has no scores that a search did not come to.
STOPPED = "the search was stopped before this candidate was trained"

#: Why a search has no result that did not come to any.
TOO_SHORT = "max_time was too short: no candidate was trained on any split"


class SVCSearchCV(GridSearchCV):
    """Grid search over the parameters of a support vector machine, everything shared.

    Called as `sklearn.model_selection.GridSearchCV` is, with the same attributes afterwards and the
    same scores to the tolerance of the solver. Kernel values are computed once per kernel for all
    folds and penalties, two-class problems of all penalties and folds share one matrix, and every
    training starts from its solved neighbours.

    `estimator` is a :class:`SVC`, :class:`NuSVC`, :class:`SVR` or :class:`NuSVR`; with anything
    else, strings, a kernel that is a function, or probabilities, it does what `GridSearchCV` does.
    Rows that the machine marks as rows without a label (`unlabeled`) are in every training part and
    in no test part.

    Parameters
    ----------
    estimator : estimator object
        The machine whose parameters are searched.
    param_grid : dict or list of dict
        Values of parameters, as for `GridSearchCV`.
    scoring, refit, cv, verbose, pre_dispatch, error_score, return_train_score
        As for `GridSearchCV`. Scorers may use predictions and decision values; they are given the
        numbers of the rows in the place of the rows.
    n_jobs : int, default=None
        Threads.
    cache_size : float, default=1024
        Megabytes that kernel values may take.
    max_time : float, default=None
        Seconds after which no candidate is trained any more. Candidates that were not finished have
        the score NaN; where none was, candidates are compared by the splits that they have in
        common, and ``n_splits_`` says how many these are. It does not end what `GridSearchCV` does,
        nor the training of the best.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import SVC, SVCSearchCV
    >>> X, y = load_iris(return_X_y=True)
    >>> search = SVCSearchCV(SVC(), {"C": [0.1, 1, 10], "gamma": [0.01, 0.1, 1]}).fit(X, y)
    >>> search.best_params_
    {'C': 1, 'gamma': 0.1}
    >>> print(round(search.best_score_, 2))
    0.98
    """

    def __init__(
        self,
        estimator: Any,
        param_grid: Any,
        *,
        scoring: Any = None,
        n_jobs: int | None = None,
        refit: Any = True,
        cv: Any = None,
        verbose: int = 0,
        pre_dispatch: Any = "2*n_jobs",
        error_score: Any = np.nan,
        return_train_score: bool = False,
        cache_size: float = 1024.0,
        max_time: float | None = None,
    ) -> None:
        super().__init__(
            estimator,
            param_grid,
            scoring=scoring,
            n_jobs=n_jobs,
            refit=refit,
            cv=cv,
            verbose=verbose,
            pre_dispatch=pre_dispatch,
            error_score=error_score,
            return_train_score=return_train_score,
        )
        self.cache_size = cache_size
        self.max_time = max_time

    def fit(self, X: Any, y: Any = None, **params: Any) -> Self:
        """Try every candidate on every split, then train the best on all rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or (n_samples, n_samples)
            Rows; with ``kernel="precomputed"`` their similarities.
        y : array-like of shape (n_samples,)
            Class labels or numbers.
        **params : dict
            ``sample_weight`` for the machines and ``groups`` for the splitter.

        Returns
        -------
        self : object
            The fitted search.
        """
        check_max_time(self.max_time)
        candidates = list(ParameterGrid(self.param_grid))
        known = {"sample_weight", "groups"}
        apart = not set(params) <= known or not self._can_share(candidates)
        if y is None or apart or strings_of(X) is not None:
            return self._fit_each(X, y, params)
        X, y = indexable(X, y)
        rows = np.arange(len(y))
        splits = splits_of(self, rows, y, params.get("groups"))
        predictions = self._evaluate(candidates, X, y, params.get("sample_weight"), splits)
        judged = predictions.known_splits()
        replay = _replay(self.estimator)(predictions)
        search = GridSearchCV(
            replay,
            {"candidate": list(range(len(candidates)))},
            scoring=self.scoring,
            refit=self.refit,
            cv=[splits[s] for s in judged],
            # It would tell numbers in the place of parameters.
            verbose=min(int(self.verbose), 1),
            error_score=np.nan if predictions.only_stopped() else self.error_score,
            return_train_score=self.return_train_score,
        )
        weights = params.get("sample_weight")
        with warnings.catch_warnings():
            if predictions.only_stopped():
                # Reported once, not as so many failed trainings.
                warnings.simplefilter("ignore", FitFailedWarning)
                warnings.filterwarnings("ignore", "One or more of the test scores", UserWarning)
            search.fit(
                rows.reshape(-1, 1), y, **({} if weights is None else {"sample_weight": weights})
            )
        predictions.warn(judged)
        self._adopt(search, candidates, predictions)
        if self.verbose > 1:
            self._print_splits(judged, len(splits), predictions)
        if self.refit:
            self._refit(X, y, weights)
        return self

    def _fit_each(self, X: Any, y: Any, params: dict[str, Any]) -> Self:
        """Do what `GridSearchCV` does; rows without labels are never held out."""
        given: Any = self.get_params(deep=False)["cv"]
        if without_labels(self.estimator, y).any():
            self.cv = splits_of(self, X, y, params.get("groups"))
        try:
            super().fit(X, y, **params)
        finally:
            self.cv = given
        return self

    def _refit(self, X: Any, y: Any, weights: Any = None) -> None:
        """Train the best candidate on all rows."""
        self.best_estimator_ = clone(self.estimator).set_params(
            **clone(self.best_params_, safe=False)
        )
        started = time.time()
        self.best_estimator_.fit(X, y, **({} if weights is None else {"sample_weight": weights}))
        self.refit_time_ = time.time() - started
        if hasattr(self.best_estimator_, "feature_names_in_"):
            self.feature_names_in_ = self.best_estimator_.feature_names_in_

    def _can_share(self, candidates: list[dict[str, Any]]) -> bool:
        if type(self.estimator) not in (SVC, NuSVC, SVR, NuSVR):
            return False
        for candidate in candidates:
            machine = clone(self.estimator).set_params(**clone(candidate, safe=False))
            wanted = getattr(machine, "probability", "deprecated")
            if callable(machine.kernel) or (wanted != "deprecated" and wanted):
                return False
        return True

    def _evaluate(
        self,
        candidates: list[dict[str, Any]],
        X: Any,
        y: Any,
        sample_weight: Any,
        splits: list[tuple[NDArray[Any], NDArray[Any]]],
    ) -> _Predictions:
        X = check_array(
            X, dtype=[np.float64, np.float32], order="C", accept_sparse="csr", input_name="X"
        )
        machines = []
        for candidate in candidates:
            machine = clone(self.estimator).set_params(**clone(candidate, safe=False))
            machine._validate_params()
            machines.append(machine)
        targets = machines[0]._targets(y)
        weights = BaseMachine._weights(machines[0], sample_weight, targets, X)
        seed = int(check_random_state(machines[0].random_state).randint(np.iinfo("i").max))
        settings = []
        for machine in machines:
            machine.n_jobs, machine.cache_size = self.n_jobs, self.cache_size
            each = machine._settings(X, seed)
            factors = _factors(machine, y)
            if factors is not None:
                each["parameters"]["class_weight"] = factors
            settings.append(each)
        # Training rows are predicted after the test rows.
        requested = [
            (
                np.ascontiguousarray(train, dtype=np.int64),
                np.concatenate([test, train] if self.return_train_score else [test]).astype(
                    np.int64
                ),
            )
            for train, test in splits
        ]
        classes = getattr(machines[0], "classes_", None)
        predictions = _Predictions(len(candidates), splits, requested, classes)
        table = to_core(X)
        whole = [k for k, each in enumerate(settings) if not _scales(each)]
        monitor = Monitor(self.verbose, [])
        started = time.monotonic()

        def run(places: Sequence[int], parts: Sequence[int], own: list[_core.Settings]) -> None:
            if not places:
                return
            if self.max_time is not None:
                left = max(self.max_time - (time.monotonic() - started), 0.0)
                own = [{**each, "max_seconds": left} for each in own]
            rows = [requested[s] for s in parts]
            found = self._predictions_of(own, table, targets, rows, weights, monitor)
            for k, of_machine in zip(places, found, strict=True):
                for s, item in zip(parts, of_machine, strict=True):
                    predictions.items[k][s] = item

        run(whole, range(len(splits)), [settings[k] for k in whole])
        # gamma="scale" looks at the training rows of each split.
        scaled = [k for k, each in enumerate(settings) if _scales(each)]
        for s, (train, _) in enumerate(splits if scaled else []):
            gamma = _scale(X[train])
            run(scaled, [s], [_with_gamma(settings[k], gamma) for k in scaled])
        return predictions

    def _print_splits(self, judged: list[int], count: int, predictions: _Predictions) -> None:
        """Print a line of every candidate and split; from level 3 on with the scores."""
        names = ["score"]
        if self.multimetric_:
            prefix = "split0_test_"
            names = [n.removeprefix(prefix) for n in self.cv_results_ if n.startswith(prefix)]
        fit_times, score_times = predictions.seconds()
        for k, candidate in enumerate(self.cv_results_["params"]):
            parameters = ", ".join(f"{name}={candidate[name]}" for name in sorted(candidate))
            for place, s in enumerate(judged):
                scores = ""
                if self.verbose > 2:
                    of = {n: self.cv_results_[f"split{place}_test_{n}"][k] for n in names}
                    scores = "".join(f" {name}={score:.3f}" for name, score in of.items()) + ";"
                seconds = fit_times[k, s] + score_times[k, s]
                print(f"[CV {s + 1}/{count}] END {parameters};{scores} total time={seconds:7.3f}s")

    def _predictions_of(
        self,
        machines: list[_core.Settings],
        table: _core.Table,
        targets: Any,
        rows: list[tuple[NDArray[np.int64], NDArray[np.int64]]],
        weights: NDArray[np.float64] | None,
        monitor: Monitor,
    ) -> list[list[Any]]:
        """Return what every machine that learnt from some rows says of others."""
        return _core.evaluate(
            machines,
            table,
            targets,
            rows,
            weights,
            False,
            monitor if monitor.listens else None,
            _needs_values(self.scoring),
        )

    def _adopt(
        self, search: GridSearchCV, candidates: list[dict[str, Any]], predictions: _Predictions
    ) -> None:
        results = {
            name: column
            for name, column in search.cv_results_.items()
            if name not in ("params", "param_candidate")
        }
        fit_times, score_times = predictions.seconds()
        for name, seconds in (("fit", fit_times), ("score", score_times)):
            results[f"mean_{name}_time"] = seconds.mean(axis=1)
            results[f"std_{name}_time"] = seconds.std(axis=1)
        times = {name: results.pop(name) for name in list(results) if name.endswith("_time")}
        self.cv_results_ = {
            **times,
            **parameter_columns(candidates),
            "params": candidates,
            **results,
        }
        self.scorer_, self.n_splits_ = search.scorer_, search.n_splits_
        self.multimetric_ = search.multimetric_
        for name in ("best_index_", "best_score_"):
            if hasattr(search, name):
                setattr(self, name, getattr(search, name))
        if hasattr(search, "best_index_"):
            self.best_params_ = candidates[search.best_index_]


def without_labels(estimator: Any, y: Any) -> NDArray[np.bool_]:
    """Which rows are marked as rows without a label, for an estimator that learns from them."""
    steps = getattr(estimator, "steps", None)
    mark = getattr(steps[-1][1] if steps else estimator, "unlabeled", None)
    if mark is None or y is None:
        return np.zeros(1, dtype=bool)
    if mark == "nan" and not is_classifier(estimator):
        return np.isnan(np.asarray(y, dtype=np.float64)).ravel()
    return np.asarray(np.asarray(y) == mark).ravel()


def splits_of(
    search: SVCSearchCV, X: Any, y: Any, groups: Any = None
) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Return rows to learn from and to predict: those without labels are never held out."""
    marked = without_labels(search.estimator, y)
    if not marked.any():
        splitter = check_cv(search.cv, y, classifier=is_classifier(search.estimator))
        parts = splitter.split(X, y, groups=groups)
        return [(np.asarray(a, dtype=np.int64), np.asarray(b, dtype=np.int64)) for a, b in parts]
    known, unknown = np.flatnonzero(~marked), np.flatnonzero(marked)
    own = search.cv is not None and not isinstance(search.cv, Integral)
    if own and not hasattr(search.cv, "split"):
        # Rows of all that were given.
        return [
            (np.asarray(train, dtype=np.int64), np.setdiff1d(np.asarray(test), unknown))
            for train, test in search.cv
        ]
    labels = np.asarray(y)[known]
    splitter = check_cv(search.cv, labels, classifier=is_classifier(search.estimator))
    parts = splitter.split(known, labels, None if groups is None else np.asarray(groups)[known])
    return [
        (np.sort(np.concatenate([known[train], unknown])), known[test]) for train, test in parts
    ]


def _needs_values(scoring: Any) -> bool:
    """Whether a scorer may look at more than predicted labels."""
    if scoring is None:
        return False
    names = [scoring] if isinstance(scoring, str) else scoring
    if not isinstance(names, (list, tuple, set)) or not set(names) <= set(get_scorer_names()):
        return True
    return any(getattr(get_scorer(name), "_response_method", "") != "predict" for name in names)


def _factors(machine: BaseMachine, y: Any) -> Any:
    """Factors on C by class: a rule that looks at each split, or one number per class."""
    if not isinstance(machine, BaseSVC) or machine.class_weight is None:
        return None
    if machine.class_weight == "balanced":
        return "balanced"
    machine._targets(y)
    return [float(factor) for factor in machine.class_weight_]


def check_max_time(seconds: Any) -> None:
    """Refuse what is no time."""
    number = isinstance(seconds, Real) and not isinstance(seconds, (bool, np.bool_))
    if seconds is not None and not (number and seconds > 0):
        raise ValueError(f"max_time has to be a number of seconds above 0, not {seconds!r}")


def _with_gamma(settings: _core.Settings, gamma: float) -> _core.Settings:
    return {**settings, "parameters": {**settings["parameters"], "gamma": gamma}}


def _scales(settings: _core.Settings) -> bool:
    parameters = settings["parameters"]
    return parameters["gamma"] == "scale" and parameters["kernel"] not in WITHOUT_GAMMA


def _scale(X: Any) -> float:
    """Return scikit-learn's gamma="scale"."""
    variance = (X.multiply(X)).mean() - X.mean() ** 2 if sp.issparse(X) else X.var()
    return float(1.0 / (X.shape[1] * variance)) if variance != 0 else 1.0


def parameter_columns(candidates: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the columns of parameters as `GridSearchCV` shows them."""
    columns: dict[str, Any] = {}
    for name in sorted({name for candidate in candidates for name in candidate}):
        present = [name in candidate for candidate in candidates]
        kinds = {type(candidate[name]) for candidate in candidates if name in candidate}
        kind: Any = np.int64 if kinds <= {int} else np.float64 if kinds <= {int, float} else object
        values = np.zeros(len(candidates), dtype=kind)
        for k, candidate in enumerate(candidates):
            if present[k]:
                values[k] = candidate[name]
        columns[f"param_{name}"] = np.ma.MaskedArray(values, mask=np.logical_not(present))
    return columns


class _Predictions:
    """The predictions of every candidate for every split; copies are the same object."""

    def __init__(
        self,
        candidates: int,
        splits: list[tuple[NDArray[Any], NDArray[Any]]],
        requested: list[tuple[NDArray[np.int64], NDArray[np.int64]]],
        classes: Any,
    ) -> None:
        self.items: list[list[Any]] = [[None] * len(splits) for _ in range(candidates)]
        # Splits may have all rows that they learn from in common.
        self.places: dict[bytes, list[int]] = {}
        for s, (train, _) in enumerate(splits):
            self.places.setdefault(np.asarray(train, dtype=np.intp).tobytes(), []).append(s)
        self.rows = [rows for _, rows in requested]
        self.classes = classes

    def __deepcopy__(self, memo: Any) -> _Predictions:
        return self

    def only_stopped(self) -> bool:
        """Tell whether predictions are missing, all because the search was stopped."""
        items = [item for row in self.items for item in row]
        return any(item is None for item in items) and not any(isinstance(i, str) for i in items)

    def known_splits(self) -> list[int]:
        """Return the splits that candidates are compared by: all, or those that one has finished.

        A search that was stopped before any candidate was finished compares them by the splits of
        one that came furthest.
        """
        finished = [[s for s, item in enumerate(row) if item is not None] for row in self.items]
        most = max(finished, key=len)
        if not most:
            raise ValueError(TOO_SHORT)
        return most

    def warn(self, known: list[int]) -> None:
        """Warn of candidates and splits that the search did not come to."""
        unfinished = sum(any(row[s] is None for s in known) for row in self.items)
        splits = len(self.items[0])
        if unfinished or len(known) < splits:
            done, count = len(self.items) - unfinished, len(self.items)
            rest = "; the others have no score" if unfinished else ""
            warnings.warn(
                f"the search was stopped: {done} of {count} candidates were trained on "
                f"{len(known)} of {splits} splits{rest}",
                UserWarning,
                stacklevel=3,
            )

    def seconds(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        def pick(which: int) -> NDArray[np.float64]:
            table = [
                [item[which] if isinstance(item, tuple) else 0.0 for item in row]
                for row in self.items
            ]
            return np.asarray(table, dtype=np.float64)

        return pick(2), pick(3)


class _Replay(BaseEstimator):
    """An estimator that returns the predictions of another one."""

    def __init__(self, predictions: _Predictions, candidate: int = 0) -> None:
        self.predictions = predictions
        self.candidate = candidate

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Find the split that the rows are of."""
        if self.predictions.classes is not None:
            self.classes_ = self.predictions.classes
        # The last call is for all rows, whose predictions are not used.
        self.places_ = self.predictions.places.get(np.asarray(X[:, 0], dtype=np.intp).tobytes(), [])
        for place in self.places_:
            item = self.predictions.items[self.candidate][place]
            if isinstance(item, str):
                raise ValueError(item)
            if item is None:
                raise ValueError(STOPPED)
        return self

    def _at(self, X: Any, which: int) -> Any:
        matching = (
            place for place in self.places_ if np.isin(X[:, 0], self.predictions.rows[place]).all()
        )
        place = next(matching)
        rows = self.predictions.rows[place]
        order = np.argsort(rows, kind="stable")
        found = order[np.searchsorted(rows, X[:, 0], sorter=order)]
        return self.predictions.items[self.candidate][place][which][found]


class _ReplayClassifier(ClassifierMixin, _Replay):
    def predict(self, X: Any) -> Any:
        """Return the predicted classes."""
        return self.classes_[self._at(X, 0).astype(np.int64)]

    def decision_function(self, X: Any) -> Any:
        """Return the scores of the classes."""
        values = self._at(X, 1)
        return values[:, 0] if values.shape[1] == 1 else values


class _ReplayRegressor(RegressorMixin, _Replay):
    def predict(self, X: Any) -> Any:
        """Return the predicted numbers."""
        return self._at(X, 0)


def _replay(estimator: BaseMachine) -> type[_Replay]:
    return _ReplayClassifier if is_classifier(estimator) else _ReplayRegressor
