"""Reductions of a TFLite model that fail where they have nothing to reduce, as after `x[1:]` of one row.

XNNPACK, which `tf.lite.Interpreter` runs by default, does not write their results then: they are whatever was in memory
(TensorFlow 2.21). Of static sizes other kernels do not either. A softmax of nothing ends the process, or is an error.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import tensorflow as tf

from jaxtf.convert import _tf
from jaxtf.convert._errors import TFLiteUnsupported
from jaxtf.convert._tflite.first import operations_of

__all__ = ["with_checked_reductions"]

# The numbers of operations in TFLite's schema: MEAN, SUM, REDUCE_MAX and REDUCE_MIN. The others were right.
_REDUCTIONS = frozenset((40, 74, 82, 89))

# SOFTMAX and LOG_SOFTMAX, along the last dimension.
_SOFTMAX = frozenset((25, 50))

# Whose results have elements where all their operands have: ADD, CONCATENATION, DEQUANTIZE, FULLY_CONNECTED, MUL, RELU,
# RESHAPE, SOFTMAX, TANH, TRANSPOSE, SUB, DIV, EXP, QUANTIZE, BATCH_MATMUL and GELU.
_KEEP_ELEMENTS = frozenset((0, 2, 6, 9, 18, 19, 22, 25, 28, 39, 41, 42, 47, 114, 126, 150))

# The numbers of float32, float16, uint8 and int8, which XNNPACK computes with.
_OF_XNNPACK = frozenset((0, 1, 3, 9))


def with_checked_reductions(
    model: bytes, converted: Callable[[tf.types.experimental.ConcreteFunction], bytes], are_inputs_checked: bool = False
) -> bytes:
    """A model in which an operation fails for each reduction or softmax of a dimension of open size without elements.

    Args:
      model: The model.
      converted: TFLite's converter.
      are_inputs_checked: Whether its inputs have elements.

    Raises:
      TFLiteUnsupported: A reduction of a dimension that never has elements.
    """
    target, is_changed = _tf.tflite_model(model), False

    @cache
    def check_of(axes: tuple[int, ...]) -> bytes:
        return converted(_check_of(axes))

    for number, graph in enumerate(target.subgraphs):
        operations = []
        full = _with_elements(target, graph, are_inputs_checked and not number)
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
            if target.operatorCodes[operation.opcodeIndex].builtinCode in _SOFTMAX:
                [place] = operation.inputs
                sizes = graph.tensors[place].shapeSignature
                if place not in full and sizes is not None and sizes[-1] < 0:
                    operations += operations_of(check_of((len(sizes) - 1,)), target, graph, {b"x": place})
                    is_changed = True
            operations.append(operation)
        graph.operators = operations
    return _tf.tflite_bytes(target) if is_changed else model


def _with_elements(target: Any, graph: Any, are_inputs_checked: bool) -> set[int]:
    """The tensors of a graph that are known to have elements: static ones, and what keeps those of others."""
    checked = set(map(int, graph.inputs)) if are_inputs_checked else set()
    full = set()
    for place, tensor in enumerate(graph.tensors):
        sizes = tensor.shape if tensor.shapeSignature is None else tensor.shapeSignature
        is_open = place in checked  # a size of -1 is at least 1 there
        if tensor.hasRank and (sizes is None or all(size > 0 or (is_open and size < 0) for size in sizes)):
            full.add(place)
    for operation in graph.operators or []:
        is_one = target.operatorCodes[operation.opcodeIndex].builtinCode in _KEEP_ELEMENTS
        if is_one and all(place < 0 or place in full for place in operation.inputs):
            full.update(map(int, operation.outputs))
    return full


def _check_of(axes: tuple[int, ...]) -> tf.types.experimental.ConcreteFunction:
    """What fails where one of these dimensions of an array has no elements."""

    def check(x: tf.Tensor) -> tf.Tensor:
        return tf.gather(tf.constant([1]), tf.minimum(tf.gather(tf.shape(x), axes), 1) - 1)

    spec = tf.TensorSpec([None] * (axes[-1] + 1), tf.float32, "x")
    return tf.function(check, autograph=False).get_concrete_function(spec)
