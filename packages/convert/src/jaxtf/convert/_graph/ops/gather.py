"""Gather: slices of the operand from where indices say.

Elements are moved as they are, NaN and signed zeros included; an index outside is moved inside first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf

from jaxtf.convert._graph._support import MOVED, Size, as_shape, index_dtype, product, refuse, same, sizes
from jaxtf.convert._graph.ops.dynamic import listed
from jaxtf.convert._graph.ops.slices import clamped, wide_index
from jaxtf.convert._graph.registry import Bound, translates


@translates("stablehlo.gather", computed_in=MOVED)
def gather(bound: Bound, operand: tf.Tensor, indices: tf.Tensor) -> tf.Tensor:
    """Slices of known size from where each vector of indices says, moved inside the operand if they are not.

    Source: StableHLO specification, `gather`.
    """
    return gathered(bound, operand, indices, [int(size) for size in bound["slice_sizes"]])


@translates("stablehlo.dynamic_gather", computed_in=MOVED)
def dynamic_gather(bound: Bound, operand: tf.Tensor, indices: tf.Tensor, slice_sizes: tf.Tensor) -> tf.Tensor:
    """As `gather`, with slice sizes that are an operand.

    Source: StableHLO specification, `dynamic_gather`.
    """
    return gathered(bound, operand, indices, listed(slice_sizes))


def gathered(bound: Bound, operand: tf.Tensor, indices: tf.Tensor, slice_sizes: Sequence[Size]) -> tf.Tensor:
    """As `gather`.

    The result is made with its dimensions in the order: those of the indices, those of slices along indexed dimensions,
    other dimensions of the operand; and then transposed.
    """
    numbers: Mapping[str, Any] = bound["dimension_numbers"]
    given = [*numbers["start_index_map"], *numbers["operand_batching_dims"]]
    first_only = [i for i in numbers["collapsed_slice_dims"] if i not in given]
    kept = [i for i in range(operand.shape.rank) if i not in first_only]
    if first_only:
        operand = operand[tuple(slice(None) if i in kept else 0 for i in range(operand.shape.rank))]
        slice_sizes = [slice_sizes[i] for i in kept]
    rank = operand.shape.rank
    indexed, batching, collapsed = (
        [kept.index(i) for i in numbers[name] if i in kept]
        for name in ("start_index_map", "operand_batching_dims", "collapsed_slice_dims")
    )
    collapsed += batching
    starts, batch_shape = index_vectors(indices, numbers["index_vector_dim"], len(numbers["start_index_map"]))
    shape = sizes(operand)
    starts = [clamped(s, shape[axis], slice_sizes[axis]) for s, axis in zip(starts, indexed, strict=True)]
    starts = [tf.broadcast_to(s, as_shape(batch_shape)) if isinstance(s, int) else s for s in starts]

    whole = [i for i in range(rank) if i not in indexed and i not in batching]
    operand = _cut(operand, {axis: slice_sizes[axis] for axis in whole})
    windows = [axis for axis in indexed if axis not in collapsed]
    if len(indexed) == 1 and not batching:
        result = _along_one(operand, starts[0], indexed[0], slice_sizes[indexed[0]] if windows else None)
        lead = [i for i in whole if i < indexed[0]]
        count = len(batch_shape)
        made: list[Any] = [
            *lead,
            *(("batch", i) for i in range(count)),
            *windows,
            *(i for i in whole if i > indexed[0]),
        ]
    else:
        if len(indexed) + len(batching) > 7:
            refuse(bound, "more than seven indexed dimensions")
        extents = [slice_sizes[axis] for axis in windows]
        components = {axis: _over_windows(s, axis, windows, extents) for s, axis in zip(starts, indexed, strict=True)}
        grid = batch_positions(batch_shape, numbers["start_indices_batching_dims"], numbers["index_vector_dim"])
        components |= {axis: _over_windows(g, axis, windows, extents) for g, axis in zip(grid, batching, strict=True)}
        result = _gather_nd(operand, components, [*batch_shape, *extents], whole)
        made = [*(("batch", i) for i in range(len(batch_shape))), *windows, *whole]
    offsets = [axis for axis in range(rank) if axis not in collapsed]
    return _ordered(result, made, offsets, numbers["offset_dims"], len(batch_shape))


def index_vectors(indices: tf.Tensor, vector_dimension: int, count: int) -> tuple[list[tf.Tensor], list[Size]]:
    """So many components of the index vectors, each in the shape of the batch, and that shape."""
    if vector_dimension == indices.shape.rank:
        return [indices], sizes(indices)
    shape = sizes(indices)
    batch_shape = [size for i, size in enumerate(shape) if i != vector_dimension]
    if count == 1:
        return [tf.reshape(indices, as_shape(batch_shape))], batch_shape
    return list(tf.unstack(indices, count, axis=vector_dimension)), batch_shape


def batch_positions(batch_shape: Sequence[Size], dimensions: Sequence[int], vector_dimension: int) -> list[tf.Tensor]:
    """For each named dimension of the indices the position along it, in a shape that broadcasts against the batch.

    Dimensions of the batch are those of the indices without that of the vectors.
    """
    rank, places = len(batch_shape), [d - (d > vector_dimension) for d in dimensions]
    return [tf.reshape(tf.range(batch_shape[p]), [-1 if i == p else 1 for i in range(rank)]) for p in places]


def _cut(operand: tf.Tensor, extents: Mapping[int, Size]) -> tf.Tensor:
    """The first so many elements along each dimension."""
    if all(same(operand.shape.as_list()[axis], size) for axis, size in extents.items()):
        return operand
    return operand[
        tuple(slice(extents[axis]) if axis in extents else slice(None) for axis in range(operand.shape.rank))
    ]


def _along_one(operand: tf.Tensor, start: tf.Tensor, axis: int, extent: Size | None) -> tf.Tensor:
    """By Gather: the batch takes the place of the axis, followed by the slices' extent if they have one."""
    if extent is None:
        return tf.gather(operand, start, axis=axis)
    start = wide_index(start)
    return tf.gather(operand, start[..., tf.newaxis] + tf.cast(tf.range(extent), start.dtype), axis=axis)


