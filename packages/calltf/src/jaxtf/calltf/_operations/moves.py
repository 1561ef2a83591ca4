"""Operations that move or repeat the elements of one operand: reshapes, transposes, paddings."""

from __future__ import annotations

import operator
from typing import Any

import tensorflow as tf

from jaxtf.calltf._interpreter import Interpreter
from jaxtf.calltf._jax import is_symbolic
from jaxtf.calltf._operations.conditions import broadcast, is_one, not_negative, require_same
from jaxtf.calltf._operations.table import moving, rule, type_attribute
from jaxtf.calltf._symbolic_values import Value, array_of, decided, larger, product


@rule("Reshape")
def reshape(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """The number of elements stays; -1 is what remains."""
    x, wanted = inputs[0], list(i.known(op, inputs, 1))
    total = product(x.shape)
    unknown = [place for place, size in enumerate(wanted) if not is_symbolic(size) and size == -1]
    if unknown:
        rest = product(size for place, size in enumerate(wanted) if place not in unknown)
        i.require(op, rest, ">=", 1, f"infers a size from the shape {wanted}")
        wanted[unknown[0]] = total // larger(rest, 1)
    not_negative(i, op, wanted)
    i.require(op, product(wanted), "==", total, f"makes the shape {wanted} of {list(x.shape)}")
    i.remember(wanted)
    known = array_of(x.known.flat, [int(size) for size in wanted]) if x.known is not None else None
    [tensor] = i.emit(
        op, [x.tensor, i.at_sample(array_of(wanted, (len(wanted),)), tf.int64)], Tshape=type_attribute(tf.int64)
    )
    return [i.value(tensor, wanted, known)]


@rule("ExpandDims")
def expand_dims(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """One more axis, of size 1."""
    [axis] = i.integers(op, inputs, 1)
    shape = list(inputs[0].shape)
    shape.insert(axis if axis >= 0 else axis + len(shape) + 1, 1)
    [tensor] = i.compiled(op, inputs, (1,))
    return [i.value(tensor, shape, moving(i, op, inputs, (0,)))]


@rule("Squeeze")
def squeeze(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """Named axes; without names those of size 1, which a symbolic size may be."""
    shape = inputs[0].shape
    axes = [axis % len(shape) for axis in op.get_attr("squeeze_dims")]
    if not axes:
        for size in shape:
            if is_symbolic(size) and not decided(operator.gt, size, 1):
                raise i.refused(op, f"drops an axis of size {size} where it is 1,")
        axes = [axis for axis, size in enumerate(shape) if is_one(size)]
    for axis in axes:
        i.require(op, shape[axis], "==", 1, f"drops axis {axis} of {list(shape)}")
    [tensor] = i.compiled(op, inputs)
    kept = [size for axis, size in enumerate(shape) if axis not in axes]
    return [i.value(tensor, kept, moving(i, op, inputs, (0,)))]


@rule("Transpose")
def transpose(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """In an order that is the same for all sizes."""
    order = i.integers(op, inputs, 1)
    [tensor] = i.compiled(op, inputs, (1,))
    return [i.value(tensor, [inputs[0].shape[axis] for axis in order], moving(i, op, inputs, (0,)))]


@rule("ReverseV2", "Roll")
def along_axes(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """The shape stays."""
    x, place = inputs[0], len(inputs) - 1
    i.integers(op, inputs, place)
    i.remember(2 * size for size in x.shape)
    [tensor] = i.compiled(op, inputs, (place,))
    return [i.value(tensor, x.shape, moving(i, op, inputs, (0,)))]


@rule("Tile")
def tile(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """Each size times its multiple."""
    multiples = i.known(op, inputs, 1)
    not_negative(i, op, multiples)
    [tensor] = i.compiled(op, inputs, (1,))
    shape = [size * multiple for size, multiple in zip(inputs[0].shape, multiples, strict=True)]
    return [i.value(tensor, shape)]


@rule("BroadcastTo")
def broadcast_to(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """A known shape, that of the operand broadcast."""
    shape = tuple(i.known(op, inputs, 1))
    not_negative(i, op, shape)
    require_same(i, op, broadcast(i, op, [inputs[0].shape, shape]), shape)
    [tensor] = i.compiled(op, inputs, (1,))
    return [i.value(tensor, shape)]


@rule("Pad", "PadV2")
def pad(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """Known paddings."""
    paddings = i.known(op, inputs, 1)
    not_negative(i, op, paddings.flat)
    [tensor] = i.compiled(op, inputs, (1,))
    shape = [low + size + high for size, (low, high) in zip(inputs[0].shape, paddings, strict=True)]
    return [i.value(tensor, shape)]
