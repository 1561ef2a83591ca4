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

__all__ = ["accumulated"]


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
    if kind != "add" or operand.dtype != tf.float16 or not _rounds_each_step(operand, axes):
        return reduced(operand)
    return nodes.cast(reduced(nodes.cast(operand, tf.float32)), operand.dtype)


def _rounds_each_step(operand: tf.Tensor, axes: Sequence[int]) -> bool:
    """Whether TensorFlow's kernel does, and there are more steps than one."""
    shape = operand.shape.as_list()
    lengths = [shape[axis] for axis in axes]
    if None not in lengths and prod(lengths) <= 2:
        return False
    runs = [is_reduced for is_reduced, _ in groupby(i in axes for i, size in enumerate(shape) if size != 1)]
    # Where more than three runs are left, TensorFlow transposes the array, so that the innermost one is reduced.
    return True in runs[:-1] and (len(runs) <= 3 or None in shape)
