"""Reductions: by TensorFlow's own where the region is one operation or a search for the extreme, else by the region.

A region that is known to be associative combines halves, or blocks where the number of elements is known only at run
time; any other combines one element after the other, as far as XLA for CPU does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import tensorflow as tf

from jaxtf.convert._graph._support import (
    BINARY,
    MOST_DIMENSIONS,
    MOVED,
    Size,
    as_shape,
    index_dtype,
    is_identity_of,
    product,
    sizes,
    typed,
)
from jaxtf.convert._graph.accumulated import accumulated
from jaxtf.convert._graph.grappler import extreme, hidden
from jaxtf.convert._graph.nodes import reduction
from jaxtf.convert._graph.ops.combining import Combine, in_order, is_associative, region_of
from jaxtf.convert._graph.optimizer import computed_by_xla
from jaxtf.convert._graph.registry import Bound, translates
from jaxtf.convert._graph.reshapes import KEEPS_DIMENSIONS
from jaxtf.convert._graph.searches import SEARCHES, TAKES_VALUE
from jaxtf.convert._graph.strided import strided
from jaxtf.serialization.interop import single_operation

__all__ = ["Combine", "region_of"]

REDUCERS: dict[str, Callable[..., tf.Tensor]] = {
    "add": reduction("Sum", tf.reduce_sum),
    "multiply": reduction("Prod", tf.reduce_prod),
    "minimum": extreme("Min", tf.reduce_min),
    "maximum": extreme("Max", tf.reduce_max),
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

# XLA for CPU combines so many elements of each dimension one after the other, more of them in a tree.
_IN_ORDER = 32

# Of fewer elements it takes less time to look for all that is special than to ask whether there is any.
_FEW = 4096

# So many times are the elements of dimensions combined whose sizes are known only at run time.
_LEVELS = 4


@translates("stablehlo.reduce", computed_in=MOVED)
def reduce(bound: Bound, *operands_and_initial: tf.Tensor) -> list[tf.Tensor]:
    """One or several arrays reduced together by a region over some dimensions.

    The initial values come first, then the elements in row-major order. What is combined first is not promised, for a
    region that is known to be associative (`combining`), and for dimensions of more than 32 elements, as with XLA for
    CPU; any other region combines one element after the other.

    Differs: the order of combining, as between any two backends; an initial value counts also where XLA leaves it out,
    in a reduction of one element; a sum of nothing but -0 may be 0 or -0; sums of millions of elements are less exact
    than those of jaxlib, since TensorFlow adds one row after the other where the rows are summed, and where it
    compiles.
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
            if not axes:
                return [with_initial(kind, initial[0], operands[0])]
            along = bound.constant(axes)
            reduced = accumulated(kind, operands[0], axes, lambda x: reducer(x, along, keeps))
            return [with_initial(kind, initial[0], reduced)]
    if SEARCHES in bound.operation.attributes:
        return _with_few_dimensions(lambda xs, axis: _extreme(bound, xs[0], xs[1], axis[0]), operands, axes)
    combine, associative = region_of(bound), is_associative(block)
    results = _with_few_dimensions(lambda xs, dims: _folded(combine, xs, initial, dims, associative), operands, axes)
    return [_with_dimensions(results[0], axes)] if keeps else results


def _with_few_dimensions(
    reduced: Callable[[Sequence[tf.Tensor], Sequence[int]], list[tf.Tensor]],
    operands: Sequence[tf.Tensor],
    axes: Sequence[int],
) -> list[tf.Tensor]:
    """What a function of arrays and axes gives; where arrays have many dimensions, of ones with two: the rest as one.

    TensorFlow's kernels for ArgMax and for slices take up to seven and eight; for ArgMax one is added (`_extreme`).
    """
    rank = operands[0].shape.rank
    if rank < MOST_DIMENSIONS - 1:
        return reduced(operands, axes)
    shape = sizes(operands[0])
    kept = [i for i in range(rank) if i not in axes]
    kept_shape = [shape[i] for i in kept]
    flat_shape = as_shape([product([shape[i] for i in sorted(axes)]), product(kept_shape)])
    flat = [tf.reshape(tf.transpose(x, [*sorted(axes), *kept]), flat_shape) for x in operands]
    return [tf.reshape(x, as_shape(kept_shape)) for x in reduced(flat, [0])]


def _with_dimensions(reduced: tf.Tensor, axes: Sequence[int]) -> tf.Tensor:
    """The result of a reduction with the reduced dimensions, of size 1."""
    for axis in sorted(axes):
        reduced = tf.expand_dims(reduced, axis)
    return reduced


