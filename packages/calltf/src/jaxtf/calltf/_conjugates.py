"""Gradients of complex numbers that TensorFlow compiles without the conjugate that they need.

The gradients of `tf.sqrt`, `tf.math.rsqrt` and `tf.math.reciprocal` are operations of their own, functions of the
result and of what is pulled back. TensorFlow's kernels conjugate the result, its compiler does not: a trace that has
them is written again with plain operations, in which both agree.

Seen in TensorFlow 2.21: of all its operations on complex numbers that compute a gradient these alone differ.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from jaxtf.calltf._graph import may_assert, nodes
from jaxtf.calltf._tf import outside_of_graphs
from jaxtf.calltf._walk import Walk, emitted, walked

__all__ = ["with_conjugates"]

_COMPLEX = (tf.complex64.as_datatype_enum, tf.complex128.as_datatype_enum)


def with_conjugates(concrete: Any) -> Callable[[Sequence[Any]], list[Any]] | None:
    """What computes the results of a trace, and asserts, with conjugates; None if the trace has all of them.

    It does nothing else that the trace does.
    """
    if any(node.op in _FORMULAS and node.attr["T"].type in _COMPLEX for node in nodes(concrete)):
        return _Writer(concrete)
    return None


class _Writer:
    """Writes a trace, and the functions that it calls, into the graph being built."""

    def __init__(self, concrete: Any):
        self._walk = Walk(concrete)
        self._functions: dict[str, Any] = {}

    def __call__(self, tensors: Sequence[Any]) -> list[Any]:
        """The results for these arguments."""
        return self._walk.written(tensors, self._operation, may_assert)

    def _operation(self, op: Any, operands: list[Any]) -> Sequence[Any]:
        if (body := self._walk.called(op)) is not None:
            return walked(body, operands, self._operation, may_assert)
        if op.type in _FORMULAS and op.outputs[0].dtype.is_complex:
            result, slope = operands
            return [_FORMULAS[op.type](tf.math.conj(result), slope)]
        return emitted(op, operands, **self._written_functions(op))

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
                    lambda *tensors: walked(body, tensors, self._operation, may_assert), autograph=False
                ).get_concrete_function(*specs)
        self._functions[name].add_to_graph()
        return str(self._functions[name].name.decode())


# From the conjugate of the result, and what is pulled back.
_FORMULAS: Mapping[str, Callable[[Any, Any], Any]] = {
    "InvGrad": lambda inverse, slope: -slope * inverse * inverse,
    "ReciprocalGrad": lambda inverse, slope: -slope * inverse * inverse,
    "RsqrtGrad": lambda inverse, slope: -slope * inverse * inverse * inverse / 2,
    "SqrtGrad": lambda root, slope: slope / (2 * root),
}
