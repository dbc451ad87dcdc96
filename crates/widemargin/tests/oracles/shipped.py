"""Rows and targets of a data set as the oracles use them: thinned, then scaled to [-1, 1]."""

import os
from pathlib import Path

import numpy as np

from problems import read_libsvm

ALIASES = {"diabetes": "diabetes-efron"}


def load(root: Path, name: str, stride: int):
    if name == "digits":
        from sklearn.datasets import load_digits

        x, y = load_digits(return_X_y=True)
    else:
        folder = Path(os.environ["WIDEMARGIN_DATA"])
        n = ALIASES.get(name, name)
        x, y = read_libsvm(folder / n / f"{n}.libsvm.xz")
        x = x.toarray()
    x, y = np.asarray(x, float)[::stride], np.asarray(y, float)[::stride]
    low, high = x.min(0), x.max(0)
    span = np.where(high > low, high - low, 1.0)
    return np.where(high > low, -1 + 2 * (x - low) / span, 0.0), y
