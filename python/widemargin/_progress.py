"""The events of a training: for callbacks and for `verbose`."""

from __future__ import annotations

import html
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

#: Seconds between two lines of progress.
_LINE_PERIOD = 0.5


@dataclass(frozen=True)
class Progress:
    """Where a training stands; what every callback gets.

    Attributes
    ----------
    problem : int
        Two-class problems (or folds) that have ended before.
    problems : int
        Their number in this stage.
    iteration : int
        Working sets solved so far in the current problem.
    violation : float
        Largest violation of the optimality conditions; training ends when it is `tol`.
    objective : float
        Dual objective reached.
    active : int
        Variables not set aside by shrinking.
    elapsed : float
        Seconds since the training began.
    """

    problem: int
    problems: int
    iteration: int
    violation: float
    objective: float
    active: int
    elapsed: float


#: A callback; a true return value ends the training with the best model so far.
Callback = Callable[[Progress], Any]


class History:
    """A callback that keeps every event.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import SVC, History
    >>> history = History()
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SVC(callbacks=history).fit(X, y)
    >>> history.steps[-1].violation < 1
    True
    """

    steps: list[Progress]

    def __init__(self) -> None:
        self.steps = []

    def __call__(self, progress: Progress) -> None:
        """Keep one step."""
        self.steps.append(progress)

    def __deepcopy__(self, memo: dict[int, Any]) -> History:
        """Return itself, so that clones of an estimator report to the same history."""
        return self


class Monitor:
    """Hands events of the compiled half to callbacks and to the standard output."""

    def __init__(self, verbose: bool | int, callbacks: Iterable[Callback]) -> None:
        self._verbose = bool(verbose)
        self._callbacks = list(callbacks)
        self._started = time.monotonic()
        self._printed = self._started
        self._problem = 0
        self._problems = 1
        self._notebook = _Notebook() if self._verbose and in_notebook() else None

    @property
    def listens(self) -> bool:
        """Whether anybody listens."""
        return self._verbose or bool(self._callbacks)

    def __call__(self, kind: str, payload: tuple[Any, ...]) -> bool:
        """Take one event; a true return value stops the training."""
        if kind == "stage":
            self._problem, self._problems = 0, payload[1]
        elif kind == "step":
            self._problem += 1
        elif kind == "iteration":
            elapsed = time.monotonic() - self._started
            iteration, violation, objective, active = payload
            progress = Progress(
                self._problem, self._problems, iteration, violation, objective, active, elapsed
            )
            if self._verbose:
                self._print(progress)
            # Every callback is called, also when an earlier one has requested a stop.
            stops = [bool(callback(progress)) for callback in self._callbacks]
            return any(stops)
        return False

    def _print(self, progress: Progress) -> None:
        now = time.monotonic()
        if now - self._printed >= _LINE_PERIOD:
            self._printed = now
            line = (
                f"{progress.elapsed:.1f} s, problem {progress.problem + 1} of "
                f"{progress.problems}: violation {progress.violation:.3g}, objective "
                f"{progress.objective:.6g}, {progress.active} active"
            )
            if self._notebook is not None:
                self._notebook.show(line, progress.problem, progress.problems)
            else:
                print(f"[widemargin] {line}", flush=True)

    def end(self, training: dict[str, Any], support: int) -> None:
        """Print how the training ended."""
        if self._verbose:
            line = (
                f"{training['status']}: {support} support vectors, objective "
                f"{training['dual']:.6g}, gap {training['gap']:.2g}, violation "
                f"{training['violation']:.2g}, {training['iterations']} steps, "
                f"{time.monotonic() - self._started:.3g} s"
            )
            if self._notebook is not None:
                self._notebook.show(line, self._problems, self._problems)
            else:
                print(f"[widemargin] {line}", flush=True)


def in_notebook() -> bool:
    """Tell whether output goes to cells of a notebook."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and getattr(shell, "kernel", None) is not None


class _Notebook:
    """One output of a notebook's cell that every line of progress replaces."""

    def __init__(self) -> None:
        self._handle: Any = None

    def show(self, line: str, done: int, total: int) -> None:
        from IPython.display import HTML, display

        bar = f"<progress value='{done}' max='{total}'></progress> " if total > 1 else ""
        output = HTML(f"<div>{bar}widemargin: {html.escape(line)}</div>")
        if self._handle is None:
            self._handle = display(output, display_id=True)
        else:
            self._handle.update(output)


def as_callbacks(callbacks: Callback | Iterable[Callback] | None) -> list[Callback]:
    """Return the callbacks as a list."""
    if callbacks is None:
        return []
    return [callbacks] if callable(callbacks) else list(callbacks)
