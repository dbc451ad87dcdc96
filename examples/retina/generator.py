"""Spike trains of invented retinal ganglion cells that see one flickering field.

The stimulus is an intensity from 0 to 255 in each frame of 100 ms, round(N(127, 54²)) clipped.
With z = (intensity - 127) / 54, z = 0 before the start, a cell fires

    count_t = min(Poisson(r_t), 39)        r_t = 1.2 g log(1 + exp(b + Σ k_lag(t) z_(t-lag)))

where g = exp(0.1 N(0, 1)) is drawn for each block of 500 frames. The weight of one lag may
drift: it is multiplied by 1 + d (2 t / (T - 1) - 1). A quadratic cell has r_t = c (Σ k_lag
z_(t-lag))² instead.

Three cells stand for the classes of Zhong et al. (2005): Fast-ON, OFF and Slow-ON. Their filters
were chosen so that errors come near those of Lu (2005), Table 2.2: they are no independent
evidence for fused kernels. `OTHER_FILTERS` is the first set that was tried, with which fusion
does not help.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

FRAMES, BLOCK, LARGEST_COUNT = 53_460, 500, 39
NAMES = ("Fast-ON", "OFF", "Slow-ON")
FILTERS = (
    ((1.5, 0.5, 0.1, 0.0, 0.0), 0.6),
    ((-0.35, -0.2, 0.0, 0.0, 0.0), 1.6),
    ((0.2, 0.5, 0.5, 0.3, 0.1), 1.1),
)
OTHER_FILTERS = (
    ((1.1, 0.5, 0.1, 0.0, 0.0), 0.9),
    ((-0.45, -0.25, -0.05, 0.0, 0.0), 1.5),
    ((0.25, 0.6, 0.5, 0.25, 0.1), 0.9),
)


@dataclass(frozen=True)
class Cell:
    """A cell: weights of lags 0, 1, …, offset, drifts by lag, and whether its rate is a square."""

    name: str
    weights: tuple[float, ...]
    offset: float
    drift: dict[int, float] = field(default_factory=dict)
    square: float = 0.0


@dataclass(frozen=True)
class Recording:
    """Intensities of the stimulus, and counts of each cell, frame by frame."""

    stimulus: np.ndarray
    counts: np.ndarray
    names: tuple[str, ...]


def lagged(stimulus: np.ndarray, lags: int) -> np.ndarray:
    """Return the normalised stimulus of lags 0, 1, … in columns, 0 before the start."""
    z = (stimulus - 127) / 54
    columns = [np.concatenate([np.zeros(lag), z[: len(z) - lag]]) for lag in range(lags)]
    return np.stack(columns, axis=1)


def fire(cell: Cell, stimulus: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return the counts of a cell."""
    frames = len(stimulus)
    columns = lagged(stimulus, len(cell.weights))
    weights = np.tile(np.array(cell.weights), (frames, 1))
    clock = 2 * np.arange(frames) / max(frames - 1, 1) - 1
    for lag, drift in cell.drift.items():
        weights[:, lag] *= 1 + drift * clock
    drive = (columns * weights).sum(axis=1)
    gains = np.exp(0.1 * rng.standard_normal(-(-frames // BLOCK)))
    gain = np.repeat(gains, BLOCK)[:frames]
    if cell.square > 0:
        rate = cell.square * drive**2
    else:
        rate = 1.2 * gain * np.logaddexp(0, cell.offset + drive)
    return np.minimum(rng.poisson(rate), LARGEST_COUNT)


def record(cells: list[Cell], seed: int, frames: int = FRAMES) -> Recording:
    """Return a recording of cells that see the same stimulus."""
    rng = np.random.default_rng(seed)
    stimulus = np.clip(np.round(rng.normal(127, 54, frames)), 0, 255)
    counts = np.stack([fire(cell, stimulus, rng) for cell in cells], axis=1)
    return Recording(stimulus, counts, tuple(cell.name for cell in cells))


def three_cells(filters: tuple = FILTERS) -> list[Cell]:
    """Return the Fast-ON, the OFF and the Slow-ON cell; their weight of lag 1 grows."""
    cells = zip(NAMES, filters, strict=True)
    return [Cell(name, weights, offset, {1: 0.3}) for name, (weights, offset) in cells]


#: Lags whose weight drifts in a sensible way need a weight that is not small.
DRIFTING_LAG = 1
#: Cells, from 1, whose rate is a square.
QUADRATIC = (3, 16)


def seventeen_cells(seed: int = 0) -> list[Cell]:
    """Return 15 cells with random filters of 5 lags and two with a square, numbers 3 and 16.

    Rates are 4 to 77 Hz. The weight of lag 1 grows over the recording, from half to one and a half
    of its mean, in cells 1, 4 and 9 and shrinks in cells 5, 7, 8 and 10 to 13; the others do not
    drift.
    """
    rng = np.random.default_rng(seed)
    cells = []
    for number in range(1, 18):
        sign = -1.0 if number % 4 == 0 else 1.0
        weights = sign * rng.uniform(0.05, 0.35, 5)
        # Where it drifts, the weight is large enough to be seen.
        weights[DRIFTING_LAG] = sign * rng.uniform(0.5, 0.7)
        drift = 0.5 * (number in (1, 4, 9)) - 0.5 * (number in (5, 7, 8, 10, 11, 12, 13))
        drifts = {DRIFTING_LAG: drift} if drift else {}
        square = 1.5 if number in QUADRATIC else 0.0
        offset = float(rng.uniform(1.5, 4.0))
        cells.append(Cell(f"{number}", tuple(weights), offset, drifts, square))
    return cells
