"""Reductions: by TensorFlow's own where the region is one operation or a search for the extreme, else by halving."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import tensorflow as tf

from jaxtf.convert._graph._support import BINARY, MOVED, as_shape, defining, is_identity_of, single_operation, sizes
from jaxtf.convert._graph.nodes import reduction
from jaxtf.convert._graph.program import Block, Value
from jaxtf.convert._graph.registry import Bound, translates
from jaxtf.convert._graph.reshapes import KEEPS_DIMENSIONS

REDUCERS: dict[str, Callable[..., tf.Tensor]] = {
    "add": reduction("Sum", tf.reduce_sum),
    "multiply": reduction("Prod", tf.reduce_prod),
    "minimum": reduction("Min", tf.reduce_min),
    "maximum": reduction("Max", tf.reduce_max),
}
ANY, ALL = reduction("Any", tf.reduce_any), reduction("All", tf.reduce_all)
TRUTH: dict[str, Callable[..., tf.Tensor]] = {
    "add": ANY,
    "maximum": ANY,
    "or": ANY,
    "multiply": ALL,
    "minimum": ALL,
    "and": ALL,
}

Combine = Callable[[Sequence[tf.Tensor], Sequence[tf.Tensor]], list[tf.Tensor]]


@translates("stablehlo.reduce", computed_in=MOVED)
def reduce(bound: Bound, *operands_and_initial: tf.Tensor) -> list[tf.Tensor]:
    """One or several arrays reduced together by a region over some dimensions.

    Differs: the order of combining, as between any two backends.
    Source: StableHLO specification, `reduce`.
    """
    count = len(operands_and_initial) // 2
    operands, initial = operands_and_initial[:count], operands_and_initial[count:]
    axes = [int(axis) for axis in bound["dimensions"]]
    keeps = bound.get(KEEPS_DIMENSIONS, False)
    block = bound.operation.regions[0]
    kind = single_operation(block)
    if kind is not None:
        reducer = (TRUTH if operands[0].dtype == tf.bool else REDUCERS).get(kind)
        if reducer is not None:
            reduced = reducer(operands[0], bound.constant(axes), keeps) if axes else operands[0]
            return [with_initial(kind, initial[0], reduced)]
    direction = extreme_search(block) if len(axes) == 1 else None
    if direction is not None:
        return _extreme(direction, operands[0], operands[1], axes[0])
    results = _by_halving(region_of(bound), operands, initial, axes)
    return [_with_dimensions(results[0], axes)] if keeps else results


def _with_dimensions(reduced: tf.Tensor, axes: Sequence[int]) -> tf.Tensor:
    """The result of a reduction with the reduced dimensions, of size 1."""
    for axis in sorted(axes):
        reduced = tf.expand_dims(reduced, axis)
    return reduced


def with_initial(kind: str, initial: tf.Tensor, reduced: tf.Tensor) -> tf.Tensor:
    """The reduced value combined with the initial one, if that changes anything."""
    return reduced if is_identity_of(kind, initial) else BINARY[kind](reduced, initial)


def region_of(bound: Bound, index: int = 0) -> Combine:
    """The region as a function of tensors of any one shape, though it is written for scalars."""

    def combine(left: Sequence[tf.Tensor], right: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        results = bound.regions[index](*left, *right)
        return [
            tf.broadcast_to(r, as_shape(sizes(a))) if r.shape.rank == 0 and a.shape.rank else r
            for r, a in zip(results, left, strict=True)
        ]

    return combine


def _by_halving(
    combine: Combine, operands: Sequence[tf.Tensor], initial: Sequence[tf.Tensor], axes: Sequence[int]
) -> list[tf.Tensor]:
    """Combines neighbours until one is left: as many emitted steps as the count has bits, and order is kept."""
    rank = operands[0].shape.rank
    kept = [i for i in range(rank) if i not in axes]
    kept_shape = [sizes(operands[0])[i] for i in kept]
    rows = [tf.reshape(tf.transpose(x, [*axes, *kept]), as_shape([-1, *kept_shape])) for x in operands]
    count = rows[0].shape[0]
    if count is None:
        return _by_halving_loop(combine, rows, initial, kept_shape)
    while count > 1:
        even = count // 2 * 2
        halves = combine([x[0:even:2] for x in rows], [x[1:even:2] for x in rows])
        rows = [tf.concat([h, x[even:]], 0) for h, x in zip(halves, rows, strict=True)] if count % 2 else halves
        count = (count + 1) // 2
    start = [tf.broadcast_to(x, as_shape(kept_shape)) for x in initial]
    return combine(start, [x[0] for x in rows]) if count else start


def _by_halving_loop(
    combine: Combine, rows: Sequence[tf.Tensor], initial: Sequence[tf.Tensor], kept_shape: Sequence[int | tf.Tensor]
) -> list[tf.Tensor]:
    """As `_by_halving` for a count that is known at run time; the initial values come first, so there is one always."""
    start = [tf.broadcast_to(x, as_shape([1, *kept_shape])) for x in initial]
    rows = [tf.concat([s, x], 0) for s, x in zip(start, rows, strict=True)]

    def halve(*rows: tf.Tensor) -> list[tf.Tensor]:
        even = tf.shape(rows[0])[0] // 2 * 2
        halves = combine([x[0:even:2] for x in rows], [x[1:even:2] for x in rows])
        return [tf.concat([h, x[even:]], 0) for h, x in zip(halves, rows, strict=True)]

    shapes = [tf.TensorShape([None]).concatenate(x.shape[1:]) for x in rows]
    done = tf.while_loop(lambda *rows: tf.shape(rows[0])[0] > 1, halve, rows, shape_invariants=shapes)
    return [x[0] for x in done]


def extreme_search(block: Block) -> str | None:
    """`GT` or `LT` where the block keeps the greater or lesser value, NaN above all, with the least index of it."""
    if len(block.arguments) != 4 or len(block.returned) != 2:
        return None
    value, index, other, other_index = block.arguments
    source = defining(block)

    def is_made(result: Value, name: str, *operands: Value, direction: str = "") -> bool:
        operation = source.get(result)
        if operation is None or operation.name != f"stablehlo.{name}" or operation.operands != operands:
            return False
        return not direction or operation.attributes["comparison_direction"] == direction

    def operands(result: Value, name: str) -> tuple[Value, ...]:
        operation = source.get(result)
        return operation.operands if operation is not None and operation.name == f"stablehlo.{name}" else ()

    chosen = operands(block.returned[0], "select")
    chosen_index = operands(block.returned[1], "select")
    if chosen[1:] != (value, other) or chosen_index[1:] != (index, other_index):
        return None
    parts, tie = operands(chosen[0], "or"), operands(chosen_index[0], "or")
    strictly = parts[0] if parts else chosen[0]
    if parts and not is_made(parts[1], "compare", value, value, direction="NE"):
        return None
    both = operands(tie[1], "and") if len(tie) == 2 and tie[0] == chosen[0] else ()
    if len(both) != 2 or not is_made(both[0], "compare", value, other, direction="EQ"):
        return None
    if not is_made(both[1], "compare", index, other_index, direction="LT"):
        return None
    return next((d for d in ("GT", "LT") if is_made(strictly, "compare", value, other, direction=d)), None)


def _extreme(direction: str, operand: tf.Tensor, indices: tf.Tensor, axis: int) -> list[tf.Tensor]:
    """The extreme value along an axis and its index, by ArgMax or ArgMin, which find the first; a NaN comes first.

    The initial value is not looked at: it is the worst value, or the first.
    """
    search = tf.argmax if direction == "GT" else tf.argmin
    searched = tf.cast(operand, tf.int32) if operand.dtype == tf.bool else operand
    position = search(searched, axis, output_type=tf.int32)
    if operand.dtype.is_floating:
        unordered = tf.not_equal(operand, operand)
        first = tf.argmax(tf.cast(unordered, tf.int32), axis, output_type=tf.int32)
        position = tf.where(tf.reduce_any(unordered, axis), first, position)
    value, index = (_taken(x, position, axis) for x in (operand, indices))
    return [value, index]


def _taken(operand: tf.Tensor, position: tf.Tensor, axis: int) -> tf.Tensor:
    """The element of each line along an axis that a position names."""
    rank = operand.shape.rank
    order = [*(i for i in range(rank) if i != axis), axis]
    if order != list(range(rank)):
        operand = tf.transpose(operand, order)
    return tf.gather(operand, position, axis=rank - 1, batch_dims=rank - 1)
