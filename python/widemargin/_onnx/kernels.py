"""Kernel values between rows and support vectors, and of rows with themselves."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin._onnx.graph import Graph, Value

Vectors = NDArray[np.float64]


def block(kernel: dict[str, Any], rows: Value, vectors: Vectors) -> Value:
    """Return K(x, z) for every row x and support vector z."""
    graph, name = rows.graph, kernel["name"]
    if name in ("sum", "product"):
        parts = [block(part, rows, vectors) for part in kernel["parts"]]
        return _combined(kernel, parts)
    if name in ("laplacian", "chi2"):
        return _exponential(graph, -kernel["gamma"], _distance(name, rows, vectors))
    if name == "rbf":
        # Centred, so that |x|² + |z|² − 2xz loses no digits.
        centre = vectors.mean(axis=0) if len(vectors) else 0.0
        rows, vectors = rows - graph.constant(centre), vectors - centre
        squares = graph.sum(rows * rows, 1) + graph.constant((vectors**2).sum(axis=1))
        distance = squares - _dot(rows, vectors) * 2.0
        distance = graph.node("Max", distance, graph.constant(0.0))
        return _exponential(graph, -kernel["gamma"], distance)
    if name == "cosine":
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        return _dot(_unit(rows), vectors / np.where(norms > 0, norms, 1.0))
    return _of_dot(kernel, _dot(rows, vectors))


def own(kernel: dict[str, Any], rows: Value) -> Value:
    """Return K(x, x) for every row x, as a column."""
    graph, name = rows.graph, kernel["name"]
    if name in ("sum", "product"):
        return _combined(kernel, [own(part, rows) for part in kernel["parts"]])
    square = graph.sum(rows * rows, 1)
    if name in ("rbf", "laplacian", "chi2"):
        return square * 0.0 + 1.0
    if name == "cosine":
        return graph.cast(square > 0.0)
    return _of_dot(kernel, square)


def _dot(rows: Value, vectors: Vectors) -> Value:
    return rows.graph.node("MatMul", rows, rows.graph.constant(vectors.T))


def _of_dot(kernel: dict[str, Any], dot: Value) -> Value:
    if kernel["name"] == "linear":
        return dot
    inner = dot * kernel["gamma"] + kernel["coef0"]
    if kernel["name"] == "sigmoid":
        return dot.graph.node("Tanh", inner)
    return dot.graph.node("Pow", inner, dot.graph.constant(kernel["degree"]))


def _exponential(graph: Graph, factor: float, distance: Value) -> Value:
    return graph.node("Exp", distance * factor)


def _distance(name: str, rows: Value, vectors: Vectors) -> Value:
    """Return Σ|x − z| or Σ(x − z)²/(x + z), 0/0 being 0."""
    graph = rows.graph
    left, right = graph.add_axis(rows, 1), graph.constant(vectors[None])
    difference = left - right
    if name == "laplacian":
        terms = graph.node("Abs", difference)
    else:
        total = left + right
        total = graph.where(total > 0.0, total, graph.constant(1.0))
        terms = difference * difference / total
    return graph.sum(terms, 2, keep=False)


def _unit(rows: Value) -> Value:
    graph = rows.graph
    norm = graph.node("Sqrt", graph.sum(rows * rows, 1))
    return rows / graph.where(norm > 0.0, norm, graph.constant(1.0))


def _combined(kernel: dict[str, Any], parts: list[Value]) -> Value:
    if kernel["name"] == "product":
        result = parts[0]
        for part in parts[1:]:
            result = result * part
        return result
    terms = [part * float(weight) for part, weight in zip(parts, kernel["weights"], strict=True)]
    result = terms[0]
    for term in terms[1:]:
        result = result + term
    return result
