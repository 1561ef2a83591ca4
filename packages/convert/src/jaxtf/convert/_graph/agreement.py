"""Ranks and sizes of operands as TensorFlow's operations take them.

Sizes that StableHLO requires to be equal are checked where they are known only at run time.

TensorFlow's elementwise operations broadcast a size of 1, and so do its products of matrices; StableHLO's do not. The
modules that JAX exports have equal sizes wherever they are required, by their shape assertions; a module of somebody
else may be called with sizes that are not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import tensorflow as tf

from jaxtf.convert._graph._support import Size, as_shape, sizes
from jaxtf.convert._graph.errors import unsupported
from jaxtf.convert._graph.registry import Bound
from jaxtf.serialization.interop import Operation, TensorType, Value

__all__ = ["at_broadcast_places", "with_equal_sizes"]

_ALIKE = frozenset(
    f"stablehlo.{name}"
    for name in [
        "add",
        "and",
        "atan2",
        "clamp",
        "compare",
        "complex",
        "divide",
        "map",
        "maximum",
        "minimum",
        "multiply",
        "or",
        "power",
        "remainder",
        "select",
        "shift_left",
        "shift_right_arithmetic",
        "shift_right_logical",
        "sort",
        "subtract",
        "xor",
    ]
)

# The operands of these, the attribute that has the pairs of dimensions, and its two lists.
_BATCHED = {
    "stablehlo.dot_general": ("dot_dimension_numbers", "lhs_batching_dimensions", "rhs_batching_dimensions"),
    "stablehlo.gather": ("dimension_numbers", "operand_batching_dims", "start_indices_batching_dims"),
    "stablehlo.dynamic_gather": ("dimension_numbers", "operand_batching_dims", "start_indices_batching_dims"),
    "stablehlo.scatter": ("scatter_dimension_numbers", "input_batching_dims", "scatter_indices_batching_dims"),
}


def with_equal_sizes(operation: Operation, operands: Sequence[tf.Tensor]) -> list[tf.Tensor]:
    """The operands, which are there only if the sizes that have to be equal are.

    Compiled, XLA drops assertions; a reshape to another number of elements it refuses.
    """
    checks = [
        _checked(operation, operands[first], axis, operands[second], other)
        for first, axis, second, other in _pairs(operation)
        if not _is_known_equal(operands[first], axis, operands[second], other)
    ]
    if not checks:
        return list(operands)
    with tf.control_dependencies([check for made in checks for check in made]):
        return [operand if isinstance(operand, tuple) else tf.identity(operand) for operand in operands]


def at_broadcast_places(bound: Bound, operands: Sequence[tf.Tensor]) -> list[tf.Tensor]:
    """The operands of an operation of CHLO that broadcasts, of equal rank, as TensorFlow broadcasts them.

    Raises:
      GraphModeUnsupported: The dimensions at which an operand is to be are not in order.
    """
    given = bound.broadcast_places
    if given is None:
        dimensions = list(bound["broadcast_dimensions"])
        raise unsupported(bound.operation, f"broadcast_dimensions {dimensions} are not different ones in order")
    rank = max(map(len, given))
    return [
        operand if list(places) == list(range(rank - len(places), rank)) else _spread(operand, places, rank)
        for operand, places in zip(operands, given, strict=True)
    ]


def _spread(operand: tf.Tensor, places: Sequence[int], rank: int) -> tf.Tensor:
    """An operand with dimensions of size 1 between its own."""
    shape: list[Size] = [1] * rank
    for place, size in zip(places, sizes(operand), strict=True):
        shape[place] = size
    return tf.reshape(operand, as_shape(shape))


def _pairs(operation: Operation) -> Iterator[tuple[int, int, int, int]]:
    """An operand and its dimension, and another operand and its dimension that has to be as large."""
    if operation.name in _ALIKE:
        ranked = [index for index, value in enumerate(operation.operands) if _rank(value)]
        for index in ranked[1:]:
            yield from ((ranked[0], axis, index, axis) for axis in range(_rank(operation.operands[index])))
    if operation.name in _BATCHED:
        attribute, left, right = _BATCHED[operation.name]
        numbers = operation.attributes[attribute]
        second = (len(operation.operands) - 1) // 2 if operation.name == "stablehlo.scatter" else 1
        yield from ((0, axis, second, other) for axis, other in zip(numbers[left], numbers[right], strict=True))


def _rank(value: Value) -> int:
    return value.type.rank if isinstance(value.type, TensorType) else 0


def _is_known_equal(left: tf.Tensor, axis: int, right: tf.Tensor, other: int) -> bool:
    return (left is right and axis == other) or (
        left.shape[axis] is not None and left.shape[axis] == right.shape[other]
    )


def _checked(
    operation: Operation, left: tf.Tensor, axis: int, right: tf.Tensor, other: int
) -> tuple[tf.Operation, tf.Operation]:
    size, other_size = tf.shape(left)[axis], tf.shape(right)[other]
    equal = tf.equal(size, other_size)
    message = f"{operation.name}: dimension {axis} of an operand has another size than dimension {other} of another:"
    assertion = tf.debugging.Assert(equal, [message, size, other_size])
    with tf.control_dependencies([assertion]):
        count = tf.reshape(tf.cast(equal, tf.int32), [1])
        return assertion, tf.reshape(tf.constant([0]), count, name="operands_of_different_sizes").op