def with_initial(kind: str, initial: tf.Tensor, reduced: tf.Tensor) -> tf.Tensor:
    """The reduced value combined with the initial one, if that changes anything."""
    return reduced if is_identity_of(kind, initial) else BINARY[kind](reduced, initial)


def _folded(
    combine: Combine,
    operands: Sequence[tf.Tensor],
    initial: Sequence[tf.Tensor],
    axes: Sequence[int],
    associative: bool,
) -> list[tf.Tensor]:
    """The elements along axes combined in row-major order, after the initial values.

    Args:
      combine: The region.
      operands: Arrays of one shape.
      initial: A scalar for each.
      axes: At least none.
      associative: Whether the region is known to be.
    """
    rank = operands[0].shape.rank
    axes = sorted(axes)
    kept = [i for i in range(rank) if i not in axes]
    shape = sizes(operands[0])
    kept_shape = [shape[i] for i in kept]
    rows = [tf.reshape(tf.transpose(x, [*axes, *kept]), as_shape([-1, *kept_shape])) for x in operands]
    start = [tf.broadcast_to(x, as_shape(kept_shape)) for x in initial]
    lengths = [shape[axis] for axis in axes]
    if not all(isinstance(length, int) for length in lengths):
        rows = [tf.concat([s[tf.newaxis], x], 0) for s, x in zip(start, rows, strict=True)]
        return _by_blocks(combine, rows, product(lengths) + 1, _block_length(lengths, associative))
    count = product(lengths)
    if not count:
        return start
    rows = [tf.ensure_shape(x, [count, *x.shape.as_list()[1:]]) if x.shape.as_list()[0] is None else x for x in rows]
    if associative or max(lengths, default=1) > _IN_ORDER:
        return combine(start, _by_halving(combine, rows, count))
    if count <= _IN_ORDER:
        return in_order(combine, [start, *([x[i] for x in rows] for i in range(count))])
    return _by_blocks(combine, [tf.concat([s[tf.newaxis], x], 0) for s, x in zip(start, rows, strict=True)], count + 1)


def _by_halving(combine: Combine, rows: Sequence[tf.Tensor], count: int) -> list[tf.Tensor]:
    """Combines neighbours until one is left: as many emitted steps as the count has bits, and order is kept."""
    while count > 1:
        even = count // 2 * 2
        halves = combine(*([_every_second(x, start, even) for x in rows] for start in (0, 1)))
        rows = [tf.concat([h, x[even:]], 0) for h, x in zip(halves, rows, strict=True)] if count % 2 else halves
        count = (count + 1) // 2
    return [x[0] for x in rows]


def _every_second(rows: tf.Tensor, start: int, end: int) -> tf.Tensor:
    return strided(rows, [slice(start, end, 2), *(slice(0, size) for size in rows.shape.as_list()[1:])])


def _block_length(lengths: Sequence[Size], associative: bool) -> tf.Tensor:
    """The least power of 2 of which the `_LEVELS`-th is no less than the number of elements and initial values.

    For a region that is not known to be associative it is all of them, if no length is more than `_IN_ORDER`. Compiled,
    it has to be a constant of the compiler, and so comes from the sizes by additions and comparisons.
    """
    count = tf.cast(product(lengths) + 1, tf.int32)
    length = typed(1, tf.int32)
    for power in range(0, 31, _LEVELS):
        length = tf.where(count > 2**power, 2 * length, length)
    if associative:
        return length
    is_short = tf.reduce_all([tf.cast(size, tf.int32) <= _IN_ORDER for size in lengths])
    return tf.where(is_short, count, length)


