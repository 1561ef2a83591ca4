"""Reductions over windows whose lengths or paddings are known only at run time."""

from __future__ import annotations

import tensorflow as tf

from jaxtf.convert._graph._support import refuse
from jaxtf.convert._graph.ops.dynamic import listed
from jaxtf.convert._graph.ops.windows import Window, windowed
from jaxtf.convert._graph.registry import Bound, translates


@translates("custom_call.stablehlo.dynamic_reduce_window")
def dynamic_reduce_window(bound: Bound, *operands: tf.Tensor) -> list[tf.Tensor]:
    """As `reduce_window`, with the windows as operands, whose lengths and paddings may be known only at run time.

    The function that combines is the region of the operation (`plan`).

    Source: StableHLO, experimental operations, `dynamic_reduce_window`.
    """
    *arrays, lengths, strides, base_dilations, dilations, padding = operands
    count = len(arrays) // 2
    steps, between, gaps = (tf.get_static_value(x) for x in (strides, base_dilations, dilations))
    if steps is None or between is None or gaps is None:
        refuse(bound, "windows whose strides or dilations are known only at run time")
    edges = listed(tf.reshape(padding, [-1]))
    stride, base, gap = (tuple(map(int, values)) for values in (steps, between, gaps))
    window = Window(tuple(listed(lengths)), stride, base, gap, tuple(edges[0::2]), tuple(edges[1::2]))
    return windowed(bound, arrays[:count], arrays[count:], window)
