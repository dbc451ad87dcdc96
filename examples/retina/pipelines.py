"""Features of spike trains, the recognition of cells, linear encoding models and their drift.

After section 2.4 and chapter 3.4 of Lu, Kernel Optimization and Distributed Learning Algorithms
(UCLA, 2005).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import lgamma

import numpy as np

from widemargin import SVR, CategoricalHMM, MultipleKernelSVC, MultipleKernelSVR, gram

LEVELS, INPUTS, SYMBOLS, SEGMENT, WINDOW = 10, 8, 40, 500, 20


# Features


def emissions() -> np.ndarray:
    """Return p(count | level): level 0 is silent, level i fires 2^(i-1) times, up to 39."""
    counts = np.arange(SYMBOLS)
    factorials = np.array([lgamma(count + 1) for count in counts])
    table = np.zeros((LEVELS, SYMBOLS))
    table[0, 0] = 1.0
    for level in range(1, LEVELS):
        logs = counts * np.log(2.0 ** (level - 1)) - 2.0 ** (level - 1) - factorials
        logs -= logs.max()
        table[level] = np.exp(logs) / np.exp(logs).sum()
    return table


def symbols(stimulus: np.ndarray) -> np.ndarray:
    """Return intensities in 3 bits."""
    return np.clip(np.asarray(stimulus) // 32, 0, INPUTS - 1).astype(int)


def clipped(counts: np.ndarray) -> np.ndarray:
    """Return counts that are whole numbers from 0 to 39; larger ones become 39."""
    table = np.asarray(counts, dtype=float)
    if not np.isfinite(table).all() or (table < 0).any() or (table != np.floor(table)).any():
        raise ValueError("counts must be whole numbers of at least 0")
    return np.minimum(table, SYMBOLS - 1).astype(int)


def transitions(
    stimulus: np.ndarray,
    counts: np.ndarray,
    lag: int = 1,
    starts: int = 10,
    iterations: int = 200,
    uniform_below: float = 0.0,
    seed: int = 0,
) -> np.ndarray:
    """Return the transition matrices of a segment, one for each input, row by row (RGC-HMM).

    Emissions are fixed; the input of frame t chooses the transition `lag` frames later. Rows that
    are left fewer times than `uniform_below`, in expectation, become uniform; without it a row that
    is never left keeps its random beginning.
    """
    hmm = CategoricalHMM(
        LEVELS,
        n_features=SYMBOLS,
        n_inputs=INPUTS,
        input_lag=lag,
        params="st",
        init_params="st",
        n_init=starts,
        n_iter=iterations,
        tol=1e-3,
        uniform_below=uniform_below,
        random_state=seed,
        n_jobs=1,
    )
    hmm.emissionprob_ = emissions()
    hmm.fit(clipped(counts)[:, None], inputs=symbols(stimulus))
    return np.asarray(hmm.transmat_).ravel()


def histogram(counts: np.ndarray) -> np.ndarray:
    """Return the number of frames with 0, 1, …, 39 spikes (RGC-FREQ)."""
    return np.bincount(clipped(counts), minlength=SYMBOLS).astype(float)


@dataclass(frozen=True)
class Segments:
    """Features of the segments of all cells and the cell of each."""

    transitions: np.ndarray
    histograms: np.ndarray
    cells: np.ndarray


def segments(stimulus: np.ndarray, counts: np.ndarray, **options) -> Segments:
    """Cut recordings into segments of 500 frames and return the features of each."""
    first, second, cells = [], [], []
    for cell in range(counts.shape[1]):
        for begin in range(0, len(stimulus) - SEGMENT + 1, SEGMENT):
            part = slice(begin, begin + SEGMENT)
            first.append(transitions(stimulus[part], counts[part, cell], **options))
            second.append(histogram(counts[part, cell]))
            cells.append(cell)
    return Segments(np.array(first), np.array(second), np.array(cells))


# Which cell fired


def candidates(data: Segments) -> dict[str, list[np.ndarray]]:
    """Return the Gram matrices of each way to use the features."""
    one, two = data.transitions, data.histograms
    both = np.hstack([one, two])
    spread = both.std(axis=0)
    scaled = (both - both.mean(axis=0)) / np.where(spread > 0, spread, 1.0)

    def product(rows: np.ndarray) -> np.ndarray:
        return gram.scale_to_trace(rows @ rows.T)

    return {
        "transitions, K1": [product(one)],
        "histograms, K2": [product(two)],
        "concatenated": [product(both)],
        "concatenated, z-scores": [product(scaled)],
        "fused, K1 and K2": [product(one), product(two)],
    }


def identify(data: Segments, splits: int, train: int = 180, C: float = 16, seed: int = 0):
    """Return the test errors in percent of each way, for each split, and the fused weights."""
    tables = candidates(data)
    errors: dict[str, list[float]] = {name: [] for name in tables}
    weights = []
    rng = np.random.default_rng(seed)
    for _ in range(splits):
        order = rng.permutation(len(data.cells))
        test = order[train:]
        labels = data.cells.copy()
        labels[test] = -1
        for name, kernels in tables.items():
            model = MultipleKernelSVC("precomputed", C=C, unlabeled=-1, tol=1e-3, n_jobs=1)
            model.fit(kernels, labels)
            found = dict(zip(np.flatnonzero(labels == -1), model.transduction_, strict=True))
            wrong = np.mean([found[row] != data.cells[row] for row in test])
            errors[name].append(100 * float(wrong))
            if len(kernels) > 1:
                weights.append(list(model.kernel_weights_))
    return {name: np.array(values) for name, values in errors.items()}, np.array(weights)


# Encoding models


def moving_window(stimulus: np.ndarray, width: int = WINDOW) -> np.ndarray:
    """Return `width` successive values in each row; the response is that of the last (RGC-ENC)."""
    values = np.asarray(stimulus, dtype=float)
    if not 1 <= width <= len(values):
        raise ValueError(f"width must be from 1 to {len(values)}, found {width}")
    return np.lib.stride_tricks.sliding_window_view(values, width).copy()


def normalised(stimulus: np.ndarray) -> np.ndarray:
    """Return intensities with mean 0 and standard deviation 1."""
    values = np.asarray(stimulus, dtype=float)
    return (values - values.mean()) / values.std()


def verify(
    stimulus: np.ndarray,
    counts: np.ndarray,
    repetitions: int,
    C: float = 1.0,
    epsilon: float = 0.1,
    seed: int = 0,
) -> np.ndarray:
    """Return errors of the linear kernel and of the best sum of polynomials of order 1 to 7.

    Each repetition takes 500 successive frames at random and the 100 after them; errors are the
    mean of max(0, |y - f| - epsilon), an array of two columns.
    """
    rows, targets = moving_window(normalised(stimulus)), np.asarray(counts, float)[WINDOW - 1 :]
    rng = np.random.default_rng(seed)
    errors = []
    for _ in range(repetitions):
        begin = int(rng.integers(0, len(rows) - SEGMENT - 100 + 1))
        part = slice(begin, begin + SEGMENT + 100)
        products = rows[part] @ rows[part].T / WINDOW
        tables = [gram.scale_to_trace((1 + products) ** order) for order in range(1, 8)]
        own = targets[part]
        known = own.copy()
        known[SEGMENT:] = np.nan
        found = []
        for kernels in (tables[:1], tables):
            model = MultipleKernelSVR(
                "precomputed",
                C=C,
                epsilon=epsilon,
                tol=1e-2,
                jitter=1e-6,
                unlabeled="nan",
                n_jobs=1,
            )
            predicted = model.fit(kernels, known).transduction_
            loss = np.maximum(np.abs(own[SEGMENT:] - predicted) - epsilon, 0)
            found.append(float(loss.mean()))
        errors.append(found)
    return np.array(errors)


def paired_p_value(first: np.ndarray, second: np.ndarray) -> float:
    """Return the probability of so large a mean difference under random signs."""
    differences = np.asarray(first) - np.asarray(second)
    count = len(differences)
    if count <= 14:
        signs = np.array(
            [[1 - 2 * (code >> bit & 1) for bit in range(count)] for code in range(2**count)]
        )
    else:
        signs = np.random.default_rng(0).choice([-1, 1], (10_000, count))
    sums = np.abs(signs @ differences)
    return float(np.mean(sums >= abs(differences.sum()) * (1 - 1e-12)))


@dataclass(frozen=True)
class Filters:
    """A linear filter of each block of frames; its last weight is of the current frame."""

    frames: np.ndarray
    weights: np.ndarray
    offsets: np.ndarray
    errors: np.ndarray

    def mean(self) -> np.ndarray:
        """Return the mean filter."""
        return self.weights.mean(axis=0)

    def drift(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the slope of each weight over a recording from -1 to 1, and its standard error."""
        clock = 2 * (self.frames - self.frames[0]) / max(self.frames[-1] - self.frames[0], 1) - 1
        centred = clock - clock.mean()
        square = (centred**2).sum()
        slopes = centred @ self.weights / square
        fitted = self.weights.mean(axis=0) + np.outer(centred, slopes)
        residual = ((self.weights - fitted) ** 2).sum(axis=0) / max(len(clock) - 2, 1)
        return slopes, np.sqrt(residual / square)


def filters(
    stimulus: np.ndarray,
    counts: np.ndarray,
    C: float = 1.0,
    epsilon: float = 0.1,
    stride: int = 600,
) -> Filters:
    """Return the linear filter of each stride: 500 frames, tested on the next 100 (RGC-FILT)."""
    rows, targets = moving_window(normalised(stimulus)), np.asarray(counts, float)[WINDOW - 1 :]
    begins = range(0, len(rows) - SEGMENT - 100 + 1, stride)
    weights, offsets, errors = [], [], []
    for begin in begins:
        train, test = slice(begin, begin + SEGMENT), slice(begin + SEGMENT, begin + SEGMENT + 100)
        model = SVR(kernel="linear", C=C, epsilon=epsilon, n_jobs=1).fit(
            rows[train], targets[train]
        )
        weights.append(np.asarray(model.coef_).ravel())
        offsets.append(float(np.ravel(model.intercept_)[0]))
        loss = np.abs(model.predict(rows[test]) - targets[test]) - epsilon
        errors.append(float(np.maximum(loss, 0).mean()))
    return Filters(np.array(list(begins)), np.array(weights), np.array(offsets), np.array(errors))
