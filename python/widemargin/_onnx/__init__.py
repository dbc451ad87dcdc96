"""Prediction functions as ONNX graphs of standard operators."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from widemargin._onnx.graph import Graph
from widemargin._onnx.kernels import block, own
from widemargin._onnx.outputs import classifier, linear_classifier, novelty


def export_linear(estimator: Any, dtype: np.dtype[Any]) -> Any:
    """Return the ONNX model of a fitted linear estimator."""
    graph = Graph(dtype)
    rows = graph.input("X", estimator.n_features_in_)
    weights = estimator.coef_
    weights = np.atleast_2d(weights.toarray() if sp.issparse(weights) else weights)
    values = graph.node("MatMul", rows, graph.constant(weights.T))
    values = values + graph.constant(np.atleast_1d(estimator.intercept_))
    if hasattr(estimator, "classes_"):
        linear_classifier(graph, estimator, values)
    else:
        graph.output("predict", graph.flat(values))
    return graph.finish(f"widemargin {type(estimator).__name__}")


def export(estimator: Any, dtype: np.dtype[Any]) -> Any:
    """Return the ONNX model of a fitted estimator."""
    model = estimator._model
    graph = Graph(dtype)
    given = model.kernel["name"] == "precomputed"
    width = estimator.shape_fit_[0] if given else model.features
    rows = graph.input("X", width)
    if model.scaling is not None:
        offset, factor = model.scaling
        rows = rows * graph.constant(factor) + graph.constant(offset)
    if given:
        kernel = graph.node("Gather", rows, graph.integers(model.support), axis=1)
    else:
        vectors = estimator.support_vectors_
        vectors = vectors.toarray() if sp.issparse(vectors) else vectors
        kernel = block(model.kernel, rows, vectors.astype(np.float64))
    weights = graph.constant(model.function_coefficients.T)
    values = graph.node("MatMul", kernel, weights) + graph.constant(model.intercepts)
    if model.kind == "svdd":
        values = values - own(model.kernel, rows)
    if model.classes is not None:
        classifier(graph, estimator, values)
    elif model.kind in ("one-class", "svdd"):
        novelty(graph, estimator, values)
    else:
        graph.output("predict", graph.flat(values))
    return graph.finish(f"widemargin {type(estimator).__name__}")
