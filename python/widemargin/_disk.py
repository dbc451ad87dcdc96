"""Rows for training from disk: files of LIBSVM text, or portions of rows written as such."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file
from sklearn.utils import check_X_y

#: Bytes of every unit that a size may be given in.
_UNITS = {"KB": 2**10, "MB": 2**20, "GB": 2**30}


def parse_bytes(size: int | str) -> int:
    """Return a number of bytes from a number or a text such as "512MB"."""
    if isinstance(size, str):
        number, unit = size[:-2].strip(), size[-2:].upper()
        if unit in _UNITS:
            try:
                return int(float(number) * _UNITS[unit])
            except ValueError:
                pass
        raise ValueError(f"memory has to be a number of bytes or such as '512MB', not {size!r}")
    return int(size)


def is_file(source: Any) -> bool:
    """Return whether rows are given as a file or folder."""
    return isinstance(source, (str, os.PathLike))


def write_portions(portions: Iterable[tuple[Any, Any]], folder: Path) -> list[str]:
    """Write portions of rows and labels as files of LIBSVM text; return their names in order."""
    columns = None
    names = []
    for number, (X, y) in enumerate(portions):
        X, y = check_X_y(X, y, accept_sparse="csr", y_numeric=False)
        if not np.issubdtype(np.asarray(y).dtype, np.number):
            raise ValueError("labels have to be numbers where rows are learnt from disk")
        if columns not in (None, X.shape[1]):
            raise ValueError(
                f"portion {number} has {X.shape[1]} features, but those before it have {columns}"
            )
        columns = X.shape[1]
        rows = sp.csr_matrix(X)
        if rows.shape[0] and rows[0, columns - 1] == 0:
            # A zero that is written tells how many features there are.
            first = sp.csr_matrix(
                (
                    np.append(rows[0].data, 0.0),
                    np.append(rows[0].indices, columns - 1),
                    [0, rows[0].nnz + 1],
                ),
                shape=(1, columns),
            )
            rows = sp.vstack([first, rows[1:]], format="csr")
        path = folder / f"rows-{number:06}.libsvm"
        dump_svmlight_file(rows, y, str(path), zero_based=False)
        names.append(str(path))
    if not names:
        raise ValueError("expected at least one portion of rows, found none")
    return names
