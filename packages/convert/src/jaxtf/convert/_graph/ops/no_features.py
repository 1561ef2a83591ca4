"""Convolutions of no features: compiled, one of TensorFlow's divides by their number, which ends the process (2.21)."""

from __future__ import annotations

import tensorflow as tf

from jaxtf.convert._graph._support import sizes
from jaxtf.convert._graph.ops.whole_terms import with_zeros

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
    return with_zeros(operand, operand.shape.rank - 1, more * groups), with_zeros(kernel, axis, more)
