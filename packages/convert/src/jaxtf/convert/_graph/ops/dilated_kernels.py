"""Convolutions with dilated kernels in three dimensions, depthwise ones, and those of float64.

Those of TensorFlow for CPU know no dilation there (without oneDNN), nor do the gradients of those of float64. Zeros
between the elements of the kernel would do for numbers, but make NaN of an operand that is infinite or NaN; for XLA
they are slower too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import tensorflow as tf

from jaxtf.convert._graph._support import Size, as_shape, sizes
from jaxtf.convert._graph.ops.kernel_windows import Integers, Windows

__all__ = ["in_phases"]

_Edges = Sequence[tuple[Size, Size]]


def in_phases(
    operand: tf.Tensor,
    kernel: tf.Tensor,
    windows: Windows,
    padding: str,
    convolve: Callable[[tf.Tensor, tf.Tensor], tf.Tensor],
) -> tf.Tensor:
    """The convolution by a dilated kernel, by one of stride 1 without dilation or padding.

    That one has phases of the operand in the batch: along a dimension of dilation d, every d-th element, from each of
    the first d. A stride is taken out of the result, padded as one of stride 1 is by SAME: TFLite's converter (2.21)
    makes one operation of the phases, and any other padding, but none, that of stride 1.

    Args:
      operand: `[batch, *spatial, features]`, of two or three spatial dimensions.
      kernel: Its spatial dimensions come first.
      windows: Their `dilation` is 1.
      padding: VALID or SAME.
      convolve: From an operand and the kernel to their convolution.
    """
    apart = windows.kernel_dilation
    edges: _Edges = [(0, 0)] * len(apart)
    begins: Sequence[Size] = [0] * len(apart)
    if padding == "SAME":
        edges = [((reach - 1) // 2, reach // 2) for reach in windows.reach(kernel)]
        begins = [low - needed for (low, _), needed in zip(edges, windows.low, strict=True)]
    extent = sizes(operand)[1:-1]
    missing = [-(size + sum(edge)) % d for size, edge, d in zip(extent, edges, apart, strict=True)]
    padded = [(low, high + more) for (low, high), more in zip(edges, missing, strict=True)]
    result = convolve(_to_batch(operand, apart, padded), kernel)
    result = _from_batch(result, apart, [(0, more) for more in missing])
    if set(windows.stride) == {1}:
        return result
    kept = (slice(begin, None, stride) for begin, stride in zip(begins, windows.stride, strict=True))
    return result[(slice(None), *kept)]


def _to_batch(operand: tf.Tensor, blocks: Integers, edges: _Edges) -> tf.Tensor:
    """As `tf.space_to_batch`, also of three spatial dimensions, which TFLite's has not: the first one last.

    Where only running tells the edges, they are added before, and taken off after it: Grappler (2.21) takes all sizes
    that SpaceToBatch adds unknown edges to for one, and what computes with sizes is wrong.
    """
    if not _are_known(edges):
        operand = tf.pad(operand, [[0, 0], *map(list, edges), [0, 0]])
        edges = [(0, 0)] * len(blocks)
    if len(blocks) == 2:
        return tf.space_to_batch(operand, blocks, edges)
    batch, depth, height, width, features = sizes(operand)
    planes = tf.reshape(operand, as_shape([batch * depth, height, width, features]))
    planes = tf.space_to_batch(planes, blocks[1:], edges[1:])
    _, height, width, _ = sizes(planes)
    batch *= blocks[1] * blocks[2]
    lines = tf.reshape(planes, as_shape([batch, depth, height * width * features]))
    lines = tf.space_to_batch(lines, blocks[:1], edges[:1])
    return tf.reshape(lines, as_shape([batch * blocks[0], sizes(lines)[1], height, width, features]))


def _from_batch(operand: tf.Tensor, blocks: Integers, edges: _Edges) -> tf.Tensor:
    """What `_to_batch` is the inverse of, `edges` cut off."""
    if not _are_known(edges):
        whole = _from_batch(operand, blocks, [(0, 0)] * len(blocks))
        kept = [size - high for size, (_, high) in zip(sizes(whole)[1:-1], edges, strict=True)]
        return whole[(slice(None), *map(slice, kept))]
    if len(blocks) == 2:
        return tf.batch_to_space(operand, blocks, edges)
    batch, depth, height, width, features = sizes(operand)
    lines = tf.reshape(operand, as_shape([batch, depth, height * width * features]))
    lines = tf.batch_to_space(lines, blocks[:1], edges[:1])
    batch, depth = batch // blocks[0], sizes(lines)[1]
    planes = tf.reshape(lines, as_shape([batch * depth, height, width, features]))
    planes = tf.batch_to_space(planes, blocks[1:], edges[1:])
    _, height, width, _ = sizes(planes)
    return tf.reshape(planes, as_shape([batch // (blocks[1] * blocks[2]), depth, height, width, features]))


def _are_known(edges: _Edges) -> bool:
    return all(isinstance(size, int) for edge in edges for size in edge)
