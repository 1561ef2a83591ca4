"""Operands of bfloat16 with as many terms as oneDNN takes at once, for sums of products that are wrong otherwise.

It takes terms in pairs, and on a CPU with AMX more than 32 of them in blocks of 32. What fills the last pair or block
is zero in one operand alone: in the other it is what lies behind its terms, in memory, or nothing. Where that is
infinite or NaN the sum is NaN, of another row than the one that has it. A convolution of few features takes the numbers
of a row of the kernel for terms there; of whole blocks of these all of its results are other numbers (TensorFlow 2.21).
"""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf

from jaxtf.convert._graph._support import Size, as_shape, same, sizes
from jaxtf.convert._graph.optimizer import computed_by_xla

__all__ = ["with_whole_features", "with_whole_terms", "with_zeros"]

_BLOCK = 32
# Features below which oneDNN's convolutions take the places of a row of the kernel for terms too.
_FEW_FEATURES = 16


def with_whole_terms(left: tf.Tensor, left_axis: int, right: tf.Tensor, right_axis: int) -> tuple[tf.Tensor, tf.Tensor]:
    """Operands whose products are summed over an axis of each, with more terms, of zeros, where they fill no block.

    The terms of a row of the left one lie next to each other where its axis is the last; others fill pairs only.
    """
    if _is_right_anyway(left, right):
        return left, right
    more = _pair if left_axis != -1 else _block
    return _with_more(left, left_axis, right, right_axis, more(sizes(left)[left_axis]))


def with_whole_features(
    operand: tf.Tensor, kernel: tf.Tensor, kernel_axis: int, *, extent: Sequence[Size] = ()
) -> tuple[tf.Tensor, tf.Tensor]:
    """The operand and the kernel of a convolution of images, with more features, of zeros, where they fill no block.

    Args:
      operand: `[batch, ..., features]`.
      kernel: With the features in one axis.
      kernel_axis: That.
      extent: The places of the kernel in each dimension; none for a convolution that takes features in pairs only.
    """
    if _is_right_anyway(operand, kernel):
        return operand, kernel
    features = sizes(operand)[-1]
    if not extent:
        more = _pair(features)
    elif all(same(size, 1) for size in extent):
        more = _block(features)
    else:
        more = _of_rows(features, extent)
    return _with_more(operand, -1, kernel, kernel_axis, more)


def _is_right_anyway(left: tf.Tensor, right: tf.Tensor) -> bool:
    """Whether it is of another dtype, or XLA computes it."""
    return left.dtype != tf.bfloat16 or computed_by_xla(left, right)


def _pair(count: Size) -> Size:
    return count % 2


def _block(count: Size) -> Size:
    """To fill the last block, of which there is one for up to 32 terms, that takes pairs."""
    if isinstance(count, int):
        return count % 2 if count <= _BLOCK else -count % _BLOCK
    return tf.where(count <= _BLOCK, count % 2, -count % _BLOCK)


def _of_rows(features: Size, extent: Sequence[Size]) -> Size:
    """The same for rows of a kernel as terms, where the features are few; oneDNN may take its columns for rows."""
    pairs = features + features % 2
    if isinstance(features, int) and pairs >= _FEW_FEATURES:
        return pairs - features
    if isinstance(features, int) and all(isinstance(size, int) for size in extent):
        return (pairs if pairs * max(extent) <= _BLOCK else _FEW_FEATURES) - features
    fits = tf.logical_or(pairs >= _FEW_FEATURES, pairs * tf.reduce_max(tf.stack(extent)) <= _BLOCK)
    return tf.where(fits, pairs, _FEW_FEATURES) - features


def _with_more(
    left: tf.Tensor, left_axis: int, right: tf.Tensor, right_axis: int, more: Size
) -> tuple[tf.Tensor, tf.Tensor]:
    if isinstance(more, int) and more == 0:
        return left, right
    return with_zeros(left, left_axis, more), with_zeros(right, right_axis, more)


def with_zeros(operand: tf.Tensor, axis: int, count: Size) -> tf.Tensor:
    """The operand with this many zeros after it along an axis."""
    shape = sizes(operand)
    shape[axis] = count
    return tf.concat([operand, tf.zeros(as_shape(shape), operand.dtype)], axis)
