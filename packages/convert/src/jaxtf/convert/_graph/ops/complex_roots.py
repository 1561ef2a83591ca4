"""Square roots of complex numbers up to the largest and the smallest there are.

TensorFlow's kernel (2.21) adds the absolute value to a part, which is infinite for more than half of the greatest
number, and halves the sum, which is subnormal, and counts as 0, for the least. Its kernel for reciprocals of roots
squares the absolute value. Compiled, roots are right.
"""

from __future__ import annotations

import tensorflow as tf

from jaxtf.convert._graph._support import typed, where
from jaxtf.convert._graph.derivatives import differentiated_when_saved
from jaxtf.convert._graph.nodes import elementwise
from jaxtf.convert._graph.ops.complex_quotients import complex_quotient
from jaxtf.convert._graph.optimizer import computed_by_xla
from jaxtf.convert._graph.registry import Bound

__all__ = ["complex_reciprocal_root", "complex_root"]

_SQRT = elementwise("Sqrt", tf.sqrt)

# Numbers of a larger part, and of no larger one, are multiplied by a power of 4: nothing is rounded.
_MOST = {tf.complex64: float.fromhex("0x1p125"), tf.complex128: float.fromhex("0x1p1021")}
_LEAST = {tf.complex64: float.fromhex("0x1p-100"), tf.complex128: float.fromhex("0x1p-968")}
_DOWN, _UP = 2.0**-2, 2.0**30


def complex_root(bound: Bound, operand: tf.Tensor) -> tf.Tensor:
    """The square root of a real part that is not negative.

    Where all numbers are such that TensorFlow's kernel is right, nothing else is computed.
    """
    root = _SQRT(operand)
    if computed_by_xla(operand):
        return root
    size = tf.maximum(tf.abs(tf.math.real(operand)), tf.abs(tf.math.imag(operand)))
    most, least = (typed(limit[operand.dtype], size.dtype) for limit in (_MOST, _LEAST))

    def scaled() -> tf.Tensor:
        one, *factors = (typed(factor, size.dtype) for factor in (1, _DOWN, _UP))
        # The greater of infinity and NaN is NaN, which is in neither range.
        factor = where(size > most, factors[0], where(size < least, factors[1], one))
        inner = _times(operand, factor * factor)
        return _times(_SQRT(inner), tf.ones([], size.dtype) / factor)

    are_between = tf.logical_and(tf.reduce_max(size) <= most, tf.reduce_min(size) >= least)
    result = tf.cond(are_between, lambda: tf.identity(root), scaled)

    def gradient(upwards: tf.Tensor, root: tf.Tensor, operand: tf.Tensor) -> tuple[tf.Tensor]:
        # Of the root itself: TensorFlow's own gradient of a root, compiled, is wrong.
        return (upwards * tf.math.conj(typed(0.5, root.dtype) / root),)

    return differentiated_when_saved(bound, result, gradient, operand)


def complex_reciprocal_root(bound: Bound, operand: tf.Tensor) -> tf.Tensor:
    """The reciprocal of the square root."""
    return complex_quotient(bound, tf.ones([], operand.dtype), complex_root(bound, operand))


def _times(numbers: tf.Tensor, factor: tf.Tensor) -> tf.Tensor:
    return tf.complex(tf.math.real(numbers) * factor, tf.math.imag(numbers) * factor)
