"""Operations along axes: reductions, running sums, sorts, segments."""

import numpy as np
import tensorflow as tf

from .operation import NUMBERS, Operation, of

INDICES = (tf.int32, tf.int64)


@of("All", "Any", "Max", "Mean", "Min", "Prod", "Sum")
def reductions(name, d):
    shape = d.shape(0, 4)
    axes = d.axes(shape)
    dtype = "bool" if name[0] == "A" else d.one_of(*NUMBERS)
    axis = axes[0] if len(axes) == 1 and d.chance() else axes
    return Operation(name, [d.operand(shape, dtype), d.index(axis)], {"keep_dims": d.chance()})


@of("ArgMax", "ArgMin")
def places(name, d):
    shape = d.shape(1)
    return Operation(name, [d.operand(shape), d.index(d.axis(shape))], {"output_type": d.one_of(*INDICES)})


@of("Cumprod", "Cumsum")
def running(name, d):
    shape = d.shape(1)
    attributes = {"exclusive": d.chance(), "reverse": d.chance()}
    return Operation(name, [d.operand(shape, d.one_of("float32", "int32")), d.index(d.axis(shape))], attributes)


@of("LogSoftmax", "Softmax")
def softmax(name, d):
    return Operation(name, [d.operand(d.shape(1))])


@of("TopKV2")
def largest(name, d):
    shape = d.shape(1)
    return Operation(name, [d.operand(shape, d.one_of("float32", "int32")), d.fixed(d.size(0, shape[-1]))])


@of("LowerBound", "UpperBound")
def bounds(name, d):
    rows, count, sought = d.size(), d.size(1, 4), d.size()
    in_order = d.made(lambda: np.sort(d.numbers((rows, count), "int32")))
    return Operation(name, [in_order, d.operand((rows, sought), "int32")], {"out_type": d.one_of(*INDICES)})


@of("UnsortedSegmentMax", "UnsortedSegmentMin", "UnsortedSegmentProd", "UnsortedSegmentSum")
def segments(name, d):
    """Also what is in no segment, on either side."""
    shape = d.shape(1)
    count = d.size(1, 4)
    ids = d.operand(shape[: d.size(0, len(shape))], d.one_of("int32", "int64"), -1, count - 1 + d.chance(4))
    return Operation(name, [d.operand(shape, d.one_of("float32", "int32")), ids, d.index(count)])
