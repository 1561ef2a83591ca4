"""Scatter: updates written, added, ... to where indices say.

Updates become rows, each with one linear index into the rows of the operand: the dimensions that indices, batches
and partial windows walk through, flattened. An update that does not lie wholly inside goes to a spare row, which is
dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import tensorflow as tf

from jaxtf.convert._graph._support import (
    BINARY,
    BITS,
    MOVED,
    Size,
    as_shape,
    index_dtype,
    is_empty,
    product,
    same,
    sizes,
    typed,
)
from jaxtf.convert._graph.derivatives import differentiated, differentiated_as
from jaxtf.convert._graph.ops.comparison import of_total_order, total_order
from jaxtf.convert._graph.ops.gather import batch_positions, index_vectors
from jaxtf.convert._graph.ops.reductions import Combine, region_of
from jaxtf.convert._graph.ops.slices import wide_index
from jaxtf.convert._graph.optimizer import uniform_of
from jaxtf.convert._graph.registry import Bound, translates
from jaxtf.convert._tf import scatter_rows, traces_compiled, traces_control_flow, vectorized_by
from jaxtf.serialization.interop import Block, read_in, single_operation


def _updated(rows: tf.Tensor, place: tf.Tensor, changes: tf.Tensor) -> tf.Tensor:
    """Rows with others at some places; `tf.vectorized_map` takes no indices of 64 bits for that, but in a loop."""
    result = tf.tensor_scatter_nd_update(rows, place, changes)
    if place.dtype == tf.int64 and tf.is_symbolic_tensor(result):
        vectorized_by(result.op, None)
    return result


SCATTERS: dict[str, Callable[..., tf.Tensor]] = {
    "replace": _updated,
    "add": tf.tensor_scatter_nd_add,
    "subtract": tf.tensor_scatter_nd_sub,
    "minimum": tf.tensor_scatter_nd_min,
    "maximum": tf.tensor_scatter_nd_max,
}
OF_TRUTH = {
    "add": "maximum",
    "or": "maximum",
    "maximum": "maximum",
    "multiply": "minimum",
    "and": "minimum",
    "minimum": "minimum",
}


@dataclass(frozen=True)
class Rows:
    """How updates meet the operand.

    Attributes:
      order: Dimensions of the operand, those that rows are counted over in front.
      walked: How many those are.
      index: Of each update row the operand's row, its row count where the update is dropped; a vector.
      count: Rows of the operand.
      row_shape: Sizes of a row.
    """

    order: list[int]
    walked: int
    index: tf.Tensor
    count: Size
    row_shape: list[Size]


@translates(
    "stablehlo.scatter", computed_in=MOVED, differs="sums and products of several updates are rounded differently"
)
def scatter(bound: Bound, *tensors: tf.Tensor) -> list[tf.Tensor]:
    """The operands with the updates combined into them by the region; updates that lie outside are left out.

    Updates of one element are combined in the order of their indices by any region that is not known to give the same
    in every order. A region that is one addition, multiplication, minimum, maximum, and, or, xor is known to do so, but
    for rounding; minimum and maximum give NaN where one takes part. Of updates that replace one element, which is last
    is not defined.
    Source: StableHLO specification, `scatter`.
    """
    count = len(tensors) // 2
    operands, indices, updates = tensors[:count], tensors[count], tensors[count + 1 :]
    numbers: Mapping[str, Any] = bound["scatter_dimension_numbers"]
    if is_empty(sizes(updates[0])):
        return list(operands)
    rows, update_order = _rows(bound, operands[0], indices, updates[0], numbers)
    flat = [_flatten(x, rows.order, rows.walked) for x in operands]
    changes = [tf.reshape(tf.transpose(u, update_order), as_shape([-1, *rows.row_shape])) for u in updates]
    kind = _kind(bound.operation.regions[0])
    once = bool(bound.operation.attributes.get("unique_indices")) or _is_one(updates[0], numbers)
    if kind == "replace" and bound.is_differentiated and not once:
        rows = _last_ones(rows)
    if kind is not None:
        done = [_scattered(bound, kind, x, c, rows) for x, c in zip(flat, changes, strict=True)]
    elif _ignores_updates(bound.operation.regions[0]):
        done = _applied(region_of(bound), flat, rows, once=once)
    else:
        done = _in_turn(region_of(bound), flat, changes, rows, once=once)
    return [_unflatten(x, operand, rows.order) for x, operand in zip(done, operands, strict=True)]


def _kind(block: Block) -> str | None:
    """What the region does to each operand with its own update, where its order changes nothing except rounding.

    A difference is a sum with what is negated.
    """
    if block.returned == block.arguments[len(block.arguments) // 2 :]:
        return "replace"
    if [operation.name for operation in block.operations] == ["stablehlo.subtract"]:
        (operation,) = block.operations
        return "subtract" if operation.operands == block.arguments and operation.results == block.returned else None
    return single_operation(block)


def _rows(
    bound: Bound, operand: tf.Tensor, indices: tf.Tensor, update: tf.Tensor, numbers: Mapping[str, Any]
) -> tuple[Rows, list[int]]:
    """The rows, and the order of the update's dimensions that goes with them."""
    rank, shape, update_shape = operand.shape.rank, sizes(operand), sizes(update)
    indexed, batching = list(numbers["scatter_dims_to_operand_dims"]), list(numbers["input_batching_dims"])
    inserted = [*numbers["inserted_window_dims"], *batching]
    window_dims = list(numbers["update_window_dims"])
    window_axes = [i for i in range(rank) if i not in inserted]
    extent: dict[int, Size] = dict.fromkeys(inserted, 1)
    extent |= {axis: update_shape[d] for axis, d in zip(window_axes, window_dims, strict=True)}
    starts, batch_shape = index_vectors(indices, numbers["index_vector_dim"], len(indexed))
    first = dict(zip(indexed, map(wide_index, starts), strict=True))
    grid = batch_positions(batch_shape, numbers["scatter_indices_batching_dims"], numbers["index_vector_dim"])
    first |= dict(zip(batching, grid, strict=True))

    whole = [axis for axis in window_axes if axis not in first and same(extent[axis], shape[axis])]
    walked = [axis for axis in range(rank) if axis not in whole]
    windows = [axis for axis in window_axes if axis in walked]
    count = product([shape[axis] for axis in walked])
    is_wide = any(s.dtype == tf.int64 for s in first.values())
    dtype = tf.int64 if is_wide else index_dtype(count)
    valid = typed(True, tf.bool)
    for axis in indexed:
        start = tf.cast(first[axis], dtype)
        last_start = tf.cast(shape[axis] - extent[axis], dtype)
        valid = tf.logical_and(valid, tf.logical_and(start >= 0, start <= last_start))
    linear = tf.zeros([], dtype)
    for axis in walked:
        position = tf.cast(first.get(axis, tf.zeros([], dtype)), dtype)
        position = (
            tf.reshape(position, as_shape([*sizes(position), *(1 for _ in windows)]))
            if position.shape.rank
            else position
        )
        if axis in windows and not same(extent[axis], 1):
            own = windows.index(axis)
            offsets = tf.reshape(tf.range(extent[axis]), [-1 if i == own else 1 for i in range(len(windows))])
            position = position + tf.cast(offsets, dtype)
        linear = linear * tf.cast(shape[axis], dtype) + position
    shape_of_updates = as_shape([*batch_shape, *(extent[axis] for axis in windows)])
    if valid.shape.rank:
        valid = tf.reshape(valid, as_shape([*sizes(valid), *(1 for _ in windows)]))
    index = tf.reshape(tf.broadcast_to(tf.where(valid, linear, tf.cast(count, dtype)), shape_of_updates), [-1])
    rows = Rows([*walked, *whole], len(walked), index, count, [shape[axis] for axis in whole])
    dims = dict(zip(window_axes, window_dims, strict=True))
    batch_dims = [d for d in range(update.shape.rank) if d not in window_dims]
    return rows, [*batch_dims, *(dims[axis] for axis in windows), *(dims[axis] for axis in whole)]


