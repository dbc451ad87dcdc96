"""What a search that is not bound to a grid may try: everything between the ends of its values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.model_selection import ParameterGrid


class Space:
    """The points between the ends of a grid's values, each by numbers from 0 to 1.

    Values that are numbers, but not consecutive whole ones, are the ends of a range, at equal
    ratios where all are positive; others are taken as they are. Of several grids the last number
    picks one.
    """

    def __init__(self, grid: Any) -> None:
        if not isinstance(grid, Mapping):
            grid = list(grid)
        list(ParameterGrid(grid))  # Says what is wrong with the grid, if anything is.
        self.grids: list[Mapping[str, Any]] = [grid] if isinstance(grid, Mapping) else grid
        self.names = sorted({name for each in self.grids for name in each})

    @property
    def dimensions(self) -> int:
        """How many numbers a point has."""
        return len(self.names) + (len(self.grids) > 1)

    def at(self, shares: Sequence[float]) -> tuple[dict[str, Any], list[float]]:
        """Return a point, and the middle of all numbers that mean it."""
        middle = list(shares)
        grid = self.grids[0]
        if len(self.grids) > 1:
            grid, middle[-1] = _cell(self.grids, shares[-1])
        point = {}
        for place, name in enumerate(self.names):
            if name not in grid:
                middle[place] = 0.5
                continue
            values = list(grid[name])
            if is_range(values):
                value = between(float(min(values)), float(max(values)), shares[place])
                point[name] = round(value) if is_whole(values) else value
            else:
                point[name], middle[place] = _cell(values, shares[place])
        return point, middle


def is_whole(values: Any) -> bool:
    """Tell whether all values are whole numbers, so that what lies between them has to be too."""
    return all(isinstance(v, Integral) for v in values)


def is_range(values: Any) -> bool:
    """Tell whether what lies between the values means something."""
    reals = all(isinstance(v, Real) and not isinstance(v, (bool, np.bool_)) for v in values)
    near = is_whole(values) and max(values) - min(values) < len(values)
    return reals and not near and len(values) > 1


def between(low: float, high: float, share: float) -> float:
    if low > 0.0:
        return float(np.clip(np.exp((1.0 - share) * np.log(low) + share * np.log(high)), low, high))
    return (1.0 - share) * low + share * high


def _cell(values: Sequence[Any], share: float) -> tuple[Any, float]:
    place = min(int(share * len(values)), len(values) - 1)
    return values[place], (place + 0.5) / len(values)
