"""Reductions over windows whose lengths or paddings are known only at run time."""

from __future__ import annotations

import tensorflow as tf

from jaxtf.convert._graph._support import Size, refuse
from jaxtf.convert._graph.known import known_value
from jaxtf.convert._graph.ops.windowed import Window, kind_of, windowed
from jaxtf.convert._graph.ops.windows import special_form
from jaxtf.convert._graph.optimizer import computed_by_xla
from jaxtf.convert._graph.registry import Bound, translates


@translates("custom_call.stablehlo.dynamic_reduce_window")
def dynamic_reduce_window(bound: Bound, *operands: tf.Tensor) -> list[tf.Tensor]:
    """As `reduce_window`, with the windows as operands, whose lengths and paddings may be known only at run time.

    The function that combines is the region of the operation (`plan`).

    Source: StableHLO, experimental operations, `dynamic_reduce_window`.
    """
    *arrays, lengths, strides, base_dilations, dilations, padding = operands
    count = len(arrays) // 2
    steps, between, gaps = (known_value(x) for x in (strides, base_dilations, dilations))
    if steps is None or between is None or gaps is None:
        refuse(bound, "windows whose strides or dilations are known only at run time")
    edges = _listed(padding)
    stride, base, gap = (tuple(map(int, values)) for values in (steps, between, gaps))
    window = Window(tuple(_listed(lengths)), stride, base, gap, tuple(edges[0::2]), tuple(edges[1::2]))
    kind, special = kind_of(bound, arrays[0].dtype), None
    if kind is not None and not computed_by_xla(*arrays[:count]):
        special = special_form(bound, kind, arrays[0], arrays[count], window)
    return [special] if special is not None else windowed(bound, arrays[:count], arrays[count:], window)


def _listed(array: tf.Tensor) -> list[Size]:
    """The elements of an array of sizes, row by row: integers where the graph knows them, int32 scalars otherwise."""
    value = known_value(array)
    if value is not None:
        return [int(n) for n in value.flat]
    operation, inputs = array.op, list(array.op.inputs)
    if operation.type in ("Reshape", "ExpandDims", "Identity"):
        return _listed(inputs[0])
    if operation.type == "ConcatV2" and known_value(inputs[-1]) == 0:
        return [size for part in inputs[:-1] for size in _listed(part)]
    if operation.type == "Pack" and operation.get_attr("axis") == 0:
        return [size for part in inputs for size in _listed(part)]
    count = array.shape.num_elements()
    assert count is not None, "an array of sizes has one for each dimension"
    flat = tf.cast(tf.reshape(array, [-1]), tf.int32)
    return [flat[i] for i in range(count)]
