"""Sums of float16, computed in float32 where TensorFlow's kernel rounds each step to 16 bits.

TensorFlow's kernel for CPU (2.21) adds float16 along other dimensions than the innermost ones one row after the other,
so that a sum of ones stays at 2048; along the innermost ones in a tree, and bfloat16 in float32. XLA, where TensorFlow
compiles, computes both in float32, but sums of constants are computed by that kernel before. Of products each step is
rounded, by TensorFlow as by JAX.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from math import prod

import tensorflow as tf

from jaxtf.convert._graph import nodes

__all__ = ["accumulated", "broadcast_in_float32", "is_added_in_steps"]


def accumulated(
    kind: str, operand: tf.Tensor, axes: Sequence[int], reduced: Callable[[tf.Tensor], tf.Tensor]
) -> tf.Tensor:
    """What a reduction of TensorFlow's gives, of the operand or, where that would round each step, of it in float32.

    Args:
      kind: By which operation it combines elements; nothing is done for others than "add".
      operand: The array.
      axes: What it is reduced over.
      reduced: The reduction.
    """
    if kind != "add" or operand.dtype != tf.float16 or not is_added_in_steps(operand.shape.as_list(), axes):
        return reduced(operand)
    return nodes.cast(reduced(nodes.cast(operand, tf.float32)), operand.dtype)


def broadcast_in_float32(
    operand: tf.Tensor, broadcast: Callable[[tf.Tensor], tf.Tensor], axes: Sequence[int], shape: Sequence[int | None]
) -> tf.Tensor:
    """What a broadcast gives of float16 numbers, so that TensorFlow's gradient of it is a sum in float32.

    Args:
      operand: The array.
      broadcast: The broadcast.
      axes: Where the operand is repeated.
      shape: That of the result, as far as it is known.
    """
    if operand.dtype != tf.float16 or not is_added_in_steps(shape, axes):
        return broadcast(operand)
    return nodes.cast(broadcast(nodes.cast(operand, tf.float32)), operand.dtype)


def is_added_in_steps(shape: Sequence[int | None], axes: Sequence[int]) -> bool:
    """Whether TensorFlow's kernel rounds each step of a sum of float16 over these axes, and there are more than one."""
    lengths = [shape[axis] for axis in axes]
    if None not in lengths and prod(n for n in lengths if n is not None) <= 2:
        return False
    runs = [is_reduced for is_reduced, _ in groupby(i in axes for i, size in enumerate(shape) if size != 1)]
    # Where more than three runs are left, TensorFlow transposes the array, so that the innermost one is reduced.
    return True in runs[:-1] and (len(runs) <= 3 or None in shape)
