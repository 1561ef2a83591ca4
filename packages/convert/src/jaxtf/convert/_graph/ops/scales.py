"""Matrices brought to elements near 1 and back, for kernels of TensorFlow that square them or stop at a fixed error.

Compiled, singular values and eigenvalues are found up to an error of about 1e-6, whatever the elements are (XLA), and
TensorFlow's QR sums squares, which are 0 or infinite for elements that are not; so do its eigenvalues of complex
matrices. By a power of 2 nothing is rounded.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from jaxtf.convert._graph._support import typed

__all__ = ["Scaled", "scaled"]

# Integers with the bits of a number, how many are behind the exponent, and the exponent of the greatest numbers.
_BITS: dict[tf.DType, tuple[tf.DType, int, int]] = {
    tf.float32: (tf.int32, 23, 254),
    tf.float64: (tf.int64, 52, 2046),
}


class Scaled(NamedTuple):
    """Matrices, or their columns, each divided by a power of 2; by 1 if an element is not finite.

    Attributes:
      matrices: The matrices.
      scale: What they were divided by, real, `[..., 1, 1]`, or of each column, `[..., 1, n]`.
      is_finite: Whether all elements are finite, of the same shape.
    """

    matrices: tf.Tensor
    scale: tf.Tensor
    is_finite: tf.Tensor

    @property
    def finite(self) -> tf.Tensor:
        """The matrices; zeros for those with an element that is not finite, for which some kernels fail."""
        return tf.where(self.is_finite, self.matrices, tf.zeros([], self.matrices.dtype))

    def restored(self, results: tf.Tensor) -> tf.Tensor:
        """Matrices that are as large as their elements, or a row of such numbers for each."""
        return results * tf.cast(self._beside(self.scale, results), results.dtype)

    def or_nan(self, results: tf.Tensor) -> tf.Tensor:
        """Matrices, or a row of numbers for each: NaN where elements were not finite."""
        nan = complex(np.nan, np.nan) if results.dtype.is_complex else np.nan
        return tf.where(self._beside(self.is_finite, results), results, typed(nan, results.dtype))

    def _beside(self, each: tf.Tensor, results: tf.Tensor) -> tf.Tensor:
        return each if results.shape.rank == self.matrices.shape.rank else tf.squeeze(each, [-1])


def scaled(matrices: tf.Tensor, *, by_column: bool = False) -> Scaled:
    """Matrices with a largest element of 1 to 2, as far as their scale is not one of the least or greatest numbers.

    Of complex elements the parts are meant: the absolute value of one may be infinite.

    Args:
      matrices: The matrices, real or complex.
      by_column: Whether each column is scaled for itself.
    """
    axes = [-2] if by_column else [-2, -1]
    sizes, are_finite = tf.abs(tf.math.real(matrices)), tf.math.is_finite(tf.math.real(matrices))
    if matrices.dtype.is_complex:  # compiled, a maximum of NaN and a number may be the number
        are_finite = tf.logical_and(are_finite, tf.math.is_finite(tf.math.imag(matrices)))
        sizes = tf.maximum(sizes, tf.abs(tf.math.imag(matrices)))
    integers, places, greatest = _BITS[sizes.dtype]

    def number(bits: Any) -> tf.Tensor:
        return tf.bitcast(bits, sizes.dtype)

    largest = tf.bitcast(tf.reduce_max(sizes, axes, keepdims=True), integers)
    exponent = tf.bitwise.bitwise_and(largest, typed((greatest + 1) << places, integers))
    # So that neither a number nor its reciprocal is subnormal.
    exponent = tf.minimum(exponent, typed((greatest - 1) << places, integers))
    exponent = tf.maximum(exponent, typed(1 << places, integers))
    is_finite = tf.reduce_all(are_finite, axes, keepdims=True)
    exponent = tf.where(is_finite, exponent, typed((greatest // 2) << places, integers))
    reciprocal = number(typed(greatest << places, integers) - exponent)
    return Scaled(matrices * tf.cast(reciprocal, matrices.dtype), number(exponent), is_finite)