def _is_one(update: tf.Tensor, numbers: Mapping[str, Any]) -> bool:
    """Whether there is one window of updates, each of another element."""
    shape = sizes(update)
    return all(same(shape[d], 1) for d in range(len(shape)) if d not in numbers["update_window_dims"])


def _last_ones(rows: Rows) -> Rows:
    """The rows without the updates that a later one of the same row replaces: TensorFlow's gradient takes all alike."""
    place = tf.range(tf.size(rows.index))
    last = tf.math.unsorted_segment_max(place, rows.index, tf.cast(rows.count + 1, rows.index.dtype))
    is_last = tf.equal(place, tf.gather(last, rows.index))
    return replace(rows, index=tf.where(is_last, rows.index, tf.cast(rows.count, rows.index.dtype)))


def _flatten(operand: tf.Tensor, order: Sequence[int], walked: int) -> tf.Tensor:
    if list(order) != sorted(order):
        operand = tf.transpose(operand, order)
    if walked == 1:
        return operand
    shape = sizes(operand)
    return tf.reshape(operand, as_shape([product(shape[:walked]), *shape[walked:]]))


def _unflatten(flat: tf.Tensor, operand: tf.Tensor, order: Sequence[int]) -> tf.Tensor:
    shape = sizes(operand)
    result = tf.reshape(flat, as_shape([shape[i] for i in order]))
    if list(order) == sorted(order):
        return result
    return tf.transpose(result, [list(order).index(i) for i in range(len(order))])


