"""Lists of tensors, as loops keep them."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from jaxtf.calltf._interpreter import Interpreter
from jaxtf.calltf._jax import is_symbolic
from jaxtf.calltf._operations.conditions import indices_within, not_negative, require_same
from jaxtf.calltf._operations.table import rule, type_attribute
from jaxtf.calltf._symbolic_values import Known, ListOf, Shape, Value, array_of


def list_like(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    items = next((value.items for value in inputs if value.items and value.items.element is not None), inputs[0].items)
    [tensor] = i.emit(op, [value.tensor for value in inputs])
    return [Value(tensor, (), None, ListOf(items.count, items.element, None, False) if items else None)]


def _element(known: Known | None) -> Shape | None:
    """The shape that the elements are declared to have; None if it is not all known."""
    if known is None or not known.ndim or any(not is_symbolic(size) and size < 0 for size in known):
        return None
    return tuple(known)


@rule("TensorListReserve", "EmptyTensorList")
def list_reserve(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """The number of elements must be known, and bounded."""
    count = i.known(op, inputs, 1).item()
    if not is_symbolic(count) and count == -1:
        raise i.refused(
            op, "makes a list without a bound on its elements,", "give the maximum_iterations of the tf.while_loop"
        )
    not_negative(i, op, [count])
    shape = inputs[0].known
    tensors = [
        i.at_sample(shape, tf.int32) if shape is not None else tf.constant(-1),
        i.at_sample(i.known(op, inputs, 1), tf.int32),
    ]
    [tensor] = i.emit(op, tensors, shape_type=type_attribute(tf.int32))
    return [Value(tensor, (), None, ListOf(count, _element(shape)))]


@rule("TensorListFromTensor")
def list_from_tensor(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """One for each row."""
    count, *shape = inputs[0].shape
    [tensor] = i.emit(
        op,
        [inputs[0].tensor, i.at_sample(array_of(shape, (len(shape),)), tf.int32)],
        shape_type=type_attribute(tf.int32),
    )
    return [Value(tensor, (), None, ListOf(count, tuple(shape), None, False))]


@rule("TensorListSetItem")
def list_set(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """One is replaced; a place that is a constant requires so many."""
    items = _items(i, op, inputs[0])
    _has_place(i, op, items)
    indices_within(i, op, inputs[1], (items.count,))
    if items.element is not None:
        require_same(i, op, items.element, inputs[2].shape)
    [tensor] = i.compiled(op, inputs)
    return [Value(tensor, (), None, ListOf(items.count, inputs[2].shape, None, False))]


@rule("TensorListPushBack")
def list_push(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """One more."""
    items = _items(i, op, inputs[0])
    _has_place(i, op, items)
    if items.element is not None:
        require_same(i, op, items.element, inputs[1].shape)
    if inputs[1].items is not None:
        raise i.refused(op, "has a list of lists,")
    [tensor] = i.compiled(op, inputs)
    return [Value(tensor, (), None, items.written(inputs[1]))]


def _items(i: Interpreter, op: Any, value: Value) -> ListOf:
    if value.items is None:
        raise i.refused(op, "has a list whose elements are not known,")
    return value.items


def _has_place(i: Interpreter, op: Any, items: ListOf) -> None:
    """Requires that there is an element to be read or written: XLA compiles no loop over nothing."""
    i.require(op, items.count, ">=", 1, f"is for an element of {items.count}", to_compile=True)


def _item_shape(i: Interpreter, op: Any, value: Value) -> Shape:
    shape = _items(i, op, value).element
    if shape is None:
        raise i.refused(op, "has a list whose elements have no known shape,")
    return shape


@rule("TensorListPopBack", "TensorListGetItem", "TensorListStack")
def list_read(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """One, or all of them; a place that is a constant requires so many."""
    shape = _item_shape(i, op, inputs[0])
    if op.type != "TensorListStack":
        _has_place(i, op, _items(i, op, inputs[0]))
    if op.type == "TensorListGetItem":
        indices_within(i, op, inputs[1], (_items(i, op, inputs[0]).count,))
    tensors = [value.tensor for value in inputs]
    tensors[-1] = i.at_sample(array_of(shape, (len(shape),)), tf.int32)
    written = i.emit(op, tensors)
    items = _items(i, op, inputs[0])
    if op.type == "TensorListPopBack":
        return [Value(written[0], (), None, items), i.value(written[1], shape, items.known)]
    known = items.known if op.type == "TensorListGetItem" else None
    full = (items.count, *shape) if op.type == "TensorListStack" else shape
    tensor = written[0]
    tensor.set_shape([i.number(size) for size in full])
    return [i.value(tensor, full, known)]


@rule("TensorListLength")
def list_length(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """Of a list that does not grow."""
    known = array_of([_items(i, op, inputs[0]).count], ())
    return [i.value(i.vector(known, tf.int32), (), known)]


@rule("TensorListElementShape")
def list_element_shape(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """As known."""
    shape = _item_shape(i, op, inputs[0])
    known = array_of(shape, (len(shape),))
    return [i.value(i.vector(known, op.outputs[0].dtype), known.shape, known)]
