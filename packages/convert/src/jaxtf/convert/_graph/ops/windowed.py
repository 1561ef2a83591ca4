"""Each window of arrays combined by any region, of any lengths, also where they are known only at run time.

By a region that is known to be associative, a window over several dimensions is reduced dimension by dimension. Along
one, results for windows of 1, 2, 4, ... elements come from each other, and a window of any length from those:
operations grow with its logarithm. By any other region the elements of each window are combined one after the other,
in row-major order.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import tensorflow as tf

from jaxtf.convert._graph._support import (
    BINARY,
    MOST_DIMENSIONS,
    Size,
    as_shape,
    at_least_zero,
    is_identity_of,
    neutral,
    pad,
    product,
    refuse,
    sizes,
    sliced,
    typed,
)
from jaxtf.convert._graph.nodes import constant
from jaxtf.convert._graph.ops.combining import (
    Combine,
    are_neutral,
    in_order,
    is_associative,
    region_of,
    where_present,
)
from jaxtf.convert._graph.registry import Bound
from jaxtf.convert._graph.strided import strided
from jaxtf.convert._tf import traces_compiled
from jaxtf.serialization.interop import single_operation

__all__ = ["Window", "count_of", "extent", "kind_of", "refuse_many_dimensions", "windowed"]

# Scans of so many elements XLA for CPU combines one by one, longer ones in a tree.
_LONG_SCAN = 16

# So many elements of a window are combined by operations of their own, more of them in a loop.
_MANY_ELEMENTS = 32


@dataclass(frozen=True)
class Window:
    """The windows of a reduction, by dimension."""

    size: tuple[Size, ...]
    stride: tuple[int, ...]
    base_dilation: tuple[int, ...]
    dilation: tuple[int, ...]
    low: tuple[Size, ...]
    high: tuple[Size, ...]

    def is_plain(self) -> bool:
        """Whether nothing is dilated."""
        return set(self.base_dilation) <= {1} and set(self.dilation) <= {1}


def kind_of(bound: Bound, dtype: tf.DType) -> str | None:
    """The one operation of which the region consists; of complex numbers TensorFlow has no extremes."""
    kind = single_operation(bound.operation.regions[0])
    return None if dtype.is_complex and kind in ("maximum", "minimum") else kind


def refuse_many_dimensions(bound: Bound, operand: tf.Tensor) -> None:
    """Refuses windows of arrays that TensorFlow's kernels for slices do not take; compiled, XLA does.

    Raises:
      GraphModeUnsupported: There are more than eight dimensions.
    """
    if operand.shape.rank > MOST_DIMENSIONS and not traces_compiled():
        refuse(bound, f"windows of arrays of more than {MOST_DIMENSIONS} dimensions, not compiled")


def windowed(
    bound: Bound, operands: Sequence[tf.Tensor], initial: Sequence[tf.Tensor], window: Window
) -> list[tf.Tensor]:
    """Each window combined in row-major order by the region of an operation, starting from the initial values.

    What lies in the padding, or between elements, does not count, as in XLA for CPU.
    """
    refuse_many_dimensions(bound, operands[0])
    kind, between = kind_of(bound, operands[0].dtype), [n - 1 for n in window.base_dilation]
    if kind is not None:
        function, filler = BINARY[kind], typed(neutral(kind, operands[0].dtype), operands[0].dtype)
        values = [pad(operands[0], filler, window.low, window.high, between)]
        values, _ = _by_axes(lambda a, b: [function(a[0], b[0])], values, [None] * len(window.size), window)
        if is_identity_of(kind, initial[0]):
            return values
        return [function(tf.broadcast_to(initial[0], as_shape(sizes(values[0]))), values[0])]
    combine, block = region_of(bound), bound.operation.regions[0]
    if are_neutral(block, initial):
        values = [pad(x, i, window.low, window.high, between) for x, i in zip(operands, initial, strict=True)]
        return _by_axes(combine, values, [None] * len(window.size), window)[0]
    there = _there(sizes(operands[0]), window)
    values = [pad(x, tf.zeros([], x.dtype), window.low, window.high, between) for x in operands]
    if not is_associative(block) and not _is_long_scan(operands[0], window):
        return _one_by_one(combine, _Padded(values, there, window), initial)
    values, found = _by_axes(combine, values, there, window)
    start = [tf.broadcast_to(i, as_shape(sizes(v))) for i, v in zip(initial, values, strict=True)]
    whole = combine(start, values)
    return [tf.where(found, w, s) for w, s in zip(whole, start, strict=True)] if found is not None else whole


def _there(shape: Sequence[Size], window: Window) -> list[Any]:
    """By dimension, at which places of the padded operand its own elements are; None where they are at all."""
    found: list[Any] = []
    for size, low, high, step in zip(shape, window.low, window.high, window.base_dilation, strict=True):
        if step == 1 and all(isinstance(n, int) and n <= 0 for n in (low, high)):
            found.append(None)
            continue
        if all(isinstance(n, int) for n in (size, low, high)):
            place = np.arange(max(low + max((size - 1) * step + 1, 0) + high, 0)) - low
            own = (place >= 0) & (place % step == 0) & (place < size * step)
            found.append(None if own.all() else own)
            continue
        place = tf.range(tf.maximum(low + tf.maximum((size - 1) * step + 1, 0) + high, 0)) - low
        found.append((place >= 0) & (tf.math.floormod(place, step) == 0) & (place < size * step))
    return found


def _is_long_scan(operand: tf.Tensor, window: Window) -> bool:
    """Whether windows are as long as one dimension and begin, or end, outside, which XLA for CPU combines in a tree."""
    axes = [i for i, length in enumerate(window.size) if not (isinstance(length, int) and length == 1)]
    if len(axes) != 1 or set(window.stride) != {1} or not window.is_plain():
        return False
    (axis,) = axes
    length = window.size[axis]
    ends = window.low[axis], window.high[axis]
    return (
        isinstance(length, int)
        and length > _LONG_SCAN
        and length == operand.shape.as_list()[axis]
        and all(isinstance(n, int) and n in (0, length - 1) for n in ends)
        and sum(ends) == length - 1
    )


@dataclass(frozen=True)
class _Padded:
    """Padded arrays under windows.

    Attributes:
      values: The arrays.
      there: As `_there` gives it.
      window: The windows.
    """

    values: Sequence[tf.Tensor]
    there: Sequence[Any]
    window: Window

    def places(self) -> list[Size]:
        """How many windows there are along each dimension."""
        window = self.window
        lengths = zip(sizes(self.values[0]), window.size, window.dilation, window.stride, strict=True)
        return [count_of(*length) for length in lengths]

    def at(self, offsets: Sequence[Size]) -> tuple[list[tf.Tensor], tf.Tensor | None]:
        """The element of each window at an offset, and in which windows there is one; None if in all."""
        stride, places = self.window.stride, self.places()
        begin = [offset * dilation for offset, dilation in zip(offsets, self.window.dilation, strict=True)]
        extents = [extent(n, step) for n, step in zip(places, stride, strict=True)]
        if not all(isinstance(n, int) for n in begin):  # where there are no windows it may be beyond the end
            begin = [tf.minimum(b, size - e) for b, size, e in zip(begin, sizes(self.values[0]), extents, strict=True)]
        parts = [_strided(x, begin, extents, stride) for x in self.values]
        has, rank = None, len(stride)
        for axis, own in enumerate(self.there):
            if own is None:
                continue
            part = _strided(own, *(xs[axis : axis + 1] for xs in (begin, extents, stride)))
            if isinstance(part, np.ndarray) and part.all():
                continue
            part = tf.reshape(part, [-1 if i == axis else 1 for i in range(rank)])
            has = part if has is None else tf.logical_and(has, part)
        return parts, has


def _one_by_one(combine: Combine, padded: _Padded, initial: Sequence[tf.Tensor]) -> list[tf.Tensor]:
    """Windows of padded arrays, of each one element after the other."""
    window, places = padded.window, padded.places()
    start = [tf.broadcast_to(i, as_shape(places)) for i in initial]

    def with_element(done: Sequence[tf.Tensor], offsets: Sequence[Size]) -> list[tf.Tensor]:
        parts, has = padded.at(offsets)
        made = combine(done, parts)
        return made if has is None else [tf.where(has, m, d) for m, d in zip(made, done, strict=True)]

    if all(isinstance(length, int) for length in window.size) and prod(window.size) <= _MANY_ELEMENTS:
        for offsets in itertools.product(*map(range, window.size)):
            start = with_element(start, offsets)
        return start
    lengths = [tf.cast(length, tf.int32) for length in window.size]
    shape = tf.TensorShape([size if isinstance(size, int) else None for size in places])

    def step(number: tf.Tensor, *done: tf.Tensor) -> list[tf.Tensor]:
        rest = number
        offsets: list[Size] = []
        for length in reversed(lengths):
            offsets.insert(0, rest % length)
            rest //= length
        return [number + 1, *(tf.ensure_shape(x, shape) for x in with_element(done, offsets))]

    total = product(lengths)
    invariants = [tf.TensorShape([]), *(shape for _ in start)]
    state = [typed(0, tf.int32), *start]
    return list(tf.while_loop(lambda number, *_: number < total, step, state, shape_invariants=invariants)[1:])


def _strided(operand: Any, begin: Sequence[Size], extents: Sequence[Size], stride: Sequence[int]) -> Any:
    """A part of an array, of NumPy or TensorFlow, of which every few elements; it may begin at a place known only at
    run time.
    """
    if all(isinstance(n, int) for n in begin):
        parts = [slice(b, b + e, s) for b, e, s in zip(begin, extents, stride, strict=True)]
        return operand[tuple(parts)] if isinstance(operand, np.ndarray) else strided(operand, parts)
    cut = sliced(constant(operand) if isinstance(operand, np.ndarray) else operand, begin, extents)
    return cut if set(stride) == {1} else cut[tuple(slice(None, None, s) for s in stride)]


def count_of(size: Size, length: Size, dilation: int, stride: int) -> Size:
    """How many windows there are along a dimension."""
    return at_least_zero((size - (length - 1) * dilation - 1) // stride + 1)


def extent(count: Size, stride: int) -> Size:
    """How many elements so many places span."""
    return at_least_zero((count - 1) * stride + 1)


def _by_axes(
    combine: Combine, values: Sequence[tf.Tensor], there: Sequence[Any], window: Window
) -> tuple[list[tf.Tensor], tf.Tensor | None]:
    """Windows of padded arrays dimension by dimension, from the last on: so an associative region keeps the order.

    Also which windows have elements, where that is to be seen from `there`.
    """
    found, rank = None, len(window.size)
    for axis in reversed(range(rank)):
        along = _along if isinstance(window.size[axis], int) else _along_loop
        lengths = {"length": window.size[axis], "dilation": window.dilation[axis], "stride": window.stride[axis]}
        if there[axis] is None:
            values = along(combine, values, axis, **lengths)
            continue
        own = tf.reshape(there[axis], [-1 if i == axis else 1 for i in range(rank)])
        *values, has = along(where_present(combine), [*values, own], axis, **lengths)
        found = has if found is None else tf.logical_and(found, has)
    return list(values), found


def _along(
    combine: Combine, values: Sequence[tf.Tensor], axis: int, *, length: int, dilation: int, stride: int
) -> list[tf.Tensor]:
    """Windows along one axis, at every stride-th place, for an associative region."""
    values = list(values)
    size = sizes(values[0])[axis]
    reach = (length - 1) * dilation
    places = at_least_zero(size - reach)
    if isinstance(places, int) and not places:
        return [_part(x, axis, 0, 0, 1) for x in values]
    if length <= 4 and stride > 1:
        parts = [[_part(x, axis, i * dilation, i * dilation + places, stride) for x in values] for i in range(length)]
        return in_order(combine, parts)
    span, doubled, covered, parts = 1, values, 0, []
    while span <= length:
        if length & span:
            parts.append([_part(x, axis, covered * dilation, covered * dilation + places, stride) for x in doubled])
            covered += span
        if 2 * span <= length:
            shift = span * dilation
            usable = at_least_zero(sizes(doubled[0])[axis] - shift)
            doubled = combine(
                [_part(x, axis, 0, usable, 1) for x in doubled],
                [_part(x, axis, shift, shift + usable, 1) for x in doubled],
            )
        span *= 2
    return in_order(combine, parts)


def _along_loop(
    combine: Combine, values: Sequence[tf.Tensor], axis: int, *, length: tf.Tensor, dilation: int, stride: int
) -> list[tf.Tensor]:
    """As `_along`, for a length that is known at run time: sizes stay as they are while the loop runs, as XLA needs."""
    count, size = len(values), sizes(values[0])[axis]
    length = tf.cast(length, tf.int32)
    shapes = [x.shape for x in values]

    def shifted(xs: Sequence[tf.Tensor], by: tf.Tensor) -> list[tf.Tensor]:
        """What comes so many places later; what comes after the end is in no window."""
        begin = as_shape([tf.minimum(by, size) if i == axis else 0 for i in range(xs[0].shape.rank)])
        return [tf.slice(tf.concat([x, tf.zeros_like(x)], axis), begin, tf.shape(x)) for x in xs]

    def step(span: tf.Tensor, covered: tf.Tensor, *state: tf.Tensor) -> list[tf.Tensor]:
        doubled, result = state[:count], state[count:]
        has = tf.not_equal(tf.bitwise.bitwise_and(length, span), 0)
        more = combine(result, shifted(doubled, covered * dilation))
        more = [tf.where(tf.equal(covered, 0), d, m) for d, m in zip(doubled, more, strict=True)]
        kept = [tf.where(has, m, r) for m, r in zip(more, result, strict=True)]
        covered = tf.where(has, covered + span, covered)
        made = [*combine(doubled, shifted(doubled, span * dilation)), *kept]
        settled = (tf.ensure_shape(x, shape) for x, shape in zip(made, [*shapes, *shapes], strict=True))
        return [span * 2, covered, *settled]

    state = [typed(1, tf.int32), typed(0, tf.int32), *values, *values]
    invariants = [tf.TensorShape([]), tf.TensorShape([]), *shapes, *shapes]
    done = tf.while_loop(lambda span, *_: span <= length, step, state, shape_invariants=invariants)
    places = tf.maximum(size - (length - 1) * dilation, 0)
    return [_part(x, axis, 0, places, stride) for x in done[2 + count :]]


def _part(operand: tf.Tensor, axis: int, start: int, limit: Size, stride: int) -> tf.Tensor:
    parts = [slice(0, size) for size in operand.shape.as_list()]
    parts[axis] = slice(start, limit, stride)
    return strided(operand, parts)