def _scattered(bound: Bound, kind: str, flat: tf.Tensor, changes: tf.Tensor, rows: Rows) -> tf.Tensor:
    """By TensorFlow's scatter of the kind, with truth values as small integers; where it has none that is right, by
    XLA's or by other operations.
    """
    dtype, allows_xla = flat.dtype, bound.allows_xla
    if dtype == tf.bool and kind in OF_TRUTH:
        narrow, few = (tf.cast(x, tf.int32) for x in (flat, changes))
        return tf.cast(_scattered(bound, OF_TRUTH[kind], narrow, few, rows), tf.bool)
    by_xla = allows_xla and traces_compiled()
    if kind == "multiply" and (not by_xla or uniform_of(flat) == 1):
        return _multiplied(flat, changes, rows, drops_negative=allows_xla and not by_xla)
    if kind not in SCATTERS and kind != "multiply":
        return _in_turn(lambda a, b: [BINARY[kind](a[0], b[0])], [flat], [changes], rows)[0]
    place = rows.index[:, tf.newaxis]
    may_be_nan = kind in ("minimum", "maximum") and dtype.is_floating
    if by_xla and (may_be_nan or kind == "multiply"):
        result = scatter_rows(flat, place, changes, partial(_extreme, kind) if may_be_nan else BINARY[kind])
    elif may_be_nan:
        extremes = _extremes_as_integers if traces_compiled() else _extremes_with_nan
        result = extremes(kind, _with_spare_row(flat, rows), place, changes)[: rows.count]
    else:
        return SCATTERS[kind](_with_spare_row(flat, rows), place, changes)[: rows.count]
    # TensorFlow has no gradient of XLA's scatter, nor of integers; that of a branch that is loaded does not compile. In
    # a loop or a branch a SavedModel has only what TensorFlow has itself.
    if may_be_nan and (traces_compiled() or not traces_control_flow()):
        return differentiated(bound, result, partial(_gradient_of_extremes, kind, rows), flat, changes)
    if not traces_compiled() or dtype.is_integer or may_be_nan:
        return result
    multiplied = partial(_multiplied, rows=rows, drops_negative=False)
    return differentiated_as(bound, result, multiplied, flat, changes)


