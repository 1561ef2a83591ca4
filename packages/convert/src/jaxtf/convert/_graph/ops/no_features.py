"""Convolutions of no features: compiled, one of TensorFlow's divides by their number, which ends the process (2.21)."""

from __future__ import annotations

import tensorflow as tf

from jaxtf.convert._graph._support import Size, as_shape, sizes

__all__ = ["with_some_features"]


def with_some_features(operand: tf.Tensor, kernel: tf.Tensor, groups: int) -> tuple[tf.Tensor, tf.Tensor]:
    """The operand and the kernel of a convolution, with one feature for each group, of zeros, where there is none.

    Args:
      operand: `[batch, ..., features]`, the features of one group next to each other.
      kernel: `[..., features of one group, outputs]`.
      groups: How many.
    """
    axis = kernel.shape.rank - 2
    count = sizes(kernel)[axis]
    if isinstance(count, int) and count > 0:
        return operand, kernel
    more = tf.maximum(1 - count, 0)
    return _with_more(operand, operand.shape.rank - 1, more * groups), _with_more(kernel, axis, more)


def _with_more(operand: tf.Tensor, axis: int, count: Size) -> tf.Tensor:
    shape = sizes(operand)
    shape[axis] = count
    return tf.concat([operand, tf.zeros(as_shape(shape), operand.dtype)], axis)
