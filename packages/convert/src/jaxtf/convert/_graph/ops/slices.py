"""Parts of an array: slices, also from where indices say, and their update.

Elements are moved as they are, NaN and signed zeros included; a start too far out is moved inside first.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from jaxtf.convert._graph._support import (
    MOST_DIMENSIONS,
    MOVED,
    Size,
    index_dtype,
    is_empty,
    one_by_one,
    pad,
    same,
    sizes,
    sliced,
    typed,
)
from jaxtf.convert._graph.known import known_value
from jaxtf.convert._graph.registry import Bound, translates
from jaxtf.convert._graph.strided import strided
from jaxtf.convert._tf import vectorized_slice

# More rows than these are cheaper to select than to scatter one by one.
MANY_ROWS = 4096


@translates("stablehlo.slice", computed_in=MOVED)
def static_slice(bound: Bound, operand: tf.Tensor) -> tf.Tensor:
    """Every stride-th element from start to limit, in each dimension.

    Source: StableHLO specification, `slice`.
    """
    parts = zip(bound["start_indices"], bound["limit_indices"], bound["strides"], strict=True)
    return strided(operand, [slice(int(start), int(limit), int(stride)) for start, limit, stride in parts])


def clamped_starts(starts: Sequence[tf.Tensor], shape: Sequence[Size], extent: Sequence[Size]) -> list[Size]:
    """Start indices moved so that the extent lies inside the shape; integers where known, int32 or int64 otherwise."""
    return [clamped(start, size, length) for start, size, length in zip(starts, shape, extent, strict=True)]


def clamped(start: tf.Tensor, size: Size, length: Size) -> Size:
    """One start index, or a tensor of them, between 0 and size - length."""
    known = known_value(start)
    if known is not None and np.ndim(known) == 0 and isinstance(size, int) and isinstance(length, int):
        return int(min(max(int(known), 0), size - length))
    if isinstance(size, int) and isinstance(length, int) and size == length:
        return 0 if start.shape.rank == 0 else tf.zeros_like(wide_index(start))
    index, last = wide_index(start), size - length
    if index_dtype(last) == tf.int64:
        index = tf.cast(index, tf.int64)
    return tf.minimum(tf.maximum(index, 0), tf.cast(last, index.dtype))


def wide_index(index: tf.Tensor) -> tf.Tensor:
    """An index as int32 or int64, in which every size fits; what is too large for int64 is its greatest value."""
    if index.dtype in (tf.int32, tf.int64):
        return index
    if index.dtype == tf.uint64:
        return tf.cast(tf.minimum(index, typed(2**63 - 1, tf.uint64)), tf.int64)
    return tf.cast(index, tf.int64 if index.dtype == tf.uint32 else tf.int32)


@translates("stablehlo.dynamic_slice", computed_in=MOVED)
def dynamic_slice(bound: Bound, operand: tf.Tensor, *starts: tf.Tensor) -> tf.Tensor:
    """A part of known size from where the indices say, moved inside the array if it is not.

    Source: StableHLO specification, `dynamic_slice`.
    """
    extent = [int(size) for size in bound["slice_sizes"]]
    begin = clamped_starts(starts, sizes(operand), extent)
    if all(isinstance(start, int) for start in begin):
        return strided(operand, [slice(b, b + e) for b, e in zip(begin, extent, strict=True)])
    if len(extent) > MOST_DIMENSIONS:
        cut = [i for i, pair in enumerate(zip(operand.shape.as_list(), extent, strict=True)) if not same(*pair)]
        return one_by_one(operand, cut, lambda array, i: sliced(array, [0, begin[i], 0], [-1, extent[i], -1]))
    found = sliced(operand, begin, extent)
    if not tf.executing_eagerly():
        vectorized_slice(found.op, extent)
    return found


@translates("stablehlo.dynamic_update_slice", computed_in=MOVED)
def dynamic_update_slice(bound: Bound, operand: tf.Tensor, update: tf.Tensor, *starts: tf.Tensor) -> tf.Tensor:
    """The operand with a part replaced, moved inside the array if it is not.

    Source: StableHLO specification, `dynamic_update_slice`.
    """
    shape, extent = sizes(operand), sizes(update)
    if operand.shape.rank == 0:
        return update
    if is_empty(extent):
        return operand
    begin = clamped_starts(starts, shape, extent)
    partial = [i for i, (s, e) in enumerate(zip(shape, extent, strict=True)) if not same(s, e)]
    if not partial:
        return update
    leading = partial[-1] + 1
    rows = int(np.prod([e if isinstance(e, int) else 1 for e in extent[:leading]]))
    if rows <= MANY_ROWS and leading <= 7:
        return _scattered(operand, update, begin[:leading], extent[:leading])
    return _selected(operand, update, begin, partial)


def _scattered(operand: tf.Tensor, update: tf.Tensor, begin: Sequence[Size], extent: Sequence[Size]) -> tf.Tensor:
    """Row by row: a row is what lies behind the last dimension that the update does not fill."""
    dtype = index_dtype(operand.shape.num_elements(), *operand.shape.as_list())
    lines = [tf.cast(b, dtype) + tf.cast(tf.range(e), dtype) for b, e in zip(begin, extent, strict=True)]
    return tf.tensor_scatter_nd_update(operand, tf.stack(tf.meshgrid(*lines, indexing="ij"), axis=-1), update)


def _selected(operand: tf.Tensor, update: tf.Tensor, begin: Sequence[Size], partial: Sequence[int]) -> tf.Tensor:
    """Every element from the update where it lies there, else from the operand."""
    rank = operand.shape.rank
    shape, extent = sizes(operand), sizes(update)
    # An element is read for each of the operand, also where there turn out to be none.
    unknown = [int(axis in partial and not isinstance(size, int)) for axis, size in enumerate(extent)]
    update = pad(update, None, [0] * rank, unknown) if any(unknown) else update
    inside = None
    for axis in partial:
        dtype = index_dtype(shape[axis])
        position = tf.cast(tf.range(shape[axis]), dtype) - tf.cast(begin[axis], dtype)
        here = tf.logical_and(position >= 0, position < extent[axis])
        here = tf.reshape(here, [-1 if i == axis else 1 for i in range(rank)])
        inside = here if inside is None else tf.logical_and(inside, here)
        update = tf.gather(update, tf.maximum(tf.minimum(position, extent[axis] - 1), 0), axis=axis)
    return tf.where(inside, update, operand)