def _by_blocks(
    combine: Combine, rows: Sequence[tf.Tensor], count: Size, length: tf.Tensor | None = None
) -> list[tf.Tensor]:
    """Rows combined in blocks, one element of each after the other, then what the blocks gave, and so on.

    Sizes stay as they are while a loop runs, as XLA needs. So many levels are emitted that any number of rows is done.

    Args:
      combine: The region.
      rows: At least one.
      count: How many.
      length: Of a block, its `_LEVELS`-th power no less than the count; one block of all if None.
    """
    for _ in range(1 if length is None else _LEVELS):
        block = count if length is None else tf.minimum(length, count)
        blocks = 1 if length is None else -(-count // block)
        rows = _rows_of_blocks(combine, rows, count, block, blocks)
        count = blocks
    return [x[0] for x in rows]


def _rows_of_blocks(
    combine: Combine, rows: Sequence[tf.Tensor], count: Size, block: Size, blocks: Size
) -> list[tf.Tensor]:
    """One row for each block of rows; only the last may have fewer."""
    missing = blocks * block - count
    tiled = []
    for x in rows:
        more = tf.zeros(as_shape([missing, *sizes(x)[1:]]), x.dtype)
        tiled.append(tf.reshape(tf.concat([x, more], 0), as_shape([blocks, block, *sizes(x)[1:]])))
    first = [x[:, 0] for x in tiled]
    shapes = [tf.TensorShape([None]).concatenate(x.shape[1:]) for x in first]
    ranks = [[-1] + [1] * (x.shape.rank - 1) for x in first]
    numbers = tf.range(blocks) * block

    def step(i: tf.Tensor, *done: tf.Tensor) -> list[tf.Tensor]:
        made = combine(done, [tf.gather(x, i, axis=1) for x in tiled])
        if isinstance(missing, int) and not missing:
            return [i + 1, *made]
        is_there = numbers + i < count
        kept = [tf.where(tf.reshape(is_there, r), m, d) for r, m, d in zip(ranks, made, done, strict=True)]
        return [i + 1, *kept]

    state = [typed(1, tf.int32), *first]
    invariants = [tf.TensorShape([]), *shapes]
    return list(tf.while_loop(lambda i, *_: i < block, step, state, shape_invariants=invariants)[1:])


def _extreme(bound: Bound, operand: tf.Tensor, indices: tf.Tensor, axis: int) -> list[tf.Tensor]:
    """The extreme value along an axis and its index, by ArgMax or ArgMin, which find the first; a NaN comes first.

    Of several zeros the value is the last one, and the index that of the first. As of extremes (`grappler`), Grappler
    makes `argmax(x)` of `argmax(f(x))`, and `argmin(x)` of `argmax(-x)`. With one more dimension TensorFlow searches an
    only axis in one thread.
    """
    is_greatest = bound[SEARCHES] == "GT"
    dtype = index_dtype(operand.shape.as_list()[axis])
    search = partial(tf.argmax if is_greatest else tf.argmin, axis=axis, output_type=dtype)
    searched = tf.cast(operand, tf.int32) if operand.dtype == tf.bool else operand
    if searched.shape.rank == 1 and tf.is_symbolic_tensor(searched):
        position = search(hidden(searched))
    else:
        position = search(tf.expand_dims(searched, searched.shape.rank))
        position = tf.squeeze(position, [-1])
    if operand.dtype.is_floating:
        position = _of_any_numbers(bound, operand, position, axis, is_greatest)
    value, index = (_taken(x, position, axis) for x in (operand, indices))
    if operand.dtype.is_floating and bound.get(TAKES_VALUE, False):
        backwards = tf.reverse(operand, [axis])
        last = _taken(backwards, search(backwards), axis)
        value = tf.where(tf.equal(value, tf.zeros([], value.dtype)), last, value)
    return [value, index]


def _of_any_numbers(bound: Bound, operand: tf.Tensor, position: tf.Tensor, axis: int, is_greatest: bool) -> tf.Tensor:
    """Where the extremes are, from where ArgMax or ArgMin finds them.

    TensorFlow's kernels pass over NaN, and begin with the first element as if it were the lowest finite number, so that
    they find -inf where that number follows. If the extremes are greater than it, neither is so.
    """
    least = typed(float("-inf") if is_greatest else float("inf"), operand.dtype)

    def first(marked: tf.Tensor) -> tf.Tensor:
        return tf.argmax(tf.cast(marked, tf.int32), axis, output_type=position.dtype)

    def of_nan() -> tf.Tensor:
        unordered = tf.not_equal(operand, operand)
        return tf.where(tf.reduce_any(unordered, axis), first(unordered), position)

    def of_all() -> tf.Tensor:
        found = of_nan()
        is_least = tf.equal(_taken(operand, found, axis), least)
        return tf.where(is_least, first(tf.not_equal(operand, least)), found)

    if computed_by_xla(operand):
        return of_nan()
    if not bound.allows_xla or (operand.shape.num_elements() or _FEW) < _FEW:
        return of_all()
    along = bound.constant([axis])
    if is_greatest:
        is_usual = tf.greater(REDUCERS["maximum"](operand, along, False), typed(operand.dtype.min, operand.dtype))
    else:
        is_usual = tf.less(REDUCERS["minimum"](operand, along, False), typed(operand.dtype.max, operand.dtype))
    return tf.cond(tf.reduce_all(is_usual), lambda: tf.identity(position), of_all)


def _taken(operand: tf.Tensor, position: tf.Tensor, axis: int) -> tf.Tensor:
    """The element of each line along an axis that a position names."""
    rank = operand.shape.rank
    order = [*(i for i in range(rank) if i != axis), axis]
    if order != list(range(rank)):
        operand = tf.transpose(operand, order)
    return tf.gather(operand, position, axis=rank - 1, batch_dims=rank - 1)
