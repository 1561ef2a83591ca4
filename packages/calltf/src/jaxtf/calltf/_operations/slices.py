"""Slices, whose bounds are clipped to the operand."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from jaxtf.calltf._interpreter import Interpreter
from jaxtf.calltf._jax import is_symbolic
from jaxtf.calltf._operations.conditions import bounded, not_negative, require_same
from jaxtf.calltf._operations.table import moving, rule
from jaxtf.calltf._symbolic_values import Shape, Value, array_of, decided, larger, smaller


@dataclass(frozen=True)
class _Dense:
    """The bounds of a slice, one for each axis of its operand; steps are positive, of the axes `reverse` reversed."""

    starts: list[Any]
    stops: list[Any]
    steps: list[int]
    counts: list[Any]
    reverse: list[int]
    shape: list[Any]

    @classmethod
    def of(cls, i: Interpreter, op: Any, whole: Shape, bounds: Sequence[Sequence[Any]]) -> _Dense:
        """Of the operand's shape, begins, ends and strides."""
        dense = cls([], [], [], [], [], [])
        for place, axis in _axes(op, len(bounds[2]), len(whole)):
            if axis is None:
                dense.shape.append(1)
                continue
            size, is_index = whole[axis], False
            start, stop, step = 0, size, 1
            if place is not None:
                is_index = bool(op.get_attr("shrink_axis_mask") >> place & 1)
                start, stop, step = _bounds(i, op, place, [part[place] for part in bounds], size)
            if step < 0:
                dense.reverse.append(axis)
                start, stop, step = size - 1 - start, size - 1 - stop, -step
            count = (larger(stop - start, 0) + step - 1) // step
            dense.starts.append(start)
            dense.stops.append(larger(start, stop))
            dense.steps.append(step)
            dense.counts.append(count)
            if not is_index:
                dense.shape.append(count)
        for numbers in (dense.starts, dense.stops, dense.counts):
            i.remember(numbers)
        i.remember(stop - start for start, stop in zip(dense.starts, dense.stops, strict=True))
        return dense

    def at_sample(self, i: Interpreter) -> list[Any]:
        """Begins, ends and strides."""
        rank = (len(self.starts),)
        bounds = [i.at_sample(array_of(numbers, rank), tf.int64) for numbers in (self.starts, self.stops)]
        return [*bounds, tf.constant(self.steps, tf.int64, rank)]


