"""Support vector machines on Spark: a data frame in, a fitted estimator out.

Every partition is a site of one barrier stage; the tasks exchange their messages through Spark's
``allGather``. What comes back is the ordinary estimator, fitted. ``pip install widemargin[spark]``
brings what is needed besides Java.
"""

from __future__ import annotations

import base64
import pickle
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone, is_classifier

from widemargin import _core
from widemargin._distributed import (
    Message,
    Rows,
    Sites,
    Wanted,
    collected,
    counted,
    outline,
    prepared,
    run,
)
from widemargin._partitioned import adopt, refuse, settings_of, task_of

try:
    from pyspark import BarrierTaskContext
except ImportError as error:
    raise ImportError("widemargin.spark needs PySpark: pip install 'widemargin[spark]'") from error

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["fit"]


def fit(
    estimator: Any,
    frame: Any,
    features: Sequence[str],
    label: str,
    *,
    weight: str | None = None,
    sites: int | None = None,
    topology: str = "full",
    schedule: str = "parallel",
) -> Any:
    """Train on the rows of a Spark data frame where they are.

    Parameters
    ----------
    estimator : SVC, SVR or LinearSVC
        A machine of :mod:`widemargin`; it is not changed.
    frame : pyspark.sql.DataFrame
        The rows.
    features : sequence of str
        Columns of numbers.
    label : str
        Column with the class or the number of every row.
    weight : str, default=None
        Column with factors on the weight of the rows.
    sites : int, default=None
        Partitions that the frame is divided into; as many tasks have to run at once. By default the
        frame stays as it is divided.
    topology, schedule : str
        As for :class:`widemargin.dask.SVC`.

    Returns
    -------
    estimator : object
        A fitted copy.
    """
    refuse(estimator)
    machine = clone(estimator)
    machine._validate_params()
    columns = [*features, label, *([] if weight is None else [weight])]
    chosen = frame.select(*columns)
    if sites is not None:
        chosen = chosen.repartition(sites)
    words = (pickle.dumps(machine), list(features), label, weight, topology, schedule)

    def site(batches: Iterator[Any]) -> Iterator[Any]:
        return _site(batches, *words)

    replies = chosen.mapInPandas(site, schema="result binary", barrier=True).collect()
    results = [bytes(row["result"]) for row in replies if row["result"]]
    model, report, rows = pickle.loads(results[0])
    # Sets the classes.
    task_of(machine, report.pop("outlines"))
    adopt(machine, _core.Model.from_bytes(model), report, rows, list(features), None)
    return machine


class _Stage(Sites):
    """The tasks of a barrier stage, as task 0 sees them."""

    def __init__(self, place: _Place, parts: int) -> None:
        self._place = place
        self._parts = parts

    def exchange(self, inboxes: dict[int, list[Message]]) -> list[Message]:
        """Give messages to their tasks and return all replies."""
        return [
            message for replies in self._place.turn(("messages", inboxes)) for message in replies
        ]

    def site_results(self, wanted: Wanted) -> list[bytes]:
        """Return what the sites leave."""
        return self._place.turn(("end", wanted))


class _Place:
    """One task with its site."""

    def __init__(self, context: Any, site: _core.Site, index: int) -> None:
        self._context = context
        self._site = site
        self._index = index

    def turn(self, order: Any) -> list[Any]:
        """Hear the order of task 0, do it, and return what all tasks did."""
        kind, content = _gather(self._context, order)[0]
        if kind == "messages":
            messages = content.get(self._index, [])
            return _gather(self._context, self._site.receive(messages))
        wanted = content if content[0] == self._index else None
        return _gather(self._context, self._site.site_result(wanted))

    def follow(self) -> None:
        """Do what task 0 orders until the end."""
        while True:
            replies = self.turn(None)
            if replies and isinstance(replies[0], bytes):
                return


def _gather(context: Any, value: Any) -> list[Any]:
    """Return the values of all tasks in their order."""
    texts = context.allGather(base64.b64encode(pickle.dumps(value)).decode())
    return [pickle.loads(base64.b64decode(text)) for text in texts]


def _site(
    batches: Iterator[Any],
    machine: bytes,
    features: list[str],
    label: str,
    weight: str | None,
    topology: str,
    schedule: str,
) -> Iterator[Any]:
    """Take part in a training with the rows of a partition; task 0 yields the result."""
    import pandas as pd

    estimator = pickle.loads(machine)
    context = BarrierTaskContext.get()
    index = context.partitionId()
    tables = [batch for batch in batches if len(batch)]
    table = pd.concat(tables) if tables else pd.DataFrame(columns=[*features, label, weight or ""])
    weights = None if weight is None else table[weight].to_numpy()
    rows: Rows = collected(
        [(table[features].to_numpy(np.float64), table[label].to_numpy(), weights)]
    )
    outlines = _gather(context, outline(rows, is_classifier(estimator)))
    task = task_of(estimator, outlines)
    part = prepared(rows, task)
    settings = settings_of(estimator, outlines)
    if estimator.random_state is None:
        settings = _gather(context, settings)[0]
    censuses = _gather(context, counted(part))
    plan = _core.training_plan(settings, task.names, censuses, topology, schedule)
    first = sum(count for count, *_ in outlines[:index])
    resources = (1, float(getattr(estimator, "cache_size", 0)))
    place = _Place(context, _core.Site(plan, (index, first), *part, *resources), index)
    if index != 0:
        place.follow()
        return
    model, report = run(plan, _Stage(place, len(outlines)), estimator.max_time, None)
    report["outlines"] = outlines
    count = sum(count for count, *_ in outlines)
    yield pd.DataFrame({"result": [pickle.dumps((model.to_bytes(), report, count))]})
