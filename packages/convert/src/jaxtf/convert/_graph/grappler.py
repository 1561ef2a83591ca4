"""Operations that keep their value when Grappler (TensorFlow 2.21) rewrites the graph around them.

It replaces some pairs of operations by one without regard to NaN, to integers that wrap and to arrays without elements,
or by one that has no kernel of the dtype. It looks at an operation and at what makes its operand: another one between
the two, which costs little or nothing, keeps it from that. What it may know of a tensor is in `optimizer`.
"""

from __future__ import annotations

from collections.abc import Callable

import tensorflow as tf

from jaxtf.convert._graph.nodes import elementwise, reduction
from jaxtf.convert._tf import traces_compiled

__all__ = ["difference", "extreme", "multiplied", "negated"]

_SQUARED_DIFFERENCE = (
    *(tf.bfloat16, tf.float16, tf.float32, tf.float64),
    *(tf.int32, tf.int64, tf.complex64, tf.complex128),
)
_MULTIPLY, _SUBTRACT = elementwise("Mul", tf.multiply), elementwise("Sub", tf.subtract)


def multiplied(left: tf.Tensor, right: tf.Tensor) -> tf.Tensor:
    """The product of two tensors of numbers of one dtype, whose shapes broadcast; integers modulo 2**bits.

    Grappler makes SquaredDifference of `(x - y) * (x - y)`, which TensorFlow has of few integers.
    """
    if left.dtype in _SQUARED_DIFFERENCE or traces_compiled():
        return _MULTIPLY(left, right)
    return tf.squeeze(_MULTIPLY(tf.expand_dims(left, 0), tf.expand_dims(right, 0)), [0])


def difference(left: tf.Tensor, right: tf.Tensor) -> tf.Tensor:
    """The difference of two tensors of numbers of one dtype, whose shapes broadcast; integers modulo 2**bits.

    Grappler makes Neg of `0 - x`, which TensorFlow does not have of unsigned integers.
    """
    dtype = left.dtype
    if not dtype.is_unsigned or traces_compiled():
        return _SUBTRACT(left, right)
    signed = tf.as_dtype(dtype.name.removeprefix("u"))
    return tf.bitcast(_SUBTRACT(*(tf.bitcast(x, signed) for x in (left, right))), dtype)


def extreme(op_type: str, function: Callable[..., tf.Tensor]) -> Callable[..., tf.Tensor]:
    """As `nodes.reduction`, for the greatest or the least.

    Grappler makes `f(max(x))` of `max(f(x))` for functions that it takes for monotonic, and `-max(x)` of `min(-x)`:
    that is another value where `f(x)` is NaN, where `-x` wraps, and where there are no elements.
    """
    reduce = reduction(op_type, function)

    def apply(operand: tf.Tensor, axes: tf.Tensor, keepdims: bool = False) -> tf.Tensor:
        if traces_compiled():
            return reduce(operand, axes, keepdims)
        rank = operand.shape.rank
        return tf.squeeze(reduce(tf.expand_dims(operand, rank), axes, keepdims), [-1])

    return apply


def negated(truth: tf.Tensor) -> tf.Tensor:
    """The other truth value of each.

    Grappler makes `x >= y` of LogicalNot of `x < y`, which is another value where one is NaN. Of the operations
    that TFLite and TF.js have too, LogicalAnd takes the least time between the two.
    """
    made_by = truth.op if tf.is_symbolic_tensor(truth) else None
    if made_by is None or made_by.type in ("Equal", "NotEqual"):
        return tf.logical_not(truth)
    if made_by.type in ("Less", "LessEqual", "Greater", "GreaterEqual") and made_by.inputs[0].dtype.is_integer:
        return tf.logical_not(truth)
    return tf.logical_not(tf.logical_and(truth, truth))
