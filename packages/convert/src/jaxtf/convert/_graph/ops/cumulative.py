"""Cumulative sums and products along one dimension, by TensorFlow's operations for them."""

from __future__ import annotations

import tensorflow as tf

from jaxtf.convert._graph._support import Size, as_shape, pad, sizes, sliced
from jaxtf.convert._graph.optimizer import computed_by_xla

__all__ = ["CUMULATIVE", "CUMULATIVE_DTYPES", "LONG", "cumulated"]

CUMULATIVE = {"add": tf.cumsum, "multiply": tf.math.cumprod}
CUMULATIVE_DTYPES = (tf.bfloat16, tf.float16, tf.float32, tf.float64, tf.int32, tf.int64)

LONG = 2**14
"""More elements than that are summed in blocks."""
_BLOCK = 1024


def cumulated(kind: str, operand: tf.Tensor, axis: int, *, reverse: bool, conditions: bool) -> tf.Tensor:
    """The sums, or products, of each element and all before it, or after it.

    TensorFlow's kernel for CPU adds one element to the sum of all before: from 2**24 on a float32 sum of ones grows no
    more, and a million random numbers have an error of some hundred units in the last place. What has more than `LONG`
    elements is summed in blocks, then the blocks' sums: XLA does so, too. Where only running tells how many there are,
    a `tf.cond` asks, if there may be `conditions`.
    """
    wide = tf.float32 if operand.dtype.size == 2 else operand.dtype  # in 16 bits each step would round
    elements = tf.cast(operand, wide)
    size = sizes(elements)[axis]
    elements = _of_known_size(elements, axis, size)

    def plain() -> tf.Tensor:
        return CUMULATIVE[kind](elements, axis=axis, reverse=reverse)

    def in_blocks() -> tf.Tensor:
        return _summed_in_blocks(elements, axis, reverse=reverse)

    if kind != "add" or not wide.is_floating or computed_by_xla(operand):
        result = plain()
    elif isinstance(size, int):
        result = in_blocks() if size > LONG else plain()
    else:
        result = tf.cond(size > LONG, in_blocks, plain) if conditions else plain()
    return tf.cast(result, operand.dtype)


def _of_known_size(elements: tf.Tensor, axis: int, size: Size) -> tf.Tensor:
    """The elements, whose number XLA must know if it compiles them.

    Of a number that depends on values XLA (TensorFlow 2.21) ends the process; before, it refuses a padding in front,
    of 0, that is computed from it. Elsewhere that takes no time.
    """
    if isinstance(size, int):
        return elements
    before: list[Size] = [0] * elements.shape.rank
    before[axis] = tf.minimum(size, 0)
    return tf.ensure_shape(pad(elements, None, before, [0] * len(before)), elements.shape)


def _summed_in_blocks(operand: tf.Tensor, axis: int, *, reverse: bool) -> tf.Tensor:
    """The cumulative sums of blocks, each with the sum of all blocks before it added.

    Sums of numbers that are not negative do not decrease, as when each is added to the sum before it.
    """
    shape = sizes(operand)
    size = shape[axis]
    count = (size + (_BLOCK - 1)) // _BLOCK
    added: list[Size] = [0] * len(shape)
    added[axis] = count * _BLOCK - size
    whole = pad(operand, None, [0] * len(shape), added)
    blocks = tf.reshape(whole, as_shape([*shape[:axis], count, _BLOCK, *shape[axis + 1 :]]))
    within = tf.cumsum(blocks, axis=axis + 1, reverse=reverse)
    totals = tf.gather(within, 0 if reverse else _BLOCK - 1, axis=axis + 1)
    before = tf.cumsum(totals, axis=axis, exclusive=True, reverse=reverse)
    sums = tf.reshape(within + tf.expand_dims(before, axis + 1), as_shape(sizes(whole)))
    return sliced(sums, [0] * len(shape), shape)
