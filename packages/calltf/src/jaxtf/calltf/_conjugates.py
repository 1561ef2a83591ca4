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

from jaxtf.calltf._graph import nodes
from jaxtf.calltf._writer import Writer

__all__ = ["with_conjugates"]

_COMPLEX = (tf.complex64.as_datatype_enum, tf.complex128.as_datatype_enum)


def with_conjugates(concrete: Any) -> Callable[[Sequence[Any]], list[Any]] | None:
    """What computes the results of a trace, and asserts, with conjugates; None if the trace has all of them.

    It does nothing else that the trace does.
    """
    if any(node.op in _FORMULAS and node.attr["T"].type in _COMPLEX for node in nodes(concrete)):
        return Writer(concrete, _with_conjugate)
    return None


def _with_conjugate(writer: Writer, op: Any, operands: list[Any]) -> Sequence[Any] | None:
    if op.type not in _FORMULAS or not op.outputs[0].dtype.is_complex:
        return None
    result, slope = operands
    return [_FORMULAS[op.type](tf.math.conj(result), slope)]


# From the conjugate of the result, and what is pulled back.
_FORMULAS: Mapping[str, Callable[[Any, Any], Any]] = {
    "InvGrad": lambda inverse, slope: -slope * inverse * inverse,
    "ReciprocalGrad": lambda inverse, slope: -slope * inverse * inverse,
    "RsqrtGrad": lambda inverse, slope: -slope * inverse * inverse * inverse / 2,
    "SqrtGrad": lambda root, slope: slope / (2 * root),
}
