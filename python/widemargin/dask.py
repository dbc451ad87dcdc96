"""Support vector machines on a Dask cluster: rows stay with the workers that hold them.

``pip install widemargin[dask]`` brings what is needed. The estimators take Dask arrays and frames
(NumPy arrays too), train on all rows together, and are ordinary estimators afterwards: files,
predictions and attributes are those of :class:`widemargin.SVC` and its siblings. Given Dask
collections, predictions are Dask collections.
"""

from __future__ import annotations

import contextlib
import itertools
import time
import uuid
from dataclasses import field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.model_selection import ParameterGrid
from sklearn.utils.validation import check_is_fitted

from widemargin import _core, _linear, _search, _svc, _svr
from widemargin._distributed import (
    Message,
    Task,
    Wanted,
    aligned,
    collected,
    counted,
    forget,
    left,
    outline,
    prepared,
    step,
)
from widemargin._docs import documented
from widemargin._parameters import estimator
from widemargin._partitioned import PLACES, Partitioned, copy_of, sparse_container

try:
    import dask
    import dask.array as da
    import distributed
except ImportError as error:
    raise ImportError("widemargin.dask needs Dask: pip install 'widemargin[dask]'") from error

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["SVC", "SVR", "LinearSVC", "SVCSearchCV"]

#: Seconds between two looks whether all workers are still there.
_LOOK = 1.0

#: How often the task of a site is given to another worker before the training fails.
_MOST_MOVES = 20


def is_dask(collection: Any) -> bool:
    """Return whether this is a Dask array, frame or series."""
    return bool(dask.is_dask_collection(collection))


def _blocks(collection: Any, like: Any, name: str) -> list[Any]:
    """Return the partitions of a collection along its rows, cut as those of `like`."""
    known = isinstance(like, da.Array) and not np.isnan(like.chunks[0]).any()
    if not is_dask(collection):
        if not known:
            raise TypeError(f"{name} has to be a Dask collection as X is, got {type(collection)}")
        collection = da.from_array(np.asarray(collection), chunks=-1)
    if isinstance(collection, da.Array):
        if collection.ndim == 2:
            collection = collection.rechunk({1: -1})
        if known and not np.isnan(collection.chunks[0]).any():
            collection = collection.rechunk({0: like.chunks[0]})
    return list(np.ravel(collection.to_delayed()))


