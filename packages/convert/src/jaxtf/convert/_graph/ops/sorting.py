"""Sorting, by any comparator, and the greatest elements.

A comparator that orders by keys is recognized: `a < b`, or `a > b`, of one operand or lexicographically of several,
of complex numbers by real and imaginary part, floats in the total order with -0 as 0 and all NaN alike at the end, as
JAX writes it. Keys become integers and TopK, which is stable, gives their order. By any other comparator elements are
ranked by comparing each with each.
"""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf

from jaxtf.convert import _tf
from jaxtf.convert._graph._support import BITS, MOST_DIMENSIONS, MOVED, as_shape, backwards, refuse, sizes, typed
from jaxtf.convert._graph.derivatives import differentiated_when_saved, slope_of
from jaxtf.convert._graph.grappler import negated
from jaxtf.convert._graph.keys import KEYS
from jaxtf.convert._graph.ops.comparison import total_order
from jaxtf.convert._graph.optimizer import computed_by_xla
from jaxtf.convert._graph.registry import Bound, translates
from jaxtf.convert._tf import is_compiled_for_cpu
from jaxtf.serialization.interop import Key, comparison_direction

# Elements that are compared each with each, at most along the dimension and in all pairs.
MANY_ELEMENTS = 4096
MANY_PAIRS = 1 << 28


@translates("stablehlo.sort", computed_in=MOVED, needs_xla="more than 4096 elements by a comparator that is not known")
def sort(bound: Bound, *operands: tf.Tensor) -> list[tf.Tensor]:
    """The arrays sorted together along a dimension; equal elements stay in order whether requested or not.

    Source: StableHLO specification, `sort`.
    """
    rank = operands[0].shape.rank
    axis = bound.get("dimension", -1) % max(rank, 1)
    if not rank:
        return list(operands)
    order = [*(i for i in range(rank) if i != axis), axis]
    back = [order.index(i) for i in range(rank)]
    moved = [x if axis == rank - 1 else tf.transpose(x, order) for x in operands]
    keys = bound.get(KEYS)
    if keys is not None:
        done = _by_keys(moved, keys)
    elif _is_small(moved[0]):
        done = _by_rank(bound, moved)
    elif bound.allows_xla:
        return _tf.variadic_sort(operands, axis, bound.regions[0])
    else:
        refuse(bound, f"a comparator of its own for more than {MANY_ELEMENTS} elements")
    return [x if axis == rank - 1 else tf.transpose(x, back) for x in done]


def _by_keys(operands: Sequence[tf.Tensor], keys: Sequence[Key]) -> list[tf.Tensor]:
    """Sorts by the last key first; sorting by an earlier one leaves equal elements in order."""
    if len(operands) == len(keys) == 1 and keys[0] == Key(0, descending=keys[0].descending):
        return [_by_value(operands[0], keys[0])]
    current = list(operands)
    for key in reversed(keys):
        order = ascending_order(_as_integers(current[key.operand], key))
        current = [tf.gather(x, order, batch_dims=x.shape.rank - 1, axis=-1) for x in current]
    return current


def _by_value(operand: tf.Tensor, key: Key) -> tf.Tensor:
    """A sort of integers alone: their values in order need no positions."""
    dtype = operand.dtype
    if dtype in (tf.bool, tf.uint16) or dtype.is_floating:
        order = ascending_order(_as_integers(operand, key))
        return tf.gather(operand, order, batch_dims=operand.shape.rank - 1, axis=-1)
    if dtype.is_unsigned and not key.descending:  # as tf.sort, which has the greatest value as a number of Python
        greatest = typed(dtype.max, dtype)
        return greatest - tf.math.top_k(greatest - operand, operand.shape.as_list()[-1] or tf.shape(operand)[-1]).values
    return tf.sort(operand, direction="DESCENDING" if key.descending else "ASCENDING")


def ascending_order(keys: tf.Tensor) -> tf.Tensor:
    """The positions of signed integers along the last dimension in ascending order; of equal ones, the first first."""
    return tf.math.top_k(backwards(keys), keys.shape.as_list()[-1] or tf.shape(keys)[-1]).indices


def _as_integers(operand: tf.Tensor, key: Key) -> tf.Tensor:
    """Signed integers in the ascending order that the key asks for."""
    if key.part:
        operand = tf.math.real(operand) if key.part == "real" else tf.math.imag(operand)
    dtype = operand.dtype
    if operand.shape.rank > MOST_DIMENSIONS:
        return tf.reshape(_as_integers(tf.reshape(operand, [-1]), key), as_shape(sizes(operand)))
    if dtype.is_floating:
        if key.merges or not key.total:
            operand = tf.where(tf.equal(operand, 0), tf.zeros([], dtype), operand)
            operand = tf.where(tf.math.is_nan(operand), typed(float("nan"), dtype), operand)
        result = total_order(operand)
    elif dtype == tf.bool:
        result = tf.cast(operand, tf.int32)
    elif dtype.is_unsigned and dtype.size >= 4:
        signed = tf.int32 if dtype.size == 4 else tf.int64
        result = tf.bitwise.bitwise_xor(tf.bitcast(operand, signed), typed(signed.min, signed))
    else:
        result = operand
    if result.dtype.size < 4:
        result = tf.cast(result, tf.int32)
    return backwards(result) if key.descending else result


def _is_small(operand: tf.Tensor) -> bool:
    count = operand.shape.as_list()[-1]
    total = operand.shape.num_elements()
    return count is not None and count <= MANY_ELEMENTS and (total is None or total * count <= MANY_PAIRS)


