"""Sums of several arrays: one operation reads each of them once, where sums of two write what the next one reads."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import tensorflow as tf

from jaxtf.convert._graph.broadcasts import before_broadcasts, uniform_value
from jaxtf.convert._graph.plan.agreed import agrees
from jaxtf.serialization.interop import Block, Operation, TensorType, Value, uses_in

__all__ = ["SUM_OF_SEVERAL", "in_one"]

SUM_OF_SEVERAL = "jaxtf.sum_of_several"
"""The name of the sum of the first two operands, and of that and each further one, in order."""

# TensorFlow's kernel adds as many at once, each sum rounded.
_MOST = 8
_FEWEST = 3
# Below, the time of an operation is that of starting it.
_FEWEST_ELEMENTS = 1 << 14
# Of inexact numbers, those of which one sum of several takes less time than sums of two: not of bfloat16.
_DTYPES = (tf.float16, tf.float32, tf.float64, tf.complex64, tf.complex128)


def in_one(block: Block, sources: Mapping[Value, Operation], only_agreed: bool = False) -> Block:
    """The block with one operation for sums of sums that nothing else uses, in the order in which they are.

    Terms that are broadcast are left to their own sums. TensorFlow's optimizer does the same for integers.

    Args:
      block: The block.
      sources: The operations that values come from.
      only_agreed: Whether sums of arrays whose sizes are compared when they are emitted stay.
    """
    uses = uses_in(block)
    terms: dict[Value, tuple[Value, ...]] = {}

    def longest(operation: Operation) -> tuple[Value, ...]:
        left, right = operation.operands
        orders = ((left, right), (right, left)) if left is not right else ()
        found = [(*terms[x], other) for x, other in orders if x in terms and uses[x] == 1 and len(terms[x]) < _MOST]
        return max(found, key=len, default=operation.operands)

    def changed(operation: Operation) -> Operation:
        arrays = (*operation.operands, *operation.results)
        if operation.name != "stablehlo.add" or not all(map(_is_large, arrays)):
            return operation
        if only_agreed and not agrees(operation):
            return operation
        if any(_is_broadcast(value, sources) for value in operation.operands):
            return operation
        found = terms[operation.results[0]] = longest(operation)
        return operation if len(found) < _FEWEST else replace(operation, name=SUM_OF_SEVERAL, operands=found)

    return replace(block, operations=tuple(map(changed, block.operations)))


def _is_large(value: Value) -> bool:
    """Whether a value is an array for which the time of a sum is that of its elements."""
    type_ = value.type
    assert isinstance(type_, TensorType), "a sum is an array"
    if type_.dtype not in _DTYPES:
        return False
    return not type_.is_static or math.prod(size or 0 for size in type_.shape) >= _FEWEST_ELEMENTS


def _is_broadcast(value: Value, sources: Mapping[Value, Operation]) -> bool:
    return uniform_value(value, sources) is not None or before_broadcasts(value, sources)[0] is not value
