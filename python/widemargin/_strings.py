"""Kernels of strings: `StringKernel`."""

from __future__ import annotations

from dataclasses import field
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin, _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from widemargin import _core
from widemargin._parameters import estimator
from widemargin._tables import from_core, to_core

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from typing_extensions import Self

#: The parameters of every kind, in the order of kernel expressions.
_PARAMETERS = {
    "spectrum": ("length", "shortest"),
    "mismatch": ("length", "mismatches", "alphabet"),
    "subsequence": ("length", "decay"),
    "alignment": ("match", "mismatch", "open", "extend", "beta", "log"),
}


def strings_of(X: Any) -> list[str] | None:
    """Return a list, array or series of strings as a list; None for anything else."""
    if isinstance(X, np.ndarray) or hasattr(X, "to_numpy"):
        if getattr(X, "ndim", 0) != 1:
            return None
        X = X.tolist() if isinstance(X, np.ndarray) else X.to_numpy().tolist()
    if not isinstance(X, list | tuple) or not X or not all(isinstance(x, str) for x in X):
        return None
    return [str(x) for x in X]


def string_rows(strings: list[str]) -> Any:
    """Return strings as sparse rows of characters."""
    return from_core(_core.string_rows(strings), None).astype(np.float64)


def _checked(X: Any) -> list[str]:
    strings = strings_of(X)
    if strings is None:
        found = f"{type(X).__name__} of shape {np.shape(X)}" if np.ndim(X) > 1 else repr(X)[:60]
        raise ValueError(f"Expected a list or one-dimensional array of str, got {found}.")
    return strings


#: The character of symbol 0: above it there are no surrogates.
_FIRST_CHARACTER = 0xE000
_MOST_SYMBOLS = 0x110000 - _FIRST_CHARACTER


def _encoded(sequence: Any) -> str:
    symbols = np.asarray(sequence)
    if symbols.size == 0:
        return ""
    if symbols.ndim != 1 or not np.issubdtype(symbols.dtype, np.integer):
        raise ValueError("a sequence must have whole numbers, one for each symbol")
    if symbols.min() < 0 or symbols.max() >= _MOST_SYMBOLS:
        raise ValueError(f"symbols must be from 0 to {_MOST_SYMBOLS - 1}")
    return "".join(chr(_FIRST_CHARACTER + int(symbol)) for symbol in symbols)


