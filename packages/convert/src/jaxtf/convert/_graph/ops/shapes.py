"""Where elements are: broadcasting, reshaping, transposing, joining, padding; and constants.

Elements are moved as they are, NaN and signed zeros included.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from itertools import groupby
from typing import Any

import numpy as np
import tensorflow as tf

from jaxtf.convert._graph import nodes
from jaxtf.convert._graph._support import (
    MOST_DIMENSIONS,
    MOVED,
    Size,
    as_shape,
    one_by_one,
    pad,
    refuse,
    sizes,
    where,
)
from jaxtf.convert._graph.accumulated import broadcast_in_float32
from jaxtf.convert._graph.broadcasts import MOST_RUNS, most_runs
from jaxtf.convert._graph.known import known_value
from jaxtf.convert._graph.registry import Bound, translates
from jaxtf.convert._tf import traces_compiled


@translates("stablehlo.broadcast_in_dim", computed_in=MOVED)
def broadcast_in_dim(bound: Bound, operand: tf.Tensor) -> tf.Tensor:
    """Repeats elements along new dimensions and along those of size 1.

    Source: StableHLO specification, `broadcast_in_dim`.
    """
    shape: list[Size | None] = list(bound.result_type.shape)
    for axis, size in zip(bound["broadcast_dimensions"], sizes(operand), strict=True):
        shape[axis] = size if shape[axis] is None else shape[axis]
    known = [size for size in shape if size is not None]
    if len(known) < len(shape):
        refuse(bound, "a size of the result depends on values, and none of the operand is that")
    return broadcast_by(bound, operand, known, bound["broadcast_dimensions"])


def broadcast_by(bound: Bound, operand: tf.Tensor, shape: list[Size], dimensions: tuple[int, ...]) -> tf.Tensor:
    """As `broadcast`, for an operation that may be differentiated."""

    def broadcasted(operand: tf.Tensor) -> tf.Tensor:
        return broadcast(operand, shape, dimensions, bound.constant)

    if not bound.is_differentiated or operand.dtype != tf.float16:
        return broadcasted(operand)
    known = [size if isinstance(size, int) else None for size in shape]
    pairs = zip(operand.shape.as_list(), dimensions, strict=True)
    repeated = {axis for size, axis in pairs if size == 1 != known[axis]}
    axes = sorted(repeated | (set(range(len(known))) - set(dimensions)))
    return broadcast_in_float32(operand, broadcasted, axes, known)


def broadcast(
    operand: tf.Tensor,
    shape: list[Size],
    dimensions: tuple[int, ...],
    constant: Callable[[Any], tf.Tensor],
) -> tf.Tensor:
    """The operand with its dimensions at those places of a larger shape; `constant` is as in `Bound`."""
    order = sorted(range(len(dimensions)), key=lambda i: dimensions[i])
    if order != list(range(len(order))):
        operand = nodes.transpose(operand, constant(order))
    own = sizes(operand)
    placed: list[Size] = [1] * len(shape)
    for axis, size in zip(sorted(dimensions), own, strict=True):
        placed[axis] = size
    if len(placed) != len(own):
        operand = nodes.reshape(operand, as_shape_tensor(placed, constant))
    if all(isinstance(size, int) for size in shape) and operand.shape.as_list() == shape:
        return operand
    if len(shape) <= MOST_RUNS or traces_compiled() or _runs(placed, shape) <= MOST_RUNS:
        return nodes.broadcast_to(operand, as_shape_tensor(shape, constant))
    return _in_steps(operand, placed, shape, constant)


def _runs(before: Sequence[Size], after: Sequence[Size]) -> int:
    known, whole = ([size if isinstance(size, int) else None for size in sizes_] for sizes_ in (before, after))
    return most_runs([known], whole)


def _in_steps(
    operand: tf.Tensor, before: list[Size], after: list[Size], constant: Callable[[Any], tf.Tensor]
) -> tf.Tensor:
    """Some dimensions after the others, as many each time as one broadcast takes beside those that stay."""
    start = 0
    while start < len(after):
        stop = start + 1
        while (
            stop < len(after)
            and _runs([2, *before[start : stop + 1], 2], [2, *after[start : stop + 1], 2]) <= MOST_RUNS
        ):
            stop += 1
        before = [*after[:stop], *before[stop:]]
        operand = nodes.broadcast_to(operand, as_shape_tensor(before, constant))
        start = stop
    return operand


def in_one_shape(operands: Sequence[tf.Tensor], constant: Callable[[Any], tf.Tensor]) -> list[tf.Tensor]:
    """The operands in the shape that they are broadcast to as in NumPy."""
    known = reduce(tf.broadcast_static_shape, (x.shape for x in operands)).as_list()
    shape: list[Size] = list(known)
    if None in known:
        whole = reduce(tf.broadcast_dynamic_shape, map(tf.shape, operands))
        shape = [whole[axis] if size is None else size for axis, size in enumerate(known)]
    rank = len(shape)
    return [broadcast(x, shape, tuple(range(rank - x.shape.rank, rank)), constant) for x in operands]


def as_shape_tensor(shape: Sequence[Size], constant: Callable[[Any], tf.Tensor]) -> tf.Tensor:
    """Sizes as an int32 vector."""
    made = as_shape(shape)
    return constant(made) if isinstance(made, list) else made


@translates("stablehlo.broadcast", computed_in=MOVED)
def broadcast_outer(bound: Bound, operand: tf.Tensor) -> tf.Tensor:
    """Repeats the operand along new leading dimensions.

    Source: XLA operation semantics, `Broadcast`.
    """
    leading = tuple(int(size) for size in bound["broadcast_sizes"])
    rank = operand.shape.rank
    dimensions = tuple(range(len(leading), len(leading) + rank))
    return broadcast_by(bound, operand, [*leading, *sizes(operand)], dimensions)


@translates("stablehlo.reshape", computed_in=MOVED)
def reshape(bound: Bound, operand: tf.Tensor) -> tf.Tensor:
    """The same elements in row-major order in another shape.

    Source: StableHLO specification, `reshape`.
    """
    shape = list(bound.result_type.shape)
    return operand if operand.shape.as_list() == shape else nodes.reshape(operand, bound.constant(shape))


@translates("stablehlo.transpose", computed_in=MOVED)
def transpose(bound: Bound, operand: tf.Tensor) -> tf.Tensor:
    """Dimensions in another order.

    Source: StableHLO specification, `transpose`.
    """
    permutation = list(bound["permutation"])
    return operand if permutation == sorted(permutation) else nodes.transpose(operand, bound.constant(permutation))


@translates("stablehlo.concatenate", computed_in=MOVED)
def concatenate(bound: Bound, *operands: tf.Tensor) -> tf.Tensor:
    """One after the other along a dimension.

    Source: StableHLO specification, `concatenate`.
    """
    return operands[0] if len(operands) == 1 else tf.concat(operands, bound["dimension"])


@translates("stablehlo.reverse", computed_in=MOVED)
def reverse(bound: Bound, operand: tf.Tensor) -> tf.Tensor:
    """Backwards along the given dimensions, neighbours at once: TFLite reverses no others together.

    Source: StableHLO specification, `reverse`.
    """
    dimensions = sorted(bound["dimensions"])
    if operand.shape.rank > MOST_DIMENSIONS:
        return one_by_one(operand, dimensions, lambda array, _: tf.reverse(array, [1]))
    for _, run in groupby(enumerate(dimensions), lambda each: each[1] - each[0]):
        operand = tf.reverse(operand, [dimension for _, dimension in run])
    return operand


@translates("stablehlo.iota")
def iota(bound: Bound) -> tf.Tensor:
    """0, 1, 2, ... along one dimension.

    Source: StableHLO specification, `iota`.
    """
    return counting(bound, list(bound.result_type.shape))


def counting(bound: Bound, shape: list[Size]) -> tf.Tensor:
    """Indices along the axis of an iota; a vector that is broadcast, so that nothing large is stored in a graph."""
    axis, dtype = bound["iota_dimension"], bound.result_type.dtype
    along = tf.cast(tf.range(shape[axis]), MOVED.get(dtype, dtype))
    return broadcast(along, shape, (axis,), bound.constant)


@translates("stablehlo.pad", computed_in=MOVED)
def padded(bound: Bound, operand: tf.Tensor, value: tf.Tensor) -> tf.Tensor:
    """The operand with a value around it and between its elements; cut where the amount is negative.

    Source: StableHLO specification, `pad`.
    """
    amounts = bound["edge_padding_low"], bound["edge_padding_high"], bound["interior_padding"]
    return padded_by(bound, operand, value, *amounts)


def padded_by(bound: Bound, operand: tf.Tensor, value: tf.Tensor, *amounts: Any) -> tf.Tensor:
    """As `pad`, for an operation that may be differentiated: TensorFlow's pads have no gradient for their value."""
    is_inexact = operand.dtype.is_floating or operand.dtype.is_complex
    if not (bound.is_differentiated and is_inexact) or known_value(value) is not None:
        return pad(operand, value, *amounts)
    own = tf.ones(as_shape(sizes(operand)), tf.bool)
    is_own, whole = (pad(x, None, *amounts) for x in (own, operand))
    return where(is_own, whole, broadcast_by(bound, value, sizes(whole), ()))


@translates("chlo.constant_like")
def constant_like(bound: Bound, operand: tf.Tensor) -> tf.Tensor:
    """The value in every element of the operand's shape.

    Source: CHLO, `constant_like`.
    """
    value = np.asarray(bound["value"], operand.dtype.as_numpy_dtype)
    return tf.fill(as_shape(sizes(operand)), tf.constant(value))
