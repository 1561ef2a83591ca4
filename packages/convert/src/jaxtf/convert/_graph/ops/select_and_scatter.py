"""Select and scatter: the gradient of a pool."""

from __future__ import annotations

import itertools

import numpy as np
import tensorflow as tf

from jaxtf.convert._graph._support import BINARY, MOVED, Size, as_shape, pad, refuse, sizes, typed
from jaxtf.convert._graph.ops.windowed import Window, extent, refuse_many_dimensions
from jaxtf.convert._graph.ops.windows import window_of
from jaxtf.convert._graph.registry import Bound, translates
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
    places = [range(n) for n in window.size]
    inside = _inside(operand, window)
    outer = sizes(source)
    best, chosen = None, tf.zeros(as_shape(outer), tf.int32)
    padded = pad(operand, tf.zeros([], operand.dtype), window.low, window.high)
    found = None
    for number, offset in enumerate(itertools.product(*places)):
        value, is_inside = (_at(x, offset, window, outer) for x in (padded, inside))
        if best is None:
            best, found = value, is_inside
            continue
        # Not as the negation of what is taken: TensorFlow makes x < y of not (x >= y), which is another thing for NaN.
        (keeps,) = bound.regions[0](best, value)
        stays = tf.logical_or(tf.logical_and(found, keeps), tf.logical_not(is_inside))
        best, chosen = tf.where(stays, best, value), tf.where(stays, chosen, number)
        found = tf.logical_or(found, is_inside)
    result = tf.fill(as_shape(sizes(operand)), initial)
    neutral = _neutral(bound, kind, operand.dtype)
    for number, offset in enumerate(itertools.product(*places)):
        part = tf.where(tf.equal(chosen, number), source, neutral)
        result = BINARY[kind](result, _spread(part, neutral, offset, window, sizes(operand)))
    return result


def _inside(operand: tf.Tensor, window: Window) -> tf.Tensor:
    """Which elements of the padded operand are its own."""
    own = tf.ones(as_shape(sizes(operand)), tf.bool)
    return pad(own, typed(False, tf.bool), window.low, window.high)


def _at(padded: tf.Tensor, offset: tuple[int, ...], window: Window, outer: list[Size]) -> tf.Tensor:
    """Of every window the element at an offset."""
    extents = [extent(n, s) for n, s in zip(outer, window.stride, strict=True)]
    return padded[tuple(slice(o, o + e, s) for o, e, s in zip(offset, extents, window.stride, strict=True))]


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


def _neutral(bound: Bound, kind: str, dtype: tf.DType) -> tf.Tensor:
    if kind not in ("add", "or"):
        refuse(bound, f"scattering by {kind}")
    return tf.zeros([], dtype)
