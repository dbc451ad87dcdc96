"""Estimators that train where the rows are; derived classes say by which engine."""

from __future__ import annotations

from dataclasses import field
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval

from widemargin import _core
from widemargin._base import BaseMachine, BaseTrained, checks_parameters
from widemargin._distributed import Sites, Task, run
from widemargin._parameters import estimator

if TYPE_CHECKING:
    from typing_extensions import Self

M = TypeVar("M", bound=BaseEstimator)

#: Parameters that estimators of this kind may have beside those of the ordinary ones.
PLACES: dict[str, list[Any]] = {
    "client": [object],
    "topology": [str],
    "schedule": [str],
    "sites": [Interval(Integral, 1, None, closed="left"), None],
}


class Places(Protocol):
    """The rows of a training, as an engine holds them; left at the end of a `with` block."""

    #: Names of the features and scipy's kind of sparse table, if there are.
    feature_names: list[str] | None
    sparse_kind: str | None

    def __enter__(self) -> Self:
        """Begin."""

    def __exit__(self, *error: object) -> None:
        """End."""

    def outlines(self, classes: bool) -> list[Any]:
        """Return rows, columns, number format and labels of every place."""

    def census(self, task: Task) -> list[bytes]:
        """Prepare the rows of every place, and return what was counted of them."""

    def start(self, plan: bytes) -> Sites:
        """Make the sites of a training."""


@estimator
class ClusterParameters:
    """A cluster and the number of its sites."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = PLACES

    client: Any = field(default=None, kw_only=False)
    sites: int | None = None


class Partitioned(ClusterParameters, BaseTrained):
    """A machine whose rows are at several places."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = PLACES

    # Parameters that a machine may lack.
    topology: str = "full"
    schedule: str = "parallel"

    @checks_parameters
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Train on the rows where they are.

        Parameters
        ----------
        X : collection of shape (n_samples, n_features)
            Rows in partitions.
        y : collection of shape (n_samples,)
            Class labels or numbers, in the same partitions.
        sample_weight : collection of shape (n_samples,), default=None
            Factors on the weight of the rows, at least 0.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        refuse(self)
        with self._places(X, y, sample_weight) as places:
            train(self, places, self.topology, self.schedule)
        return self

    def _places(self, X: Any, y: Any, sample_weight: Any) -> Places:
        raise NotImplementedError

    # A client cannot be copied, nor kept in a file.

    def __sklearn_clone__(self) -> Self:
        """Return an unfitted copy with the same client."""
        return copy_of(self)

    def __getstate__(self) -> dict[str, Any]:
        """Leave the client out."""
        return {**super().__getstate__(), "client": None}


def copy_of(machine: M) -> M:
    """Return an unfitted copy of an estimator with the same client."""
    copies = {
        name: value if name == "client" else clone(value, safe=False)
        for name, value in machine.get_params(deep=False).items()
    }
    copy: M = type(machine)(**copies)
    return copy


def refuse(machine: Any) -> None:
    """Refuse what needs all rows at one place."""
    name = type(machine).__name__
    if machine.warm_start:
        raise ValueError(f"{name} has no warm_start: trainings on a cluster start anew")
    if machine.callbacks:
        raise ValueError(f"{name} has no callbacks; verbose=True prints every round")
    if not isinstance(machine, BaseMachine):
        return
    if callable(machine.kernel) or machine.kernel == "precomputed":
        raise ValueError(f"{name} needs a kernel of features by name, got {machine.kernel!r}")
    if machine._calibration_method() is not None:
        raise ValueError(
            f"{name} has no probabilities: calibrate the fitted model on rows at one place"
        )


def task_of(machine: Any, outlines: list[Any]) -> Task:
    """Return what places need to prepare their rows, from what they told of them."""
    if not is_classifier(machine):
        return Task(None, None, [], True)
    # Labels of an empty place have no type.
    labels = np.concatenate([labels for *_, labels, counts in outlines if len(counts)])
    counts = np.concatenate([counts for *_, counts in outlines])
    # Only how often each label occurs matters.
    _, names = machine._targets(np.repeat(labels, counts))
    # Linear machines are told the factors as a parameter.
    factors = np.ones(len(names))
    if isinstance(machine, BaseMachine):
        factors = np.asarray(machine.class_weight_, dtype=np.float64)
    return Task(machine.classes_, factors, names, False)


def settings_of(machine: Any, outlines: list[Any]) -> _core.Settings:
    """Return the settings of a machine for the rows of all places."""
    formats = {(columns, name) for _, columns, name, *_ in outlines}
    if len(formats) > 1:
        raise ValueError(f"partitions differ in their columns or number format: {formats}")
    (columns, name) = formats.pop()
    seed = int(check_random_state(machine.random_state).randint(np.iinfo("i").max))
    settings: _core.Settings = machine._settings(np.empty((0, columns), dtype=name), seed)
    return settings


def train(machine: Any, places: Places, topology: str, schedule: str) -> None:
    """Train a machine on the rows of all places."""
    outlines = places.outlines(is_classifier(machine))
    task = task_of(machine, outlines)
    settings = settings_of(machine, outlines)
    plan = _core.training_plan(settings, task.names, places.census(task), topology, schedule)
    report_round = _print_round if machine.verbose else None
    model, report = run(plan, places.start(plan), machine.max_time, report_round)
    rows = sum(rows for rows, *_ in outlines)
    adopt(machine, model, report, rows, places.feature_names, places.sparse_kind)


def adopt(
    machine: Any,
    model: _core.Model,
    report: dict[str, Any],
    rows: int,
    names: list[str] | None,
    sparse: str | None,
) -> None:
    """Make an estimator fitted."""
    machine.report_ = report
    machine.n_features_in_ = model.features
    if names is not None:
        machine.feature_names_in_ = np.asarray(names, dtype=object)
    if isinstance(machine, BaseMachine):
        machine.shape_fit_ = (rows, model.features)
        machine._rows_fit = None
        machine._sparse_kind = sparse
        iterations = int(model.training.get("iterations", 0))
        machine._adopt(model, np.array([iterations], dtype=np.int64))
    else:
        machine._adopt(model)
    machine._warn([])


def _print_round(number: int, objectives: list[float], held: list[int]) -> None:
    """Print the best objective and the rows of every site."""
    known = [value for value in objectives if np.isfinite(value)]
    best = f"{max(known):.6g}" if known else "none"
    print(f"round {number}: best objective {best}, rows {' '.join(map(str, held))}")


def sparse_container(meta: Any) -> str | None:
    """Return which of scipy's sparse tables a block is, if it is one."""
    if not sp.issparse(meta):
        return None
    return "csr_matrix" if isinstance(meta, sp.spmatrix) else "csr_array"
