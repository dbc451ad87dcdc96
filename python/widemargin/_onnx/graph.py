"""A small writer of ONNX graphs: nodes are values that add, multiply and so on."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

try:
    import onnx
    from onnx import TensorProto, helper, numpy_helper
except ImportError as error:  # pragma: no cover
    raise ImportError("to_onnx() needs the package onnx: pip install widemargin[onnx]") from error

#: Opset of ONNX 1.12 (2022); every operator used exists in it for float and double.
OPSET = 17


class Value:
    """The result of a node."""

    def __init__(self, graph: Graph, name: str) -> None:
        self.graph = graph
        self.name = name

    def _with(self, operator: str, other: Value | float, turned: bool = False) -> Value:
        right = other if isinstance(other, Value) else self.graph.constant(other)
        pair = (right, self) if turned else (self, right)
        return self.graph.node(operator, *pair)

    def __add__(self, other: Value | float) -> Value:
        return self._with("Add", other)

    def __sub__(self, other: Value | float) -> Value:
        return self._with("Sub", other)

    def __rsub__(self, other: float) -> Value:
        return self._with("Sub", other, turned=True)

    def __mul__(self, other: Value | float) -> Value:
        return self._with("Mul", other)

    def __truediv__(self, other: Value | float) -> Value:
        return self._with("Div", other)

    def __gt__(self, other: Value | float) -> Value:
        return self._with("Greater", other)

    def __lt__(self, other: Value | float) -> Value:
        return self._with("Less", other)


class Graph:
    """Nodes and constants of one number format, and the graph they make."""

    def __init__(self, dtype: np.dtype[Any], outer: Graph | None = None) -> None:
        if dtype not in (np.dtype(np.float32), np.dtype(np.float64)):
            raise ValueError(f"dtype must be float32 or float64, got {dtype}")
        self.dtype = dtype
        self._names: Iterator[int] = outer._names if outer is not None else itertools.count()
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        self._inputs: list[Any] = []
        self._outputs: list[Any] = []

    @property
    def kind(self) -> int:
        """The number format as ONNX names it."""
        return int(helper.np_dtype_to_tensor_dtype(self.dtype))

    def _name(self) -> str:
        return f"v{next(self._names)}"

    def input(self, name: str, width: int) -> Value:
        """Return the table the graph is given."""
        self._inputs.append(helper.make_tensor_value_info(name, self.kind, [None, width]))
        return Value(self, name)

    def constant(self, values: ArrayLike) -> Value:
        """Return numbers in the graph's format."""
        return self._keep(np.asarray(values, dtype=self.dtype))

    def integers(self, values: ArrayLike) -> Value:
        """Return whole numbers."""
        return self._keep(np.asarray(values, dtype=np.int64))

    def labels(self, values: Any) -> Value:
        """Return class labels: whole numbers, numbers or words."""
        array = np.asarray(values)
        if array.dtype.kind in "iub":
            return self.integers(array.astype(np.int64))
        if array.dtype.kind == "f":
            return self._keep(array.astype(np.float64))
        return self._keep(np.array([str(label) for label in array], dtype=object))

    def _keep(self, array: Any) -> Value:
        name = self._name()
        self._constants.append(numpy_helper.from_array(array, name))
        return Value(self, name)

    def node(self, operator: str, *inputs: Value, **attributes: Any) -> Value:
        """Add a node and return its result."""
        name = self._name()
        given = [value.name for value in inputs]
        self._nodes.append(helper.make_node(operator, given, [name], **attributes))
        return Value(self, name)

    def sum(self, value: Value, axis: int, keep: bool = True) -> Value:
        """Return the sum along an axis."""
        return self.node("ReduceSum", value, self.integers([axis]), keepdims=int(keep))

    def add_axis(self, value: Value, axis: int) -> Value:
        """Return the value with an axis of length one."""
        return self.node("Unsqueeze", value, self.integers([axis]))

    def flat(self, value: Value) -> Value:
        """Return a column as a vector."""
        return self.node("Reshape", value, self.integers([-1]))

    def cast(self, value: Value) -> Value:
        """Return a truth value or whole number in the graph's format."""
        return self.node("Cast", value, to=self.kind)

    def where(self, condition: Value, yes: Value, no: Value) -> Value:
        """Return one or the other."""
        return self.node("Where", condition, yes, no)

    def largest(self, value: Value) -> Value:
        """Return the place of the first largest entry of every row."""
        return self.node("ArgMax", value, axis=1, keepdims=0)

    def column(self, value: Value, place: int) -> Value:
        """Return one column, as a column."""
        return self.node("Gather", value, self.integers([place]), axis=1)

    def repeat(self, rounds: int, state: Value, width: int, step: Any) -> Value:
        """Return what `step(body, state) -> (state, goes_on)` makes of a table, again and again.

        It ends after `rounds`, or once `goes_on` is false.
        """
        body = Graph(self.dtype, outer=self)
        info = helper.make_tensor_value_info
        count, goes_on, before = self._name(), self._name(), self._name()
        after, again = step(body, Value(body, before))
        inner = helper.make_graph(
            body._nodes,
            "step",
            [
                info(count, TensorProto.INT64, []),
                info(goes_on, TensorProto.BOOL, []),
                info(before, self.kind, [None, width]),
            ],
            [
                info(again.name, TensorProto.BOOL, []),
                info(after.name, self.kind, [None, width]),
            ],
            body._constants,
        )
        yes = self._keep(np.array(True))
        limit = self._keep(np.array(rounds, dtype=np.int64))
        return self.node("Loop", limit, yes, state, body=inner)

    def output(
        self, name: str, value: Value, width: int | None = None, kind: int | None = None
    ) -> None:
        """Name a result of the graph: a vector, or a table of the given width."""
        self._nodes.append(helper.make_node("Identity", [value.name], [name]))
        shape = [None] if width is None else [None, width]
        self._outputs.append(helper.make_tensor_value_info(name, kind or self.kind, shape))

    def kind_of_labels(self, values: Any) -> int:
        """Return the format that :meth:`labels` keeps labels in."""
        kinds = {"i": TensorProto.INT64, "u": TensorProto.INT64, "b": TensorProto.INT64}
        kinds["f"] = TensorProto.DOUBLE
        return int(kinds.get(np.asarray(values).dtype.kind, TensorProto.STRING))

    def finish(self, producer: str) -> Any:
        """Return the model, checked."""
        graph = helper.make_graph(
            self._nodes, "widemargin", self._inputs, self._outputs, self._constants
        )
        model = helper.make_model(
            graph, producer_name=producer, opset_imports=[helper.make_opsetid("", OPSET)]
        )
        model.ir_version = 8
        onnx.checker.check_model(model, full_check=True)
        return model