def _gradient_of_extremes(
    kind: str, rows: Rows, upwards: tf.Tensor, flat: tf.Tensor, changes: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """That of JAX: what is the extreme gets its share, and where one is NaN none does."""
    place, held = rows.index[:, tf.newaxis], _with_spare_row(flat, rows)
    unordered, more = (tf.cast(tf.math.is_nan(x), tf.int32) for x in (held, changes))
    are_numbers = tf.equal(tf.tensor_scatter_nd_max(unordered, place, more), 0)
    extremes = SCATTERS[kind](held, place, changes)
    is_kept = tf.logical_and(tf.equal(held, extremes), are_numbers)
    is_taken = tf.logical_and(tf.equal(changes, tf.gather(extremes, rows.index)), tf.gather(are_numbers, rows.index))
    kept, taken = (tf.cast(x, flat.dtype) for x in (is_kept, is_taken))
    count = tf.maximum(tf.tensor_scatter_nd_add(kept, place, taken), tf.ones([], flat.dtype))
    share = _with_spare_row(upwards, rows) / count
    zero = tf.zeros([], flat.dtype)
    return tf.where(is_kept, share, zero)[: rows.count], tf.where(is_taken, tf.gather(share, rows.index), zero)


def _multiplied(flat: tf.Tensor, changes: tf.Tensor, rows: Rows, *, drops_negative: bool) -> tf.Tensor:
    """Each row times the updates of it, one after the other: a product of the updates alone may overflow.

    TensorFlow drops what has a negative index, so that there need be no row for it, as there is for other consumers.
    Of rows of ones (`x.at[i].divide(u)` divides by such) the products are those of the updates.
    """
    count = tf.cast(rows.count, rows.index.dtype)
    segments = tf.where(rows.index < count, rows.index, -1) if drops_negative else rows.index
    terms = changes
    if uniform_of(flat) != 1:
        segments, terms = tf.concat([tf.range(count), segments], 0), tf.concat([flat, changes], 0)
    if drops_negative:
        return tf.math.unsorted_segment_prod(terms, segments, count)
    return tf.math.unsorted_segment_prod(terms, segments, count + 1)[: rows.count]


def _extremes_with_nan(kind: str, rows: tf.Tensor, place: tf.Tensor, changes: tf.Tensor) -> tf.Tensor:
    """Extremes of rows and changes, NaN where one of them is, which TensorFlow's kernels drop."""
    extremes = SCATTERS[kind](rows, place, changes)

    def marked() -> tf.Tensor:
        unordered, more = (tf.cast(tf.math.is_nan(x), tf.int32) for x in (rows, changes))
        has_nan = tf.tensor_scatter_nd_max(unordered, place, more)
        return tf.where(has_nan > 0, typed(float("nan"), extremes.dtype), extremes)

    # A sum is NaN if a term is; if it is without one, what is marked is nothing.
    sums = [tf.reduce_sum(tf.cast(x, tf.float32) if x.dtype.size < 4 else x) for x in (rows, changes)]
    return tf.cond(tf.math.is_nan(sums[0] + sums[1]), marked, lambda: tf.identity(extremes))


def _extremes_as_integers(kind: str, rows: tf.Tensor, place: tf.Tensor, changes: tf.Tensor) -> tf.Tensor:
    """The same, of keys. XLA makes one loop of this, and drops NaN from extremes of numbers where TensorFlow compiles
    for CPU.
    """
    dtype = rows.dtype
    wide = tf.int32 if BITS[dtype].size < 4 else BITS[dtype]
    keys = [tf.cast(_key(kind, x), wide) for x in (rows, changes)]
    return of_total_order(tf.cast(SCATTERS[kind](keys[0], place, keys[1]), BITS[dtype]), dtype)


def _extreme(kind: str, left: tf.Tensor, right: tf.Tensor) -> tf.Tensor:
    """The one of two numbers that the kind chooses, NaN where one is."""
    return of_total_order(BINARY[kind](_key(kind, left), _key(kind, right)), left.dtype)


def _key(kind: str, operand: tf.Tensor) -> tf.Tensor:
    """Integers in the order of the numbers, with NaN beyond the infinity that the kind would choose."""
    bits = BITS[operand.dtype]
    beyond = typed(bits.max if kind == "maximum" else bits.min, bits)
    return tf.where(tf.math.is_nan(operand), beyond, total_order(operand))


def _with_spare_row(flat: tf.Tensor, rows: Rows) -> tf.Tensor:
    """The rows, and one more for what is dropped."""
    return tf.concat([flat, tf.zeros(as_shape([1, *rows.row_shape]), flat.dtype)], 0)


def _ignores_updates(block: Block) -> bool:
    """Whether the region computes with what the operand holds alone, as that of `x.at[indices].apply(f)`."""
    return set(block.arguments[len(block.arguments) // 2 :]).isdisjoint(read_in(block))


def _applied(combine: Combine, flat: Sequence[tf.Tensor], rows: Rows, *, once: bool) -> list[tf.Tensor]:
    """The region applied to each row as often as there are updates of it."""
    hits = tf.math.unsorted_segment_sum(tf.ones_like(rows.index), rows.index, rows.count + 1)[: rows.count]
    hits = tf.reshape(hits, as_shape([-1, *(1 for _ in rows.row_shape)]))

    def step(number: tf.Tensor, *held: tf.Tensor) -> tuple[tf.Tensor, ...]:
        computed = combine(list(held), list(held))
        return (number + 1, *(tf.where(hits > number, new, old) for new, old in zip(computed, held, strict=True)))

    zero = tf.zeros([], hits.dtype)
    if once:
        return list(step(zero, *flat)[1:])
    turns, most = tf.reduce_max(hits), _most_turns(rows)
    done = tf.while_loop(lambda number, *_: number < turns, step, (zero, *flat), maximum_iterations=most)
    return list(done[1:])


def _in_turn(
    combine: Combine, flat: Sequence[tf.Tensor], changes: Sequence[tf.Tensor], rows: Rows, *, once: bool = False
) -> list[tf.Tensor]:
    """The first update of each row at a time, then the second of those that have two, and so on.

    Args:
      combine: The region, of rows and updates.
      flat: The rows.
      changes: The updates, in order.
      rows: Where they go.
      once: Whether no row has two of them.
    """
    count = len(flat)

    def written(held: Sequence[tf.Tensor], index: tf.Tensor) -> list[tf.Tensor]:
        made = combine([tf.gather(x, index) for x in held], list(changes))
        return [_updated(x, index[:, tf.newaxis], m) for x, m in zip(held, made, strict=True)]

    spare = [_with_spare_row(x, rows) for x in flat]
    if once:
        return [x[: rows.count] for x in written(spare, rows.index)]
    turn = _occurrences(rows)
    zero = tf.zeros([], turn.dtype)
    dropped = tf.cast(rows.count, rows.index.dtype)

    def step(number: tf.Tensor, *held: tf.Tensor) -> tuple[tf.Tensor, ...]:
        index = tf.where(tf.equal(turn, number), rows.index, dropped)
        return (number + 1, *written(held, index))

    turns = tf.reduce_max(tf.where(rows.index < dropped, turn, -1)) + 1
    most = _most_turns(rows)
    done = tf.while_loop(lambda number, *_: number < turns, step, (zero, *spare), maximum_iterations=most)
    return [x[: rows.count] for x in done[1 : 1 + count]]


def _most_turns(rows: Rows) -> int | None:
    """How many updates one row may have, where XLA has to know that for a gradient."""
    count: int | None = rows.index.shape.as_list()[0]
    return count if traces_compiled() else None


def _occurrences(rows: Rows) -> tf.Tensor:
    """Of each update, how many come before it in its row."""
    order = tf.argsort(rows.index, stable=True)
    index = tf.gather(rows.index, order)
    position = tf.range(tf.shape(index)[0])
    first = tf.math.unsorted_segment_min(position, index, tf.cast(rows.count + 1, index.dtype))
    behind = position - tf.gather(first, index)
    return tf.gather(behind, tf.argsort(order))
