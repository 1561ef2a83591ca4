"""Slices with steps, which TensorFlow's kernels take an element at a time, as reshapes and slices without steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import NamedTuple

import tensorflow as tf

from jaxtf.convert._graph._support import (
    MOST_DIMENSIONS,
    Size,
    as_shape,
    at_least_zero,
    index_dtype,
    one_by_one,
    pad,
    product,
    sizes,
)
from jaxtf.convert._tf import traces_compiled

__all__ = ["strided"]

_FEW_ELEMENTS = 4096
"""Of fewer a step is taken as it is: what it costs to call operations is more than what their kernels do."""
_LONG_STEP = 16
"""Of a part an element at a time is not slower with longer steps, of which all that lies between is copied."""
_WHOLE = slice(None)
_NOTHING = slice(0, 0)


class _Rows(NamedTuple):
    """A part of a dimension as rows that are as long as a step, with one of the elements each, in the same place."""

    begin: int
    step: int
    count: Size
    column: int

    @classmethod
    def of(cls, start: int, step: int, count: Size, size: Size) -> _Rows | None:
        """The rows of every few elements from `start` of as many as `size`; None where steps are as good."""
        if isinstance(size, int) and isinstance(count, int):
            rows = cls(min(start, max(size - count * step, 0)), step, count, start)
            is_whole = rows.begin == 0 and rows.end == size
        else:
            rows, is_whole = cls(max(start - step + 1, 0), step, count, start), False
        if (isinstance(count, int) and count == 0) or (step > _LONG_STEP and not is_whole):
            return None
        return rows._replace(column=start - rows.begin)

    @property
    def end(self) -> Size:
        return self.begin + self.count * self.step


def strided(operand: tf.Tensor, parts: Sequence[slice], *, is_differentiated: bool = False) -> tf.Tensor:
    """One slice in each dimension; nothing is emitted where all are taken whole.

    Not compiled, every second of 8 elements is the first of the two columns of 4 rows, and so on in each dimension:
    TensorFlow copies a column faster than it takes steps (`benchmarks/against_commit.py`). Zeros fill the last row.

    Args:
      operand: An array.
      parts: Each within its dimension, with a positive step; starts and ends may be tensors.
      is_differentiated: Whether TensorFlow may be asked for a gradient.
    """
    shape = operand.shape.as_list()
    parts = [_plainest(part, size) for part, size in zip(parts, shape, strict=True)]
    if len(shape) > MOST_DIMENSIONS:
        axes = [axis for axis, part in enumerate(parts) if part is not _WHOLE]
        return one_by_one(operand, axes, lambda array, axis: array[:, parts[axis]])
    rows: dict[int, _Rows] = {}
    if not traces_compiled() and 0 not in shape and (None in shape or prod(shape) >= _FEW_ELEMENTS):
        stepped = [axis for axis, part in enumerate(parts) if isinstance(part.step, int) and part.step > 1]
        rows = _rows(operand, {axis: parts[axis] for axis in stepped if isinstance(parts[axis].start, int | None)})
    if rows:
        operand = _filled(operand, rows)
        for axis, own in rows.items():
            parts[axis] = slice(own.begin, own.end)
            parts[axis] = _WHOLE if _is_whole(parts[axis], operand.shape[axis]) else parts[axis]
    parts, kept = _with_one_more(operand, parts) if is_differentiated else (parts, {})
    operand = _cut(_with_last_rows(operand, {axis: parts[axis].step for axis in kept}), parts)
    for axis, count in kept.items():
        operand = operand[(*[_WHOLE] * axis, slice(count))]
    for axis, own in rows.items():
        operand = _column(operand, axis, own)
    return operand


def _with_one_more(operand: tf.Tensor, parts: Sequence[slice]) -> tuple[list[slice], dict[int, Size]]:
    """Slices that take one more element where steps may take none (see `_plainest`), and how many are to be kept."""
    found, kept = list(parts), {}
    shape = _sizes(operand)
    for axis, part in enumerate(parts):
        start, stop, step = part.start or 0, shape[axis] if part.stop is None else part.stop, part.step
        if step in (None, 1) or all(isinstance(n, int) for n in (start, stop)):
            continue
        kept[axis] = at_least_zero(stop - start + step - 1) // step
        found[axis] = slice(start, start + kept[axis] * step + 1, step)
    return found, kept


def _with_last_rows(operand: tf.Tensor, steps: Mapping[int, int]) -> tf.Tensor:
    """An array with zeros at the end of dimensions, as many as a step."""
    return pad(operand, None, [0] * operand.shape.rank, [steps.get(i, 0) for i in range(operand.shape.rank)])


def _plainest(part: slice, size: int | None) -> slice:
    """The same elements without a step where there are none, or all.

    XLA gives the gradient of steps that take nothing another shape than that of what they are taken from (TensorFlow
    2.21).
    """
    stop = size if part.stop is None else part.stop
    if isinstance(stop, int) and isinstance(part.start, int | None) and stop <= (part.start or 0):
        return _NOTHING
    return _WHOLE if _is_whole(part, size) else part


def _is_whole(part: slice, size: int | None) -> bool:
    known = [n for n in (part.start, part.stop, part.step) if not isinstance(n, tf.Tensor)]
    return len(known) == 3 and part.start in (None, 0) and part.stop in (None, size) and part.step in (None, 1)


def _rows(operand: tf.Tensor, parts: Mapping[int, slice]) -> dict[int, _Rows]:
    """The rows of each dimension of those that is taken by them."""
    found = {}
    shape = _sizes(operand) if parts else []
    for axis, part in parts.items():
        start, step, stop = part.start or 0, part.step, shape[axis] if part.stop is None else part.stop
        stop = tf.cast(stop, index_dtype(*operand.shape)) if isinstance(stop, tf.Tensor) else stop
        rows = _Rows.of(start, step, at_least_zero(stop - start + step - 1) // step, shape[axis])
        if rows is not None:
            found[axis] = rows
    return found


def _sizes(operand: tf.Tensor) -> list[Size]:
    """As `sizes`, those that are known at run time of one dtype, in which all fit."""
    dtype = index_dtype(*operand.shape)
    return [tf.cast(size, dtype) if isinstance(size, tf.Tensor) else size for size in sizes(operand)]


def _cut(operand: tf.Tensor, parts: Sequence[slice]) -> tf.Tensor:
    """Slices as TensorFlow takes them, the dimensions with bounds that are tensors before the others, one by one.

    Where such a bound depends on values XLA leaves out the starts and steps of all dimensions whose size it knows.
    """
    rest = list(parts)
    for axis, part in enumerate(parts):
        if isinstance(part.start, tf.Tensor) or isinstance(part.stop, tf.Tensor):
            operand = operand[(*[_WHOLE] * axis, slice(part.start, part.stop))]
            rest[axis] = _WHOLE if part.step in (None, 1) else slice(None, None, part.step)
    return operand if all(part is _WHOLE for part in rest) else operand[tuple(rest)]


def _filled(operand: tf.Tensor, rows: dict[int, _Rows]) -> tf.Tensor:
    """An array with zeros at the end of dimensions, as many as the last row is short of."""
    missing: list[Size] = [0] * operand.shape.rank
    for axis, size in enumerate(_sizes(operand)):
        if axis in rows:
            missing[axis] = at_least_zero(rows[axis].end - size)
    return pad(operand, None, [0] * len(missing), missing)


def _column(operand: tf.Tensor, axis: int, rows: _Rows) -> tf.Tensor:
    """Of every row of a dimension that consists of them the element in its place."""
    shape = sizes(operand)
    before, after = shape[:axis], shape[axis + 1 :]
    is_known = all(isinstance(n, int) for n in after)
    flat = [-1 if is_known else product([*before, rows.count]), rows.step, product(after)]
    return tf.reshape(tf.reshape(operand, as_shape(flat))[:, rows.column], as_shape([*before, rows.count, *after]))
