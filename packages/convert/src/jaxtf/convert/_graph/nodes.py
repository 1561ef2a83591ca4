"""Operations of TensorFlow made with little Python: those that most of a graph consists of.

`tf.add` asks what its arguments are, converts them, infers attributes and asks tapes, which takes three times as long
as making the node (TensorFlow 2.21: 200 us against 26). Operands of a module are tensors of known dtypes, so that a
graph can be given the node at once. In eager mode, and where a tape records, it is `tf.add`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
import tensorflow as tf

from jaxtf.convert import _tf

__all__ = ["broadcast_to", "cast", "constant", "elementwise", "matmul", "reduction", "reshape", "select", "transpose"]

Function: TypeAlias = Callable[..., tf.Tensor]

_MATRICES = (tf.bfloat16, tf.float16, tf.float32, tf.float64, tf.int32, tf.int64, tf.complex64, tf.complex128)


def constant(value: np.ndarray[Any, Any]) -> tf.Tensor:
    """As `tf.constant` of an array."""
    if _tf.executing_eagerly():
        return tf.constant(value)
    held = tf.compat.v1.AttrValue(tensor=tf.make_tensor_proto(value))
    attributes = {"value": held.SerializeToString(), "dtype": _attribute(tf.as_dtype(held.tensor.dtype))}
    return _tf.new_node("Const", (), attributes)


def elementwise(op_type: str, function: Function) -> Function:
    """A function of tensors of one dtype that does what `function` does, by that operation."""

    def apply(*operands: tf.Tensor) -> tf.Tensor:
        made = _node(op_type, operands, ("T", operands[0].dtype))
        return function(*operands) if made is None else made

    return apply


def reduction(op_type: str, function: Callable[..., tf.Tensor]) -> Callable[..., tf.Tensor]:
    """A function of a tensor, axes (an int32 vector) and whether they are kept, that does what `function` does."""
    typed = op_type not in ("Any", "All")

    def apply(operand: tf.Tensor, axes: tf.Tensor, keepdims: bool = False) -> tf.Tensor:
        dtypes = [("T", operand.dtype)] if typed else []
        made = _node(op_type, (operand, axes), *dtypes, ("Tidx", tf.int32), ("keep_dims", keepdims))
        return function(operand, axes, keepdims) if made is None else made

    return apply


def reshape(operand: tf.Tensor, shape: tf.Tensor) -> tf.Tensor:
    """As `tf.reshape`; the shape is a tensor."""
    made = _node("Reshape", (operand, shape), ("T", operand.dtype), ("Tshape", shape.dtype))
    return tf.reshape(operand, shape) if made is None else made


def broadcast_to(operand: tf.Tensor, shape: tf.Tensor) -> tf.Tensor:
    """As `tf.broadcast_to`; the shape is a tensor."""
    made = _node("BroadcastTo", (operand, shape), ("T", operand.dtype), ("Tidx", shape.dtype))
    return tf.broadcast_to(operand, shape) if made is None else made


def transpose(operand: tf.Tensor, permutation: tf.Tensor) -> tf.Tensor:
    """As `tf.transpose`; the permutation is a tensor."""
    made = _node("Transpose", (operand, permutation), ("T", operand.dtype), ("Tperm", permutation.dtype))
    return tf.transpose(operand, permutation) if made is None else made


def select(condition: tf.Tensor, on_true: tf.Tensor, on_false: tf.Tensor) -> tf.Tensor:
    """As `tf.where` of three tensors."""
    made = _node("SelectV2", (condition, on_true, on_false), ("T", on_true.dtype))
    return tf.where(condition, on_true, on_false) if made is None else made


def cast(operand: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
    """As `tf.cast` between dtypes that differ."""
    made = _node("Cast", (operand,), ("SrcT", operand.dtype), ("DstT", dtype))
    return tf.cast(operand, dtype) if made is None else made


def matmul(left: tf.Tensor, right: tf.Tensor, transpose_a: bool, transpose_b: bool) -> tf.Tensor:
    """As `tf.matmul` of arrays of one dtype and rank."""
    dtype, made = left.dtype, None
    if dtype in _MATRICES and right.dtype == dtype and left.shape.rank == right.shape.rank:
        if left.shape.rank == 2:
            flags = ("transpose_a", transpose_a), ("transpose_b", transpose_b)
            made = _node("MatMul", (left, right), ("T", dtype), *flags)
        elif not dtype.is_complex:
            made = _node("BatchMatMulV2", (left, right), ("T", dtype), ("adj_x", transpose_a), ("adj_y", transpose_b))
    return tf.matmul(left, right, transpose_a, transpose_b) if made is None else made


def _node(op_type: str, inputs: Sequence[tf.Tensor], *attributes: tuple[str, tf.DType | bool]) -> tf.Tensor | None:
    """The result of a new node of the current graph; None in eager mode or where a tape records."""
    if _tf.executing_eagerly() or _tf.any_tape_watches():
        return None
    return _tf.new_node(op_type, inputs, {name: _attribute(value) for name, value in attributes})


@lru_cache(maxsize=None, typed=True)  # a dtype is equal to its number, and so may be to a truth value
def _attribute(value: tf.DType | bool) -> bytes:
    """A dtype or a truth value as graphs hold it."""
    attribute = tf.compat.v1.AttrValue()
    if isinstance(value, bool):
        attribute.b = value
    else:
        attribute.type = value.as_datatype_enum
    data: bytes = attribute.SerializeToString()
    return data
