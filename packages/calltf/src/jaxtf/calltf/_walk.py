"""A trace, walked operation by operation, with the functions that it calls.

Knows graphs of TensorFlow; nothing of what is done with an operation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import tensorflow as tf

from jaxtf.calltf._tf import function_graph, hidden_from_debuggers, outside_of_graphs

__all__ = [
    "BRANCHES",
    "CALLS",
    "LOOPS",
    "Library",
    "Walk",
    "branch_names",
    "constant_array",
    "emitted",
    "left_out",
    "walked",
]

CALLS = ("PartitionedCall", "StatefulPartitionedCall")
"""Operations that call a function."""

BRANCHES = ("If", "StatelessIf", "Case", "StatelessCase")
LOOPS = ("While", "StatelessWhile")

_Value = TypeVar("_Value")


class Library:
    """Functions that operations call.

    Args:
      library: As a graph has it.
    """

    def __init__(self, library: Any):
        self._library = {f.signature.name: f for f in library.function}
        self._functions = tf.Graph()  # where a function finds those that it calls
        with self._functions.as_default():
            tf.import_graph_def(tf.compat.v1.GraphDef(library=library))
        self._bodies: dict[str, Any] = {}

    def called(self, op: Any) -> Any | None:
        """The body of the function that an operation calls; None of any other operation, also a branch or a loop."""
        if op.type in self._library:
            return self.body(op.type)
        return self.body(op.get_attr("f").name) if op.type in CALLS else None

    def body(self, name: str) -> Any:
        """A function of the library, as a graph with inputs and outputs."""
        if name not in self._bodies:
            with self._functions.as_default():
                self._bodies[name] = function_graph(self._library[name])
        return self._bodies[name]


class Walk(Library):
    """A trace and its library of functions.

    Args:
      concrete: The trace.

    Attributes:
      graph: Of the trace.
    """

    def __init__(self, concrete: Any):
        self._concrete = concrete
        self.graph = concrete.graph
        super().__init__(self.graph.as_graph_def().library)

    def written(
        self,
        tensors: Sequence[Any],
        operation: Callable[[Any, list[Any]], Sequence[Any]],
        kept: Callable[[str], bool] = lambda _: False,
    ) -> list[Any]:
        """The results of the trace for these arguments, written into the graph being built: as `walked`."""
        captured = self._concrete.captured_inputs
        places = {id(capture): place for place, capture in enumerate(captured)}
        for variable in sorted(self.graph.variables, key=lambda x: places.get(id(x.handle), len(places))):
            variable.value()  # by which the graph being built knows whose the captured handle is
        return walked(self.graph, [*tensors, *captured], operation, kept)


def walked(
    graph: Any,
    arguments: Sequence[_Value],
    operation: Callable[[Any, list[_Value]], Sequence[_Value]],
    kept: Callable[[str], bool] = lambda _: False,
) -> list[_Value]:
    """What a graph returns for arguments; an operation is asked for its results once it has its operands.

    Args:
      graph: It is walked from its outputs, so that what they do not need is left out, unless `kept`.
      arguments: Of its inputs, captures included.
      operation: From an operation and its operands to its results.
      kept: Of which types operations are walked though no output needs them.
    """
    known = {x.ref(): value for x, value in zip(graph.inputs, arguments, strict=True)}
    done = {x.op for x in graph.inputs}
    waiting = [op for op in graph.get_operations() if kept(op.type)] + [output.op for output in graph.outputs]
    while waiting:
        op = waiting[-1]
        before = [x.op for x in op.inputs if x.op not in done]
        if op in done:
            waiting.pop()
        elif before:
            waiting += before
        else:
            made = operation(waiting.pop(), [known[x.ref()] for x in op.inputs])
            known.update({x.ref(): value for x, value in zip(op.outputs, made, strict=True)})
            done.add(op)
    return [known[output.ref()] for output in graph.outputs]


def branch_names(op: Any) -> list[str]:
    """The functions of one of `BRANCHES`, by the index, or the truth value, that takes them."""
    if op.type.endswith("If"):
        return [op.get_attr("else_branch").name, op.get_attr("then_branch").name]
    return [function.name for function in op.get_attr("branches")]


def left_out(graph: Any) -> Iterator[Any]:
    """The operations that the outputs of a graph do not need."""
    needed, waiting = set[Any](), [output.op for output in graph.outputs]
    while waiting:
        op = waiting.pop()
        if op not in needed:
            needed.add(op)
            waiting += [x.op for x in op.inputs]
    return (op for op in graph.get_operations() if op not in needed)


def constant_array(op: Any) -> Any:
    """The array that an operation Const makes."""
    # tf.make_ndarray reads bfloat16 by what NumPy deprecates. Debuggers would refuse an infinity.
    with outside_of_graphs(), hidden_from_debuggers():
        return tf.io.parse_tensor(op.get_attr("value").SerializeToString(), op.outputs[0].dtype).numpy()


def emitted(op: Any, tensors: Sequence[Any], **attrs: Any) -> list[Any]:
    """An operation, with other operands, in the graph being built.

    Raises:
      ValueError: TensorFlow's inference of shapes refuses them.
    """
    own = {name: attr for name, attr in op.node_def.attr.items() if not name.startswith("_")}
    graph = tf.compat.v1.get_default_graph()
    return list(graph.create_op(op.type, list(tensors), [x.dtype for x in op.outputs], attrs={**own, **attrs}).outputs)
