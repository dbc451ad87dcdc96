"""Several machines, or ways to use several kernels, on the same data."""

from __future__ import annotations

import html
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import check_random_state, check_X_y
from sklearn.utils.multiclass import check_classification_targets

from widemargin import _core
from widemargin._base import count_threads
from widemargin._multiple_kernel.kernels import kernel_texts
from widemargin._svc import class_name
from widemargin._tables import to_core

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


class Comparison:
    """What the machines of a comparison did, the best first.

    Attributes
    ----------
    machines : list of dict
        Of every machine its name, mean accuracy and confidence interval, the p-value of its
        difference to the best, accuracies of the folds, seconds and the settings chosen most often.
    folds, planned_folds : int
        Finished folds, and those that were asked for.
    mcnemar : tuple or None
        Rows that only the first of two machines gets right, those of the second, and the p-value.
    """

    def __init__(self, result: dict[str, Any]) -> None:
        self.machines: list[dict[str, Any]] = result["machines"]
        self.folds: int = result["folds"]
        self.planned_folds: int = result["planned_folds"]
        self.mcnemar: tuple[int, int, float] | None = result.get("mcnemar")

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.machines)

    def __len__(self) -> int:
        return len(self.machines)

    def __repr__(self) -> str:
        width = max([14, *(len(machine["machine"]) for machine in self.machines)])
        lines = [f"{'machine':{width}}  accuracy  interval           p       training  settings"]
        for place, machine in enumerate(self.machines):
            low, high = machine["interval"]
            p = "best " if place == 0 else f"{machine['p_value']:.3f}"
            lines.append(
                f"{machine['machine']:{width}}  {100 * machine['accuracy']:6.2f} %  "
                f"{100 * low:6.2f} to {100 * high:6.2f}  {p:>6}  "
                f"{machine['training_seconds']:7.3f} s  {machine['settings']}"
            )
        return "\n".join(lines)

    def _rows(self) -> list[dict[str, Any]]:
        """Return the table that is shown, a dictionary a line."""
        rows = []
        for place, machine in enumerate(self.machines):
            low, high = machine["interval"]
            rows.append(
                {
                    "machine": machine["machine"],
                    "accuracy": f"{100 * machine['accuracy']:.2f} %",
                    "interval": f"{100 * low:.2f} to {100 * high:.2f} %",
                    "p": "best" if place == 0 else f"{machine['p_value']:.3f}",
                    "training": f"{machine['training_seconds']:.3f} s",
                    "settings": machine["settings"],
                }
            )
        return rows

    def _repr_html_(self) -> str:
        return _html_table(self._rows())

    def to_frame(self) -> Any:
        """Return the machines as a pandas DataFrame.

        Returns
        -------
        frame : pandas.DataFrame
            A row a machine, the best first, with both ends of the interval in columns and
            the accuracies of the folds as lists.
        """
        return _frame([_flat(machine, "interval") for machine in self.machines], "machine")

    def plot(self, ax: Any = None) -> Any:
        """Draw the mean accuracies with their intervals and the accuracies of the folds.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; new ones by default.

        Returns
        -------
        ax : matplotlib Axes
            What was drawn on.
        """
        from widemargin.plot import _axes

        ax = _axes(ax)
        names = [machine["machine"] for machine in self.machines]
        places = np.arange(len(names))
        means = np.array([machine["accuracy"] for machine in self.machines])
        ends = np.array([machine["interval"] for machine in self.machines]).T
        folds = [machine["accuracies"] for machine in self.machines]
        ax.plot(
            np.concatenate([np.ravel(values) for values in folds]),
            np.repeat(places, [len(values) for values in folds]),
            ".",
            color="0.6",
            label="one fold",
        )
        ax.errorbar(
            means,
            places,
            xerr=np.abs(ends - means),
            fmt="o",
            capsize=3,
            label="mean and interval",
        )
        ax.set_yticks(places, names)
        ax.invert_yaxis()
        ax.set_xlabel("accuracy")
        ax.legend(loc="upper left", bbox_to_anchor=(1.02, 1.0))
        return ax


def _flat(row: dict[str, Any], *pairs: str) -> dict[str, Any]:
    """Return a row whose pairs are columns of their own."""
    flat: dict[str, Any] = {}
    for name, value in row.items():
        if name in pairs:
            flat[f"{name}_low"], flat[f"{name}_high"] = value
        else:
            flat[name] = value
    return flat


