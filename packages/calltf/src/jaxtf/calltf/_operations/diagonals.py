"""Main diagonals of square matrices. TensorFlow compiles them to gathers of constant indices, other programs here."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from jaxtf.calltf._interpreter import Interpreter
from jaxtf.calltf._operations.conditions import require_same
from jaxtf.calltf._operations.table import rule
from jaxtf.calltf._symbolic_values import Value, same


@rule("MatrixDiagV3")
def diagonal(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """A square matrix, the diagonal the main one."""
    x = inputs[0]
    _main_alone(i, op, inputs, 1)
    if [i.integers(op, inputs, place) for place in (2, 3)] != [[-1], [-1]]:
        raise i.refused(op, "has another number of rows or columns than its diagonal,")
    on = _on_diagonal(i, x.shape[-1])
    tensor = tf.where(on, x.tensor[..., tf.newaxis], inputs[4].tensor)
    return [i.value(tensor, (*x.shape, x.shape[-1]))]


@rule("MatrixDiagPartV3")
def diagonal_part(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """The main diagonal of a square matrix."""
    x = inputs[0]
    _main_alone(i, op, inputs, 1)
    _square(i, op, x)
    on = _on_diagonal(i, x.shape[-1])
    if x.tensor.dtype == tf.bool:
        tensor = tf.reduce_any(tf.logical_and(on, x.tensor), -1)
    else:
        tensor = tf.reduce_sum(tf.where(on, x.tensor, tf.zeros([], x.tensor.dtype)), -1)
    return [i.value(tensor, x.shape[:-1])]


@rule("MatrixSetDiagV3")
def set_diagonal(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """The main diagonal of a square matrix is replaced."""
    x = inputs[0]
    _main_alone(i, op, inputs, 2)
    _square(i, op, x)
    require_same(i, op, inputs[1].shape, x.shape[:-1])
    tensor = tf.where(_on_diagonal(i, x.shape[-1]), inputs[1].tensor[..., tf.newaxis], x.tensor)
    return [i.value(tensor, x.shape)]


def _main_alone(i: Interpreter, op: Any, inputs: list[Value], place: int) -> None:
    if set(i.integers(op, inputs, place)) != {0}:
        raise i.refused(op, f"is of the diagonals {i.integers(op, inputs, place)}, not of the main one,")


def _square(i: Interpreter, op: Any, x: Value) -> None:
    *_, rows, columns = x.shape
    if not same(rows, columns):
        raise i.refused(op, f"is of a matrix that is not square, {list(x.shape)},")


def _on_diagonal(i: Interpreter, size: Any) -> Any:
    places = i.counted(size)
    return places[:, tf.newaxis] == places
