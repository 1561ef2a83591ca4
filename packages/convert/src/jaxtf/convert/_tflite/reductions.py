"""Reductions of a TFLite model that fail where they have nothing to reduce, as after `x[1:]` of one row.

XNNPACK, which `tf.lite.Interpreter` runs by default, does not write their results then: they are whatever was in memory
(TensorFlow 2.21). Of static sizes other kernels do not either.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import tensorflow as tf

from jaxtf.convert import _tf
from jaxtf.convert._errors import TFLiteUnsupported
from jaxtf.convert._tflite.first import operations_of

__all__ = ["with_checked_reductions"]

# The numbers of operations in TFLite's schema: MEAN, SUM, REDUCE_MAX and REDUCE_MIN. The others were right.
_REDUCTIONS = frozenset((40, 74, 82, 89))

# The numbers of float32, float16, uint8 and int8, which XNNPACK computes with.
_OF_XNNPACK = frozenset((0, 1, 3, 9))


def with_checked_reductions(
    model: bytes, converted: Callable[[tf.types.experimental.ConcreteFunction], bytes]
) -> bytes:
    """A model in which an operation fails for each reduction of a dimension of open size that has no elements.

    Args:
      model: The model.
      converted: TFLite's converter.

    Raises:
      TFLiteUnsupported: A reduction of a dimension that never has elements.
    """
    target, is_changed = _tf.tflite_model(model), False

    @cache
    def check_of(axes: tuple[int, ...]) -> bytes:
        return converted(_check_of(axes))

    for graph in target.subgraphs:
        operations = []
        for operation in graph.operators or []:
            if target.operatorCodes[operation.opcodeIndex].builtinCode in _REDUCTIONS:
                place, axes = operation.inputs
                tensor, numbers = graph.tensors[place], target.buffers[graph.tensors[axes].buffer].data
                sizes = tensor.shape if tensor.shapeSignature is None else tensor.shapeSignature
                reduced = [] if numbers is None else np.frombuffer(numbers.tobytes(), np.int32).tolist()
                if any(sizes[axis] == 0 for axis in reduced):
                    raise TFLiteUnsupported(
                        f"TFLite has no result of a reduction of nothing: {tensor.name.decode()} has the shape "
                        f"{tuple(map(int, sizes))}\n"
                        "  remedy: leave that reduction out of the model"
                    )
                is_open = tuple(sorted({axis % len(sizes) for axis in reduced if sizes[axis] < 0}))
                if is_open and tensor.type in _OF_XNNPACK:
                    operations += operations_of(check_of(is_open), target, graph, {b"x": place})
                    is_changed = True
            operations.append(operation)
        graph.operators = operations
    return _tf.tflite_bytes(target) if is_changed else model


def _check_of(axes: tuple[int, ...]) -> tf.types.experimental.ConcreteFunction:
    """What fails where one of these dimensions of an array has no elements."""

    def check(x: tf.Tensor) -> tf.Tensor:
        return tf.gather(tf.constant([1]), tf.minimum(tf.gather(tf.shape(x), axes), 1) - 1)

    spec = tf.TensorSpec([None] * (axes[-1] + 1), tf.float32, "x")
    return tf.function(check, autograph=False).get_concrete_function(spec)
