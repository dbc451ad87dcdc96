"""Model files as estimators."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from widemargin import _core
from widemargin._base import BaseMachine
from widemargin._chains import fitted as fitted_chain
from widemargin._classic.base import ClassicMachine
from widemargin._classic.clusters import KMeans, SpectralClustering
from widemargin._classic.discriminant import FisherDiscriminant, KernelFisherDiscriminant
from widemargin._classic.mixture import (
    CertifiedGaussianMixture,
    GaussianMixture,
    GaussianMixtureClassifier,
)
from widemargin._classic.neighbors import KNeighborsClassifier, KNeighborsRegressor
from widemargin._classic.windows import (
    KernelDensity,
    ParzenClassifier,
    ProbabilisticNeuralNetwork,
)
from widemargin._clustering import MaxMarginClustering
from widemargin._linear import LINEAR, fitted
from widemargin._multiclass import MulticlassSVC, OnlineSVC
from widemargin._parameters import MACHINES
from widemargin._ranking import fitted as fitted_ranking
from widemargin._semi_supervised import SemiSupervisedSVC
from widemargin._svc import BaseSVC


def _estimators(base: type[BaseMachine]) -> dict[str, type[BaseMachine]]:
    """Return the estimators below a class by the machine they train."""
    found: dict[str, type[BaseMachine]] = dict.fromkeys(MACHINES, MulticlassSVC)
    for cls in base.__subclasses__():
        if isinstance(cls.__dict__.get("_kind"), str):
            found[cls._kind] = cls
        found.update(_estimators(cls))
    return found


_CLASSIC: dict[str, type[ClassicMachine]] = {
    cls._kind: cls
    for cls in (
        FisherDiscriminant,
        KernelFisherDiscriminant,
        CertifiedGaussianMixture,
        GaussianMixture,
        GaussianMixtureClassifier,
        KNeighborsClassifier,
        KNeighborsRegressor,
        ParzenClassifier,
        KernelDensity,
        ProbabilisticNeuralNetwork,
        KMeans,
        SpectralClustering,
        MaxMarginClustering,
        SemiSupervisedSVC,
    )
}
_NAMES = {"polynomial": "poly"}


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
    if model.kind in _CLASSIC:
        return _CLASSIC[model.kind]._of(model)
    if model.kind == "rank-svm" and not model.is_mapped:
        return fitted_ranking(model)
    if model.kind == "chain-svc":
        return fitted_chain(model)
    if model.kind in LINEAR:
        return fitted(model)
    estimators = _estimators(BaseMachine)
    if model.kind not in estimators:
        raise ValueError(
            f"{os.fspath(path)}: the machine '{model.kind}' has no estimator in Python yet; use "
            "the command line"
        )
    known = dict(model.training.get("parameters", []))
    kind = estimators[model.kind]
    if kind is MulticlassSVC and "online" in known:
        kind = OnlineSVC
    estimator = kind(**_parameters(model, kind, known))
    return _fitted(estimator, model)


def _fitted(estimator: BaseMachine, model: _core.Model) -> BaseMachine:
    if isinstance(estimator, BaseSVC):
        names = model.classes or []
        kinds = {type(name) for name in names}
        estimator.classes_ = np.array(names, dtype=object if kinds > {str} else None)
        estimator.class_weight_ = np.ones(len(names))
    table = model.support_vectors
    estimator._sparse_kind = "csr_array" if isinstance(table, tuple) else None
    estimator._rows_fit = None
    rows = model.training.get("rows", model.support_count)
    estimator.n_features_in_ = model.features
    estimator.shape_fit_ = (rows, model.features)
    if model.feature_names is not None:
        estimator.feature_names_in_ = np.array(model.feature_names, dtype=object)
    estimator._adopt(model, np.array([model.training.get("iterations", 0)]))
    return estimator


def _parameters(
    model: _core.Model, kind: type[BaseMachine], known: dict[str, str]
) -> dict[str, Any]:
    """Return what the file tells about the parameters of the estimator."""
    kernel = model.kernel
    parameters: dict[str, Any] = {"kernel": expression(kernel)}
    parameters.update({k: v for k, v in kernel.items() if k in ("gamma", "coef0", "degree")})
    if "name" in kernel and "parts" not in kernel:
        parameters["kernel"] = _NAMES.get(kernel["name"], kernel["name"])
    names = {"c": "C", "nu": "nu", "epsilon": "epsilon", "tol": "tol"}
    takes = kind._parameter_constraints
    if "precision" in takes:
        parameters["precision"] = model.precision
    for name, ours in names.items():
        if name in known and ours in takes:
            parameters[ours] = float(known[name])
    if known.get("loss") == "squared-hinge" and model.kind == "c-svc":
        parameters["loss"] = "squared_hinge"
    if "machine" in takes:
        parameters["machine"] = model.kind
    if "bias" in takes:
        parameters["bias"] = known.get("bias") in (True, "true")
    if "strategy" in takes:
        parameters["strategy"] = known["online"]
    if "multi_class" in takes:
        parameters["multi_class"] = model.scheme
        calibration = model.calibration
        if calibration is not None:
            parameters["probability"] = True
            parameters["calibration"] = calibration["method"]
    return parameters


def expression(kernel: dict[str, Any]) -> str:
    """Return a kernel as the text that makes it."""
    parts = [expression(part) for part in kernel.get("parts", [])]
    if kernel["name"] == "sum":
        terms = [
            f"{weight!r}*{part}" for weight, part in zip(kernel["weights"], parts, strict=True)
        ]
        return f"({' + '.join(terms)})"
    if kernel["name"] == "product":
        return "*".join(parts)
    if kernel["name"] == "view":
        columns = ",".join(f"{start + 1}-{end}" for start, end in kernel["columns"])
        return f"view({columns}: {expression(kernel['kernel'])})"
    given = [f"{key}={kernel[key]!r}" for key in ("gamma", "coef0", "degree") if key in kernel]
    name = _NAMES.get(kernel["name"], kernel["name"])
    return f"{name}({', '.join(given)})" if given else str(name)
