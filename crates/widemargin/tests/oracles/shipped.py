"""A data set of the repository as the oracles use it: thinned, then scaled to [-1, 1]."""

import csv
from pathlib import Path

import numpy as np

from problems import read_libsvm


def load(root: Path, file: str, stride: int):
    """Rows, targets (a number, or the class counted in sorted order) and the class names."""
    path = root / "data" / file
    if file.endswith(".csv"):
        with open(path, newline="", encoding="utf-8") as handle:
            lines = list(csv.reader(handle))[1:]
        x = np.array([line[:-1] for line in lines], float)
        y = np.array([line[-1] for line in lines])
    else:
        rows, y = read_libsvm(path)
        x, y = rows.toarray(), np.array([f"{v:g}" for v in y])
    x, y = x[::stride], y[::stride]
    low, high = x.min(0), x.max(0)
    span = np.where(high > low, high - low, 1.0)
    x = np.where(high > low, -1 + 2 * (x - low) / span, 0.0)
    names, codes = np.unique(y, return_inverse=True)
    return x, y, codes.astype(float), names.tolist()
