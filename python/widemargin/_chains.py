"""Large-margin chains: tags of sequences, with sklearn-crfsuite's input."""

from __future__ import annotations

from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from widemargin import _core
from widemargin._base import BaseTrained, checks_parameters
from widemargin._parameters import choose, stores_parameters
from widemargin._progress import Monitor, as_callbacks
from widemargin._restore import parameters, specification

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray
    from typing_extensions import Self

#: The code of a position without a tag.
_NO_TAG = np.iinfo(np.uint32).max


class ChainSVC(BaseTrained):
    """Support vector machine for the tags of sequences (max-margin Markov network).

    The score of tags is the sum of a score of each tag at its position, linear in the features, and
    of a score of each pair of neighbouring tags. Training minimises ½‖w‖² + C Σ max over u of
    [loss(u, y) + score(x, u) - score(x, y)], the sum being over sequences, and proves how close it
    came.

    Parameters
    ----------
    C : float, default=0.1
        Price of the loss of a sequence. Losses are summed over its positions, so that good values
        are smaller than those of other machines.
    kernel : str, default='linear'
        Kernel of the features of a position, such as 'rbf'; other kernels than 'linear' need arrays
        and hold all kernel values between positions in memory.
    gamma : {'scale', 'auto'} or float, default='scale'
        Coefficient of the kernel.
    coef0 : float, default=0.0
        Constant of the kernel.
    degree : int, default=3
        Degree of the polynomial kernel.
    loss : 'hamming' or array-like of shape (n_tags, n_tags), default='hamming'
        Cost of a wrong tag: 1, or a row for each true tag in the order of `classes_` with the cost
        of each tag.
    constraints : {None, 'bio'} or list of tuple, default=None
        Pairs of tags (before, after) that are forbidden; None as `before` forbids a tag at the
        beginning. 'bio' allows I-X only after B-X and I-X.
    unknown : {'error', 'cut'}, default='error'
        What is done where a tag of `y` is None: refuse, or cut the sequence there.
    tol : float, default=0.01
        Largest duality gap, relative to the primal objective.
    max_iter : int, default=100
        Most passes over the sequences.
    random_state : int, RandomState or None, default=None
        Order in which sequences are visited; None is a fixed one.
    verbose : int, default=0
        Whether to print progress.
    max_time : float, default=None
        Seconds after which training stops with a `ConvergenceWarning` and the best model so far.
    cache_size : float, default=1024
        Megabytes that kernel values may take.
    callbacks : callable or list of callables, default=None
        Called with a :class:`widemargin.Progress` while training; returning True stops it.
    n_jobs : int, default=None
        Threads; None is 1 unless joblib says otherwise, -1 is all. The result is the same for all.

    Attributes
    ----------
    classes_ : ndarray of shape (n_tags,)
        The tags, ascending.
    transitions_ : ndarray of shape (n_tags, n_tags)
        Score of each tag (column) after each tag (row); -inf where it is forbidden.
    gap_ : float
        Proven bound on (objective - optimum) / objective; infinite when training was stopped.
    objective_, dual_gap_, violation_, status_
        The dual objective, a lower bound on the optimum; the gap to the primal one; that gap
        relative to the primal objective; how the training ended.
    n_iter_ : int
        Passes over the sequences.
    training_seconds_ : float
        Seconds of the training without the conversion of its input.

    Notes
    -----
    A position is a dict of features, a list or set of the names of features that are there, or a
    row of an array. In a dict a number is the value of the feature; a string makes the feature
    ``"key:string"``, a dict or list the features ``"key:..."``. Names that the training data did
    not have are ignored.

    Examples
    --------
    >>> from widemargin import ChainSVC
    >>> words = [["the", "dog", "barks"], ["dogs", "bark"]]
    >>> X = [[{"word": word} for word in sentence] for sentence in words]
    >>> y = [["DET", "NOUN", "VERB"], ["NOUN", "VERB"]]
    >>> model = ChainSVC(C=1.0).fit(X, y)
    >>> model.predict([[{"word": "the"}, {"word": "dogs"}, {"word": "bark"}]])
    [['DET', 'NOUN', 'VERB']]
    """

    _kind = "chain-svc"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **choose("C", "verbose", "max_time", "callbacks", "n_jobs"),
        "kernel": [str],
        "gamma": [StrOptions({"scale", "auto"}), Interval(Real, 0.0, None, closed="neither")],
        "coef0": [Interval(Real, None, None, closed="neither")],
        "degree": [Interval(Integral, 0, None, closed="left")],
        "loss": [StrOptions({"hamming"}), "array-like"],
        "constraints": [None, StrOptions({"bio"}), list],
        "unknown": [StrOptions({"error", "cut"})],
        "tol": [Interval(Real, 0.0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
        "cache_size": [Interval(Real, 0.0, None, closed="neither")],
    }

    C: float
    kernel: str
    gamma: float | str
    coef0: float
    degree: int
    loss: Any
    constraints: Any
    unknown: str
    max_iter: int
    random_state: Any
    verbose: bool | int
    cache_size: float
    callbacks: Any

    @stores_parameters
    def __init__(
        self,
        C: float = 0.1,
        *,
        kernel: str = "linear",
        gamma: float | str = "scale",
        coef0: float = 0.0,
        degree: int = 3,
        loss: Any = "hamming",
        constraints: Any = None,
        unknown: str = "error",
        tol: float = 0.01,
        max_iter: int = 100,
        random_state: Any = None,
        verbose: bool | int = 0,
        max_time: float | None = None,
        cache_size: float = 1024,
        callbacks: Any = None,
        n_jobs: int | None = None,
    ) -> None: ...

    @classmethod
    def _of(cls, model: _core.Model) -> Self:
        """Return the estimator of a model from a file."""
        given = parameters(model, ("C", "kernel", "gamma", "coef0", "degree", "tol", "max_iter"))
        known = specification(model)
        given["loss"] = known.get("loss", "hamming")
        given["unknown"] = "cut" if known.get("cut_at_unknown") else "error"
        estimator = cls(**given)
        estimator._adopt(model)
        bio = known.get("constraints") == "bio"
        estimator.constraints = "bio" if bio else _forbidden_pairs(estimator)
        return estimator

    @checks_parameters
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train on sequences with tags.

        Parameters
        ----------
        X : list of sequences
            Each a list of feature dicts (or lists of names), or an array of shape (length,
            n_features).
        y : list of lists
            The tags of each sequence; None where one is not known.
        sample_weight : array-like of shape (n_sequences,), default=None
            Factor on the price of each sequence.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        given = _sequences(X)
        names, codes = _codes(y, _lengths(X, given))
        monitor = Monitor(self.verbose, as_callbacks(self.callbacks))
        weights = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        model, complaints = _core.fit_chain(
            self._settings(),
            given,
            codes,
            names,
            self._forbidden(),
            weights,
            monitor if monitor.listens else None,
        )
        monitor.end(model.training, model.support_count)
        self._adopt(model)
        self._warn(complaints)
        return self

    def _settings(self) -> _core.Settings:
        given = isinstance(self.constraints, list)
        hamming = isinstance(self.loss, str)
        seed = 0
        if self.random_state is not None:
            seed = int(check_random_state(self.random_state).randint(np.iinfo("i").max))
        return {
            "machine": self._kind,
            "online": False,
            "parameters": {
                "c": float(self.C),
                "kernel": self.kernel,
                "gamma": self.gamma if isinstance(self.gamma, str) else float(self.gamma),
                "coef0": float(self.coef0),
                "degree": int(self.degree),
                "loss": self.loss if hamming else np.asarray(self.loss, dtype=np.float64).ravel(),
                "constraints": None if given else self.constraints,
                "cut_at_unknown": self.unknown == "cut",
                "tol": float(self.tol),
                "max_iter": int(self.max_iter),
            },
            "calibration": None,
            "seed": seed,
            "cache_megabytes": float(self.cache_size),
            "threads": self._threads(),
            "max_seconds": self.max_time,
        }

    def _forbidden(self) -> tuple[list[Any], list[tuple[Any, Any]]] | None:
        """Return the tags that are never first and the pairs that are never neighbours."""
        if not isinstance(self.constraints, list):
            return None
        first = [after for before, after in self.constraints if before is None]
        return first, [pair for pair in self.constraints if pair[0] is not None]

    def _adopt(self, model: _core.Model) -> None:
        self._model = model
        self._chain = _core.Chain(model)
        tags = self._chain.tags
        self.classes_ = np.array(tags, dtype=object if isinstance(tags[0], str) else None)
        self.transitions_ = np.array(self._chain.pairs).reshape(len(tags), len(tags))
        self.n_iter_ = max(int(model.training.get("passes", 1)), 1)

    @property
    def gap_(self) -> float:
        """Proven bound on (objective - optimum) / objective."""
        return float(self._training("violation"))

    @property
    def training_seconds_(self) -> float:
        """Seconds of the training without the conversion of its input."""
        return float(self._training("seconds"))

    def predict(self, X: Any) -> list[list[Any]]:
        """Return the best tags of each sequence.

        Parameters
        ----------
        X : list of sequences
            As for `fit`.

        Returns
        -------
        y : list of lists
            The tags.
        """
        check_is_fitted(self)
        names = self.classes_.tolist()
        found = self._chain.label(_sequences(X), self._threads())
        return [[names[code] for code in codes] for codes, _ in found]

    def predict_n_best(self, X: Any, n: int = 5) -> list[list[tuple[list[Any], float]]]:
        """Return the `n` best labellings of each sequence with their scores, best first.

        Parameters
        ----------
        X : list of sequences
            As for `fit`.
        n : int, default=5
            How many; fewer where there are not as many.

        Returns
        -------
        lists : list of lists of (tags, score)
            One list for each sequence.
        """
        check_is_fitted(self)
        names = self.classes_.tolist()
        found = self._chain.n_best(_sequences(X), int(n), self._threads())
        return [[([names[c] for c in codes], score) for codes, score in one] for one in found]

    def score(self, X: Any, y: Any) -> float:
        """Return the share of positions with the right tag.

        Parameters
        ----------
        X : list of sequences
            As for `fit`.
        y : list of lists
            Their tags; positions with None are left out.

        Returns
        -------
        accuracy : float
            Between 0 and 1.
        """
        right = known = 0
        for own, true in zip(self.predict(X), y, strict=True):
            if len(own) != len(true):
                raise ValueError(f"a sequence of {len(own)} positions has {len(true)} tags in y")
            known += sum(tag is not None for tag in true)
            right += sum(a == b for a, b in zip(own, true, strict=True))
        return right / known

    def save(self, path: Any) -> None:
        """Write the model to a file, which :func:`widemargin.load` and the command line read."""
        check_is_fitted(self)
        self._model.save(path)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the chain, which is made again from the model."""
        state = dict(super().__getstate__())
        state.pop("_chain", None)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take the state of a pickle."""
        super().__setstate__(state)
        if "_model" in self.__dict__:
            self._chain = _core.Chain(self._model)


class ChainClustering(ChainSVC):
    """Unsupervised chain: tags of sequences found by training and tagging in turn (Xu 2007).

    Looks for tags for which the chain with the largest margin has the smallest objective. From
    given tags on, such as those of a hidden Markov model, it trains :class:`ChainSVC` and tags
    anew; new tags are taken only where the loss of their sequence falls. The result is a local
    optimum.

    Parameters
    ----------
    C : float, default=1.0
        Price of the loss of a sequence.
    tol : float, default=1e-3
        Largest duality gap of each training, relative to the primal objective.
    n_rounds : int, default=50
        Most rounds.
    max_iter : int, default=1000
        Most passes over the sequences in each training.
    verbose, max_time, callbacks, n_jobs
        As for :class:`ChainSVC`.

    Attributes
    ----------
    labels_ : list of lists
        The tags that were found.
    objectives_ : list of float
        The primal objective after each training.
    status_ : str
        ``'solved'`` where no better tags were found.

    Examples
    --------
    >>> from widemargin import ChainClustering
    >>> X = [[{"a": 1}, {"b": 1}, {"a": 1}], [{"b": 1}, {"a": 1}]]
    >>> ChainClustering(C=1.0).fit(X, [[0, 1, 0], [1, 1]]).labels_
    [[0, 1, 0], [1, 0]]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **choose("C", "verbose", "max_time", "callbacks", "n_jobs"),
        "tol": [Interval(Real, 0.0, None, closed="neither")],
        "n_rounds": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
    }

    # What every training has.
    kernel, gamma, coef0, degree = "linear", "scale", 0.0, 3
    loss, constraints, unknown = "hamming", None, "error"
    random_state, cache_size = None, 1024.0

    n_rounds: int

    @stores_parameters
    def __init__(
        self,
        C: float = 1.0,
        *,
        tol: float = 1e-3,
        n_rounds: int = 50,
        max_iter: int = 1000,
        verbose: bool | int = 0,
        max_time: float | None = None,
        callbacks: Any = None,
        n_jobs: int | None = None,
    ) -> None: ...

    @checks_parameters
    def fit(self, X: Any, start: Any) -> Self:  # type: ignore[override]
        """Find tags.

        Parameters
        ----------
        X : list of sequences
            As for :class:`ChainSVC`.
        start : list of lists
            Tags to begin with.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        given = _sequences(X)
        lengths = _lengths(X, given)
        names, codes = _codes(start, lengths)
        monitor = Monitor(self.verbose, as_callbacks(self.callbacks))
        model, tags, self.objectives_, self._status = _core.alternate_chain(
            self._settings(),
            given,
            codes,
            len(names),
            int(self.n_rounds),
            monitor if monitor.listens else None,
        )
        self._adopt(model)
        self.classes_ = np.array(names, dtype=object if isinstance(names[0], str) else None)
        ends = np.cumsum(lengths)
        self.labels_ = [
            [names[tag] for tag in tags[end - length : end]]
            for end, length in zip(ends, lengths, strict=True)
        ]
        return self

    @property
    def status_(self) -> str:
        """How the alternation ended."""
        check_is_fitted(self, "labels_")
        return self._status


def _is_array(sequence: Any) -> bool:
    """Return whether a sequence is rows of numbers."""
    if isinstance(sequence, np.ndarray):
        return bool(sequence.dtype != object)
    first = sequence[0] if len(sequence) > 0 else None
    return isinstance(first, np.ndarray) or (
        isinstance(first, (list, tuple)) and len(first) > 0 and isinstance(first[0], Real)
    )


def _sequences(X: Any) -> Any:
    """Return what the compiled half takes: all rows with the lengths, or lists of items."""
    X = list(X)
    if not X:
        raise ValueError("X must have at least one sequence")
    if not _is_array(X[0]):
        return [list(sequence) for sequence in X]
    arrays = [np.asarray(sequence, dtype=np.float64) for sequence in X]
    for place, array in enumerate(arrays):
        if array.ndim != 2 or array.shape[1] != arrays[0].shape[1]:
            raise ValueError(
                f"sequence {place} of X has the shape {array.shape}; expected "
                f"(length, {arrays[0].shape[-1]})"
            )
    return np.ascontiguousarray(np.concatenate(arrays)), [len(array) for array in arrays]


def _lengths(X: Any, given: Any) -> list[int]:
    return list(given[1]) if isinstance(given, tuple) else [len(sequence) for sequence in X]


def _codes(y: Any, lengths: Iterable[int]) -> tuple[list[Any], NDArray[np.uint32]]:
    """Return the distinct tags, ascending, and the code of each position."""
    y, lengths = [list(tags) for tags in y], list(lengths)
    if len(y) != len(lengths):
        raise ValueError(f"y has {len(y)} sequences, X has {len(lengths)}")
    for place, (tags, length) in enumerate(zip(y, lengths, strict=True)):
        if len(tags) != length:
            raise ValueError(
                f"sequence {place} has {length} positions in X and {len(tags)} tags in y"
            )
    flat = [tag.item() if isinstance(tag, np.generic) else tag for tags in y for tag in tags]
    names = sorted({tag for tag in flat if tag is not None})
    places = {name: code for code, name in enumerate(names)}
    codes = [_NO_TAG if tag is None else places[tag] for tag in flat]
    return names, np.array(codes, dtype=np.uint32)


def _forbidden_pairs(estimator: ChainSVC) -> list[tuple[Any, Any]] | None:
    """Return the pairs of tags that a chain forbids, as its parameter lists them."""
    names = estimator.classes_.tolist()
    first = estimator._chain.first_forbidden
    pairs: list[tuple[Any, Any]] = [(None, names[tag]) for tag in np.flatnonzero(first)]
    for before, after in np.argwhere(np.isneginf(estimator.transitions_)):
        pairs.append((names[before], names[after]))
    return pairs or None