@rule("StridedSlice")
def strided_slice(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """Bounds count from the end where they are negative, and are cut to what there is, as Python's."""
    known = moving(i, op, inputs, (0,))
    x, strides = inputs[0], i.integers(op, inputs, 3)
    bounds = [_elements(inputs[1], len(strides)), _elements(inputs[2], len(strides)), strides]
    if None in bounds[0] or None in bounds[1]:
        [tensor] = i.compiled(op, inputs, (3,))
        return [i.value(tensor, _indexed(i, op, x.shape, strides))]
    dense = _Dense.of(i, op, x.shape, bounds)
    tensor = tf.reverse(x.tensor, dense.reverse) if dense.reverse else x.tensor
    tensor = _taken(i, tensor, dense)
    return [i.value(tf.reshape(tensor, [i.number(size) for size in dense.shape]), dense.shape, known)]


def _taken(i: Interpreter, tensor: Any, dense: _Dense) -> Any:
    """A slice, by operations that are compiled alike where it is empty.

    StridedSlice is not: TensorFlow 2.22 compiles one that takes nothing to a constant. One more element behind each
    axis that may be empty, and it takes something.
    """
    more = [0 if decided(operator.ge, count, 1) else 1 for count in dense.counts]
    if not any(more):
        return tf.strided_slice(tensor, *dense.at_sample(i))
    rank = (len(more),)
    sizes = [stop - start for start, stop in zip(dense.starts, dense.stops, strict=True)]
    starts, extents = (i.at_sample(array_of(numbers, rank), tf.int64) for numbers in (dense.starts, sizes))
    tensor = tf.slice(tensor, starts, extents)
    if all(step == 1 for step in dense.steps):
        return tensor
    sizes = [size + one for size, one in zip(sizes, more, strict=True)]
    i.remember(sizes)
    i.remember((size + step - 1) // step for size, step in zip(sizes, dense.steps, strict=True))
    tensor = tf.pad(tensor, [(0, one) for one in more])
    begin = tf.zeros(rank, tf.int64)
    tensor = tf.strided_slice(
        tensor, begin, tf.constant(tensor.shape.as_list(), tf.int64), tf.constant(dense.steps, tf.int64)
    )
    return tf.slice(tensor, begin, i.at_sample(array_of(dense.counts, rank), tf.int64))


@rule("StridedSliceGrad")
def strided_slice_grad(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """Zeros of the shape of the operand, and what is pulled back where the slice was."""
    whole, strides, slope = tuple(i.known(op, inputs, 0)), i.integers(op, inputs, 3), inputs[4]
    bounds = [_elements(inputs[1], len(strides)), _elements(inputs[2], len(strides)), strides]
    if None in bounds[0] or None in bounds[1]:
        require_same(i, op, slope.shape, _indexed(i, op, whole, strides))
        [tensor] = i.compiled(op, inputs, (0, 3))
        return [i.value(tensor, whole)]
    dense = _Dense.of(i, op, whole, bounds)
    require_same(i, op, slope.shape, dense.shape)
    parts = zip(whole, dense.starts, dense.counts, dense.steps, strict=True)
    i.remember(size - start - count - larger(count - 1, 0) * (step - 1) for size, start, count, step in parts)
    tensor = tf.reshape(slope.tensor, [i.number(count) for count in dense.counts])
    shape = i.at_sample(array_of(whole, (len(whole),)), tf.int64)
    tensor = tf.raw_ops.StridedSliceGrad(
        **dict(zip(("shape", "begin", "end", "strides"), (shape, *dense.at_sample(i)), strict=True)), dy=tensor
    )
    return [i.value(tf.reverse(tensor, dense.reverse) if dense.reverse else tensor, whole)]


def _elements(value: Value, count: int) -> list[Any]:
    return list(value.known.flat) if value.known is not None else [None] * count


def _axes(op: Any, count: int, rank: int) -> list[tuple[int | None, int | None]]:
    """For each axis of the operand, or new one: its place in the bounds, or None; its number, None if it is new."""
    ellipsis, new = op.get_attr("ellipsis_mask"), op.get_attr("new_axis_mask")
    places = [place for place in range(count) if not (ellipsis >> place & 1)]
    own = [place for place in places if not (new >> place & 1)]
    result: list[tuple[int | None, int | None]] = []
    axis = 0
    for place in range(count):
        if ellipsis >> place & 1:
            for _ in range(rank - len(own)):
                result.append((None, axis))
                axis += 1
        elif new >> place & 1:
            result.append((place, None))
        else:
            result.append((place, axis))
            axis += 1
    return result + [(None, rest) for rest in range(axis, rank)]


def _bounds(i: Interpreter, op: Any, place: int, bounds: Sequence[Any], size: Any) -> tuple[Any, Any, int]:
    """Start, stop and step within an axis."""
    begin, end, step = bounds
    if op.get_attr("shrink_axis_mask") >> place & 1:
        index = _from_start(i, op, bounded(i, op, begin), size)
        i.require(op, index, ">=", 0, f"takes element {begin} of {size}")
        i.require(op, size, ">=", index + 1, f"takes element {begin} of {size}")
        return index, index + 1, 1
    lowest, highest = (0, size) if step > 0 else (-1, size - 1)
    is_open = [op.get_attr(f"{name}_mask") >> place & 1 for name in ("begin", "end")]
    limits = (lowest, highest) if step > 0 else (highest, lowest)
    start, stop = (
        limit if masked else smaller(larger(_from_start(i, op, bounded(i, op, bound), size), lowest), highest)
        for masked, limit, bound in zip(is_open, limits, (begin, end), strict=True)
    )
    return start, stop, step


def _from_start(i: Interpreter, op: Any, bound: Any, size: Any) -> Any:
    """A bound, which counts from the end where it is negative."""
    if decided(operator.ge, bound, 0):
        return bound
    if decided(operator.lt, bound, 0):
        return bound + size
    raise i.refused(op, f"has a bound {bound}, which counts from the end for some sizes only,")


def _indexed(i: Interpreter, op: Any, whole: Shape, strides: list[int]) -> Shape:
    """The shape of single elements at places that are computed, all of the other axes."""
    shape = []
    open_ = op.get_attr("begin_mask") & op.get_attr("end_mask")
    for place, axis in _axes(op, len(strides), len(whole)):
        if axis is None:
            shape.append(1)
        elif place is None or (open_ >> place & 1 and strides[place] == 1):
            shape.append(whole[axis])
        elif not op.get_attr("shrink_axis_mask") >> place & 1:
            raise i.refused(op, "has a bound that is not computed by sums, products and quotients of sizes,")
    return tuple(shape)


@rule("Slice")
def slice_(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """Inside the operand; a size of -1 is what remains."""
    x, sizes = inputs[0], list(i.known(op, inputs, 2))
    begins = inputs[1].known
    constants = [2]
    if begins is not None:
        constants.append(1)
        for axis, (begin, whole) in enumerate(zip(begins, x.shape, strict=True)):
            if not is_symbolic(sizes[axis]) and sizes[axis] == -1:
                sizes[axis] = whole - begin
            bounded(i, op, begin)
            bounded(i, op, sizes[axis])
            what = f"takes {sizes[axis]} from {begin} on of {whole}"
            i.require(op, begin, ">=", 0, what)
            i.require(op, whole, ">=", begin + sizes[axis], what)
        i.remember([*begins, *(begin + size for begin, size in zip(begins, sizes, strict=True))])
    not_negative(i, op, sizes)
    tensors = [x.tensor, inputs[1].tensor, i.at_sample(array_of(sizes, (len(sizes),)), op.inputs[2].dtype)]
    if begins is not None:
        tensors[1] = i.at_sample(begins, op.inputs[1].dtype)
    [tensor] = i.emit(op, tensors)
    return [i.value(tensor, sizes, moving(i, op, inputs, (0,)))]


@rule("XlaDynamicUpdateSlice")
def dynamic_update_slice(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """The shape is that of the first operand; the place is data."""
    [tensor] = i.compiled(op, inputs)
    return [i.value(tensor, inputs[0].shape)]
