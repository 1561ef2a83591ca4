"""Slices with steps, which TensorFlow's kernels take an element at a time, as reshapes and slices without steps."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import tensorflow as tf

from jaxtf.convert._graph._support import MOST_DIMENSIONS, as_shape, one_by_one, product, sizes
from jaxtf.convert._tf import traces_compiled

__all__ = ["strided"]

_FEW_ELEMENTS = 4096
"""Of fewer a step is taken as it is: what it costs to call operations is more than what their kernels do."""
_WHOLE = slice(None)


def strided(operand: tf.Tensor, parts: Sequence[slice]) -> tf.Tensor:
    """One slice in each dimension; nothing is emitted where all are taken whole.

    Not compiled, every second of 8 elements is the first of the two columns of 4 rows, and so on in each dimension of
    known size: TensorFlow copies a column faster than it takes steps (`benchmarks/against_commit.py`).

    Args:
      operand: An array.
      parts: Each within its dimension, with a positive step; starts and ends may be tensors.
    """
    shape = operand.shape.as_list()
    parts = [_WHOLE if _is_whole(part, size) else part for part, size in zip(parts, shape, strict=True)]
    if len(shape) > MOST_DIMENSIONS:
        axes = [axis for axis, part in enumerate(parts) if part is not _WHOLE]
        return one_by_one(operand, axes, lambda array, axis: array[:, parts[axis]])
    columns: dict[int, tuple[int, int]] = {}
    if not traces_compiled() and (None in shape or prod(shape) >= _FEW_ELEMENTS):
        for axis, part in enumerate(parts):
            begin = _begin_of_rows(part, axis, shape)
            if begin is not None:
                columns[axis] = part.step, part.start - begin
                parts[axis] = slice(begin, begin + _count(part) * part.step)
                parts[axis] = _WHOLE if _is_whole(parts[axis], shape[axis]) else parts[axis]
    if any(part is not _WHOLE for part in parts):
        operand = operand[tuple(parts)]
    for axis, (step, column) in columns.items():
        operand = _column(operand, axis, step, column)
    return operand


def _is_whole(part: slice, size: int | None) -> bool:
    known = [n for n in (part.start, part.stop, part.step) if not isinstance(n, tf.Tensor)]
    return len(known) == 3 and part.start in (None, 0) and part.stop in (None, size) and part.step in (None, 1)


def _count(part: slice) -> int:
    return len(range(part.start, part.stop, part.step))


def _begin_of_rows(part: slice, axis: int, shape: Sequence[int | None]) -> int | None:
    """Where rows begin that are as long as a step and have one of the elements each; None if there are no such rows, or
    their number is open on both sides.
    """
    size, before, after = shape[axis], shape[:axis], shape[axis + 1 :]
    known = all(isinstance(n, int) for n in (part.start, part.stop, part.step, size))
    if not known or part.step == 1 or 0 in shape or (None in before and None in after):
        return None
    assert size is not None
    count = _count(part)
    return min(part.start, size - count * part.step) if 0 < count <= size // part.step else None


def _column(operand: tf.Tensor, axis: int, step: int, column: int) -> tf.Tensor:
    """Of every so many elements along a dimension the one in this place."""
    shape = sizes(operand)
    before, (size, *after) = shape[:axis], shape[axis:]
    count = size // step
    is_known = all(isinstance(n, int) for n in after)
    rows = [-1, step, product(after)] if is_known else [product([*before, count]), step, -1]
    return tf.reshape(tf.reshape(operand, as_shape(rows))[:, column], as_shape([*before, count, *after]))
