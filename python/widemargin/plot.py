"""Pictures of trained machines; needs matplotlib.

Displays follow scikit-learn's: ``from_estimator`` draws and returns an object that keeps the axes
and the artists.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.metrics import ConfusionMatrixDisplay
from sklearn.utils.validation import check_is_fitted

from widemargin._progress import History, Progress, as_callbacks

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = [
    "BoundDisplay",
    "ConfusionMatrixDisplay",
    "ConvergenceDisplay",
    "MarginDisplay",
    "OutlierDisplay",
    "SitesDisplay",
]


def _axes(ax: Any) -> Any:
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            "widemargin.plot needs matplotlib: pip install widemargin[plot]"
        ) from error
    return plt.subplots()[1] if ax is None else ax


def _responses(estimator: Any, grid: Any) -> tuple[Any, Any]:
    """Return what colours the regions, and decision values if there is one a row."""
    if hasattr(estimator, "classes_"):
        classes = np.searchsorted(estimator.classes_, estimator.predict(grid))
        two = len(estimator.classes_) == 2
        return classes, estimator.decision_function(grid) if two else None
    if hasattr(estimator, "decision_function"):
        values = estimator.decision_function(grid)
        if hasattr(estimator, "labels_"):
            return estimator.predict(grid), values if values.ndim == 1 else None
        return values, values
    return estimator.predict(grid), None


class _Display:
    """A picture in one pair of axes."""

    def plot(self, *, ax: Any = None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.

        Returns
        -------
        self : object
            The display.
        """
        self.ax_ = _axes(ax)
        self._draw(self.ax_)
        return self

    def _draw(self, ax: Any) -> None:
        raise NotImplementedError


class _TrainingDisplay(_Display):
    """What a :class:`widemargin.History` keeps of a training."""

    def __init__(self, steps: Iterable[Progress]) -> None:
        self.steps = list(steps)

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any = None, *, ax: Any = None, **fit_params: Any
    ) -> Self:
        """Train a copy of an estimator and draw how it goes.

        Parameters
        ----------
        estimator : object
            A machine with `callbacks`; itself it is left alone.
        X, y : array-like
            What to train on.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.
        **fit_params : dict
            Passed to `fit`.

        Returns
        -------
        display : object
            The picture.
        """
        history = History()
        copy = clone(estimator)
        copy.set_params(callbacks=[*as_callbacks(estimator.callbacks), history])
        copy.fit(X, y, **fit_params)
        return cls._of(history.steps, estimator).plot(ax=ax)

    @classmethod
    def _of(cls, steps: list[Progress], estimator: Any) -> Self:
        return cls(steps)


