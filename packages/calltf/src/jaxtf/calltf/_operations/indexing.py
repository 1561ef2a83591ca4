"""Operations with indices, which are data, or constants that must be of elements: gathers, scatters, segments."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from jaxtf.calltf._interpreter import Interpreter
from jaxtf.calltf._operations.conditions import constant_size, indices_within, not_negative, require_same
from jaxtf.calltf._operations.table import moving, rule
from jaxtf.calltf._symbolic_values import Shape, Value


@rule("GatherV2", "Gather", "ResourceGather")
def gather(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """Indices that are constants require the size."""
    x, indices = inputs[0].shape, inputs[1].shape
    axis = i.integers(op, inputs, 2)[0] % len(x) if op.type == "GatherV2" else 0
    batch = op.get_attr("batch_dims") if op.type != "Gather" else 0
    batch = batch if batch >= 0 else batch + len(indices)
    require_same(i, op, x[:batch], indices[:batch])
    _not_empty(i, op, x[axis : axis + 1])
    indices_within(i, op, inputs[1], x[axis : axis + 1])
    shape = (*x[:axis], *indices[batch:], *x[axis + 1 :])
    if op.type == "ResourceGather":
        return [i.value(tf.gather(inputs[0].tensor, inputs[1].tensor, batch_dims=batch), shape)]
    [tensor] = i.compiled(op, inputs, (2,) if op.type == "GatherV2" else ())
    return [i.value(tensor, shape, moving(i, op, inputs, (0,)))]


def _not_empty(i: Interpreter, op: Any, sizes: Shape) -> None:
    """Requires that there are elements to take: StableHLO takes none only of none."""
    for size in sizes:
        i.require(op, size, ">=", 1, f"takes elements of {size}")


@rule("GatherNd")
def gather_nd(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """The last axis of the indices is as long as an index; indices that are constants require the sizes."""
    x, indices = inputs[0].shape, inputs[1].shape
    depth = int(constant_size(i, op, indices[-1]))
    _not_empty(i, op, x[:depth])
    _places_within(i, op, inputs[1], x[:depth])
    [tensor] = i.compiled(op, inputs)
    return [i.value(tensor, (*indices[:-1], *x[depth:]))]


def _places_within(i: Interpreter, op: Any, indices: Value, sizes: Shape) -> None:
    """Requires constant indices to be of elements, where TensorFlow does not ignore others."""
    if sizes and op.get_attr("bad_indices_policy") != b"IGNORE":
        indices_within(i, op, indices, sizes)


@rule("ScatterNd")
def scatter_nd(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """A known shape; indices that are constants require its sizes."""
    shape = tuple(i.known(op, inputs, 2))
    not_negative(i, op, shape)
    indices, updates = inputs[0].shape, inputs[1].shape
    depth = int(constant_size(i, op, indices[-1]))
    require_same(i, op, updates, (*indices[:-1], *shape[depth:]))
    _places_within(i, op, inputs[0], shape[:depth])
    [tensor] = i.compiled(op, inputs, (2,))
    return [i.value(tensor, shape)]


@rule(*(f"TensorScatter{what}" for what in ("Update", "Add", "Sub", "Max", "Min")))
def tensor_scatter(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """The shape is that of the first operand; indices that are constants require its sizes."""
    x, indices, updates = (value.shape for value in inputs)
    depth = int(constant_size(i, op, indices[-1]))
    require_same(i, op, updates, (*indices[:-1], *x[depth:]))
    _places_within(i, op, inputs[1], x[:depth])
    [tensor] = i.compiled(op, inputs)
    return [i.value(tensor, x)]


@rule(*(f"UnsortedSegment{what}" for what in ("Sum", "Max", "Min", "Prod")))
def unsorted_segments(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """A known number of segments; numbers of segments that are constants require it."""
    data, ids = inputs[0].shape, inputs[1].shape
    require_same(i, op, data[: len(ids)], ids)
    count = i.known(op, inputs, 2).item()
    not_negative(i, op, [count])
    indices_within(i, op, inputs[1], (count,), dropped_below=True)
    [tensor] = i.compiled(op, inputs, (2,))
    return [i.value(tensor, (count, *data[len(ids) :]))]
