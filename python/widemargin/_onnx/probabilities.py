"""Class probabilities, with the formulas and stopping rules of `solver::calibration`."""

from __future__ import annotations

from typing import Any

import numpy as np

from widemargin._onnx.graph import Graph, Value

#: Probabilities of the sides of a function stay this far from 0 and 1.
SMALLEST = 1e-7


def probabilities(graph: Graph, model: Any, values: Value, count: int) -> Value:
    """Return the probability of every class."""
    sides = _sides(graph, model.calibration, values)
    if count == 2:
        return graph.node("Concat", sides, 1.0 - sides, axis=1)
    if model.scheme == "ovr":
        return sides / graph.sum(sides, 1)
    if model.scheme == "ecoc":
        return _couple_splits(graph, model.code, sides)
    return _couple_pairs(graph, sides, count)


def _sides(graph: Graph, calibration: dict[str, Any], values: Value) -> Value:
    """Return the probability of the positive side of every function."""
    if calibration["method"] == "sigmoid":
        inner = values * graph.constant(calibration["a"]) + graph.constant(calibration["b"])
        side = graph.constant(1.0) / (graph.node("Exp", inner) + 1.0)
    else:
        curves = [
            _curve(graph, knots, graph.column(values, f))
            for f, knots in enumerate(calibration["knots"])
        ]
        side = graph.node("Concat", *curves, axis=1)
    low, high = graph.constant(SMALLEST), graph.constant(1.0 - SMALLEST)
    return graph.node("Min", graph.node("Max", side, low), high)


def _curve(graph: Graph, knots: list[tuple[float, float]], value: Value) -> Value:
    """Return a non-decreasing curve: its first height, and every rise as far as it is climbed."""
    places, heights = np.array(knots).T
    if len(places) == 1:
        return value * 0.0 + float(heights[0])
    climbed = (value - graph.constant(places[:-1])) / graph.constant(np.diff(places))
    climbed = graph.node(
        "Min", graph.node("Max", climbed, graph.constant(0.0)), graph.constant(1.0)
    )
    return graph.sum(climbed * graph.constant(np.diff(heights)), 1) + float(heights[0])


def _couple_pairs(graph: Graph, sides: Value, count: int) -> Value:
    """Return the minimum of Σ (r_ji pᵢ − r_ij pⱼ)² as LIBSVM iterates to it."""
    first, second = np.triu_indices(count, 1)
    functions = len(first)
    # r[i, j] = P(i | i or j), flat; r = sides @ plus + (1 − sides) @ minus.
    plus, minus = np.zeros((functions, count * count)), np.zeros((functions, count * count))
    plus[np.arange(functions), first * count + second] = 1.0
    minus[np.arange(functions), second * count + first] = 1.0
    flat = graph.node("MatMul", sides, graph.constant(plus))
    flat = flat + graph.node("MatMul", 1.0 - sides, graph.constant(minus))
    r = graph.node("Reshape", flat, graph.integers([-1, count, count]))
    turned = graph.node("Transpose", r, perm=[0, 2, 1])
    eye = graph.constant(np.eye(count)[None])
    diagonal = graph.sum(turned * turned, 2)  # r_ii is 0
    quadratic = eye * diagonal - turned * r
    start = sides * 0.0
    start = graph.sum(start, 1) + graph.constant(np.full((1, count), 1.0 / count))

    def step(body: Graph, p: Value) -> tuple[Value, Value]:
        inside = Value(body, quadratic.name)
        product = body.sum(inside * body.add_axis(p, 1), 2, keep=False)
        value = body.sum(product * p, 1)
        worst = body.node("ReduceMax", body.node("Abs", product - value), axes=[1], keepdims=1)
        active = body.node("Not", worst < 0.005 / count)
        moved = p
        for t in range(count):
            row = body.node("Gather", inside, body.integers(t), axis=1)
            own = body.column(row, t)
            change = (value - body.column(product, t)) / own
            total = change + 1.0
            value = (
                (value + change * (change * own + body.column(product, t) * 2.0)) / total / total
            )
            product = (product + change * row) / total
            moved = (moved + change * body.constant(np.eye(count)[t][None])) / total
        again = body.node("ReduceMax", body.cast(active), keepdims=0) > 0.5
        return body.where(active, moved, p), again

    return graph.repeat(max(100, count), start, count, step)


def _couple_splits(graph: Graph, code: Any, sides: Value) -> Value:
    """Return the maximum of the generalised Bradley-Terry likelihood, by its updates."""
    positive, negative = (code > 0).astype(float), (code < 0).astype(float)
    count = len(code)
    start = graph.sum(sides * 0.0, 1) + graph.constant(np.full((1, count + 1), 1.0 / count))

    # The last column says whether a row still changes.
    def step(body: Graph, state: Value) -> tuple[Value, Value]:
        side = Value(body, sides.name)
        p = body.node("Gather", state, body.integers(np.arange(count)), axis=1)
        active = body.column(state, count) > 0.0
        above = body.node("MatMul", p, body.constant(positive))
        below = body.node("MatMul", p, body.constant(negative))
        gain = body.node("MatMul", side / above, body.constant(positive.T))
        gain = gain + body.node("MatMul", (1.0 - side) / below, body.constant(negative.T))
        every = body.constant(1.0) / (above + below)
        loss = body.node("MatMul", every, body.constant((positive + negative).T))
        moved = p * gain / loss
        moved = moved / body.sum(moved, 1)
        change = body.node("ReduceMax", body.node("Abs", moved - p), axes=[1], keepdims=1)
        moved = body.where(active, moved, p)
        active = body.node("And", active, body.node("Not", change < 1e-6))
        again = body.node("ReduceMax", body.cast(active), keepdims=0) > 0.5
        return body.node("Concat", moved, body.cast(active), axis=1), again

    end = graph.repeat(1000, start, count + 1, step)
    return graph.node("Gather", end, graph.integers(np.arange(count)), axis=1)
