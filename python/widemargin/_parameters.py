"""Which parameters the estimators take: scikit-learn's constraints, and those of our own."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, TypeVar, cast

from sklearn.utils._param_validation import Hidden, Interval, InvalidParameterError, StrOptions

from widemargin import _core

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:

    def dataclass_transform(**_: Any) -> Any:
        """Say nothing to type checkers, which alone want to know."""
        return lambda decorator: decorator


F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T", bound=type)

#: Names that scikit-learn's estimators take, and those of our own.
KERNELS = ("linear", "poly", "rbf", "sigmoid", "precomputed", "laplacian", "chi2", "cosine")

#: The all-in-one machines; "dgi" is another name of "adm".
MACHINES = ("ww", "cs", "llw", "adm", "dgi", "atm", "ats", "mmr", "ova", "reinforced")

#: How online machines choose the variables of a step.
STRATEGIES = ("blocks", "all", "random-all", "random-pattern", "whole-pattern", "larank")

_SHARED: dict[str, list[Any]] = {
    "kernel": [str, callable],
    "degree": [Interval(Integral, 0, None, closed="left")],
    "gamma": [
        StrOptions({"scale", "auto", "median", "jaakkola", "jaakkola-nearest"}),
        Interval(Real, 0.0, None, closed="left"),
    ],
    "coef0": [Interval(Real, None, None, closed="neither")],
    "tol": [Interval(Real, 0.0, None, closed="neither")],
    "shrinking": ["boolean"],
    "cache_size": [Interval(Real, 0, None, closed="neither")],
    "verbose": ["verbose"],
    "max_iter": [Interval(Integral, -1, None, closed="left")],
    "precision": [StrOptions({"auto", "single", "double"})],
    "max_time": [Interval(Real, 0, None, closed="neither"), None],
    "warm_start": ["boolean"],
    "callbacks": [callable, list, tuple, None],
    "n_jobs": [Integral, None],
}

_OWN: dict[str, list[Any]] = {
    "C": [Interval(Real, 0.0, None, closed="right")],
    "nu": [Interval(Real, 0.0, 1.0, closed="right")],
    "epsilon": [Interval(Real, 0.0, None, closed="left")],
    "probability": ["boolean", Hidden(StrOptions({"deprecated"}))],
    "class_weight": [StrOptions({"balanced"}), dict, None],
    "random_state": ["random_state"],
    "decision_function_shape": [StrOptions({"ovr", "ovo"})],
    "break_ties": ["boolean"],
    "multi_class": [StrOptions({"ovo", "ovr", "dag", "ecoc"})],
    "calibration": [StrOptions({"sigmoid", "isotonic"})],
    "machine": [StrOptions(set(MACHINES))],
    "bias": ["boolean"],
    "epochs": [Interval(Integral, 1, None, closed="left"), StrOptions({"inf"})],
    "strategy": [StrOptions(set(STRATEGIES))],
    "budget": [Interval(Integral, 1, None, closed="left"), None],
    "shuffle": ["boolean"],
    "code": ["array-like", None],
    "decoding": [StrOptions({"hinge", "hamming", "exponential", "linear"})],
    "steps": [StrOptions({"adaptive"}), tuple, list],
    "multiplier": [Interval(Integral, 1, None, closed="left"), None],
    "clock": [StrOptions({"counted", "wall"})],
    "rate_step": [Interval(Real, 0.0, 1.0, closed="right")],
    "least_share": [Interval(Real, 0.0, 0.333, closed="both")],
    "stop_gap": [Interval(Real, 0.0, None, closed="neither"), None],
    "target_dual": [Interval(Real, None, None, closed="neither"), None],
    "finish": ["boolean"],
    "rate": [Interval(Real, 0.0, 1.999, closed="right")],
    "fit_intercept": ["boolean"],
    "dual": ["boolean", StrOptions({"auto"})],
    "penalty": [StrOptions({"l1", "l2"})],
}

#: Losses of classifiers and of regressors.
HINGE: dict[str, list[Any]] = {"loss": [StrOptions({"hinge", "squared_hinge"})]}
TUBE: dict[str, list[Any]] = {
    "loss": [StrOptions({"epsilon_insensitive", "squared_epsilon_insensitive"})]
}


def stores_parameters(constructor: F) -> F:
    """Make a constructor store each parameter, unchanged, under its own name.

    That is all scikit-learn lets a constructor do. Its body stays empty, and the class or a base
    of it declares the types of the attributes.
    """
    positional = constructor.__code__.co_varnames[1 : constructor.__code__.co_argcount]

    @functools.wraps(constructor)
    def store(self: Any, *args: Any, **kwargs: Any) -> None:
        constructor(self, *args, **kwargs)  # Python's own errors for arguments that do not fit
        defaults = constructor.__defaults__ or ()
        values = {
            **dict(zip(positional[len(positional) - len(defaults) :], defaults, strict=True)),
            **(constructor.__kwdefaults__ or {}),
            **dict(zip(positional, args, strict=False)),
            **kwargs,
        }
        for name, value in values.items():
            setattr(self, name, value)

    return cast("F", store)


@dataclass_transform(eq_default=False, kw_only_default=True, field_specifiers=(field,))
def estimator(cls: T) -> T:
    """Make a keyword parameter of each field of an estimator, of its bases as of its own.

    The constructor stores each, unchanged, under its own name, which is all scikit-learn lets one
    do. What it may be is said here, unless the class or a base has constraints of its own.
    """
    made: Any = dataclass(eq=False, repr=False, kw_only=True)(cls)
    known = {**_SHARED, **_OWN}
    for base in reversed(cls.__mro__):
        known.update(vars(base).get("_parameter_constraints", {}))
    made._parameter_constraints = {each.name: known[each.name] for each in fields(made)}
    # Dataclasses begin with the parameters of the last base; readers look for those of the class.
    declared = [name for base in cls.__mro__ for name in inspect.get_annotations(base)]
    signature = inspect.signature(made.__init__)
    ordered = sorted(signature.parameters.values(), key=lambda each: _place(each, declared))
    made.__init__.__signature__ = signature.replace(parameters=ordered)
    return cast("T", made)


def _place(parameter: inspect.Parameter, declared: list[str]) -> tuple[int, int]:
    """Return where a parameter stands in a signature: `self` and positional ones come first."""
    own = declared.index(parameter.name) if parameter.name in declared else -1
    return parameter.kind, own


def choose(*names: str) -> dict[str, list[Any]]:
    """Return the named constraints alone."""
    return {name: {**_SHARED, **_OWN}[name] for name in names}


def check_kernel(owner: str, kernel: Any) -> None:
    """Raise scikit-learn's error for a kernel that has no such name and cannot be read."""
    if callable(kernel) or kernel in KERNELS:
        return
    try:
        _core.check_kernel(kernel)
    except ValueError as error:
        names = ", ".join(repr(name) for name in sorted(KERNELS))
        raise InvalidParameterError(
            f"The 'kernel' parameter of {owner} must be a str among {{{names}}}, a sum or product "
            f"of them or a callable. Got {kernel!r} instead. ({error})"
        ) from None


@estimator
class RunParameters:
    """How long a training may take, what it tells, and its threads."""

    verbose: bool | int = False
    max_time: float | None = None
    callbacks: Any = None
    n_jobs: int | None = None


@estimator
class KernelParameters:
    """A kernel and its numbers."""

    kernel: Any = "rbf"
    degree: int = 3
    gamma: float | str = "scale"
    coef0: float = 0.0


@estimator
class TrainingParameters:
    """Where the solver of a kernel machine starts and ends."""

    tol: float = 1e-3
    cache_size: float = 200
    max_iter: int = -1
    precision: str = "auto"
    warm_start: bool = False


@estimator
class ClassificationParameters:
    """How two-class machines become a classifier."""

    probability: bool | str = "deprecated"
    class_weight: Any = None
    decision_function_shape: str = "ovr"
    break_ties: bool = False
    random_state: Any = None
    multi_class: str = "ovo"
    code: Any = None
    decoding: str = "hinge"
    calibration: str = "sigmoid"
