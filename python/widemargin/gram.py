"""Gram matrices before they are combined: scaling, centring, repair and alignment.

Each function takes and returns a symmetric array; a table that is none has an error of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_array

from widemargin import _core

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["center", "centered_alignment", "cosine", "repair", "scale_to_trace"]


def _checked(K: Any) -> NDArray[np.float64]:
    values: NDArray[np.float64] = check_array(K, dtype=np.float64, order="C")
    return values


def scale_to_trace(K: Any, trace: float | None = None) -> NDArray[np.float64]:
    """Return K scaled to a trace.

    Parameters
    ----------
    K : array-like of shape (n, n)
        Kernel values.
    trace : float, default=None
        The trace; None is n.

    Returns
    -------
    K : ndarray of shape (n, n)
        The scaled matrix.
    """
    K = _checked(K)
    return _core.gram_scaled(K, float(len(K) if trace is None else trace))[0]


def center(K: Any) -> NDArray[np.float64]:
    """Return K with the origin of its feature space at the mean of the rows.

    For new rows use scikit-learn's KernelCenterer.

    Parameters
    ----------
    K : array-like of shape (n, n)
        Kernel values.

    Returns
    -------
    K : ndarray of shape (n, n)
        The centred matrix.
    """
    return _core.gram_centred(_checked(K))


def cosine(K: Any) -> NDArray[np.float64]:
    """Return the cosines K_ij / sqrt(K_ii K_jj); rows of length 0 keep zeros.

    Parameters
    ----------
    K : array-like of shape (n, n)
        Kernel values.

    Returns
    -------
    K : ndarray of shape (n, n)
        Cosines.
    """
    return _core.gram_cosine(_checked(K))


def repair(K: Any, how: str = "shift") -> tuple[NDArray[np.float64], float]:
    """Return a positive semidefinite matrix and the smallest eigenvalue that K has.

    Parameters
    ----------
    K : array-like of shape (n, n)
        Kernel values, perhaps of a kernel that is not positive semidefinite.
    how : {'shift', 'clip', 'flip', 'refuse'}, default='shift'
        Add the smallest eigenvalue to the diagonal, set negative ones to 0, change their sign, or
        raise an error.

    Returns
    -------
    K : ndarray of shape (n, n)
        The matrix, unchanged where no eigenvalue is negative beyond rounding.
    smallest : float
        Smallest eigenvalue of the matrix given.
    """
    repaired, smallest, _ = _core.gram_repaired(_checked(K), how)
    return repaired, smallest


def centered_alignment(K: Any, L: Any) -> float:
    """Return the cosine of two centred matrices (Cortes, Mohri and Rostamizadeh, 2012).

    Parameters
    ----------
    K, L : array-like of shape (n, n)
        Kernel values between the same rows.

    Returns
    -------
    alignment : float
        From -1 to 1; 0 where one matrix is constant.
    """
    return _core.gram_alignment(_checked(K), _checked(L))
