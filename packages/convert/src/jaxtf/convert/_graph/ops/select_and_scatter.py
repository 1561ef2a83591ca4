"""Select and scatter: the gradient of a pool."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import tensorflow as tf

from jaxtf.convert._graph._support import BINARY, MOVED, Size, as_shape, pad, refuse, sizes, typed
from jaxtf.convert._graph.ops.windowed import Window, extent, refuse_many_dimensions
from jaxtf.convert._graph.ops.windows import window_of
from jaxtf.convert._graph.registry import Bound, translates
from jaxtf.convert._graph.strided import strided
from jaxtf.serialization.interop import single_operation

# One slice is emitted for each element of a window.
MANY_ELEMENTS = 1024


@translates("stablehlo.select_and_scatter", computed_in=MOVED)
def select_and_scatter(bound: Bound, operand: tf.Tensor, source: tf.Tensor, initial: tf.Tensor) -> tf.Tensor:
    """Each element of the source added where the window of the operand has its selected, first such, element.

    The elements of a window are compared in row-major order, without its padding.

    Differs: JAX writes the gradient of a pool otherwise for CPU, with padding that counts as -inf: of padded windows
    with a NaN, or of nothing but -inf, the padding may get there what an element gets here.
    Source: StableHLO specification, `select_and_scatter`.
    """
    refuse_many_dimensions(bound, operand)
    window = window_of(bound, operand.shape.rank)
    kind = single_operation(bound.operation.regions[1])
    if kind is None:
        refuse(bound, "the region that scatters is not one operation, such as add")
    if int(np.prod(window.size)) > MANY_ELEMENTS:
        refuse(bound, f"windows of more than {MANY_ELEMENTS} elements")
    chosen = _chosen(bound, operand, window, sizes(source))
    neutral = _neutral(bound, kind, operand.dtype)
    result = tf.fill(as_shape(sizes(operand)), initial)
    parts = [tf.where(tf.equal(chosen, number), source, neutral) for number in range(int(np.prod(window.size)))]
    if window.size == window.stride:
        return BINARY[kind](result, _side_by_side(parts, neutral, window, sizes(operand)))
    for offset, part in zip(_offsets(window), parts, strict=True):
        result = BINARY[kind](result, _spread(part, neutral, offset, window, sizes(operand)))
    return result


def _offsets(window: Window) -> Iterator[tuple[int, ...]]:
    """The places in a window, in row-major order."""
    return itertools.product(*map(range, window.size))


def _chosen(bound: Bound, operand: tf.Tensor, window: Window, outer: list[Size]) -> tf.Tensor:
    """The number of the element that each window selects, in row-major order, without its padding."""
    best, chosen, found = None, tf.zeros(as_shape(outer), tf.int32), None
    padded = pad(operand, tf.zeros([], operand.dtype), window.low, window.high)
    inside = _inside(operand, window) if {*window.low, *window.high} != {0} else None
    for number, offset in enumerate(_offsets(window)):
        value = _at(padded, offset, window, outer)
        is_inside = None if inside is None else _at(inside, offset, window, outer)
        if best is None:
            best, found = value, is_inside
            continue
        # Not as the negation of what is taken: TensorFlow makes x < y of not (x >= y), which is another thing for NaN.
        (stays,) = bound.regions[0](best, value)
        if is_inside is not None:
            stays = tf.logical_or(tf.logical_and(found, stays), tf.logical_not(is_inside))
            found = tf.logical_or(found, is_inside)
        best, chosen = tf.where(stays, best, value), tf.where(stays, chosen, number)
    return chosen


def _inside(operand: tf.Tensor, window: Window) -> tf.Tensor:
    """Which elements of the padded operand are its own."""
    own = tf.ones(as_shape(sizes(operand)), tf.bool)
    return pad(own, typed(False, tf.bool), window.low, window.high)


def _at(padded: tf.Tensor, offset: tuple[int, ...], window: Window, outer: list[Size]) -> tf.Tensor:
    """Of every window the element at an offset."""
    extents = [extent(n, s) for n, s in zip(outer, window.stride, strict=True)]
    return strided(padded, [slice(o, o + e, s) for o, e, s in zip(offset, extents, window.stride, strict=True)])


def _spread(
    part: tf.Tensor, neutral: tf.Tensor, offset: tuple[int, ...], window: Window, shape: list[Size]
) -> tf.Tensor:
    """The inverse of `_at`: each element in its place of the operand, the neutral one elsewhere."""
    low = [o - before for o, before in zip(offset, window.low, strict=True)]
    counts = sizes(part)
    high = [
        size - below - extent(n, stride)
        for size, below, n, stride in zip(shape, low, counts, window.stride, strict=True)
    ]
    return pad(part, neutral, low, high, [stride - 1 for stride in window.stride])


def _side_by_side(parts: list[tf.Tensor], neutral: tf.Tensor, window: Window, shape: list[Size]) -> tf.Tensor:
    """What all parts give together where windows lie side by side, so that each has places of its own."""
    counts = sizes(parts[0])
    for axis in reversed(range(len(counts))):
        length = window.size[axis]
        if length > 1:
            counts = [n * length if i == axis else n for i, n in enumerate(counts)]
            rows = [parts[i : i + length] for i in range(0, len(parts), length)]
            parts = [tf.reshape(tf.stack(row, axis + 1), as_shape(counts)) for row in rows]
    (whole,) = parts
    high = [size + low - n for size, low, n in zip(shape, window.low, counts, strict=True)]
    return pad(whole, neutral, [-low for low in window.low], high)


def _neutral(bound: Bound, kind: str, dtype: tf.DType) -> tf.Tensor:
    if kind not in ("add", "or"):
        refuse(bound, f"scattering by {kind}")
    return tf.zeros([], dtype)
