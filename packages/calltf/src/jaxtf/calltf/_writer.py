"""A trace, written again into the graph being built, with some of its operations written otherwise.

Knows graphs of TensorFlow; nothing of what is written otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from jaxtf.calltf._graph import may_assert
from jaxtf.calltf._tf import outside_of_graphs
from jaxtf.calltf._walk import Walk, emitted, walked

__all__ = ["Rule", "Writer"]

Rule = Callable[["Writer", Any, list[Any]], "Sequence[Any] | None"]
"""From an operation and its operands to its results; None if it is written as it is."""


class Writer:
    """Writes a trace, and the functions that it calls, into the graph being built: its results, and its assertions.

    It does nothing else that the trace does.

    Args:
      concrete: The trace.
      rule: What is written otherwise.
    """

    def __init__(self, concrete: Any, rule: Rule):
        self._walk = Walk(concrete)
        self._rule = rule
        self._functions: dict[str, Any] = {}

    def __call__(self, tensors: Sequence[Any]) -> list[Any]:
        """The results for these arguments."""
        return self._walk.written(tensors, self._operation, may_assert)

    def with_captures(self, tensors: Sequence[Any]) -> list[Any]:
        """The results for these arguments, and values for its captures."""
        return walked(self._walk.graph, tensors, self._operation, may_assert)

    def body(self, name: str, tensors: Sequence[Any]) -> list[Any]:
        """The results of a function that it calls, for these arguments."""
        return walked(self._walk.body(name), tensors, self._operation, may_assert)

    def _operation(self, op: Any, operands: list[Any]) -> Sequence[Any]:
        if (body := self._walk.called(op)) is not None:
            return walked(body, operands, self._operation, may_assert)
        results = self._rule(self, op, operands)
        return emitted(op, operands, **self._written_functions(op)) if results is None else results

    def _written_functions(self, op: Any) -> dict[str, Any]:
        """The attributes of an operation that are functions: its branches, the body of a loop."""
        found = {}
        for name, attr in op.node_def.attr.items():
            written = tf.compat.v1.AttrValue()
            written.CopyFrom(attr)
            for function in [written.func] if written.HasField("func") else written.list.func:
                function.name = self._function(function.name)
                found[name] = written
        return found

    def _function(self, name: str) -> str:
        """The name of a function that is a function of the trace, written again."""
        if name not in self._functions:
            body = self._walk.body(name)
            specs = [tf.TensorSpec(x.shape, x.dtype) for x in body.inputs]
            with outside_of_graphs():
                self._functions[name] = tf.function(
                    lambda *tensors: self.body(name, tensors), autograph=False
                ).get_concrete_function(*specs)
        self._functions[name].add_to_graph()
        return str(self._functions[name].name.decode())
