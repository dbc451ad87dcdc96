"""From decision values to what the methods of an estimator return."""

from __future__ import annotations

from typing import Any

import numpy as np

from widemargin._onnx.graph import Graph, Value
from widemargin._onnx.probabilities import probabilities


def novelty(graph: Graph, estimator: Any, values: Value) -> None:
    """Add the outputs of a detector."""
    inside = graph.flat(values) > 0.0
    sides = graph.where(inside, graph.integers(1), graph.integers(-1))
    graph.output("predict", sides, kind=graph.kind_of_labels([1]))
    graph.output("decision_function", graph.flat(values))
    graph.output("score_samples", graph.flat(values + graph.constant(estimator.offset_)))


def classifier(graph: Graph, estimator: Any, values: Value) -> None:
    """Add the outputs of a classifier."""
    model, count = estimator._model, len(estimator.classes_)
    scores = _scores(graph, model, values, count)
    if count == 2 and len(model.intercepts) == 2:
        # All-in-one machines have a function per class, also of two.
        decision, width = graph.flat(graph.column(values, 1) - graph.column(values, 0)), None
    elif count == 2:
        decision, width = graph.flat(0.0 - values), None
    elif estimator.decision_function_shape == "ovr":
        decision, width = scores, count
    else:
        decision, width = values, len(model.intercepts)
    if estimator.break_ties and count > 2:
        places = graph.largest(scores)
    else:
        places = _elected(graph, model, values, count)
    labels = graph.labels(estimator.classes_)
    kind = graph.kind_of_labels(estimator.classes_)
    graph.output("predict", graph.node("Gather", labels, places, axis=0), kind=kind)
    graph.output("decision_function", decision, width)
    if model.calibration is not None:
        graph.output("predict_proba", probabilities(graph, model, values, count), count)


def linear_classifier(graph: Graph, estimator: Any, values: Value) -> None:
    """Add the outputs of a linear classifier; the formulas are scikit-learn's."""
    count = len(estimator.classes_)
    if count == 2:
        places = graph.node("Cast", graph.flat(values) > 0.0, to=7)
        decision, width = graph.flat(values), None
    else:
        places, decision, width = graph.largest(values), values, count
    labels = graph.labels(estimator.classes_)
    kind = graph.kind_of_labels(estimator.classes_)
    graph.output("predict", graph.node("Gather", labels, places, axis=0), kind=kind)
    graph.output("decision_function", decision, width)
    if hasattr(estimator, "predict_proba"):
        shares = graph.node("Sigmoid", values)
        if count == 2:
            shares = graph.node("Concat", 1.0 - shares, shares, axis=1)
        else:
            shares = shares / graph.sum(shares, 1)
        graph.output("predict_proba", shares, count)


def _pairs(count: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return two tables, functions × classes: the first class of every pair, and the second."""
    first, second = np.triu_indices(count, 1)
    return np.eye(count)[first], np.eye(count)[second]


def _elected(graph: Graph, model: Any, values: Value, count: int) -> Value:
    if model.scheme == "ovo":
        return graph.largest(_votes(graph, graph.cast(values > 0.0), count))
    if model.scheme == "dag":
        return _survivor(graph, values, count)
    return graph.largest(_scores(graph, model, values, count))


def _votes(graph: Graph, for_first: Value, count: int) -> Value:
    first, second = _pairs(count)
    ours: Value = graph.node("MatMul", for_first, graph.constant(first))
    return ours + graph.node("MatMul", 1.0 - for_first, graph.constant(second))


def _scores(graph: Graph, model: Any, values: Value, count: int) -> Value:
    """Return a score of every class; the formulas are those of `Predictor::class_scores`."""
    if model.scheme == "ovr":
        return values
    if model.scheme == "ecoc":
        code = graph.constant(model.code[None])
        margin = 1.0 - code * graph.add_axis(values, 1)
        hinge = graph.node("Max", margin, graph.constant(0.0))
        loss = graph.sum(hinge * graph.constant(np.abs(model.code)[None]), 2, keep=False)
        return 0.0 - loss
    first, second = _pairs(count)
    votes = _votes(graph, 1.0 - graph.cast(values < 0.0), count)
    total = graph.node("MatMul", values, graph.constant(first - second))
    return votes + total / ((graph.node("Abs", total) + 1.0) * 3.0)


def _survivor(graph: Graph, values: Value, count: int) -> Value:
    """Return the class left when every step removes the loser of the first and the last."""
    zero = graph.node("Cast", graph.column(values, 0) * 0.0, to=7)
    first = zero + graph.integers([[0]])
    last = zero + graph.integers([[count - 1]])
    one, two = graph.integers([[1]]), graph.integers([[2]])
    for _ in range(count - 1):
        place = first * (graph.integers([[2 * count - 1]]) - first) / two + last - first - one
        value = graph.node("GatherElements", values, place, axis=1)
        wins = value > 0.0
        first, last = graph.where(wins, first, first + one), graph.where(wins, last - one, last)
    return graph.flat(first)
