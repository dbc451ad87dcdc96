"""Discriminants, clusters and mixtures as ONNX graphs."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from widemargin._onnx.graph import Graph, Value
from widemargin._onnx.kernels import block
from widemargin._tables import from_core

Numbers = NDArray[np.float64]


def export_classic(estimator: Any, dtype: np.dtype[Any]) -> Any:
    """Return the ONNX model of a fitted classical estimator of one of the kinds in `EXPORTS`."""
    graph = Graph(dtype)
    EXPORTS[estimator._kind](graph, estimator)
    return graph.finish(f"widemargin {type(estimator).__name__}")


def _discriminant(graph: Graph, estimator: Any) -> None:
    model = estimator._model
    kernel = block(model.kernel, _input(graph, model), _vectors(model))
    values = _functions(kernel, model)
    two = len(estimator.classes_) == 2
    if two:
        places = graph.node("Cast", graph.flat(values) > 0.0, to=7)
        places = graph.integers(1) - places
        graph.output("decision_function", graph.flat(0.0 - values))
    else:
        places = graph.largest(values)
        graph.output("decision_function", values, len(estimator.classes_))
    _classes(graph, estimator, places)
    if hasattr(estimator, "predict_proba"):
        both = graph.node("Concat", values, values * 0.0, axis=1) if two else values
        _shares(graph, both, len(estimator.classes_))
    projections = _functions(kernel, estimator._projection)
    graph.output("transform", projections, estimator._n_features_out)


def _centres(graph: Graph, estimator: Any) -> None:
    centres = estimator.cluster_centers_
    apart = graph.add_axis(_input(graph, estimator._model), 1) - graph.constant(centres[None])
    distances = graph.node("Sqrt", graph.sum(apart * apart, 2, keep=False))
    _places(graph, graph.largest(0.0 - distances))
    graph.output("transform", distances, len(centres))


def _mixture(graph: Graph, estimator: Any) -> None:
    model = estimator._model
    joints = _log_joints(graph, model)
    _places(graph, graph.largest(joints))
    _shares(graph, joints, len(model.attributes["weights"]))
    graph.output("score_samples", graph.flat(_log_sum(graph, joints)))


def _bayes(graph: Graph, estimator: Any) -> None:
    model = estimator._model
    part, count = model.attributes, len(estimator.classes_)
    joints, first, values = _log_joints(graph, model), 0, []
    counts = part["components"].astype(int)
    for components, log_prior in zip(counts, part["log_priors"], strict=True):
        own = graph.integers(np.arange(first, first + components))
        own = graph.node("Gather", joints, own, axis=1)
        values.append(_log_sum(graph, own) + float(log_prior))
        first += components
    scores = graph.node("Concat", *values, axis=1)
    posteriors = _shares(graph, scores, count)
    if len(part["loss"]):
        expected = graph.constant(part["loss"].reshape(count, count))
        places = graph.largest(0.0 - graph.node("MatMul", posteriors, expected))
    else:
        places = graph.largest(scores)
    _classes(graph, estimator, places)
    graph.output("score_samples", graph.flat(_log_sum(graph, scores)))


def _input(graph: Graph, model: Any) -> Value:
    """Return the rows, scaled as the training rows were."""
    rows = graph.input("X", model.features)
    if model.scaling is not None:
        offset, factor = model.scaling
        rows = rows * graph.constant(factor) + graph.constant(offset)
    return rows


def _vectors(model: Any) -> Numbers:
    vectors = from_core(model.support_vectors, None)
    vectors = vectors.toarray() if sp.issparse(vectors) else vectors
    return np.asarray(vectors, dtype=np.float64)


def _functions(kernel: Value, model: Any) -> Value:
    """Return the functions of a kernel expansion."""
    graph = kernel.graph
    weights = graph.constant(model.function_coefficients.T)
    return graph.node("MatMul", kernel, weights) + graph.constant(model.intercepts)


def _places(graph: Graph, places: Value) -> None:
    graph.output("predict", places, kind=graph.kind_of_labels([1]))


def _classes(graph: Graph, estimator: Any, places: Value) -> None:
    labels = graph.labels(estimator.classes_)
    kind = graph.kind_of_labels(estimator.classes_)
    graph.output("predict", graph.node("Gather", labels, places, axis=0), kind=kind)


def _shares(graph: Graph, scores: Value, width: int) -> Value:
    """Add the probabilities whose logarithms differ as the scores do, and return them."""
    shares = graph.node("Softmax", scores, axis=1)
    graph.output("predict_proba", shares, width)
    return shares


def _log_sum(graph: Graph, values: Value) -> Value:
    """Return ln Σ exp of every row, without overflow, as a column."""
    top = graph.node("ReduceMax", values, axes=[1], keepdims=1)
    return top + graph.node("Log", graph.sum(graph.node("Exp", values - top), 1))


def _log_joints(graph: Graph, model: Any) -> Value:
    """Return ln(weight · density) of every component.

    With Σ = LLᵀ the exponent is −½|L⁻¹(x − μ)|².
    """
    part, features = model.attributes, model.features
    means = _vectors(model)
    factors = np.linalg.cholesky(_covariances(part, features))
    inverses = np.linalg.inv(factors)
    half = np.log(np.diagonal(factors, axis1=1, axis2=2)).sum(axis=1)
    with np.errstate(divide="ignore"):
        constants = np.log(part["weights"]) - 0.5 * features * np.log(2 * np.pi) - half
    apart = graph.add_axis(_input(graph, model), 0) - graph.constant(means[:, None])
    white = graph.node("MatMul", apart, graph.constant(inverses.transpose(0, 2, 1)))
    squares = graph.node("Transpose", graph.sum(white * white, 2, keep=False), perm=[1, 0])
    return squares * -0.5 + graph.constant(constants)


def _covariances(part: dict[str, Any], features: int) -> Numbers:
    """Return a covariance matrix for every component of all mixtures."""
    shape, values, all_of_them = part["covariance"], part["covariances"], []
    eye = np.eye(features)
    for count in part["components"].astype(int):
        kept = {"tied": features**2, "diag": count * features, "spherical": count, "eii": 1}
        size = kept.get(shape, count * features**2)
        own, values = values[:size], values[size:]
        if shape == "diag":
            own = own.reshape(count, features, 1) * eye
        elif shape in ("spherical", "eii"):
            own = own.reshape(-1, 1, 1) * eye
        else:
            own = own.reshape(-1, features, features)
        all_of_them.append(np.broadcast_to(own, (count, features, features)))
    return np.concatenate(all_of_them)


#: What adds the outputs of a machine to a graph.
EXPORTS = {
    "fisher": _discriminant,
    "kernel-fisher": _discriminant,
    "kmeans": _centres,
    "gmm": _mixture,
    "certified-gmm": _mixture,
    "gmm-bayes": _bayes,
}
