"""Operations that make a tensor from sizes: filled, counted, encoded."""

from __future__ import annotations

import operator
from typing import Any

import tensorflow as tf

from jaxtf.calltf._interpreter import Interpreter
from jaxtf.calltf._jax import is_symbolic
from jaxtf.calltf._operations.conditions import is_within, not_negative
from jaxtf.calltf._operations.table import INTEGERS, moving, rule
from jaxtf.calltf._symbolic_values import Value, array_of, decided, same


@rule("Fill")
def fill(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """A known shape."""
    shape = i.known(op, inputs, 0)
    not_negative(i, op, shape)
    [tensor] = i.compiled(op, inputs, (0,))
    return [i.value(tensor, tuple(shape), moving(i, op, inputs, (1,)) if inputs[0].is_constant else None)]


@rule("Range")
def range_(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """Integers in known steps: 0, 1, 2, ... as often as there are, then multiplied and added."""
    dtype = op.outputs[0].dtype
    if dtype not in INTEGERS:
        raise i.refused(op, f"has elements of dtype {dtype.name},")
    start, limit, step = (i.known(op, inputs, index).item() for index in range(3))
    forward = decided(operator.gt, step, 0)
    if not forward and not decided(operator.lt, step, 0):
        raise i.refused(op, f"has a step {step}, which is not of one sign,")
    distance = limit - start if forward else start - limit
    for number in (start, limit, step):
        if not is_within(i, number):
            raise i.refused(op, f"has a bound {number} that may leave 32 bits,")
    not_negative(i, op, [distance])
    length = step if forward else -step
    count = distance // length  # as a size where it is one
    if not same(count * length, distance):
        count = (distance + length - 1) // length
    tensor = tf.cast(i.counted(count), dtype) * inputs[2].tensor + inputs[0].tensor
    known = None if is_symbolic(count) or count > 64 else array_of([start + step * k for k in range(count)], (count,))
    return [i.value(tensor, (count,), known)]


@rule("OneHot")
def one_hot(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """A known depth."""
    depth = i.known(op, inputs, 1).item()
    not_negative(i, op, [depth])
    shape = list(inputs[0].shape)
    axis = op.get_attr("axis")
    shape.insert(axis if axis >= 0 else len(shape), depth)
    tensors = [
        i.barrier(inputs[0].tensor),
        i.at_sample(i.known(op, inputs, 1), tf.int32),
        *(x.tensor for x in inputs[2:]),
    ]
    [tensor] = i.emit(op, tensors)
    return [i.value(tensor, shape)]
