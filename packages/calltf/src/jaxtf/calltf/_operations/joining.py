"""Operations that join operands, or split one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jaxtf.calltf._interpreter import Interpreter
from jaxtf.calltf._jax import is_symbolic
from jaxtf.calltf._operations.conditions import not_negative, require_same
from jaxtf.calltf._operations.table import moving, rule
from jaxtf.calltf._symbolic_values import Known, Value, array_of


@rule("ConcatV2")
def concat(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """Sizes of the axis are added, the others equal."""
    *parts, _ = inputs
    [axis] = i.integers(op, inputs, len(parts))
    axis %= len(parts[0].shape)
    shape = list(parts[0].shape)
    for part in parts[1:]:
        require_same(i, op, shape[:axis] + shape[axis + 1 :], part.shape[:axis] + part.shape[axis + 1 :])
        shape[axis] = shape[axis] + part.shape[axis]
    [tensor] = i.compiled(op, inputs, (len(parts),))
    return [i.value(tensor, shape, moving(i, op, inputs, range(len(parts))))]


@rule("Pack")
def pack(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """Operands of one shape, along a new axis."""
    for value in inputs[1:]:
        require_same(i, op, inputs[0].shape, value.shape)
    shape = list(inputs[0].shape)
    axis = op.get_attr("axis")
    shape.insert(axis if axis >= 0 else axis + len(shape) + 1, len(inputs))
    [tensor] = i.compiled(op, inputs)
    return [i.value(tensor, shape, moving(i, op, inputs, range(len(inputs))))]


@rule("Unpack")
def unpack(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """Along an axis of as many elements as there are results."""
    shape = list(inputs[0].shape)
    size, count = shape.pop(op.get_attr("axis")), len(op.outputs)
    i.require(op, size, "==", count, f"divides {size} into {count} parts")
    known: Sequence[Known | None] = i.moved(op, inputs, (0,)) or [None] * len(op.outputs)
    return [i.value(x, shape, elements) for x, elements in zip(i.compiled(op, inputs), known, strict=True)]


@rule("Split")
def split(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """Into equal parts."""
    [axis] = i.integers(op, inputs, 0)
    shape, parts = list(inputs[1].shape), len(op.outputs)
    part = shape[axis] // parts
    i.require(op, part * parts, "==", shape[axis], f"divides {shape[axis]} into {parts} parts")
    shape[axis] = part
    i.remember(part * place for place in range(parts))
    known: Sequence[Known | None] = i.moved(op, inputs, (1,)) or [None] * parts
    return [i.value(x, shape, elements) for x, elements in zip(i.compiled(op, inputs, (0,)), known, strict=True)]


@rule("SplitV")
def split_sizes(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """Into parts of known sizes; -1 is what remains."""
    [axis] = i.integers(op, inputs, 2)
    whole, sizes = inputs[0].shape[axis], list(i.known(op, inputs, 1))
    for place, size in enumerate(sizes):
        if not is_symbolic(size) and size == -1:
            sizes[place] = whole - sum(other for index, other in enumerate(sizes) if index != place)
    not_negative(i, op, sizes)
    i.require(op, sum(sizes), "==", whole, f"divides {whole} into {sizes}")
    i.remember(sum(sizes[:place]) for place in range(len(sizes)))
    tensors = [inputs[0].tensor, i.at_sample(array_of(sizes, (len(sizes),)), op.inputs[1].dtype), inputs[2].tensor]
    known: Sequence[Known | None] = i.moved(op, inputs, (0,)) or [None] * len(sizes)
    results = []
    for tensor, size, elements in zip(i.emit(op, tensors), sizes, known, strict=True):
        shape = list(inputs[0].shape)
        shape[axis] = size
        results.append(i.value(tensor, shape, elements))
    return results
