"""Which parameters the estimators take: scikit-learn's constraints, and those of our own."""

from __future__ import annotations

import functools
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, TypeVar, cast

from sklearn.utils._param_validation import Hidden, Interval, InvalidParameterError, StrOptions

from widemargin import _core

F = TypeVar("F", bound=Callable[..., Any])

#: Names that scikit-learn's estimators take, and those of our own.
KERNELS = ("linear", "poly", "rbf", "sigmoid", "precomputed", "laplacian", "chi2", "cosine")

#: The all-in-one machines; "dgi" is another name of "adm".
MACHINES = ("ww", "cs", "llw", "adm", "dgi", "atm", "ats", "mmr", "ova", "reinforced")

#: How online machines choose the variables of a step.
STRATEGIES = ("blocks", "all", "random-all", "random-pattern", "whole-pattern", "larank")

_SHARED: dict[str, list[Any]] = {
    "kernel": [str, callable],
    "degree": [Interval(Integral, 0, None, closed="left")],
    "gamma": [StrOptions({"scale", "auto"}), Interval(Real, 0.0, None, closed="left")],
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
    "hinge": [StrOptions({"hinge", "squared_hinge"})],
    "tube": [StrOptions({"epsilon_insensitive", "squared_epsilon_insensitive"})],
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


def constraints(*names: str, **renamed: str) -> dict[str, list[Any]]:
    """Return the constraints every estimator has, and the named ones beside them."""
    own = {name: _OWN[name] for name in names}
    return {**_SHARED, **own, **{name: _OWN[key] for name, key in renamed.items()}}


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
