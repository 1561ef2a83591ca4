"""The value of a tensor that is known while the graph is made."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

__all__ = ["known_value"]


def known_value(tensor: tf.Tensor, *, partial: bool = False) -> Any:
    """The value of a tensor, where TensorFlow knows it without running the graph; else None.

    As `tf.get_static_value`, which reads floats of 16 bits and fewer by what NumPy deprecates since 2.5 (TensorFlow
    2.21): the caller gets a warning, or an error, of what is not theirs. Of these, constants and what fills a shape
    with one are known, and what they are cast to. With `partial`, unknown elements of a known vector are None.
    """
    if tf.is_symbolic_tensor(tensor):
        if _is_small(tensor):
            return _small_float(tensor)
        if tensor.op.type == "Cast" and _is_small(tensor.op.inputs[0]):
            found = _small_float(tensor.op.inputs[0])
            return None if found is None else found.astype(tensor.dtype.as_numpy_dtype)
    return tf.get_static_value(tensor, partial=partial)


def _is_small(tensor: tf.Tensor) -> bool:
    return bool(tensor.dtype.is_floating and tensor.dtype.size <= 2)


def _small_float(tensor: tf.Tensor) -> Any:
    operation, dtype = tensor.op, tensor.dtype.as_numpy_dtype
    if operation.type == "Fill":
        shape, value = known_value(operation.inputs[0]), known_value(operation.inputs[1])
        return None if shape is None or value is None else np.full(shape, value, dtype)
    if operation.type != "Const":
        return None
    proto = operation.get_attr("value")
    shape = [dimension.size for dimension in proto.tensor_shape.dim]
    if proto.tensor_content:
        return np.frombuffer(proto.tensor_content, dtype).reshape(shape)
    count = int(np.prod(shape))
    if tensor.dtype.size == 2:
        values = np.fromiter(proto.half_val, np.uint16).view(dtype)
    else:
        values = np.frombuffer(proto.float8_val, dtype)
    if not values.size:
        return np.zeros(shape, dtype)
    return np.pad(values, [0, count - len(values)], "edge").reshape(shape)  # the last one stands for those that follow
