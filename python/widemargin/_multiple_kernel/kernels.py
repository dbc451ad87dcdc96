"""Kernels and the columns that each sees, as the library reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils._indexing import _get_column_indices
from sklearn.utils.validation import check_array

if TYPE_CHECKING:
    from numpy.typing import NDArray


def candidates(kernels: Any, views: Any, X: Any) -> list[tuple[Any, NDArray[np.intp] | None]]:
    """Return every kernel and the columns that it sees, None for all."""
    if views is None:
        return [(kernel, None) for kernel in kernels]
    if len(views) == 0:
        raise ValueError("views: expected at least one view, found none")
    entries: list[tuple[Any, NDArray[np.intp] | None]] = []
    for view in views:
        if not (isinstance(view, (tuple, list)) and len(view) == 3 and isinstance(view[0], str)):
            raise ValueError(
                "views: expected (name, kernel, columns) such as ('shape', 'rbf', [0, 1]), "
                f"found {view!r}"
            )
        name, kernel, columns = view
        columns = columns(X) if callable(columns) else columns
        at = np.asarray(_get_column_indices(X, columns), dtype=np.intp)
        if len(at) == 0:
            raise ValueError(f"views: expected columns of '{name}', found none")
        if isinstance(kernel, str) and kernel == "precomputed" and (np.diff(at) < 0).any():
            raise ValueError(f"views: expected the columns of '{name}' in ascending order")
        entries.append((kernel, np.unique(at)))
    return entries


def viewed(kernel: Any, columns: NDArray[np.intp] | None) -> str:
    """Return a kernel and its columns as the library reads them."""
    return as_text(kernel) if columns is None else f"view({_ranges(columns)}: {as_text(kernel)})"


def kernel_texts(kernels: Any, views: Any, X: Any) -> tuple[Any, list[str]]:
    """Return rows and every kernel as the library reads it; functions are refused."""
    if views is None and isinstance(kernels, str) and kernels == "precomputed":
        tables = [check_array(table, dtype=np.float64, order="C") for table in X]
        return np.hstack(tables), table_views([table.shape[1] for table in tables])
    kernels = [kernels] if isinstance(kernels, (str, dict)) else kernels
    entries = candidates(kernels, views, X)
    if not entries:
        raise ValueError("kernels: expected at least one kernel, found none")
    if any(callable(kernel) for kernel, _ in entries):
        raise ValueError("kernels: expected names, expressions or dictionaries, found a function")
    return X, [viewed(kernel, columns) for kernel, columns in entries]


def as_text(kernel: Any) -> str:
    """Return a kernel given by name, expression or dictionary as the library reads it."""
    if isinstance(kernel, str):
        return kernel
    if not isinstance(kernel, dict) or "kernel" not in kernel:
        raise ValueError(
            "kernels: expected names, dictionaries such as {'kernel': 'rbf', 'gamma': 0.1} or "
            f"functions, found {kernel!r}"
        )
    given = [f"{name}={value}" for name, value in kernel.items() if name != "kernel"]
    return f"{kernel['kernel']}({', '.join(given)})" if given else str(kernel["kernel"])


def _ranges(columns: NDArray[np.intp]) -> str:
    """Return ascending columns as the library reads them, counted from 1."""
    parts = np.split(columns, np.flatnonzero(np.diff(columns) != 1) + 1)
    return ",".join(f"{part[0] + 1}-{part[-1] + 1}" for part in parts)


def table_views(widths: list[int]) -> list[str]:
    """Return a view of the columns of every table."""
    ends = np.cumsum(widths)
    return [
        f"view({end - width + 1}-{end}: precomputed)"
        for end, width in zip(ends, widths, strict=True)
    ]