@estimator
class StringKernel(TransformerMixin, BaseEstimator):
    """A kernel of strings, for ``kernel=`` of the machines or as a transformer.

    Parameters
    ----------
    kind : {'spectrum', 'mismatch', 'subsequence', 'alignment'}, default='spectrum'
        What two strings have in common: substrings, substrings that differ in some places,
        subsequences with gaps, or local alignments.
    length : int, default=3
        Characters of a substring or subsequence.
    shortest : int, default=None
        For ``'spectrum'``: also count substrings from this length on; by default only `length`.
    mismatches : int, default=1
        For ``'mismatch'``: places in which substrings may differ.
    alphabet : int, default=None
        For ``'mismatch'``: how many characters there are; by default as many as the training
        strings have.
    decay : float, default=0.5
        For ``'subsequence'``: the weight of an occurrence is `decay` to the power of the places
        that it spans.
    match, mismatch : float, default=1.0 and -1.0
        For ``'alignment'``: scores of equal and different characters.
    open, extend : float, default=2.0 and 0.5
        For ``'alignment'``: costs of the first and of every further character of a gap.
    beta : float, default=1.0
        For ``'alignment'``: factor on the score of an alignment, whose exponential is summed.
    log : bool, default=False
        For ``'alignment'``: take the logarithm of the sum. Such matrices are not positive
        semidefinite.
    normalize : bool, default=True
        Whether every string has similarity 1 with itself.
    output : {'kernel', 'features'}, default='kernel'
        What `transform` returns: similarities with the training strings, or for ``'spectrum'``
        sparse counts of their substrings.
    n_jobs : int, default=None
        Threads of `transform` and of calls.

    Attributes
    ----------
    strings_ : list of str
        The strings given to `fit`, for ``output='kernel'``.

    Examples
    --------
    >>> from widemargin import SVC, StringKernel
    >>> words = ["gattaca", "gattacca", "ttgaca", "zebra", "zebroid", "brazen"]
    >>> model = SVC(kernel=StringKernel(length=2)).fit(words, [0, 0, 0, 1, 1, 1])
    >>> model.predict(["gatta", "zebu"]).tolist()
    [0, 1]
    >>> StringKernel(length=2, output="features").fit(["abab", "bc"]).get_feature_names_out()
    array(['ab', 'ba', 'bc'], dtype=object)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "kind": [StrOptions(set(_PARAMETERS))],
        "length": [Interval(Integral, 1, None, closed="left")],
        "shortest": [Interval(Integral, 1, None, closed="left"), None],
        "mismatches": [Interval(Integral, 0, None, closed="left")],
        "alphabet": [Interval(Integral, 2, None, closed="left"), None],
        "decay": [Interval(Real, 0.0, 1.0, closed="right")],
        "match": [Real],
        "mismatch": [Real],
        "open": [Interval(Real, 0.0, None, closed="left")],
        "extend": [Interval(Real, 0.0, None, closed="left")],
        "beta": [Interval(Real, 0.0, None, closed="neither")],
        "log": ["boolean"],
        "normalize": ["boolean"],
        "output": [StrOptions({"kernel", "features"})],
    }

    kind: str = field(default="spectrum", kw_only=False)
    length: int = 3
    shortest: int | None = None
    mismatches: int = 1
    alphabet: int | None = None
    decay: float = 0.5
    match: float = 1.0
    mismatch: float = -1.0
    open: float = 2.0
    extend: float = 0.5
    beta: float = 1.0
    log: bool = False
    normalize: bool = True
    output: str = "kernel"
    n_jobs: int | None = None

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags."""
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        tags.input_tags.one_d_array = True
        return tags

    @staticmethod
    def encode(sequences: Any) -> list[str]:
        """Return sequences of symbols as strings, which all string kernels take.

        Parameters
        ----------
        sequences : iterable of array-like of int
            Symbols: whole numbers from 0 to 1056767.

        Returns
        -------
        strings : list of str
            A character for each symbol, the same one for the same symbol everywhere.

        Examples
        --------
        >>> from widemargin import StringKernel
        >>> actions = StringKernel.encode([[0, 1, 2, 0], [0, 1, 2], [700, 700]])
        >>> StringKernel(length=2)(actions).round(3).tolist()
        [[1.0, 0.816, 0.0], [0.816, 1.0, 0.0], [0.0, 0.0, 1.0]]
        """
        return [_encoded(sequence) for sequence in sequences]

    def expression(self) -> str:
        """Return the kernel as text, as the command line takes it."""
        self._validate_params()
        values = {name: getattr(self, name) for name in (*_PARAMETERS[self.kind], "normalize")}
        given = {name: value for name, value in values.items() if value is not None}
        return f"{self.kind}({', '.join(f'{name}={_text(v)}' for name, v in given.items())})"

    def __call__(self, X: Any, Y: Any = None) -> NDArray[np.float64]:
        """Return the similarities of strings.

        Parameters
        ----------
        X : array-like of str of shape (n_samples,)
            Strings.
        Y : array-like of str of shape (n_others,), default=None
            Others; by default the same.

        Returns
        -------
        values : ndarray of shape (n_samples, n_others)
            Their kernel values.
        """
        from widemargin._base import count_threads

        left = to_core(string_rows(_checked(X)))
        right = left if Y is None else to_core(string_rows(_checked(Y)))
        return _core.kernel_values(self.expression(), left, right, count_threads(self.n_jobs))

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> Self:
        """Keep the strings, or learn their substrings.

        Parameters
        ----------
        X : array-like of str of shape (n_samples,)
            Strings.
        y : None
            Ignored.

        Returns
        -------
        self : object
            The fitted transformer.
        """
        strings = _checked(X)
        expression = self.expression()
        if self.output == "features":
            self._features = _core.SubstringFeatures.fit(expression, strings)
            self._n_features_out = len(self._features.names)
        else:
            _core.check_kernel(expression)
            self.strings_ = strings
            self._n_features_out = len(strings)
        return self

    def transform(self, X: Any) -> Any:
        """Return the similarities with the training strings, or the counts of their substrings.

        Parameters
        ----------
        X : array-like of str of shape (n_samples,)
            Strings.

        Returns
        -------
        values : ndarray of shape (n_samples, n_training) or csr_array of shape \
                (n_samples, n_features)
            Kernel values, or counts.
        """
        check_is_fitted(self, "_n_features_out")
        if self.output == "features":
            return from_core(self._features.transform(_checked(X)), "csr_array")
        return self(X, self.strings_)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return the substrings, or the training strings.

        Parameters
        ----------
        input_features : None
            Ignored.

        Returns
        -------
        names : ndarray of str
            One for each column of what `transform` returns.
        """
        check_is_fitted(self, "_n_features_out")
        names = self._features.names if self.output == "features" else self.strings_
        return np.array(names, dtype=object)


def _text(value: Any) -> str:
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    return repr(int(value)) if isinstance(value, Integral) else repr(float(value))
