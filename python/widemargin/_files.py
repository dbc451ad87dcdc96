"""Model files as estimators."""

from __future__ import annotations

import os
from typing import Any

from widemargin import _core
from widemargin._base import BaseTrained
from widemargin._classic.base import ClassicMachine
from widemargin._hmm import BaseHMM
from widemargin._multiclass import MulticlassSVC
from widemargin._parameters import MACHINES


def _estimators(base: type[Any]) -> dict[str, type[Any]]:
    """Return the estimators below a class by the machine they train."""
    found: dict[str, type[Any]] = {}
    for cls in base.__subclasses__():
        # Those of dask train the machine of their base.
        if isinstance(cls.__dict__.get("_kind"), str):
            found[cls._kind] = cls
        found.update(_estimators(cls))
    return found


def load(path: str | os.PathLike[str]) -> Any:
    """Return the estimator kept in a model file.

    Parameters
    ----------
    path : path-like
        A file written by :meth:`SVC.save`, by the program ``widemargin train``, or by LIBSVM's
        ``svm-train`` or LIBLINEAR's ``train``.

    Returns
    -------
    estimator : SVC, NuSVC, MulticlassSVC, SVR, NuSVR, OneClassSVM, SVDD, or another machine
        Ready to predict. Classes are ascending, as everywhere in scikit-learn; scaling that is part
        of the model is applied to rows by itself.

    Examples
    --------
    >>> import os, tempfile, widemargin
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = widemargin.SVC(C=10).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(os.path.join(folder, "iris.wm"))
    ...     again = widemargin.load(os.path.join(folder, "iris.wm"))
    >>> bool((again.predict(X) == model.predict(X)).all())
    True
    """
    model = _core.Model.load(os.fspath(path))
    estimators = dict.fromkeys(MACHINES, MulticlassSVC) | _estimators(BaseTrained)
    estimators |= _estimators(ClassicMachine)
    if model.kind == "hmm":
        return BaseHMM._of(model)
    if model.kind not in estimators:
        raise ValueError(
            f"{os.fspath(path)}: the machine '{model.kind}' has no estimator in Python yet; use "
            "the command line"
        )
    return estimators[model.kind]._of(model)
