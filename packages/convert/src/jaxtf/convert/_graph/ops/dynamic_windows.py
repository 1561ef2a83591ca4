"""Reductions over windows whose lengths are known only at run time."""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf

from jaxtf.convert._graph._support import Size, as_shape, pad, refuse, sizes
from jaxtf.convert._graph.ops.dynamic import listed
from jaxtf.convert._graph.ops.reductions import Combine
from jaxtf.convert._graph.registry import Bound, translates


@translates("custom_call.stablehlo.dynamic_reduce_window")
def dynamic_reduce_window(bound: Bound, *operands: tf.Tensor) -> list[tf.Tensor]:
    """As `reduce_window`, with the windows as operands, whose lengths and paddings may be known only at run time.

    Differs: the initial values are combined more than once, which changes nothing if they are neutral.
    Source: StableHLO, experimental operations, `dynamic_reduce_window`.
    """
    *arrays, lengths, strides, base_dilations, dilations, padding = operands
    values, initial = arrays[: len(arrays) // 2], arrays[len(arrays) // 2 :]
    steps, between, gaps = (tf.get_static_value(x) for x in (strides, base_dilations, dilations))
    if steps is None or between is None or gaps is None:
        refuse(bound, "windows whose strides or dilations are known only at run time")
    body = bound["called_computations"][0]
    edges = listed(tf.reshape(padding, [-1]))

    def combine(left: Sequence[tf.Tensor], right: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        return bound.call(body, [*left, *right])

    values = [
        pad(x, i, edges[0::2], edges[1::2], [n - 1 for n in between]) for x, i in zip(values, initial, strict=True)
    ]
    for axis, length in enumerate(listed(lengths)):
        if not (isinstance(length, int) and length == 1):
            values = _along(combine, values, initial, axis, length=length, dilation=int(gaps[axis]))
        if steps[axis] != 1:
            values = [tf.gather(x, tf.range(0, sizes(x)[axis], steps[axis]), axis=axis) for x in values]
    return values


def _along(
    combine: Combine,
    values: Sequence[tf.Tensor],
    initial: Sequence[tf.Tensor],
    axis: int,
    *,
    length: Size,
    dilation: int,
) -> list[tf.Tensor]:
    """Windows at every place of one axis, by doubling; what lies outside is the initial value."""
    count, size = len(values), sizes(values[0])[axis]
    shapes = [x.shape for x in values]

    def shift_all(xs: Sequence[tf.Tensor], by: Size) -> list[tf.Tensor]:
        rank = xs[0].shape.rank
        amount = tf.minimum(by, size)
        low: list[Size] = [-amount if i == axis else 0 for i in range(rank)]
        high: list[Size] = [amount if i == axis else 0 for i in range(rank)]
        shifted = [pad(x, i, low, high) for x, i in zip(xs, initial, strict=True)]
        for x, shape in zip(shifted, shapes, strict=True):
            x.set_shape(shape)
        return shifted

    def step(span: tf.Tensor, covered: tf.Tensor, *state: tf.Tensor) -> list[tf.Tensor]:
        doubled, result = state[:count], state[count:]
        has = tf.not_equal(tf.bitwise.bitwise_and(tf.cast(length, tf.int32), span), 0)
        more = combine(result, shift_all(doubled, covered * dilation))
        result = tuple(tf.where(has, m, r) for m, r in zip(more, result, strict=True))
        covered = tf.where(has, covered + span, covered)
        return [span * 2, covered, *combine(doubled, shift_all(doubled, span * dilation)), *result]

    start = [tf.broadcast_to(i, as_shape(sizes(x))) for i, x in zip(initial, values, strict=True)]
    state = [tf.constant(1), tf.constant(0), *values, *start]
    done = tf.while_loop(lambda span, *_: span <= tf.cast(length, tf.int32), step, state)
    places = tf.maximum(size - (tf.cast(length, tf.int32) - 1) * dilation, 0)
    index = [slice(None)] * values[0].shape.rank
    index[axis] = slice(0, places)
    return [x[tuple(index)] for x in done[2 + count :]]
