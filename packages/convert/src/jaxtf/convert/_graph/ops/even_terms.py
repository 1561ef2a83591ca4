"""Products of bfloat16 summed over an even number of terms, where an odd number would lose infinity."""

from __future__ import annotations

import tensorflow as tf

from jaxtf.convert._graph._support import as_shape, sizes
from jaxtf.convert._graph.optimizer import computed_by_xla

__all__ = ["with_even_terms", "with_zeros"]


def with_even_terms(left: tf.Tensor, left_axis: int, right: tf.Tensor, right_axis: int) -> tuple[tf.Tensor, tf.Tensor]:
    """Operands whose products are summed over an axis of each, with one term more, of zeros, where the terms are odd.

    oneDNN takes terms of bfloat16 in pairs. On a CPU without instructions for bfloat16 it multiplies the last one of an
    odd number by what fills its pair too, which is zero: the sum is NaN if that term is infinite (TensorFlow 2.21).
    """
    known = left.shape.as_list()[left_axis]
    is_even = known is not None and known % 2 == 0
    if left.dtype != tf.bfloat16 or is_even or computed_by_xla(left, right):
        return left, right
    more = sizes(left)[left_axis] % 2
    return with_zeros(left, left_axis, more), with_zeros(right, right_axis, more)


def with_zeros(operand: tf.Tensor, axis: int, count: int | tf.Tensor) -> tf.Tensor:
    """The operand with this many zeros after it along an axis."""
    shape = sizes(operand)
    shape[axis] = count
    return tf.concat([operand, tf.zeros(as_shape(shape), operand.dtype)], axis)
