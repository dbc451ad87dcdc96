"""Hidden Markov models with hmmlearn's interface."""

from __future__ import annotations

import os
import warnings
from numbers import Integral, Real
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_array, check_random_state, column_or_1d
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from widemargin import _core
from widemargin._base import checks_parameters, count_threads
from widemargin._docs import documented
from widemargin._parameters import choose, stores_parameters
from widemargin._progress import Monitor, Progress, as_callbacks

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from typing_extensions import Self

_NOT_NEGATIVE = [Interval(Real, 0, None, closed="left")]
_SHARED: dict[str, list[Any]] = {
    "n_components": [Interval(Integral, 1, None, closed="left")],
    "startprob_prior": [Interval(Real, 1, None, closed="left")],
    "transmat_prior": [Interval(Real, 1, None, closed="left")],
    "algorithm": [StrOptions({"viterbi", "map"})],
    "random_state": ["random_state"],
    "n_iter": [Interval(Integral, 1, None, closed="left")],
    "tol": [Interval(Real, None, None, closed="neither")],
    "verbose": ["verbose"],
    "params": [str],
    "init_params": [str],
    "implementation": [StrOptions({"log", "scaling"})],
    "n_init": [Interval(Integral, 1, None, closed="left")],
    "n_inputs": [Interval(Integral, 1, None, closed="left"), None],
    "input_lag": [Interval(Integral, 0, None, closed="left")],
    "uniform_below": _NOT_NEGATIVE,
    "n_jobs": [Integral, None],
    **choose("max_time", "callbacks"),
}


