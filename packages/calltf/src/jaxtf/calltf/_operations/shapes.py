"""Operations whose results are shapes, as values."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from jaxtf.calltf._interpreter import Interpreter
from jaxtf.calltf._operations.conditions import broadcast, is_one
from jaxtf.calltf._operations.table import rule
from jaxtf.calltf._symbolic_values import Value, array_of, product


@rule("Shape", "ShapeN")
def shape_of(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """Sizes become values that the program computes."""
    results = []
    for value, output in zip(inputs, op.outputs, strict=True):
        known = array_of(value.shape, (len(value.shape),))
        results.append(i.value(i.vector(known, output.dtype), known.shape, known))
    return results


@rule("Size")
def size_of(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """The number of elements."""
    known = array_of([product(inputs[0].shape)], ())
    return [i.value(i.vector(known, op.outputs[0].dtype), (), known)]


@rule("Rank")
def rank_of(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """Always a number."""
    rank = len(inputs[0].shape)
    return [i.value(tf.constant(rank), (), array_of([rank], ()))]


@rule("BroadcastArgs")
def broadcast_args(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """The common shape of two shapes."""
    shape = broadcast(i, op, [tuple(i.known(op, inputs, index)) for index in range(2)])
    known = array_of(shape, (len(shape),))
    return [i.value(i.vector(known, op.outputs[0].dtype), known.shape, known)]


@rule("BroadcastGradientArgs")
def broadcast_gradient_args(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """The axes that each operand was broadcast along: those where it has the number 1.

    TensorFlow also gives an axis where both have 1; a sum along it changes nothing.
    """
    shapes = [tuple(i.known(op, inputs, index)) for index in range(2)]
    broadcast(i, op, shapes)
    rank = max(map(len, shapes))
    padded = [(None,) * (rank - len(shape)) + shape for shape in shapes]
    results = []
    for own, other in (padded, padded[::-1]):
        axes = [axis for axis in range(rank) if own[axis] is None or (is_one(own[axis]) and other[axis] is not None)]
        results.append(
            i.value(tf.constant(axes, op.outputs[0].dtype, [len(axes)]), (len(axes),), array_of(axes, (len(axes),)))
        )
    return results


@rule("ConcatOffset")
def concat_offset(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """Where each operand of a concatenation begins in the result."""
    [axis] = i.integers(op, inputs, 0)
    results, start = [], 0
    for index in range(1, len(inputs)):
        shape = i.known(op, inputs, index)
        known = array_of([start if axis % len(shape) == place else 0 for place in range(len(shape))], shape.shape)
        results.append(i.value(i.vector(known, op.outputs[0].dtype), known.shape, known))
        start = start + shape[axis]
    return results


@rule("DynamicStitch")
def dynamic_stitch(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """Of known values only."""
    known = i.moved(op, inputs, range(len(inputs) // 2, len(inputs)))
    if known is None:
        raise i.refused(op, "has operands that are not known,")
    return [i.value(i.vector(known[0], op.outputs[0].dtype), known[0].shape, known[0])]