def _frame(rows: list[dict[str, Any]], index: str) -> Any:
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError("to_frame needs pandas: pip install pandas") from error
    return pd.DataFrame(rows).set_index(index)


def _html_table(rows: list[dict[str, Any]]) -> str:
    """Return the rows as HTML, whatever they are named."""

    def line(cells: Iterable[Any], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{html.escape(str(c))}</{tag}>" for c in cells) + "</tr>"

    head = line(rows[0], "th") if rows else ""
    body = "".join(line(row.values(), "td") for row in rows)
    return f"<table><thead>{head}</thead><tbody>{body}</tbody></table>"


class KernelComparison(Comparison):
    """What ways to use several kernels did, the best first, and what the learnt sum owes to each.

    Attributes
    ----------
    machines, folds, planned_folds, mcnemar
        As those of a comparison of machines.
    kernels : list of dict
        Of every kernel its learnt weight on all rows, its share of the squared length of the weight
        vectors ("contribution"), and intervals of both.
    C : float
        The penalty of these weights: that chosen most often.
    """

    def __init__(self, result: dict[str, Any]) -> None:
        super().__init__(result)
        self.kernels: list[dict[str, Any]] = result["kernels"]
        self.C: float = result["C"]

    def __repr__(self) -> str:
        lines = [super().__repr__()]
        if self.kernels:
            lines.append(
                f"\nkernel  weight  interval        share   interval        (C={self.C:g})"
            )
        for place, kernel in enumerate(self.kernels, 1):
            cells = []
            for name in ("weight", "contribution"):
                low, high = kernel[f"{name}_interval"]
                cells.append(f"{kernel[name]:6.3f}  {low:5.3f} to {high:5.3f}")
            lines.append(f"{place:6}  {'  '.join(cells)}  {kernel['kernel']}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        if not self.kernels:
            return super()._repr_html_()
        rows = []
        for kernel in self.kernels:
            row = {"kernel": kernel["kernel"]}
            for name, title in (("weight", "weight"), ("contribution", "share")):
                low, high = kernel[f"{name}_interval"]
                row[title] = f"{kernel[name]:.3f} ({low:.3f} to {high:.3f})"
            rows.append(row)
        caption = f"<p>weights of the kernels at C={self.C:g}, with their intervals</p>"
        return super()._repr_html_() + caption + _html_table(rows)

    def kernels_to_frame(self) -> Any:
        """Return weights and shares of the kernels as a pandas DataFrame.

        Returns
        -------
        frame : pandas.DataFrame
            A row a kernel; the ends of the intervals are columns of their own.
        """
        pairs = ("weight_interval", "contribution_interval")
        return _frame([_flat(kernel, *pairs) for kernel in self.kernels], "kernel")


def compare(
    X: Any,
    y: Any,
    *,
    machines: Iterable[str] = (),
    folds: int = 5,
    repeats: int = 2,
    confidence: float = 0.95,
    max_time: float | None = 50.0,
    n_jobs: int | None = None,
    random_state: Any = None,
) -> Comparison:
    """Compare support vector machines with the classical classifiers.

    Every machine is tuned inside each training part (features standardised, a few settings, at most
    800 rows), then trained on all of it; all see the same folds.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Rows.
    y : array-like of shape (n_samples,)
        Class labels.
    machines : iterable of str, default=()
        Of ``'svm-rbf'``, ``'svm-linear'``, ``'ls-svc'``, ``'fisher'``, ``'kernel-fisher'``,
        ``'gmm-bayes'``, ``'knn'``, ``'parzen'`` and ``'pnn'``, which none stands for, or any other
        classifier by its name on the command line, such as ``'nu-svc'``.
    folds, repeats : int
        Repeated stratified cross-validation.
    confidence : float, default=0.95
        Probability that an interval holds the accuracy.
    max_time : float or None, default=50.0
        Seconds after which the comparison ends with the folds finished by then.
    n_jobs : int, default=None
        Threads.
    random_state : int, RandomState instance or None, default=None
        Seeds the folds.

    Returns
    -------
    comparison : Comparison
        The machines, the best first; prints as a table.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import widemargin
    >>> X, y = load_iris(return_X_y=True)
    >>> result = widemargin.compare(X, y, machines=["fisher", "knn"], random_state=0)
    >>> [machine["machine"] for machine in result]
    ['fisher', 'knn']
    """
    X, y = check_X_y(X, y, dtype=[np.float64, np.float32], order="C")
    check_classification_targets(y)
    classes, codes = np.unique(y, return_inverse=True)
    seed = int(check_random_state(random_state).randint(np.iinfo("i").max))
    targets = (codes.astype(np.int64), [class_name(label) for label in classes])
    return Comparison(
        _core.compare(
            to_core(X),
            targets,
            list(machines),
            int(folds),
            int(repeats),
            float(confidence),
            max_time,
            count_threads(n_jobs),
            seed,
        )
    )


def compare_kernels(
    X: Any,
    y: Any,
    kernels: Any = ("linear", "rbf"),
    *,
    views: Any = None,
    machine: str = "c-svc",
    C: Any = (1.0, 10.0, 100.0),
    subsets: bool = False,
    bootstrap: int = 50,
    folds: int = 5,
    repeats: int = 2,
    confidence: float = 0.95,
    max_time: float | None = 50.0,
    n_jobs: int | None = None,
    random_state: Any = None,
) -> KernelComparison:
    """Compare ways to use several kernels.

    Learnt weights ("nonnegative", "signed" up to 1000 training rows, "lp=2"), equal ones
    ("uniform"), those of rules ("alignment" with the labels, "margin" as EasyMKL's), every kernel
    alone ("kernel 1", ...), the best of them ("best-single"), a vote of all ("voting") and, for
    views, their columns side by side ("concatenation", "concatenation-zscore",
    "concatenation-unit-block"). All see the same folds; penalties, the best kernel and the best
    subset are chosen by cross-validation inside every training part.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features) or list of arrays
        Rows, or Gram matrices with ``kernels="precomputed"``.
    y : array-like of shape (n_samples,)
        Class labels.
    kernels, views
        As `MultipleKernelSVC` takes them, functions excepted; an expression may stand for a grid,
        such as ``"rbf(gamma=2^-3:2^3:7)"`` or ``"poly(degree=1:4, coef0=1)"``.
    machine : {'c-svc', 'cs'}, default='c-svc'
        The machine that uses the kernels.
    C : float or iterable of float, default=(1.0, 10.0, 100.0)
        Penalties to choose from, in the units of the command line.
    subsets : bool, default=False
        Whether also every subset of at most 8 kernels is tried, and the best one ("best-subset").
    bootstrap : int, default=50
        Samples of the rows drawn with replacement for the intervals of weights; 0 for no weights.
    folds, repeats : int
        Repeated stratified cross-validation.
    confidence : float, default=0.95
        Probability that an interval holds the accuracy.
    max_time : float or None, default=50.0
        Seconds after which the comparison ends with the folds finished by then.
    n_jobs : int, default=None
        Threads.
    random_state : int, RandomState instance or None, default=None
        Seeds the folds and the samples.

    Returns
    -------
    comparison : KernelComparison
        The ways, the best first; prints as two tables.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import widemargin
    >>> X, y = load_iris(return_X_y=True)
    >>> kernels = ["linear", {"kernel": "rbf", "gamma": 0.1}]
    >>> found = widemargin.compare_kernels(X, y, kernels, C=10, random_state=0, bootstrap=10)
    >>> names = {way["machine"] for way in found}
    >>> {"nonnegative", "uniform", "best-single", "voting"} <= names, len(found.kernels)
    (True, 2)
    """
    table, texts = kernel_texts(kernels, views, X)
    table, y = check_X_y(table, y, dtype=[np.float64, np.float32], order="C", accept_sparse="csr")
    check_classification_targets(y)
    classes, codes = np.unique(y, return_inverse=True)
    seed = int(check_random_state(random_state).randint(np.iinfo("i").max))
    targets = (codes.astype(np.int64), [class_name(label) for label in classes])
    penalties = [float(C)] if isinstance(C, Real) else [float(c) for c in C]
    return KernelComparison(
        _core.compare_kernels(
            to_core(table),
            targets,
            machine,
            ", ".join(texts),
            penalties,
            bool(subsets),
            int(bootstrap),
            int(folds),
            int(repeats),
            float(confidence),
            max_time,
            count_threads(n_jobs),
            seed,
        )
    )
