"""Products of bfloat16 summed over an even number of terms, where an odd number would lose infinity."""

from __future__ import annotations

import tensorflow as tf

from jaxtf.convert._graph._support import as_shape, sizes
from jaxtf.convert._tf import traces_compiled

__all__ = ["with_even_terms"]


def with_even_terms(left: tf.Tensor, left_axis: int, right: tf.Tensor, right_axis: int) -> tuple[tf.Tensor, tf.Tensor]:
    """Operands whose products are summed over an axis of each, with one term more, of zeros, where the terms are odd.

    oneDNN takes terms of bfloat16 in pairs. On a CPU without instructions for bfloat16 it multiplies the last one of an
    odd number by what fills its pair too, which is zero: the sum is NaN if that term is infinite (TensorFlow 2.21).
    """
    terms = sizes(left)[left_axis]
    is_even = isinstance(terms, int) and terms % 2 == 0
    if left.dtype != tf.bfloat16 or is_even or traces_compiled():
        return left, right
    return _with_more(left, left_axis, terms % 2), _with_more(right, right_axis, terms % 2)


def _with_more(operand: tf.Tensor, axis: int, count: int | tf.Tensor) -> tf.Tensor:
    shape = sizes(operand)
    shape[axis] = count
    return tf.concat([operand, tf.zeros(as_shape(shape), operand.dtype)], axis)
