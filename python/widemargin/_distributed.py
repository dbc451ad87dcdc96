"""Trainings whose rows are at several places: what the engines have in common.

An engine keeps a site for every part of the rows, brings messages to the sites and their replies
back. When a site is lost it makes another from the same rows, which asks its neighbours for what it
lacks; the verification at the end finds what was missed. All mathematics is in the compiled half.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_array

from widemargin import _core
from widemargin._tables import to_core

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

#: Sender, receiver (-1 for the coordinator) and content.
Message = tuple[int, int, bytes]

#: A site and the verification of its solution.
Wanted = tuple[int, "tuple[int, int] | None"]


class Rows(NamedTuple):
    """The rows of one place."""

    X: Any
    y: Any
    weights: NDArray[np.float64] | None


class Task(NamedTuple):
    """What every place has to know to prepare its rows."""

    #: Classes, ascending, with the factor on C of each; none for other machines.
    classes: NDArray[Any] | None
    factors: NDArray[np.float64] | None
    names: list[int | float | str]
    #: Whether `y` holds numbers.
    numbers: bool


class Sites(Protocol):
    """What an engine offers."""

    def exchange(self, inboxes: dict[int, list[Message]]) -> list[Message]:
        """Give messages to their sites, and return the replies in the order of the sites."""

    def site_results(self, wanted: Wanted) -> list[bytes]:
        """Return what the sites that are left leave, one with the wanted solution."""


def collected(parts: Sequence[tuple[Any, Any, Any]]) -> Rows:
    """Return tables with their labels and weights as one table."""
    tables = [
        check_array(
            X,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            order="C",
            accept_large_sparse=False,
            ensure_min_samples=0,
        )
        for X, _, _ in parts
    ]
    sparse = any(sp.issparse(table) for table in tables)
    X = sp.vstack(tables, format="csr") if sparse else np.vstack(tables)
    y = (
        None
        if parts[0][1] is None
        else np.concatenate([np.asarray(y).ravel() for _, y, _ in parts])
    )
    weights = None
    if parts[0][2] is not None:
        weights = np.concatenate([np.asarray(w, dtype=np.float64).ravel() for _, _, w in parts])
    for name, values in (("y", y), ("sample_weight", weights)):
        if values is not None and len(values) != X.shape[0]:
            raise ValueError(
                f"{name} has {len(values)} entries for {X.shape[0]} rows of X in its partitions"
            )
    if weights is not None and not (np.isfinite(weights) & (weights >= 0)).all():
        raise ValueError("sample_weight has to be finite and at least 0 at every row.")
    return Rows(X, y, weights)


def outline(rows: Rows, classes: bool) -> tuple[int, int, str, Any, Any]:
    """Return rows, columns and number format of a place, and its labels with their counts."""
    labels, counts = np.unique(rows.y, return_counts=True) if classes else (None, None)
    return rows.X.shape[0], rows.X.shape[1], rows.X.dtype.name, labels, counts


def prepared(rows: Rows, task: Task) -> tuple[Any, Any, Any]:
    """Return features, targets and weights as the compiled half takes them."""
    weights = rows.weights
    targets: Any = None
    if task.numbers:
        targets = np.ascontiguousarray(rows.y, dtype=np.float64)
    elif task.classes is not None and task.factors is not None:
        codes = np.searchsorted(task.classes, rows.y).astype(np.int64)
        targets = (codes, task.names)
        if (task.factors != 1).any():
            by_class = task.factors[codes]
            weights = by_class if weights is None else weights * by_class
    return to_core(rows.X), targets, weights


def aligned(values: Any) -> Any:
    """Return arrays, also those in tuples, with an alignment that a transfer may have lost."""
    if isinstance(values, tuple):
        return tuple(aligned(value) for value in values)
    if isinstance(values, np.ndarray):
        return np.require(values, requirements=["C_CONTIGUOUS", "ALIGNED"])
    return values


def counted(part: tuple[Any, Any, Any]) -> bytes:
    """Return counts and moments of the prepared rows of a place."""
    return _core.census(*aligned(part))


#: Sites that live in this process, by training and number.
_SITES: dict[tuple[str, int], _core.Site] = {}
_LOCK = threading.Lock()


def step(
    training: str,
    plan: bytes,
    place: tuple[int, int],
    part: tuple[Any, Any, Any],
    messages: list[Message],
    *,
    fresh: bool,
    means: tuple[int, float],
    seconds: float | None,
) -> list[Message]:
    """Give messages to the site `place` (its number and first row) in this process.

    A site that should be here and is not was lost with its process: it starts again. `means`
    are threads and megabytes of kernel values, `seconds` limit a solution.
    """
    with _LOCK:
        site = _SITES.get((training, place[0]))
    replies: list[Message] = []
    if site is None:
        features, targets, weights = aligned(part)
        site = _core.Site(plan, place, features, targets, weights, *means)
        with _LOCK:
            _SITES[training, place[0]] = site
        if not fresh:
            replies += site.join()
    return replies + site.receive(messages, seconds)


def left(training: str, index: int, wanted: Wanted | None) -> bytes | None:
    """Return what a site in this process leaves; `None` if it is not here."""
    with _LOCK:
        site = _SITES.get((training, index))
    return None if site is None else site.site_result(wanted)


def forget(training: str) -> None:
    """Drop the sites of a training."""
    with _LOCK:
        for key in [key for key in _SITES if key[0] == training]:
            del _SITES[key]


def run(
    plan: bytes,
    sites: Sites,
    max_time: float | None,
    on_round: Callable[[int, list[float], list[int]], None] | None,
) -> tuple[_core.Model, dict[str, Any]]:
    """Bring messages until the coordinator ends the training."""
    coordinator = _core.Coordinator(plan)
    deadline = None if max_time is None else time.monotonic() + max_time
    reported = 0
    messages = coordinator.start()
    while not coordinator.has_ended:
        if deadline is not None and time.monotonic() >= deadline:
            coordinator.stop()
            break
        to_sites: dict[int, list[Message]] = {}
        for message in messages:
            to_sites.setdefault(message[1], []).append(message)
        reports = to_sites.pop(-1, [])
        if to_sites:
            messages = reports + sites.exchange(to_sites)
        elif reports:
            messages = coordinator.receive(reports)
        else:
            messages = coordinator.tick()
        if on_round is not None:
            number, objectives, held = coordinator.last_round
            if objectives and number != reported:
                reported = number
                on_round(number, objectives, held)
    site_results = sites.site_results(coordinator.wanted)
    return coordinator.finish(site_results)