class _Places:
    """The partitions of a training, grouped into sites; an engine of :func:`_distributed.run`."""

    def __init__(self, machine: Any, X: Any, y: Any, sample_weight: Any) -> None:
        self._client = machine.client or distributed.get_client()
        self._means = (machine._threads(), float(getattr(machine, "cache_size", 0)))
        self._training = uuid.uuid4().hex
        workers = self._workers()
        if not workers:
            raise RuntimeError("the Dask cluster has no workers")
        self.feature_names = list(X.columns) if hasattr(X, "columns") else None
        if not is_dask(X):
            X = da.from_array(np.asarray(X), chunks=(-(-len(X) // len(workers)), -1))
        self.sparse_kind = sparse_container(getattr(X, "_meta", None))
        rows = _blocks(X, None, "X")
        none = [None] * len(rows)
        labels = none if y is None else _blocks(y, X, "y")
        weights = none if sample_weight is None else _blocks(sample_weight, X, "sample_weight")
        for name, blocks in (("y", labels), ("sample_weight", weights)):
            if len(blocks) != len(rows):
                raise ValueError(f"{name} has {len(blocks)} partitions and X has {len(rows)}")
        parts = list(zip(rows, labels, weights, strict=True))
        count = min(machine.sites or len(workers), len(parts))
        bounds = [site * len(parts) // count for site in range(count + 1)]
        groups = [parts[a:b] for a, b in itertools.pairwise(bounds)]
        self._owners = [workers[site % len(workers)] for site in range(count)]
        self._rows = [
            self._submit(dask.delayed(collected)([tuple(part) for part in group]), owner)
            for group, owner in zip(groups, self._owners, strict=True)
        ]
        self._parts: list[Any] = []
        self._plan: Any = None
        self._firsts: list[int] = []
        self._started: set[int] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._client.run(forget, self._training, on_error="ignore")

    def _submit(self, delayed: Any, owner: str) -> Any:
        # Where the worker is lost, any other one computes the partition again.
        return self._client.compute(delayed, workers=[owner], allow_other_workers=True)

    def _workers(self) -> list[str]:
        return sorted(self._client.nthreads())

    def outlines(self, classes: bool) -> list[Any]:
        """Return rows, columns, number format and labels of every place."""
        outlines = self._client.gather(
            [self._client.submit(outline, rows, classes) for rows in self._rows]
        )
        ends = np.cumsum([rows for rows, *_ in outlines])
        self._firsts = [int(end - rows) for end, (rows, *_) in zip(ends, outlines, strict=True)]
        return list(outlines)

    def census(self, task: Task) -> list[bytes]:
        """Prepare the rows of every place, and return what was counted of them."""
        client = self._client
        self._parts = [
            client.submit(prepared, rows, task, workers=[owner], allow_other_workers=True)
            for rows, owner in zip(self._rows, self._owners, strict=True)
        ]
        self._rows = []
        return list(client.gather([client.submit(counted, part) for part in self._parts]))

    def start(self, plan: bytes) -> _Places:
        """Take the plan of the training."""
        # A task and not scattered data, which would be lost with its worker.
        self._plan = self._client.submit(bytes, plan)
        return self

    def _step(self, site: int, messages: list[Message]) -> Any:
        fresh = site not in self._started
        self._started.add(site)
        return self._client.submit(
            step,
            self._training,
            self._plan,
            (site, self._firsts[site]),
            self._parts[site],
            messages,
            fresh=fresh,
            means=self._means,
            seconds=None,
            pure=False,
            workers=[self._owners[site]],
        )

    def _results(self, pending: dict[int, Any], again: Any) -> dict[int, Any]:
        """Wait for a task of every site; a site whose worker is lost goes to another one."""
        results: dict[int, Any] = {}
        moves = 0
        while pending:
            with contextlib.suppress(TimeoutError, distributed.TimeoutError):
                distributed.wait(list(pending.values()), timeout=_LOOK)
            lost = []
            alive = self._workers()
            for site, future in list(pending.items()):
                if future.status == "finished":
                    try:
                        results[site] = future.result(timeout=_LOOK)
                        del pending[site]
                        continue
                    except (TimeoutError, distributed.TimeoutError):
                        # The result went with its worker, and is computed again.
                        continue
                if future.status in ("error", "lost", "cancelled"):
                    error = future.exception() if future.status == "error" else None
                    if error is not None and not isinstance(error, distributed.KilledWorker):
                        raise error
                    lost.append(site)
                elif self._owners[site] not in alive:
                    lost.append(site)
            for site in lost:
                moves += 1
                if moves > _MOST_MOVES:
                    raise RuntimeError(f"site {site} was lost with its worker again and again")
                if not alive:
                    time.sleep(_LOOK)
                    continue
                pending[site].cancel()
                if self._owners[site] not in alive:
                    self._owners[site] = alive[site % len(alive)]
                pending[site] = again(site)
        return results

    def exchange(self, inboxes: dict[int, list[Message]]) -> list[Message]:
        """Give messages to their sites and return the replies in the order of the sites."""
        pending = {site: self._step(site, messages) for site, messages in inboxes.items()}
        replies = self._results(pending, lambda site: self._step(site, inboxes[site]))
        return [message for site in sorted(replies) for message in replies[site]]

    def site_results(self, wanted: Wanted) -> list[bytes]:
        """Return what the sites leave, one of them with the wanted solution."""

        def request(site: int) -> Any:
            return self._client.submit(
                left,
                self._training,
                site,
                wanted if site == wanted[0] else None,
                pure=False,
                workers=[self._owners[site]],
            )

        pending = {site: request(site) for site in range(len(self._owners))}
        found = self._results(pending, request)
        others = [site for site in sorted(found) if found[site] is not None]
        if found[wanted[0]] is None and others:
            # It was lost after the end; a verified solution is at all sites.
            wanted = (others[0], wanted[1])
            found.update(self._results({others[0]: request(others[0])}, request))
        return [result for site in sorted(found) if (result := found[site]) is not None]


def _predict_block(block: Any, machine: Any, method: str, nothing: Any) -> Any:
    """Return what a method of a fitted machine says of a block."""
    return getattr(machine, method)(block) if len(block) else nothing


class _OnDask(Partitioned):
    """A machine on a cluster, which predicts Dask collections as Dask collections."""

    #: The machine at one place.
    _ordinary: ClassVar[type[Any]]

    def _places(self, X: Any, y: Any, sample_weight: Any) -> _Places:
        return _Places(self, X, y, sample_weight)

    def local(self) -> Any:
        """Return the fitted machine as the ordinary estimator, which knows no cluster.

        Returns
        -------
        estimator : SVC or SVR
            Of :mod:`widemargin`, with the same model.
        """
        check_is_fitted(self)
        own = self.get_params(deep=False)
        machine = self._ordinary(**{k: v for k, v in own.items() if k not in PLACES})
        fitted = {name: value for name, value in vars(self).items() if name not in own}
        machine.__dict__.update(fitted)
        return machine

    def _request(self, method: str, X: Any) -> Any:
        """Return what a method of the fitted machine says of the rows of a collection."""
        machine = self.local()
        if not is_dask(X):
            return getattr(machine, method)(X)
        example = np.zeros((1, machine.n_features_in_))
        if not isinstance(X, da.Array):
            example = X._meta_nonempty[:1]
        empty = np.asarray(getattr(machine, method)(example))
        arguments = (machine, method, empty[:0])
        two = empty.ndim == 2
        if not isinstance(X, da.Array):
            shape = (np.nan, *empty.shape[1:])
            parts = [dask.delayed(_predict_block)(part, *arguments) for part in X.to_delayed()]
            blocks = [da.from_delayed(part, shape, meta=empty[:0]) for part in parts]
            return da.concatenate(blocks, allow_unknown_chunksizes=True)
        X = X.rechunk({1: -1})
        return X.map_blocks(
            _predict_block,
            *arguments,
            dtype=empty.dtype,
            drop_axis=None if two else 1,
            chunks=(X.chunks[0], (empty.shape[1],)) if two else (X.chunks[0],),
            meta=empty[:0],
        )

    def predict(self, X: Any) -> Any:
        """Return the class or number of every row.

        Parameters
        ----------
        X : Dask or ordinary collection of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        predictions : Dask array or ndarray of shape (n_samples,)
            A Dask array for a Dask collection.
        """
        return self._request("predict", X)


class _ClassifierOnDask(_OnDask):
    """A classifier on a cluster."""

    def decision_function(self, X: Any) -> Any:
        """Return decision values.

        Parameters
        ----------
        X : Dask or ordinary collection of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        values : Dask array or ndarray
            As those of the ordinary estimator.
        """
        return self._request("decision_function", X)


@documented
@estimator
class SVC(_ClassifierOnDask, _svc.SVC):
    """Support vector classification on a Dask cluster; the same optimum as at one place.

    Sites, by default one for each worker, exchange support vectors until no row of any site changes
    the solution. A worker that is lost is replaced: its partitions are computed again from their
    graph, so they must not be data that :meth:`distributed.Client.scatter` holds. Support vectors
    travel through the client.

    Parameters
    ----------
    {sites}
    C : float, default=1.0
        Penalty of margin errors; smaller is smoother. May be infinite.
    {kernel}
    {classification}
    {training}
    loss : {{'hinge', 'squared_hinge'}}, default='hinge'
        How a margin error ξ is charged: C ξ or C ξ².
    {extra_classification}
    {extra}

    Attributes
    ----------
    {sites_attributes}
    {attributes_classification}
    {attributes}
    """

    _ordinary = _svc.SVC

    topology: str = "full"
    schedule: str = "parallel"


@documented
@estimator
class SVR(_OnDask, _svr.SVR):
    """Support vector regression on a Dask cluster; the same optimum as at one place.

    See :class:`SVC` for what happens to rows and workers.

    Parameters
    ----------
    {sites}
    {kernel}
    C : float, default=1.0
        Penalty of deviations beyond the tube; smaller is smoother. May be infinite.
    epsilon : float, default=0.1
        Half width of the tube in which deviations cost nothing.
    {training}
    loss : {{'epsilon_insensitive', 'squared_epsilon_insensitive'}}, default='epsilon_insensitive'
        How a deviation ξ beyond the tube is charged: C ξ or C ξ².
    {extra}

    Attributes
    ----------
    {sites_attributes}
    {attributes}
    """

    _ordinary = _svr.SVR

    topology: str = "full"
    schedule: str = "parallel"


@documented
@estimator
class LinearSVC(_ClassifierOnDask, _linear.LinearSVC):
    """Linear support vector classification on a Dask cluster.

    Newton's method: the workers send sums of gradients and of products with the Hessian, never
    rows. The optimum is that of one place, with the duality gap over all rows. For the squared
    hinge loss and the ℓ2 penalty.

    Parameters
    ----------
    client : distributed.Client, default=None
        The cluster; the current client by default.
    sites : int, default=None
        Sites; partitions next to each other are put together. By default one for each worker.
    penalty : {{'l2'}}, default='l2'
        What weights cost.
    loss : {{'squared_hinge'}}, default='squared_hinge'
        What a row beyond its margin costs.
    dual : 'auto' or False, default='auto'
        The primal problem is solved.
    tol : float, default=1e-4
        Norm of the gradient relative to that at 0.
    C : float, default=1.0
        Price of the loss.
    {linear}
    class_weight : dict or 'balanced', default=None
        Factors on C by class.
    {linear_extra}

    Attributes
    ----------
    {linear_classifier}
    report_ : dict
        How the training ended and what was sent.
    {linear_attributes}
    """

    _ordinary = _linear.LinearSVC

    penalty: str = field(default="l2", kw_only=True)
    loss: str = field(default="squared_hinge", kw_only=True)


def _same(*values: Any) -> tuple[Any, ...]:
    """Return what was given, as a result that any worker can compute again."""
    return values


def _evaluated(machines: list[Any], data: Any, rows: list[Any], needs_values: bool) -> list[Any]:
    """Return what machines of one kernel predict on every split."""
    table, targets, weights = aligned(data)
    rows = [aligned(pair) for pair in rows]
    return _core.evaluate(machines, table, targets, rows, weights, False, None, needs_values)


class SVCSearchCV(_search.SVCSearchCV):
    """Grid search on a Dask cluster: candidates of different kernels train on different workers.

    As :class:`widemargin.SVCSearchCV`, to whose scores its own are equal. Candidates that share
    their kernel stay together, because they share its values too; where there are fewer kernels
    than threads in the cluster, the splits of each are spread too. Rows are sent to every worker,
    the best candidate is trained on all rows by the client.

    Parameters
    ----------
    estimator : SVC, NuSVC, SVR or NuSVR
        The machine of :mod:`widemargin` whose parameters are searched.
    param_grid : dict or list of dict
        Values of parameters, as for `GridSearchCV`.
    client : distributed.Client, default=None
        The cluster; the current client by default.
    scoring, refit, cv, verbose, error_score, return_train_score
        As for `GridSearchCV`.
    n_jobs : int, default=None
        Threads of every task.
    cache_size : float, default=1024
        Megabytes that kernel values of a task may take.
    max_time : float, default=None
        Seconds after which a task trains no candidate any more.
    """

    def __init__(
        self,
        estimator: Any,
        param_grid: Any,
        client: Any = None,
        *,
        scoring: Any = None,
        n_jobs: int | None = None,
        refit: Any = True,
        cv: Any = None,
        verbose: int = 0,
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
            error_score=error_score,
            return_train_score=return_train_score,
            cache_size=cache_size,
            max_time=max_time,
        )
        self.client = client

    # A client cannot be copied, nor kept in a file.

    def __sklearn_clone__(self) -> Self:
        """Return an unfitted copy with the same client."""
        return copy_of(self)

    def __getstate__(self) -> dict[str, Any]:
        """Leave the client out."""
        return {**super().__getstate__(), "client": None}

    def fit(self, X: Any, y: Any = None, **params: Any) -> Self:
        """Try every candidate on every split, then train the best on all rows.

        Parameters
        ----------
        X : collection of shape (n_samples, n_features)
            Rows; Dask collections are brought to the client.
        y : collection of shape (n_samples,)
            Class labels or numbers.
        **params : dict
            ``sample_weight`` for the machines and ``groups`` for the splitter.

        Returns
        -------
        self : object
            The fitted search.
        """
        X, y, params = dask.compute(X, y, params)
        if not self._can_share(list(ParameterGrid(self.param_grid))):
            raise ValueError(
                "SVCSearchCV on Dask needs an SVC, NuSVC, SVR or NuSVR of widemargin with a "
                "kernel by name and without probabilities"
            )
        return super().fit(X, y, **params)

    def _predictions_of(
        self,
        machines: list[_core.Settings],
        table: _core.Table,
        targets: Any,
        rows: list[Any],
        weights: Any,
        monitor: Any,
    ) -> list[list[Any]]:
        client = self.client or distributed.get_client()
        data = client.submit(_same, table, targets, weights, pure=False)
        groups: dict[Any, list[int]] = {}
        for place, machine in enumerate(machines):
            others = {k: v for k, v in machine["parameters"].items() if k != "c"}
            groups.setdefault(repr(sorted(others.items())), []).append(place)
        threads = sum(client.nthreads().values())
        runs = 1 if len(groups) >= threads else len(rows)
        parts = np.array_split(np.arange(len(rows)), runs)
        needs_values = _search._needs_values(self.scoring)
        tasks = {
            (key, k): client.submit(
                _evaluated,
                [machines[place] for place in places],
                data,
                [rows[s] for s in part],
                needs_values,
                pure=False,
            )
            for key, places in groups.items()
            for k, part in enumerate(parts)
        }
        results = client.gather(tasks)
        found: list[list[Any]] = [[None] * len(rows) for _ in machines]
        for key, places in groups.items():
            for k, part in enumerate(parts):
                for place, items in zip(places, results[key, k], strict=True):
                    for split, item in zip(part, items, strict=True):
                        found[place][int(split)] = item
        return found