class BaseHMM(BaseEstimator):
    """What the hidden Markov models share; derived classes say what states emit."""

    _kind: ClassVar[str]
    #: The letters of `params` and the attribute that each stands for.
    _letters: ClassVar[dict[str, str]]
    _parameter_constraints: ClassVar[dict[str, list[Any]]]

    n_components: int
    startprob_prior: float
    transmat_prior: float
    algorithm: str
    random_state: Any
    n_iter: int
    tol: float
    verbose: bool | int
    params: str
    init_params: str
    implementation: str
    n_init: int
    n_inputs: int | None
    input_lag: int
    uniform_below: float
    n_jobs: int | None
    max_time: float | None
    callbacks: Any
    covariance_type: str = "diag"

    startprob_: NDArray[np.float64]
    transmat_: NDArray[np.float64]

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags."""
        tags = super().__sklearn_tags__()
        tags.target_tags.required = False
        return tags

    # What derived classes say about emissions.

    def _observed(self, X: Any, fitting: bool = False) -> NDArray[Any]:
        raise NotImplementedError

    def _size(self, observed: NDArray[Any]) -> int:
        return int(observed.shape[1])

    def _prior(self) -> dict[str, float]:
        raise NotImplementedError

    def _emissions(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        raise NotImplementedError

    def _take(self, values: NDArray[np.float64], covariances: NDArray[np.float64]) -> None:
        raise NotImplementedError

    # Training

    def _rows(self, X: Any, fitting: bool, whole: bool) -> NDArray[np.float64]:
        # A row of NaN is a position where nothing was observed; the library refuses other NaN.
        rows = check_array(X, dtype=np.float64, order="C", ensure_all_finite="allow-nan")
        expected = rows.shape[1] if fitting else np.shape(self._emissions()[0])[1]
        if rows.shape[1] != expected:
            raise ValueError(f"X has {rows.shape[1]} features, expected {expected}")
        seen = rows[~np.isnan(rows)]
        if whole and ((seen < 0).any() or (seen != np.floor(seen)).any()):
            raise ValueError("X must be counts: whole numbers of at least 0")
        return np.asarray(rows)

    def _given(
        self, observed: NDArray[Any], lengths: Any, inputs: Any = None, known: Any = None
    ) -> dict[str, Any]:
        """Return sequences as the compiled half takes them."""
        known_states = None
        if known is not None:
            states = np.asarray(column_or_1d(known))
            known_states = _whole(np.where(states < 0, np.int64(_UNKNOWN), states), "states")
        return {
            "observed": observed,
            "lengths": _lengths(lengths),
            "densities": self._kind == "given",
            "inputs": None if inputs is None else _whole(column_or_1d(inputs), "inputs"),
            "lag": int(self.input_lag),
            "known": known_states,
        }

    def _inputs(self, inputs: Any) -> int:
        """Return the number of inputs of a model that is to be learnt."""
        if inputs is None:
            return 1
        return self.n_inputs or int(np.max(inputs)) + 1

    def _letters_of(self, name: str) -> tuple[bool, bool, bool, bool]:
        """Return whether start, transitions, emissions and covariances are in `params` or so."""
        letters, given = list(self._letters), getattr(self, name)
        if unknown := set(given) - set(letters):
            raise ValueError(
                f"{name} must have letters of {''.join(letters)!r} only, found "
                f"{''.join(sorted(unknown))!r}"
            )
        wanted = [letter in given for letter in letters]
        start, transition, emission, covariance = [*wanted, False, False][:4]
        return start, transition, emission, covariance

    def _training(self, seed: int) -> dict[str, Any]:
        usual = {
            "count": 0.0,
            "mean": 0.0,
            "mean_weight": 0.0,
            "covariance": 1e-2,
            "covariance_weight": 1.0,
            "rate": 0.0,
            "rate_weight": 0.0,
        }
        return {
            **usual,
            **self._prior(),
            "iterations": int(self.n_iter),
            "tol": float(self.tol),
            "starts": int(self.n_init),
            "updates": self._letters_of("params"),
            "redrawn": self._letters_of("init_params"),
            "start_count": float(self.startprob_prior) - 1.0,
            "transition_count": float(self.transmat_prior) - 1.0,
            "uniform_below": float(self.uniform_below),
            "logarithms": self.implementation == "log",
            "seed": seed,
            "threads": count_threads(self.n_jobs),
            "max_seconds": self.max_time,
        }

    def _random(self, given: dict[str, Any], inputs: int, seed: int) -> _core.Hmm:
        size, shape = self._size(given["observed"]), self.covariance_type
        states = self.n_components
        return _core.Hmm.random(states, self._kind, size, shape, inputs, given, seed)

    def _first(self, given: dict[str, Any], inputs: int, seed: int) -> _core.Hmm:
        """Return a random model in which what `init_params` leaves out is what was set before."""
        random = self._random(given, inputs, seed)
        kept = [name for letter, name in self._letters.items() if letter not in self.init_params]
        if not kept:
            return random
        own = {}
        for name in kept:
            if not hasattr(self, name):
                raise ValueError(f"{name} must be set before fit where init_params leaves it out")
            own[name] = getattr(self, name)
        self._adopt(random)
        for name, value in own.items():
            setattr(self, name, value)
        return self._model()

    @checks_parameters
    def fit(self, X: Any, lengths: Any = None, *, inputs: Any = None, states: Any = None) -> Self:
        """Learn from sequences by Baum–Welch.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Observations of all sequences, one after another.
        lengths : array-like of shape (n_sequences,), default=None
            Length of each sequence; all rows are one without.
        inputs : array-like of shape (n_samples,), default=None
            A whole number at each position that chooses the transition `input_lag` positions
            later; `transmat_` has a matrix for each of them.
        states : array-like of shape (n_samples,), default=None
            The states that are known, -1 elsewhere; only paths through them count.

        Returns
        -------
        self : object
            The fitted model.
        """
        given = self._given(self._observed(X, fitting=True), lengths, inputs, states)
        seed = int(check_random_state(self.random_state).randint(np.iinfo("i").max))
        training = self._training(seed)
        first = self._first(given, self._inputs(inputs), seed)
        listener = _Listener(bool(self.verbose), as_callbacks(self.callbacks))
        model, history, starts, status = first.fit(
            given, training, listener if listener.listens else None
        )
        self._adopt(model)
        self.monitor_ = SimpleNamespace(
            history=history, iter=len(history), converged=status == "solved"
        )
        self.n_iter_ = len(history)
        self.start_log_likelihoods_ = np.array(starts)
        self.status_ = status
        if status == "time limit reached":
            message = f"Baum-Welch terminated early (max_time={self.max_time})"
            warnings.warn(message, ConvergenceWarning, stacklevel=3)
        return self

    @checks_parameters
    def fit_states(
        self,
        X: Any,
        states: Any,
        lengths: Any = None,
        smoothing: float = 0.0,
        *,
        inputs: Any = None,
    ) -> Self:
        """Learn from sequences whose states are known, by counting.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Observations of all sequences, one after another.
        states : array-like of shape (n_samples,)
            State of each observation, from 0 to ``n_components - 1``.
        lengths : array-like of shape (n_sequences,), default=None
            Length of each sequence; all rows are one without.
        smoothing : float, default=0.0
            Added to every count of starts, transitions and symbols.
        inputs : array-like of shape (n_samples,), default=None
            As of `fit`.

        Returns
        -------
        self : object
            The fitted model.
        """
        given = self._given(self._observed(X, fitting=True), lengths, inputs)
        path = _whole(column_or_1d(states), "states")
        like = self._random(given, self._inputs(inputs), 0)
        self._adopt(like.fit_states(path, given, float(smoothing), self._training(0)))
        return self

    def _adopt(self, model: _core.Hmm) -> None:
        start, transition, values, covariances = model.parts()
        states = self.n_components
        self.startprob_ = np.array(start)
        matrices = np.array(transition).reshape(-1, states, states)
        self.transmat_ = matrices if len(matrices) > 1 else matrices[0]
        self._take(np.array(values).reshape(states, -1), np.array(covariances))

    def _model(self) -> _core.Hmm:
        check_is_fitted(self, "startprob_")
        values, covariances = self._emissions()

        def flat(array: Any) -> list[float]:
            return [float(value) for value in np.asarray(array, dtype=np.float64).ravel()]

        return _core.Hmm(
            flat(self.startprob_),
            flat(self.transmat_),
            self._kind,
            flat(values),
            self.covariance_type,
            flat(covariances),
        )

    # What the model says

    def score(self, X: Any, lengths: Any = None, *, inputs: Any = None) -> float:
        """Return the log-likelihood of all sequences together."""
        model = self._model()
        given = self._given(self._observed(X), lengths, inputs)
        return model.log_likelihood(given, count_threads(self.n_jobs))

    def score_samples(
        self, X: Any, lengths: Any = None, *, inputs: Any = None, states: Any = None
    ) -> tuple[float, NDArray[np.float64]]:
        """Return the log-likelihood and the probability of each state at each position.

        `inputs` and known `states` are as of `fit`.
        """
        model = self._model()
        logarithms, threads = self.implementation == "log", count_threads(self.n_jobs)
        given = self._given(self._observed(X), lengths, inputs, states)
        logs, posteriors = model.posteriors(given, logarithms, threads)
        return float(np.sum(logs)), posteriors

    def predict_proba(
        self, X: Any, lengths: Any = None, *, inputs: Any = None, states: Any = None
    ) -> NDArray[np.float64]:
        """Return the probability of each state at each position."""
        return self.score_samples(X, lengths, inputs=inputs, states=states)[1]

    def decode(
        self,
        X: Any,
        lengths: Any = None,
        algorithm: Literal["viterbi", "map"] | None = None,
        *,
        inputs: Any = None,
        states: Any = None,
    ) -> tuple[float, NDArray[np.int64]]:
        """Return the states and their score.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Observations of all sequences, one after another.
        lengths : array-like of shape (n_sequences,), default=None
            Length of each sequence.
        algorithm : {'viterbi', 'map'}, default=None
            The most probable path with its log-probability, or the most probable state of each
            position with the sum of their probabilities; `self.algorithm` unless given.
        inputs, states : array-like of shape (n_samples,), default=None
            As of `fit`.

        Returns
        -------
        score : float
            See `algorithm`.
        states : ndarray of shape (n_samples,)
            The states.
        """
        algorithm = algorithm or self.algorithm  # type: ignore[assignment]
        if algorithm not in ("viterbi", "map"):
            raise ValueError(f"algorithm must be 'viterbi' or 'map', found {algorithm!r}")
        if algorithm == "map":
            posteriors = self.predict_proba(X, lengths, inputs=inputs, states=states)
            path = posteriors.argmax(axis=1).astype(np.int64)
            return float(posteriors.max(axis=1).sum()), path
        model = self._model()
        given = self._given(self._observed(X), lengths, inputs, states)
        best, log = model.viterbi(given, count_threads(self.n_jobs))
        return log, best.astype(np.int64)

    def predict(
        self, X: Any, lengths: Any = None, *, inputs: Any = None, states: Any = None
    ) -> NDArray[np.int64]:
        """Return the states by `algorithm`."""
        return self.decode(X, lengths, inputs=inputs, states=states)[1]

    def sample(
        self,
        n_samples: int = 1,
        random_state: Any = None,
        currstate: int | None = None,
        *,
        inputs: Any = None,
    ) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Return a random sequence and its states, from the state `currstate` on if it is given.

        A model with inputs needs as many of them as samples.
        """
        random = self.random_state if random_state is None else random_state
        seed = int(check_random_state(random).randint(np.iinfo("i").max))
        steps = np.zeros(int(n_samples), dtype=np.uint32)
        if inputs is not None:
            given = _whole(column_or_1d(inputs), "inputs")
            if len(given) != n_samples:
                raise ValueError(f"expected {n_samples} inputs, found {len(given)}")
            lag = min(int(self.input_lag), len(given))
            steps[lag:] = given[: len(given) - lag]
        X, states = self._model().sample([int(step) for step in steps], currstate, seed)
        if self._kind != "gaussian":
            return X.astype(np.int64), states.astype(np.int64)
        return X, states.astype(np.int64)

    def bic(self, X: Any, lengths: Any = None, *, inputs: Any = None) -> float:
        """Return the Bayesian information criterion; smaller is better."""
        free = self._model().parameters
        return float(free * np.log(len(X)) - 2 * self.score(X, lengths, inputs=inputs))

    def aic(self, X: Any, lengths: Any = None, *, inputs: Any = None) -> float:
        """Return Akaike's information criterion; smaller is better."""
        return float(2 * self._model().parameters - 2 * self.score(X, lengths, inputs=inputs))

    # Files

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file, which :func:`widemargin.load` and the command line read."""
        symbols = getattr(self, "symbols_", None)
        names = None if symbols is None else [str(symbol) for symbol in symbols]
        self._model().save(os.fspath(path), names)

    @classmethod
    def _of(cls, model: _core.Model) -> BaseHMM:
        """Return the estimator of a model file."""
        hmm, kind, shape, states, names = _core.Hmm.of_model(model)
        kinds = {one._kind: one for one in BaseHMM.__subclasses__()}
        found: BaseHMM = kinds[kind](n_components=len(states))
        if kind == "gaussian":
            found.covariance_type = shape
        found._adopt(hmm)
        found.state_names_ = states
        if kind == "categorical" and names is not None:
            # The command line names symbols by the template that made them.
            found.symbols_ = np.array([name.removeprefix("U00:") for name in names])
            found.n_features = len(names)
        return found


#: States that are not known, and symbols that were not observed, as the compiled half has them.
_UNKNOWN = 2**32 - 1


def _lengths(lengths: Any) -> list[int] | None:
    if lengths is None:
        return None
    parts = np.asarray(lengths)
    if parts.ndim != 1 or (parts < 1).any() or not np.issubdtype(parts.dtype, np.integer):
        raise ValueError("lengths must be whole numbers of at least 1, one per sequence")
    return [int(part) for part in parts]


def _whole(values: Any, name: str) -> NDArray[np.uint32]:
    array = np.asarray(values)
    if not np.issubdtype(array.dtype, np.integer) and not (array == np.floor(array)).all():
        raise ValueError(f"{name} must be whole numbers")
    if array.size and (array.min() < 0 or array.max() >= 2**32):
        raise ValueError(f"{name} must be at least 0 and below 2^32")
    return np.ascontiguousarray(array, dtype=np.uint32)


class _Listener(Monitor):
    """Hands iterations to callbacks, and prints their log-likelihoods."""

    def _print(self, progress: Progress) -> None:
        gained, likelihood = progress.violation, progress.objective
        print(f"{progress.iteration:10d} {likelihood:18.8f} {gained:+18.8f}")


@documented
class CategoricalHMM(BaseHMM):
    """Hidden Markov model of symbols 0, 1, …, as ``hmmlearn.hmm.CategoricalHMM``.

    Symbols may also be words; `symbols_` then has them in the order of their numbers.

    Parameters
    ----------
    n_components : int, default=1
        Number of states.
    emissionprob_prior : float, default=1.0
        What it has beyond 1 is added to the counts of symbols.
    n_features : int, default=None
        Number of symbols; the largest one of the training data and those below it unless given.
    unseen : {'refuse', 'missing'}, default='refuse'
        What symbols count as that the training data did not have: an error, or positions where
        nothing was observed, as those of -1 are.
    {markov}
    params, init_params : str
        What `fit` learns, and what it begins with at random: ``s`` start, ``t`` transition
        and ``e`` emission probabilities.
        What `init_params` leaves out must be set before `fit`.
    {markov_training}

    Attributes
    ----------
    {markov_attributes}
    emissionprob_ : ndarray of shape (n_components, n_features)
        Probabilities of the symbols.

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin import CategoricalHMM
    >>> X = np.array([[0], [1], [0], [1], [0], [1], [2], [2], [2]])
    >>> model = CategoricalHMM(n_components=2, random_state=1, n_init=5).fit(X, lengths=[4, 5])
    >>> model.emissionprob_.shape
    (2, 3)
    """

    _kind = "categorical"
    _letters: ClassVar[dict[str, str]] = {"s": "startprob_", "t": "transmat_", "e": "emissionprob_"}
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **_SHARED,
        "emissionprob_prior": [Interval(Real, 1, None, closed="left")],
        "n_features": [Interval(Integral, 1, None, closed="left"), None],
        "unseen": [StrOptions({"refuse", "missing"})],
    }

    emissionprob_prior: float
    n_features: int | None
    unseen: str

    @stores_parameters
    def __init__(
        self,
        n_components: int = 1,
        startprob_prior: float = 1.0,
        transmat_prior: float = 1.0,
        *,
        emissionprob_prior: float = 1.0,
        n_features: int | None = None,
        unseen: str = "refuse",
        algorithm: str = "viterbi",
        random_state: Any = None,
        n_iter: int = 10,
        tol: float = 1e-2,
        verbose: bool | int = False,
        params: str = "ste",
        init_params: str = "ste",
        implementation: str = "scaling",
        n_init: int = 1,
        n_inputs: int | None = None,
        input_lag: int = 1,
        uniform_below: float = 0.0,
        n_jobs: int | None = None,
        max_time: float | None = None,
        callbacks: Any = None,
    ) -> None: ...

    def _observed(self, X: Any, fitting: bool = False) -> NDArray[Any]:
        rows = check_array(X, dtype=None, ensure_2d=False)
        if rows.ndim == 2 and rows.shape[1] != 1:
            raise ValueError(f"X must have one column of symbols, found {rows.shape[1]}")
        flat = rows.ravel()
        if flat.dtype.kind in "UO":
            return self._coded(flat, fitting)
        if fitting and hasattr(self, "symbols_"):
            del self.symbols_
        if flat.size and flat.min() < 0:
            flat = np.where(flat == -1, np.int64(_UNKNOWN), flat)
        codes = _whole(flat, "symbols")
        if not fitting and self.unseen == "missing":
            codes[codes >= np.shape(self._emissions()[0])[1]] = _UNKNOWN
        return codes

    def _coded(self, words: NDArray[Any], fitting: bool) -> NDArray[np.uint32]:
        """Return the numbers of words."""
        texts = words.astype(str)
        if fitting:
            self.symbols_, codes = np.unique(texts, return_inverse=True)
            return codes.astype(np.uint32)
        if not hasattr(self, "symbols_"):
            raise ValueError("X has words, the training data had numbers")
        places = {symbol: code for code, symbol in enumerate(self.symbols_)}
        unseen = [text for text in texts if text not in places]
        if unseen and self.unseen == "refuse":
            raise ValueError(
                f"X has symbols that the training data did not have, such as {str(unseen[0])!r}; "
                "unseen='missing' takes them as not observed"
            )
        return np.array([places.get(text, _UNKNOWN) for text in texts], dtype=np.uint32)

    def _size(self, observed: NDArray[Any]) -> int:
        seen = observed[observed != _UNKNOWN]
        if not len(seen):
            raise ValueError("X must have a symbol that was observed")
        return self.n_features or int(seen.max()) + 1

    def _prior(self) -> dict[str, float]:
        return {"count": float(self.emissionprob_prior) - 1.0}

    def _emissions(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        check_is_fitted(self, "emissionprob_")
        return np.asarray(self.emissionprob_), np.zeros(0)

    def _take(self, values: NDArray[np.float64], covariances: NDArray[np.float64]) -> None:
        self.emissionprob_ = values


@documented
class GaussianHMM(BaseHMM):
    """Hidden Markov model of real vectors, as ``hmmlearn.hmm.GaussianHMM``.

    Parameters
    ----------
    n_components : int, default=1
        Number of states.
    covariance_type : {'spherical', 'diag', 'full', 'tied'}, default='diag'
        A variance, variances or a matrix for each state, or one matrix for all.
    means_prior, means_weight : float, default=0
        Mean of the means before any row was seen, and how many rows it counts for.
    covars_prior, covars_weight : float, default=1e-2 and 1
        Added to the scatter of each feature, and how many rows it counts for.
    {markov}
    params, init_params : str
        What `fit` learns, and what it begins with at random: ``s`` start and ``t``
        transition probabilities, ``m`` means and ``c`` covariances.
        What `init_params` leaves out must be set before `fit`.
    {markov_training}

    Attributes
    ----------
    {markov_attributes}
    means_ : ndarray of shape (n_components, n_features)
        Means.
    covars_ : ndarray
        Covariances: of shape (n_components,), (n_components, n_features),
        (n_components, n_features, n_features) or (n_features, n_features).

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin import GaussianHMM
    >>> X = np.array([0.1, -0.2, 0.0, 5.1, 4.8, 5.0, 0.2, -0.1]).reshape(-1, 1)
    >>> model = GaussianHMM(n_components=2, random_state=0, n_iter=20).fit(X)
    >>> states = model.predict(X)
    >>> bool(states[0] == states[-1] != states[3])
    True
    """

    _kind = "gaussian"
    _letters: ClassVar[dict[str, str]] = {
        "s": "startprob_",
        "t": "transmat_",
        "m": "means_",
        "c": "covars_",
    }
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **_SHARED,
        "covariance_type": [StrOptions({"spherical", "diag", "full", "tied"})],
        "means_prior": [Interval(Real, None, None, closed="neither")],
        "means_weight": _NOT_NEGATIVE,
        "covars_prior": _NOT_NEGATIVE,
        "covars_weight": _NOT_NEGATIVE,
    }

    means_prior: float
    means_weight: float
    covars_prior: float
    covars_weight: float

    @stores_parameters
    def __init__(
        self,
        n_components: int = 1,
        covariance_type: str = "diag",
        startprob_prior: float = 1.0,
        transmat_prior: float = 1.0,
        means_prior: float = 0.0,
        means_weight: float = 0.0,
        covars_prior: float = 1e-2,
        covars_weight: float = 1.0,
        algorithm: str = "viterbi",
        random_state: Any = None,
        n_iter: int = 10,
        tol: float = 1e-2,
        verbose: bool | int = False,
        params: str = "stmc",
        init_params: str = "stmc",
        implementation: str = "scaling",
        n_init: int = 1,
        n_inputs: int | None = None,
        input_lag: int = 1,
        uniform_below: float = 0.0,
        n_jobs: int | None = None,
        max_time: float | None = None,
        callbacks: Any = None,
    ) -> None: ...

    def _observed(self, X: Any, fitting: bool = False) -> NDArray[Any]:
        return self._rows(X, fitting, whole=False)

    def _prior(self) -> dict[str, float]:
        return {
            "mean": float(self.means_prior),
            "mean_weight": float(self.means_weight),
            "covariance": float(self.covars_prior),
            "covariance_weight": float(self.covars_weight),
        }

    def _emissions(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        check_is_fitted(self, ["means_", "covars_"])
        return np.asarray(self.means_), np.asarray(self.covars_)

    def _take(self, values: NDArray[np.float64], covariances: NDArray[np.float64]) -> None:
        states, size = values.shape
        shapes = {
            "spherical": (states,),
            "diag": (states, size),
            "full": (states, size, size),
            "tied": (size, size),
        }
        self.means_ = values
        self.covars_ = covariances.reshape(shapes[self.covariance_type])


@documented
class PoissonHMM(BaseHMM):
    """Hidden Markov model of counts, as ``hmmlearn.hmm.PoissonHMM``.

    Parameters
    ----------
    n_components : int, default=1
        Number of states.
    lambdas_prior, lambdas_weight : float, default=0
        Added to the sum of each count, and how many rows it counts for.
    {markov}
    params, init_params : str
        What `fit` learns, and what it begins with at random: ``s`` start and ``t``
        transition probabilities and ``l`` rates.
        What `init_params` leaves out must be set before `fit`.
    {markov_training}

    Attributes
    ----------
    {markov_attributes}
    lambdas_ : ndarray of shape (n_components, n_features)
        Mean counts.

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin import PoissonHMM
    >>> X = np.array([[1], [0], [2], [20], [25], [22], [1], [2]])
    >>> model = PoissonHMM(n_components=2, random_state=0, n_iter=20).fit(X)
    >>> states = model.predict(X)
    >>> bool(states[0] == states[-1] != states[3])
    True
    """

    _kind = "poisson"
    _letters: ClassVar[dict[str, str]] = {"s": "startprob_", "t": "transmat_", "l": "lambdas_"}
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **_SHARED,
        "lambdas_prior": _NOT_NEGATIVE,
        "lambdas_weight": _NOT_NEGATIVE,
    }

    lambdas_prior: float
    lambdas_weight: float

    @stores_parameters
    def __init__(
        self,
        n_components: int = 1,
        startprob_prior: float = 1.0,
        transmat_prior: float = 1.0,
        lambdas_prior: float = 0.0,
        lambdas_weight: float = 0.0,
        algorithm: str = "viterbi",
        random_state: Any = None,
        n_iter: int = 10,
        tol: float = 1e-2,
        verbose: bool | int = False,
        params: str = "stl",
        init_params: str = "stl",
        implementation: str = "scaling",
        n_init: int = 1,
        n_inputs: int | None = None,
        input_lag: int = 1,
        uniform_below: float = 0.0,
        n_jobs: int | None = None,
        max_time: float | None = None,
        callbacks: Any = None,
    ) -> None: ...

    def _observed(self, X: Any, fitting: bool = False) -> NDArray[Any]:
        return self._rows(X, fitting, whole=True)

    def _prior(self) -> dict[str, float]:
        return {"rate": float(self.lambdas_prior), "rate_weight": float(self.lambdas_weight)}

    def _emissions(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        check_is_fitted(self, "lambdas_")
        return np.asarray(self.lambdas_), np.zeros(0)

    def _take(self, values: NDArray[np.float64], covariances: NDArray[np.float64]) -> None:
        self.lambdas_ = values


@documented
class DensityHMM(BaseHMM):
    """Hidden Markov model whose states emit what a function of yours says.

    Start and transition probabilities are learnt, densities are not.

    Parameters
    ----------
    log_density : callable
        Takes X and returns the logarithm of the density of each row in each state, an array of
        shape (n_samples, n_components); -inf where a state excludes a row.
    n_components : int, default=1
        Number of states.
    {markov}
    params, init_params : str
        What `fit` learns, and what it begins with at random: ``s`` start and ``t``
        transition probabilities.
    {markov_training}

    Attributes
    ----------
    {markov_attributes}

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin import DensityHMM
    >>> def log_density(X):
    ...     return -np.abs(X - np.array([[0.0, 5.0]]))  # two Laplace distributions
    >>> X = np.array([[0.1], [0.2], [4.8], [5.1], [5.3], [0.0]])
    >>> DensityHMM(log_density, n_components=2, random_state=0).fit(X).predict(X).tolist()
    [0, 0, 1, 1, 1, 0]
    """

    _kind = "given"
    _letters: ClassVar[dict[str, str]] = {"s": "startprob_", "t": "transmat_"}
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **_SHARED,
        "log_density": [callable, None],
    }

    log_density: Any

    @stores_parameters
    def __init__(
        self,
        log_density: Any = None,
        n_components: int = 1,
        startprob_prior: float = 1.0,
        transmat_prior: float = 1.0,
        algorithm: str = "viterbi",
        random_state: Any = None,
        n_iter: int = 10,
        tol: float = 1e-2,
        verbose: bool | int = False,
        params: str = "st",
        init_params: str = "st",
        implementation: str = "scaling",
        n_init: int = 1,
        n_inputs: int | None = None,
        input_lag: int = 1,
        uniform_below: float = 0.0,
        n_jobs: int | None = None,
        max_time: float | None = None,
        callbacks: Any = None,
    ) -> None: ...

    def _observed(self, X: Any, fitting: bool = False) -> NDArray[Any]:
        if self.log_density is None:
            raise ValueError("log_density must be a function")
        values = np.ascontiguousarray(self.log_density(np.asarray(X)), dtype=np.float64)
        expected = (len(X), self.n_components)
        if values.shape != expected:
            raise ValueError(
                f"log_density must return an array of shape {expected}, found {values.shape}"
            )
        return values

    def _prior(self) -> dict[str, float]:
        return {}

    def _emissions(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return np.zeros((self.n_components, 0)), np.zeros(0)

    def _take(self, values: NDArray[np.float64], covariances: NDArray[np.float64]) -> None:
        pass