def _by_rank(bound: Bound, operands: Sequence[tf.Tensor]) -> list[tf.Tensor]:
    """The rank of an element: how many are less, or equal and at a lower index."""
    count, rank = operands[0].shape.as_list()[-1], operands[0].shape.rank
    if count <= 1:
        return list(operands)
    shape = [*sizes(operands[0]), count]
    left = [tf.broadcast_to(x[..., :, tf.newaxis], as_shape(shape)) for x in operands]
    right = [tf.broadcast_to(x[..., tf.newaxis, :], as_shape(shape)) for x in operands]
    arguments = [x for pair in zip(left, right, strict=True) for x in pair]
    (precedes,) = bound.regions[0](*arguments)
    follows = tf.linalg.matrix_transpose(precedes)
    position = tf.range(count)
    earlier = position[tf.newaxis, :] < position[:, tf.newaxis]
    before = tf.logical_or(follows, tf.logical_and(negated(precedes, allows_xla=bound.allows_xla), earlier))
    place = tf.reduce_sum(tf.cast(before, tf.int32), axis=-1)
    order = ascending_order(place)
    return [tf.gather(x, order, batch_dims=rank - 1, axis=-1) for x in operands]


@translates("chlo.top_k", computed_in=MOVED)
def top_k(bound: Bound, operand: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """The k greatest elements along the last dimension in descending order, and their positions; equal ones in order.

    Floats are in the total order: NaN before infinity, 0 before -0, NaN with the sign bit last.

    Source: CHLO, `top_k`; XLA for what is not finite.
    """
    return greatest(bound, operand, int(bound["k"]))


def greatest(bound: Bound, operand: tf.Tensor, count: int | tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """As `top_k`; compiled TopK knows no uint16, and has the total order by itself."""
    dtype = operand.dtype
    if dtype.is_floating and not is_compiled_for_cpu():
        return _greatest_floats(bound, operand, count) if bound.allows_xla else _greatest_in_total_order(operand, count)
    if dtype.is_floating and not computed_by_xla(operand):
        return _greatest_in_total_order(operand, count)
    if dtype in (tf.uint16, tf.bool):
        values, indices = tf.math.top_k(tf.cast(operand, tf.int32), count)
        return tf.cast(values, dtype), indices
    values, indices = tf.math.top_k(operand, count)
    return values, indices


def _greatest_floats(bound: Bound, operand: tf.Tensor, count: int | tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """TopK of the floats, unless one is NaN, or a zero is among the greatest and -0 anywhere, which it misplaces.

    Looking for these takes less time than making integers in the total order.
    """
    values, indices = tf.math.top_k(operand, count)
    total = tf.reduce_sum(tf.cast(operand, tf.float32) if operand.dtype.size < 4 else operand)

    def has_negative_zero() -> tf.Tensor:
        bits = tf.bitcast(operand, BITS[operand.dtype])
        return tf.equal(tf.reduce_min(bits), typed(bits.dtype.min, bits.dtype))

    misplaces = tf.cond(tf.reduce_any(tf.equal(values, 0)), has_negative_zero, lambda: typed(False, tf.bool))
    values, indices = tf.cond(
        misplaces | tf.math.is_nan(total),
        lambda: _greatest_in_total_order(operand, count),
        lambda: (tf.identity(values), tf.identity(indices)),
    )

    def gradient(upwards: tf.Tensor, _: tf.Tensor, operand: tf.Tensor) -> Sequence[tf.Tensor | None]:
        return slope_of(lambda x: _at(indices, x))(upwards, operand)

    return differentiated_when_saved(bound, values, gradient, operand), indices


def _greatest_in_total_order(operand: tf.Tensor, count: int | tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    indices = tf.math.top_k(_as_integers(operand, Key(0, total=True)), count).indices
    return _at(indices, operand), indices


def _at(indices: tf.Tensor, operand: tf.Tensor) -> tf.Tensor:
    """The elements of these places along the last dimension."""
    return tf.gather(operand, indices, batch_dims=operand.shape.rank - 1, axis=-1)


@translates("custom_call.ApproxTopK", computed_in=MOVED)
def approximate_top_k(
    bound: Bound, operand: tf.Tensor, positions: tf.Tensor, *_: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """The greatest or least elements along a dimension, exactly, in order.

    Differs: NaN counts as the greatest; XLA's comparison leaves it, and what is beside it, anywhere.
    Source: `jax.lax.approx_max_k`, which promises a part of them.
    """
    given = bound["backend_config"]
    direction = comparison_direction(bound.operation.regions[0])
    if not given.get("aggregate_to_topk", True):
        refuse(bound, "candidates that are not aggregated")
    if direction is None:
        refuse(bound, "a comparator of its own")
    axis, rank = int(given["reduction_dim"]), operand.shape.rank
    order = [*(i for i in range(rank) if i != axis), axis]
    back = [order.index(i) for i in range(rank)]
    moved, places = tf.transpose(operand, order), tf.transpose(positions, order)
    key = _as_integers(moved, Key(0, merges=True, descending=direction == "LT"))
    chosen = tf.math.top_k(key, int(given["top_k"])).indices
    results = (tf.gather(x, chosen, batch_dims=rank - 1, axis=-1) for x in (moved, places))
    values, indices = (tf.transpose(x, back) for x in results)
    return values, indices
