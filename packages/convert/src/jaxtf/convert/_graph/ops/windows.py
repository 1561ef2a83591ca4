"""Reductions over windows: pools and cumulative sums where TensorFlow has them, else by doubling.

A window over several dimensions is reduced dimension by dimension. Along one, results for windows of 1, 2, 4, ...
elements come from each other, and a window of any length from those: operations grow with its logarithm.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
import tensorflow as tf

from jaxtf.convert._graph._support import (
    BINARY,
    MOVED,
    as_shape,
    is_identity_of,
    neutral,
    pad,
    single_operation,
    sizes,
    smallest,
)
from jaxtf.convert._graph._tf import is_compiled_for_cpu
from jaxtf.convert._graph.ops.reductions import Combine, region_of
from jaxtf.convert._graph.registry import Bound, translates

CUMULATIVE = {"add": tf.cumsum, "multiply": tf.math.cumprod}
CUMULATIVE_DTYPES = (tf.bfloat16, tf.float16, tf.float32, tf.float64, tf.int32, tf.int64)
POOLED_DTYPES = (tf.bfloat16, tf.float16, tf.float32, tf.float64)


@dataclass(frozen=True)
class Window:
    """The windows of a reduction, by dimension."""

    size: tuple[int, ...]
    stride: tuple[int, ...]
    base_dilation: tuple[int, ...]
    dilation: tuple[int, ...]
    low: tuple[int, ...]
    high: tuple[int, ...]

    def is_plain(self) -> bool:
        """Whether nothing is dilated."""
        return set(self.base_dilation) <= {1} and set(self.dilation) <= {1}


def window_of(bound: Bound, rank: int) -> Window:
    """The windows that the attributes of the operation describe; those left out are 1, or 0 for padding."""
    ones = (1,) * rank
    padding = np.zeros((rank, 2), int) if bound.get("padding") is None else np.asarray(bound["padding"]).reshape(-1, 2)

    def integers(name: str) -> tuple[int, ...]:
        return tuple(int(n) for n in bound.get(name) or ones)

    return Window(
        integers("window_dimensions"),
        integers("window_strides"),
        integers("base_dilations"),
        integers("window_dilations"),
        tuple(int(n) for n in padding[:, 0]),
        tuple(int(n) for n in padding[:, 1]),
    )


@translates("stablehlo.reduce_window", computed_in=MOVED)
def reduce_window(bound: Bound, *operands_and_initial: tf.Tensor) -> list[tf.Tensor]:
    """The reduction by a region of each window of one or several arrays.

    Differs: the order of combining, as between any two backends; a maximum of nothing but -inf may be finite.
    Source: StableHLO specification, `reduce_window`.
    """
    count = len(operands_and_initial) // 2
    operands, initial = operands_and_initial[:count], operands_and_initial[count:]
    window = window_of(bound, operands[0].shape.rank)
    kind = single_operation(bound.operation.regions[0])
    if kind is None:
        return windowed(region_of(bound), operands, initial, window)
    special = None if bound.scans else _cumulative(kind, operands[0], initial[0], window)
    if special is None and not (is_compiled_for_cpu() and _overlap_little(window)):
        special = _max_pool(kind, operands[0], initial[0], window)
        if special is None:
            special = _sum_pool(kind, operands[0], initial[0], window)
    if special is not None:
        return [special]
    return windowed(lambda a, b: [BINARY[kind](a[0], b[0])], operands, initial, window, kind)


def windowed(
    combine: Combine,
    operands: Sequence[tf.Tensor],
    initial: Sequence[tf.Tensor],
    window: Window,
    kind: str | None = None,
) -> list[tf.Tensor]:
    """Each window combined in order, starting from the initial values.

    What lies in the padding does not count, as in XLA: it is neutral, for a region that is one operation. For others it
    is the initial values, as the specification says, which are neutral in all programs that mean something.
    """
    between = [n - 1 for n in window.base_dilation]
    fillers = initial if kind is None else [tf.constant(neutral(kind, x.dtype), x.dtype) for x in operands]
    values = [pad(x, i, window.low, window.high, between) for x, i in zip(operands, fillers, strict=True)]
    for axis, length in enumerate(window.size):
        dilation, stride = window.dilation[axis], window.stride[axis]
        values = _along(combine, values, axis, length=length, dilation=dilation, stride=stride)
    if kind is not None and is_identity_of(kind, initial[0]):
        return values
    start = [tf.broadcast_to(i, as_shape(sizes(v))) for i, v in zip(initial, values, strict=True)]
    return combine(start, values)


def _overlap_little(window: Window) -> bool:
    """Whether no element lies in more than four windows.

    Compiled, XLA makes one loop of such and of what they take, in less time than it has for a pool. What lies in more
    windows it would compute again for each.
    """
    return prod(-(-length // stride) for length, stride in zip(window.size, window.stride, strict=True)) <= 4


def _along(
    combine: Combine, values: Sequence[tf.Tensor], axis: int, *, length: int, dilation: int, stride: int
) -> list[tf.Tensor]:
    """Windows along one axis, at every stride-th place."""
    values = list(values)
    size = sizes(values[0])[axis]
    reach = (length - 1) * dilation
    places = size - reach
    if isinstance(places, int) and places <= 0:
        return [_part(x, axis, 0, 0, 1) for x in values]
    if length <= 4 and stride > 1:
        parts = [[_part(x, axis, i * dilation, i * dilation + places, stride) for x in values] for i in range(length)]
        return _in_order(combine, parts)
    span, doubled, covered, parts = 1, values, 0, []
    while span <= length:
        if length & span:
            parts.append([_part(x, axis, covered * dilation, covered * dilation + places, stride) for x in doubled])
            covered += span
        if 2 * span <= length:
            shift = span * dilation
            usable = sizes(doubled[0])[axis] - shift
            doubled = combine(
                [_part(x, axis, 0, usable, 1) for x in doubled],
                [_part(x, axis, shift, shift + usable, 1) for x in doubled],
            )
        span *= 2
    return _in_order(combine, parts)


def _in_order(combine: Combine, parts: Sequence[list[tf.Tensor]]) -> list[tf.Tensor]:
    result, *others = parts
    for other in others:
        result = combine(result, other)
    return result


def _part(operand: tf.Tensor, axis: int, start: int, limit: int | tf.Tensor, stride: int) -> tf.Tensor:
    if start == 0 and stride == 1 and isinstance(limit, int) and operand.shape[axis] == limit:
        return operand
    index = [slice(None)] * operand.shape.rank
    index[axis] = slice(start, limit, stride)
    return operand[tuple(index)]


def _cumulative(kind: str, operand: tf.Tensor, initial: tf.Tensor, window: Window) -> tf.Tensor | None:
    """A cumulative sum or product: windows as long as one dimension that all start, or all end, outside."""
    axes = [i for i, length in enumerate(window.size) if length != 1]
    if kind not in CUMULATIVE or operand.dtype not in CUMULATIVE_DTYPES or len(axes) != 1 or not window.is_plain():
        return None
    (axis,) = axes
    rest = window.size[axis] - 1
    others = [window.low[i] == window.high[i] == 0 for i in range(len(window.size)) if i != axis]
    forward, backward = ((window.low[axis], window.high[axis]) == ends for ends in ((rest, 0), (0, rest)))
    if operand.shape[axis] != window.size[axis] or set(window.stride) != {1} or not all(others):
        return None
    if not (forward or backward) or not is_identity_of(kind, initial):
        return None
    return CUMULATIVE[kind](operand, axis=axis, reverse=backward)


def _pooled_dimensions(operand: tf.Tensor, window: Window) -> tuple[int, int] | None:
    """The two dimensions of an array of four that windows extend over, where the others are untouched."""
    if operand.shape.rank != 4 or not window.is_plain() or operand.dtype not in POOLED_DTYPES:
        return None
    touched = [i for i in range(4) if (window.size[i], window.stride[i], window.low[i], window.high[i]) != (1, 1, 0, 0)]
    if (
        len(touched) != 2
        or any(window.size[i] < window.stride[i] for i in touched)
        or min(window.low + window.high) < 0
    ):
        return None
    return touched[0], touched[1]


def _pool_layout(pooled: tuple[int, int]) -> tuple[list[int], list[int]]:
    """The order that puts the pooled dimensions second and third, and its inverse."""
    first, last = (i for i in range(4) if i not in pooled)
    order = [first, *pooled, last]
    return order, [order.index(i) for i in range(4)]


def _as_same(operand: tf.Tensor, window: Window, pooled: tuple[int, int]) -> bool:
    """Whether the padding is what TensorFlow calls SAME."""
    for axis in pooled:
        size = operand.shape[axis]
        if size is None:
            return False
        total = max((-(-size // window.stride[axis]) - 1) * window.stride[axis] + window.size[axis] - size, 0)
        if (window.low[axis], window.high[axis]) != (total // 2, total - total // 2):
            return False
    return True


def _max_pool(kind: str, operand: tf.Tensor, initial: tf.Tensor, window: Window) -> tf.Tensor | None:
    """A maximum over two dimensions of four, from the least value: MaxPool, which has the least finite one for -inf.

    So no window may lie outside.
    """
    pooled = _pooled_dimensions(operand, window)
    if kind != "maximum" or pooled is None or not is_identity_of(kind, initial):
        return None
    if any(max(window.low[i], window.high[i]) >= window.size[i] for i in pooled):
        return None
    order, back = _pool_layout(pooled)
    padding = "VALID"
    if any(window.low + window.high):
        if _as_same(operand, window, pooled):
            padding = "SAME"
        else:
            operand = pad(operand, tf.constant(smallest(operand.dtype), operand.dtype), window.low, window.high)
    size, stride = ([lengths[i] for i in pooled] for lengths in (window.size, window.stride))
    return _in_layout(lambda x: tf.nn.max_pool2d(x, size, stride, padding), operand, order, back)


def _sum_pool(kind: str, operand: tf.Tensor, initial: tf.Tensor, window: Window) -> tf.Tensor | None:
    """A sum over two dimensions of four: AvgPool times the number of elements; of 32 bits, where it is as accurate."""
    pooled = _pooled_dimensions(operand, window)
    if kind != "add" or pooled is None or operand.dtype != tf.float32 or not is_identity_of(kind, initial):
        return None
    order, back = _pool_layout(pooled)
    operand = pad(operand, initial, window.low, window.high)
    size, stride = ([lengths[i] for i in pooled] for lengths in (window.size, window.stride))
    average = _in_layout(lambda x: tf.nn.avg_pool2d(x, size, stride, "VALID"), operand, order, back)
    return average * tf.constant(size[0] * size[1], operand.dtype)


def _in_layout(
    pool: Callable[[tf.Tensor], tf.Tensor], operand: tf.Tensor, order: list[int], back: list[int]
) -> tf.Tensor:
    if order == [0, 1, 2, 3]:
        return pool(operand)
    return tf.transpose(pool(tf.transpose(operand, order)), back)
