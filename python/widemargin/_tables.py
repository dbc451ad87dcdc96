"""Tables of users as the compiled half takes them, and back."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import validate_data

from widemargin import _core


def checked_rows(estimator: Any, X: Any, y: Any = "no_validation", **options: Any) -> Any:
    """Return rows, and targets where there are any, checked as scikit-learn checks them.

    Rows are numbers in single or double precision, C-ordered or CSR; `options` are other options of
    scikit-learn's ``validate_data``.
    """
    usual = {"dtype": [np.float64, np.float32], "order": "C", "accept_sparse": "csr"}
    return validate_data(estimator, X, y, accept_large_sparse=False, **{**usual, **options})


def to_core(X: Any) -> _core.Table:
    """Return a checked table (C-ordered float32 or float64, or CSR) for the compiled half.

    Dense arrays are passed as they are; nothing of the caller's is changed.
    """
    if not sp.issparse(X):
        table: _core.Table = np.require(X, requirements=["C_CONTIGUOUS", "ALIGNED"])
        return table
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    indptr = np.ascontiguousarray(X.indptr, dtype=np.int32)
    indices = np.ascontiguousarray(X.indices, dtype=np.int32)
    return indptr, indices, np.ascontiguousarray(X.data), X.shape[1]


def from_core(table: _core.Table, container: str | None) -> Any:
    """Return a table of the compiled half as an array, or as the named sparse container."""
    if isinstance(table, tuple):
        indptr, indices, values, columns = table
        shape = (len(indptr) - 1, columns)
        sparse = sp.csr_array((values, indices, indptr), shape=shape)
        return to_container(sparse, container or "csr_array")
    return table if container is None else to_container(table, container)


def to_container(values: Any, container: str) -> Any:
    """Return `values` as ``"csr_array"`` or ``"csr_matrix"``."""
    return sp.csr_matrix(values) if container == "csr_matrix" else sp.csr_array(values)


def container_of(X: Any) -> str:
    """Return which of scipy's two kinds of sparse tables `X` is."""
    return "csr_matrix" if isinstance(X, sp.spmatrix) else "csr_array"