def _over_windows(start: tf.Tensor, axis: int, windows: Sequence[int], extents: Sequence[Size]) -> tf.Tensor:
    """Indices in the shape of the batch and then of the windows: shifted along the window of their own axis."""
    start = wide_index(start)
    shaped = tf.reshape(start, as_shape([*sizes(start), *(1 for _ in windows)]))
    if axis not in windows:
        return shaped
    own = windows.index(axis)
    offsets = tf.reshape(tf.range(extents[own]), [-1 if i == own else 1 for i in range(len(windows))])
    return shaped + tf.cast(offsets, start.dtype)


def _gather_nd(
    operand: tf.Tensor, components: Mapping[int, tf.Tensor], shape: Sequence[Size], whole: Sequence[int]
) -> tf.Tensor:
    """By GatherNd, with the indexed dimensions in front."""
    front = sorted(components)
    order = [*front, *whole]
    if any(same(operand.shape.as_list()[axis], 0) for axis in whole):  # of which GatherNd takes nothing
        return tf.zeros(as_shape([*shape, *(sizes(operand)[axis] for axis in whole)]), operand.dtype)
    if order != sorted(order):
        operand = tf.transpose(operand, order)
    if not front:
        return tf.broadcast_to(operand, as_shape([*shape, *sizes(operand)]))
    # With int32, GatherNd reads no array of more elements.
    is_wide = any(c.dtype == tf.int64 for c in components.values())
    dtype = tf.int64 if is_wide else index_dtype(operand.shape.num_elements())
    vectors = [tf.broadcast_to(tf.cast(components[axis], dtype), as_shape(shape)) for axis in front]
    named = tf.stack(vectors, axis=-1)
    row = sizes(operand)[len(front) :]
    if all(isinstance(size, int) for size in row):
        return tf.gather_nd(operand, named)
    # Where rows are empty, no vector is looked up.
    looked_up = tf.reshape(named, [-1, len(front)])[: tf.where(product(row) > 0, tf.size(named) // len(front), 0)]
    return tf.reshape(tf.gather_nd(operand, looked_up), as_shape([*shape, *row]))


def _ordered(
    result: tf.Tensor, made: Sequence[Any], offsets: Sequence[int], offset_dims: Sequence[int], batch_rank: int
) -> tf.Tensor:
    """The result with the dimensions of slices at the offset dimensions, those of the batch between them in order."""
    wanted: list[Any] = [None] * (len(offsets) + batch_rank)
    for place, axis in zip(offset_dims, offsets, strict=True):
        wanted[place] = axis
    batch = iter([("batch", i) for i in range(batch_rank)])
    wanted = [next(batch) if w is None else w for w in wanted]
    order = [list(made).index(w) for w in wanted]
    return result if order == sorted(order) else tf.transpose(result, order)


@translates("stablehlo.torch_index_select", computed_in=MOVED)
def torch_index_select(bound: Bound, operand: tf.Tensor, indices: tf.Tensor) -> tf.Tensor:
    """Elements along a dimension where indices say, moved inside, after leading dimensions that both share.

    Source: StableHLO, `torch_index_select`.
    """
    axis = bound["dim"]
    inside = clamped(indices, sizes(operand)[axis], 1)
    return tf.gather(operand, inside, axis=axis, batch_dims=bound["batch_dims"])