class MarginDisplay:
    """Decision regions of a machine with two features, their margins and the support vectors.

    Parameters
    ----------
    xx0, xx1 : ndarray of shape (resolution, resolution)
        The grid.
    response : ndarray of shape (resolution, resolution)
        Class number, prediction or decision value at every point.
    values : ndarray of shape (resolution, resolution) or None
        Decision values; None with more than two classes.
    levels : list of float
        Values at which lines are drawn: the boundary 0, and the margins -1 and 1 of classifiers.
    support_vectors : ndarray of shape (n_SV, 2)
        The support vectors.
    X : ndarray of shape (n_samples, 2)
        The rows.
    y : ndarray of shape (n_samples,) or None
        A number or class number for every row.
    names : tuple of str
        Names of the two features.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import SVC
    >>> from widemargin.plot import MarginDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SVC().fit(X[:100, :2], y[:100])
    >>> display = MarginDisplay.from_estimator(model, X[:100, :2], y[:100])
    >>> display.response.shape
    (200, 200)
    """

    def __init__(
        self,
        *,
        xx0: Any,
        xx1: Any,
        response: Any,
        values: Any,
        levels: list[float],
        support_vectors: Any,
        X: Any,
        y: Any,
        names: tuple[str, str],
    ) -> None:
        self.xx0 = xx0
        self.xx1 = xx1
        self.response = response
        self.values = values
        self.levels = levels
        self.support_vectors = support_vectors
        self.X = X
        self.y = y
        self.names = names

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any = None,
        *,
        resolution: int = 200,
        ax: Any = None,
    ) -> Self:
        """Draw a fitted estimator.

        Parameters
        ----------
        estimator : SVC, NuSVC, SVR, NuSVR, OneClassSVM, SVDD or MaxMarginClustering
            Trained on two features.
        X : array-like of shape (n_samples, 2)
            Rows to show; the picture covers them.
        y : array-like of shape (n_samples,), default=None
            What to colour them by; clusters are coloured by themselves where nothing is given.
        resolution : int, default=200
            Points of the grid along each axis.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.

        Returns
        -------
        display : MarginDisplay
            The picture.
        """
        check_is_fitted(estimator)
        names = tuple(str(name) for name in getattr(X, "columns", ("feature 0", "feature 1")))
        X = np.asarray(X, dtype=np.float64)
        if X.ndim != 2 or X.shape[1] != 2 or estimator.n_features_in_ != 2:
            raise ValueError(
                "expected an estimator trained on 2 features, found "
                f"{estimator.n_features_in_} and rows of {X.shape[-1]}"
            )
        margin = 0.08 * (X.max(axis=0) - X.min(axis=0)) + 1e-9
        sides = [
            np.linspace(low, high, resolution)
            for low, high in zip(X.min(axis=0) - margin, X.max(axis=0) + margin, strict=True)
        ]
        xx0, xx1 = np.meshgrid(*sides)
        grid = np.column_stack([xx0.ravel(), xx1.ravel()])
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "X does not have valid feature names")
            response, values = _responses(estimator, grid)
        if hasattr(estimator, "classes_") and y is not None:
            y = np.searchsorted(estimator.classes_, y)
        clusters = hasattr(estimator, "labels_")
        if clusters and y is None:
            y = estimator.predict(X)
        vectors: Any = getattr(estimator, "support_vectors_", np.zeros((0, 2)))
        display = cls(
            xx0=xx0,
            xx1=xx1,
            response=response.reshape(xx0.shape),
            values=None if values is None else values.reshape(xx0.shape),
            levels=[-1, 0, 1] if hasattr(estimator, "classes_") or clusters else [0],
            support_vectors=vectors.toarray() if sp.issparse(vectors) else vectors,
            X=X,
            y=None if y is None else np.asarray(y),
            names=(names[0], names[1]),
        )
        return display.plot(ax=ax)

    def plot(self, *, ax: Any = None, cmap: str = "viridis") -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.
        cmap : str, default='viridis'
            Colours of regions and rows.

        Returns
        -------
        self : MarginDisplay
            The display.
        """
        self.ax_ = ax = _axes(ax)
        self.regions_ = ax.pcolormesh(
            self.xx0, self.xx1, self.response, cmap=cmap, alpha=0.3, shading="auto"
        )
        if self.values is not None:
            self.margins_ = ax.contour(
                self.xx0,
                self.xx1,
                self.values,
                levels=self.levels,
                colors="k",
                linestyles=["-" if level == 0 else "--" for level in self.levels],
                linewidths=1,
            )
        self.rows_ = ax.scatter(
            *self.X.T, c=self.y, cmap=cmap, s=18, edgecolors="k", linewidths=0.3
        )
        if self.support_vectors.size:
            self.support_ = ax.scatter(
                *self.support_vectors.T,
                s=60,
                facecolors="none",
                edgecolors="k",
                linewidths=0.9,
                label=f"{len(self.support_vectors)} support vectors",
            )
            ax.legend(loc="best")
        ax.set(xlabel=self.names[0], ylabel=self.names[1])
        return self


class ConvergenceDisplay(_TrainingDisplay):
    """How the violation of the optimality conditions falls while a machine trains.

    Parameters
    ----------
    steps : iterable of Progress
        What a :class:`widemargin.History` has kept.
    tol : float, default=None
        The tolerance aimed at, drawn as a line.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import SVC
    >>> from widemargin.plot import ConvergenceDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> display = ConvergenceDisplay.from_estimator(SVC(), X, y)
    >>> len(display.steps) > 0
    True
    """

    def __init__(self, steps: Iterable[Progress], *, tol: float | None = None) -> None:
        super().__init__(steps)
        self.tol = tol

    @classmethod
    def _of(cls, steps: list[Progress], estimator: Any) -> Self:
        return cls(steps, tol=estimator.tol)

    def _draw(self, ax: Any) -> None:
        problems = sorted({step.problem for step in self.steps})
        self.lines_ = [
            ax.plot(
                [step.elapsed for step in self.steps if step.problem == problem],
                [step.violation for step in self.steps if step.problem == problem],
                marker=".",
                label=f"problem {problem + 1}",
            )[0]
            for problem in problems
        ]
        if self.tol is not None:
            ax.axhline(self.tol, color="k", linestyle="--", linewidth=1, label="tol")
        ax.set(xlabel="seconds", ylabel="violation", yscale="log")
        if len(problems) <= 10:
            ax.legend(loc="best")


class BoundDisplay(_TrainingDisplay):
    """How value and proven bound of a relaxation close while it is solved.

    Parameters
    ----------
    steps : iterable of Progress
        What a :class:`widemargin.History` has kept of a search with a bound: its ``objective`` is
        the bound, its ``violation`` the relative gap to the value.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from widemargin import MaxMarginClustering
    >>> from widemargin.plot import BoundDisplay
    >>> X, _ = make_blobs(40, centers=[[-3, 0], [3, 0]], random_state=0)
    >>> display = BoundDisplay.from_estimator(MaxMarginClustering(gamma=0.1), X)
    >>> bool((display.bounds <= display.values).all())
    True
    """

    def __init__(self, steps: Iterable[Progress]) -> None:
        super().__init__(steps)
        # Relative to the value; before there is one the gap is infinite.
        gaps = np.array([step.violation for step in self.steps])
        best = np.maximum.accumulate(np.array([step.objective for step in self.steps]))
        self.bounds = best
        with np.errstate(divide="ignore", invalid="ignore"):
            self.values = np.where(gaps < 1, best / (1 - gaps), np.inf)

    def _draw(self, ax: Any) -> None:
        rounds = np.arange(1, len(self.steps) + 1)
        known = np.isfinite(self.values)
        (self.value_line_,) = ax.plot(rounds[known], self.values[known], "v-", label="value")
        (self.bound_line_,) = ax.plot(rounds, self.bounds, "^-", label="proven bound")
        ax.set(xlabel="round", ylabel="objective")
        ax.legend(loc="best")


class OutlierDisplay(_Display):
    """Training rows in the order of their outlier scores, those that were given up marked.

    Parameters
    ----------
    scores : array-like of shape (n_samples,)
        Outlier scores, larger for rows further on the wrong side.
    kept : array-like of bool of shape (n_samples,)
        Rows that count.

    Attributes
    ----------
    order : ndarray of shape (n_samples,)
        Rows by falling score.
    ax_ : matplotlib Axes
        Where it was drawn.

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin import RobustSVC
    >>> from widemargin.plot import OutlierDisplay
    >>> X = np.r_[np.linspace(-3, -2, 10), np.linspace(2, 3, 10), 9.0][:, None]
    >>> y = np.r_[np.zeros(10), np.ones(10), 0]
    >>> model = RobustSVC(loss="trimmed", keep=0.95, kernel="linear", random_state=0).fit(X, y)
    >>> display = OutlierDisplay.from_estimator(model)
    >>> int(display.order[0])
    20
    """

    def __init__(self, scores: Any, kept: Any) -> None:
        self.scores = np.asarray(scores, dtype=np.float64)
        self.kept = np.asarray(kept, dtype=bool)
        self.order = np.argsort(-self.scores, kind="stable")

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> Self:
        """Draw the training rows of a fitted estimator.

        Parameters
        ----------
        estimator : RobustSVC or LabelOutlierDetector
            With ``outlier_scores_``.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.

        Returns
        -------
        display : OutlierDisplay
            The picture.
        """
        check_is_fitted(estimator)
        kept = estimator.kept_ if hasattr(estimator, "kept_") else estimator.labels_ > 0
        return cls(estimator.outlier_scores_, kept).plot(ax=ax)

    def _draw(self, ax: Any) -> None:
        places = np.arange(1, len(self.order) + 1)
        scores, kept = self.scores[self.order], self.kept[self.order]
        self.kept_rows_ = ax.scatter(places[kept], scores[kept], s=14, label="kept")
        given_up = ~kept
        self.given_up_ = ax.scatter(
            places[given_up], scores[given_up], s=28, marker="x", label="given up"
        )
        ax.axhline(0, color="k", linestyle="--", linewidth=1)
        ax.set(xlabel="rank", ylabel="outlier score")
        ax.legend(loc="best")


class SitesDisplay:
    """What every site of a training at several places did, round by round.

    On the left how far the objective of every site is from the best of all, on the right how many
    rows every site holds.

    Parameters
    ----------
    report : dict
        ``report_`` of an estimator of :mod:`widemargin.dask`, or ``"distribution"`` of what
        ``widemargin train --sites N --json`` prints.

    Attributes
    ----------
    axes_ : ndarray of matplotlib Axes
        Where it was drawn.

    Examples
    --------
    >>> from widemargin.plot import SitesDisplay
    >>> report = {"objectives": [[1.0, 2.0], [3.0, 3.0]], "held": [[5, 5], [7, 8]]}
    >>> SitesDisplay(report).plot().distances.tolist()
    [[2.0, 1.0], [0.0, 0.0]]
    """

    def __init__(self, report: dict[str, Any]) -> None:
        self.report = report
        objectives = [
            [-np.inf if value is None else value for value in values]
            for values in report["objectives"]
        ]
        self.objectives = np.asarray(objectives, dtype=np.float64)
        self.held = np.asarray(report["held"], dtype=np.int64)
        best = self.objectives.max(initial=-np.inf)
        self.distances = best - self.objectives

    def plot(self, *, axes: Any = None) -> Self:
        """Draw.

        Parameters
        ----------
        axes : pair of matplotlib Axes, default=None
            Where to draw; a new figure by default.

        Returns
        -------
        display : SitesDisplay
            Itself.
        """
        import matplotlib.pyplot as plt

        if axes is None:
            _, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
        rounds = np.arange(1, len(self.objectives) + 1)
        for site in range(self.objectives.shape[1]):
            axes[0].plot(rounds, self.distances[:, site], marker=".", label=f"site {site}")
            axes[1].plot(rounds, self.held[:, site], marker=".")
        axes[0].set_yscale("symlog", linthresh=1e-9)
        axes[0].set(xlabel="round", ylabel="best objective − objective of the site")
        axes[1].set(xlabel="round", ylabel="rows of the site")
        if self.objectives.shape[1] <= 10:
            axes[0].legend()
        self.axes_ = np.asarray(axes)
        return self
