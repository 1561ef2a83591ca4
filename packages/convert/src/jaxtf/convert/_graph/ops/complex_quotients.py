"""Quotients of complex numbers by zero, by infinity and of it.

For those TensorFlow's kernel has NaN until 2.21, and other infinities than XLA from 2.22 on.
"""

from __future__ import annotations

import tensorflow as tf

from jaxtf.convert._graph._support import typed, where
from jaxtf.convert._graph.derivatives import differentiated_as, differentiated_when_saved, slope_of
from jaxtf.convert._graph.grappler import divided
from jaxtf.convert._graph.optimizer import computed_by_xla
from jaxtf.convert._graph.registry import Bound

__all__ = ["complex_quotient"]

# What is smaller counts as zero.
_LEAST = {tf.complex64: float.fromhex("0x1p-126"), tf.complex128: float.fromhex("0x1p-1022")}


def complex_quotient(bound: Bound, dividend: tf.Tensor, divisor: tf.Tensor) -> tf.Tensor:
    """The quotient of two tensors of complex numbers, whose shapes broadcast.

    By zero, the parts of the dividend are multiplied by infinity, with the sign of the real part of the divisor. Of an
    infinite number and a finite one it is infinite or 0, where both parts would be NaN, as in annex G of the C
    standard; XLA has the same. Where TensorFlow's kernel gives finite numbers of finite ones, nothing else is computed.
    """
    quotient = divided(dividend, divisor)
    if computed_by_xla(dividend, divisor):
        return quotient

    def repaired() -> tf.Tensor:
        a, b, c, d = (part(x) for x in (dividend, divisor) for part in (tf.math.real, tf.math.imag))
        least = typed(_LEAST[divisor.dtype], c.dtype)
        infinity = 1 / (c * 0)
        result = quotient
        for applies, real, imaginary in (
            (_one_infinite(a, b, c, d), *_of_infinite(a, b, c, d)),
            (_one_infinite(c, d, a, b), *_times(0.0, a, b, _unit(c), _unit(d))),
            (tf.logical_and(tf.abs(c) < least, tf.abs(d) < least), a * infinity, b * infinity),
        ):
            result = where(applies, tf.complex(real, imaginary), result)
        # One that has no finite derivative would make NaN of the gradients of all.
        return differentiated_as(bound, result, divided, dividend, divisor)

    # A sum is finite only if all its terms are.
    total = tf.reduce_sum(quotient)
    is_finite = tf.logical_and(*(tf.math.is_finite(part(total)) for part in (tf.math.real, tf.math.imag)))
    result = tf.cond(is_finite, lambda: tf.identity(quotient), repaired)
    slope = slope_of(divided)
    return differentiated_when_saved(
        bound, result, lambda upwards, _, *given: slope(upwards, *given), dividend, divisor
    )


def _one_infinite(a: tf.Tensor, b: tf.Tensor, c: tf.Tensor, d: tf.Tensor) -> tf.Tensor:
    """Whether a part of a + bi is infinite, and both of c + di are finite."""
    is_infinite = tf.logical_or(tf.math.is_inf(a), tf.math.is_inf(b))
    return tf.logical_and(is_infinite, tf.logical_and(tf.math.is_finite(c), tf.math.is_finite(d)))


def _of_infinite(a: tf.Tensor, b: tf.Tensor, c: tf.Tensor, d: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """The parts of an infinite a + bi by a finite c + di: by the smaller part's ratio to the larger, one may be NaN."""
    is_first = tf.abs(c) >= tf.abs(d)
    ratio = where(is_first, d / c, c / d)
    by = where(is_first, c + d * ratio, d + c * ratio)
    real, imaginary = (
        where(is_first, a + b * ratio, a * ratio + b) / by,
        where(is_first, b - a * ratio, b * ratio - a) / by,
    )
    are_nan = tf.logical_and(tf.math.is_nan(real), tf.math.is_nan(imaginary))
    whole = _times(float("inf"), _unit(a), _unit(b), c, d)
    return where(are_nan, whole[0], real), where(are_nan, whole[1], imaginary)


def _unit(part: tf.Tensor) -> tf.Tensor:
    """1 with its sign for what is infinite, 0 for what is not."""
    return where(tf.math.is_inf(part), tf.sign(part), tf.zeros([], part.dtype))


def _times(factor: float, a: tf.Tensor, b: tf.Tensor, c: tf.Tensor, d: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """The parts of a + bi, times the conjugate of c + di and a number."""
    return factor * (a * c + b * d), factor * (b * c - a * d)
