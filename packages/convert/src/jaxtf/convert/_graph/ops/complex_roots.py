"""Square roots of complex numbers up to the largest and the smallest there are, and beside their branch cut.

TensorFlow's kernel (2.21) adds the absolute value to a part, which is infinite for more than half of the greatest
number, and halves the sum, which is subnormal, and counts as 0, for the least. Its kernel for reciprocals of roots
squares the absolute value. Compiled, roots are right.

Of a negative number with an imaginary part of -0 the kernel has the root below for elements that it takes several at
once, and the one above for the rest. For XLA that zero has no sign in roots (`stablehlo.sqrt`); it has one in powers
and in reciprocals of roots.
"""

from __future__ import annotations

import tensorflow as tf

from jaxtf.convert._graph._support import BITS, hidden_from_xla, typed, where, without_sign_of_zero
from jaxtf.convert._graph.derivatives import differentiated_when_saved
from jaxtf.convert._graph.nodes import elementwise
from jaxtf.convert._graph.ops.complex_quotients import complex_quotient
from jaxtf.convert._graph.optimizer import computed_by_xla
from jaxtf.convert._graph.registry import Bound

__all__ = ["complex_reciprocal_root", "complex_root", "root_by_sign"]

_SQRT = elementwise("Sqrt", tf.sqrt)
_SQUARES = "Mul", "Square", "Pow"

# Numbers of a larger part, and of no larger one, are multiplied by a power of 4: nothing is rounded.
_MOST = {tf.complex64: float.fromhex("0x1p125"), tf.complex128: float.fromhex("0x1p1021")}
_LEAST = {tf.complex64: float.fromhex("0x1p-100"), tf.complex128: float.fromhex("0x1p-968")}
_DOWN, _UP = 2.0**-2, 2.0**30


def complex_root(bound: Bound, operand: tf.Tensor, *, by_sign: bool = False) -> tf.Tensor:
    """The square root of a real part that is not negative.

    Where all numbers are such that TensorFlow's kernel is right, nothing else is computed.

    Args:
      bound: The operation.
      operand: Complex numbers.
      by_sign: Whether of a negative number the sign of a zero imaginary part counts: -2j is the root of -4-0j. If not,
        it is that of 0.
    """
    if computed_by_xla(operand):
        return _SQRT(hidden_from_xla(operand) if by_sign else without_sign_of_zero(operand))
    root = _SQRT(hidden_from_xla(operand, *_SQUARES))
    real, imaginary = tf.math.real(operand), tf.math.imag(operand)
    size = tf.maximum(tf.abs(real), tf.abs(imaginary))
    most, least = (typed(limit[operand.dtype], size.dtype) for limit in (_MOST, _LEAST))

    def mended() -> tf.Tensor:
        one, *factors = (typed(factor, size.dtype) for factor in (1, _DOWN, _UP))
        # The greater of infinity and NaN is NaN, which is in neither range.
        factor = where(size > most, factors[0], where(size < least, factors[1], one))
        inner = _times(operand, factor * factor)
        inner = root_by_sign(inner) if by_sign else _SQRT(without_sign_of_zero(inner))
        return _times(inner, tf.ones([], size.dtype) / factor)

    bits = tf.bitcast(imaginary, BITS[imaginary.dtype])
    has_no_negative_zero = tf.reduce_min(bits) > typed(bits.dtype.min, bits.dtype)
    are_between = tf.logical_and(tf.reduce_max(size) <= most, tf.reduce_min(size) >= least)
    is_right = tf.logical_and(are_between, has_no_negative_zero)
    result = tf.cond(is_right, lambda: tf.identity(root), mended)

    def gradient(upwards: tf.Tensor, root: tf.Tensor, operand: tf.Tensor) -> tuple[tf.Tensor]:
        # Of the root itself: TensorFlow's own gradient of a root, compiled, is wrong.
        return (upwards * tf.math.conj(typed(0.5, root.dtype) / root),)

    return differentiated_when_saved(bound, result, gradient, operand)


def complex_reciprocal_root(bound: Bound, operand: tf.Tensor) -> tf.Tensor:
    """The reciprocal of the square root."""
    return complex_quotient(bound, tf.ones([], operand.dtype), complex_root(bound, operand, by_sign=True))


def root_by_sign(operand: tf.Tensor) -> tf.Tensor:
    """The square root, of a negative number with an imaginary part of -0 the one below the real axis."""
    if computed_by_xla(operand):
        return _SQRT(operand)
    real, imaginary = tf.math.real(operand), tf.math.imag(operand)
    bits = tf.bitcast(imaginary, BITS[imaginary.dtype])
    is_below = tf.logical_and(real < 0, tf.equal(bits, typed(bits.dtype.min, bits.dtype)))
    zero, negative_zero = (typed(number, imaginary.dtype) for number in (0.0, -0.0))
    root = _SQRT(tf.complex(real, imaginary + where(is_below, zero, negative_zero)))
    return where(is_below, -root, root)


def _times(numbers: tf.Tensor, factor: tf.Tensor) -> tf.Tensor:
    return tf.complex(tf.math.real(numbers) * factor, tf.math.imag(numbers) * factor)
