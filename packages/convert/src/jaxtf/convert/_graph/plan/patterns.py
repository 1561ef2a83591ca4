"""Forms that consumers of a graph know by a name, found in the operations that JAX writes for them.

One function for each; it looks at an operation and returns the form it matches. A form has the same values, up to
rounding. Those in `PATTERNS` also have NaN in the same places. Operations that are left without use are dead code.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import replace

import numpy as np
import tensorflow as tf

from jaxtf.convert._graph.broadcasts import before_broadcasts, same_as, uniform_value
from jaxtf.convert._graph.keys import keyed
from jaxtf.convert._graph.plan.agreed import agrees
from jaxtf.convert._graph.searches import SEARCHES, TAKES_VALUE, search
from jaxtf.serialization.interop import Block, Operation, TensorType, Value, read_in

__all__ = ["PATTERNS", "PATTERNS_FOR_CONSUMERS", "recognized"]

Sources = Mapping[Value, Operation]
Pattern = Callable[[Operation, Sources], Operation | None]

# In 16 bits JAX rounds after each step, and TensorFlow at the end.
_FLOATS = (tf.float32, tf.float64)


def recognized(
    block: Block, sources: Sources, patterns: Mapping[str, Sequence[Pattern]], only_agreed: bool = False
) -> Block:
    """The block with the forms that patterns find, by the name of the last operation of each.

    Args:
      block: The block.
      sources: The operations that values come from.
      patterns: What to look for.
      only_agreed: Whether a form takes the place of operations alone whose sizes are known to agree: those of others
        are compared when they are emitted, and forms compare nothing.
    """
    agreed = {value: made for value, made in sources.items() if agrees(made)} if only_agreed else sources

    def form(operation: Operation) -> Operation:
        stays = operation.name in _IN_PLACE
        if only_agreed and not stays and not agrees(operation):
            return operation
        seen = sources if stays else agreed
        found = (pattern(operation, seen) for pattern in patterns.get(operation.name, ()))
        return next(filter(None, found), operation)

    operations = tuple(map(form, block.operations))
    if any(SEARCHES in operation.attributes for operation in operations):
        used = set(read_in(block))
        operations = tuple(_with_use_of_value(operation, used) for operation in operations)
    return replace(block, operations=operations)


def _with_use_of_value(operation: Operation, used: Container[Value]) -> Operation:
    """A search that says whether the value that it finds is used, and not its index alone."""
    if SEARCHES not in operation.attributes or operation.results[0] not in used:
        return operation
    return replace(operation, attributes={**operation.attributes, TAKES_VALUE: True})


def relu(operation: Operation, sources: Sources) -> Operation | None:
    """`maximum(x, 0)`, not that with -0, which is -0 for negative numbers; and `maximum(x, -inf)`, which is `x`."""
    for value, bound in (operation.operands, operation.operands[::-1]):
        lowest = uniform_value(bound, sources)
        if _is_float(value) and lowest == 0 and not np.signbit(lowest):
            return replace(operation, name="jaxtf.relu", operands=(value,), attributes={})
        if lowest == -np.inf and value.type == operation.results[0].type:
            return same_as(value, operation)
    return None


def mean(operation: Operation, sources: Sources) -> Operation | None:
    """`sum(x) / n` of n elements each, the reduced dimensions kept or not."""
    total, count = operation.operands
    number = uniform_value(count, sources)
    if number is None or not _is_float(total):
        return None
    source, dimensions = before_broadcasts(total, sources)
    reduction = sources.get(source)
    if reduction is None or not _is_reduction(reduction, "add", 0, sources):
        return None
    x, axes = reduction.operands[0], tuple(reduction.attributes["dimensions"])
    assert isinstance(x.type, TensorType), "what is reduced is an array"
    assert isinstance(total.type, TensorType), "what is divided is an array"
    shape = x.type.shape
    sizes = [size for axis, size in enumerate(shape) if axis in axes and size is not None]
    if not axes or len(sizes) < len(axes) or math.prod(sizes) != number:
        return None
    keeps = len(dimensions) < total.type.rank
    kept = tuple(axis for axis in range(len(shape)) if axis not in axes)
    whole = tuple(1 if axis in axes else size for axis, size in enumerate(shape))
    if source is not total and (dimensions != kept or total.type.shape != whole):
        return None
    return replace(operation, name="jaxtf.mean", operands=(x,), attributes={"dimensions": axes, "keeps": keeps})


def softmax(operation: Operation, sources: Sources) -> Operation | None:
    """`exp(x - max(x)) / sum(exp(x - max(x)))` along one dimension."""
    exponentials, denominator = operation.operands
    if not _is_float(exponentials):
        return None
    summed, axis = _reduced(denominator, "add", 0, sources)
    shifted = _operand(exponentials, "exponential", sources)
    if summed is not exponentials or shifted is None:
        return None
    x = _shifted_by_largest(shifted, axis, sources)
    return None if x is None else replace(operation, name="jaxtf.softmax", operands=(x,), attributes={"axis": axis})


def log_softmax(operation: Operation, sources: Sources) -> Operation | None:
    """`(x - max(x)) - log(sum(exp(x - max(x))))` along one dimension."""
    shifted, logarithm = operation.operands
    if not _is_float(shifted):
        return None
    inside, dimensions = before_broadcasts(logarithm, sources)
    sums = _operand(inside, "log", sources)
    if sums is None:
        return None
    summed, axis = _reduced(sums, "add", 0, sources, outer=dimensions, whole=shifted.type)
    if summed is None or _operand(summed, "exponential", sources) is not shifted:
        return None
    x = _shifted_by_largest(shifted, axis, sources)
    if x is None:
        return None
    return replace(operation, name="jaxtf.log_softmax", operands=(x,), attributes={"axis": axis})


def gelu(operation: Operation, sources: Sources) -> Operation | None:
    """`x / 2 * erfc(-x * sqrt(1/2))`."""
    for half, complement in (operation.operands, operation.operands[::-1]):
        x = _times(half, 0.5, sources)
        called = sources.get(complement)
        if x is None or called is None or not _is_float(x) or called.attributes.get("name") != "chlo.erfc":
            continue
        negative = _times(called.operands[0], np.sqrt(0.5), sources)
        if negative is not None and _operand(negative, "negate", sources) is x:
            return replace(operation, name="jaxtf.gelu", operands=(x,), attributes={})
    return None


PATTERNS: Mapping[str, Sequence[Pattern]] = {
    "stablehlo.maximum": (relu,),
    "stablehlo.subtract": (log_softmax,),
    "stablehlo.divide": (mean,),
    "stablehlo.reduce": (search,),
    "stablehlo.sort": (keyed,),
}
"""The functions that look at an operation, by its name."""

# Of a row with NaN or infinity, TensorFlow's kernel for softmax gives NaN only there; JAX gives it for the whole row.
# How TensorFlow writes GELU depends on its version: by erfc(-x), as JAX, or by 1 + erf(x), inexact far below zero.
PATTERNS_FOR_CONSUMERS: Mapping[str, Sequence[Pattern]] = {
    **PATTERNS,
    "stablehlo.divide": (mean, softmax),
    "stablehlo.multiply": (gelu,),
}
"""The same, and those that differ in what the comments say, for consumers that know no other form (TFLite)."""


# The operation stays; what it does is known by attributes.
_IN_PLACE = frozenset(("stablehlo.reduce", "stablehlo.sort"))


def _is_float(value: Value) -> bool:
    return isinstance(value.type, TensorType) and value.type.dtype in _FLOATS


def _operand(value: Value, name: str, sources: Sources) -> Value | None:
    """What an elementwise operation was applied to; None if the value comes from another."""
    operation = sources.get(value)
    return operation.operands[0] if operation is not None and operation.name == f"stablehlo.{name}" else None


def _times(value: Value, factor: float, sources: Sources) -> Value | None:
    """What was multiplied by a number, as near as its dtype has it."""
    operation = sources.get(value)
    if operation is None or operation.name != "stablehlo.multiply":
        return None
    for other, scale in (operation.operands, operation.operands[::-1]):
        found = uniform_value(scale, sources)
        if found is not None and found == found.dtype.type(factor):
            return other
    return None


def _reduced(
    value: Value,
    kind: str,
    initial: float,
    sources: Sources,
    *,
    outer: tuple[int, ...] | None = None,
    whole: object = None,
) -> tuple[Value | None, int]:
    """What was reduced along one dimension and broadcast along it again to be `value`, and the dimension.

    Args:
      value: The broadcast, or, with `outer`, what is broadcast after a further operation.
      kind: How it was reduced.
      initial: From which value.
      sources: The operations.
      outer: To which dimensions of the whole those of `value` are broadcast later.
      whole: The type after that.
    """
    whole = value.type if whole is None else whole
    assert isinstance(whole, TensorType)
    source, dimensions = before_broadcasts(value, sources)
    if outer is not None:
        dimensions = tuple(outer[axis] for axis in dimensions)
    if kind == "maximum":
        source = _without_lower_bound(source, sources)
    operation = sources.get(source)
    if operation is None or not _is_reduction(operation, kind, initial, sources):
        return None, 0
    axes = tuple(operation.attributes["dimensions"])
    kept = tuple(axis for axis in range(whole.rank) if axis not in axes)
    if len(axes) != 1 or dimensions != kept:
        return None, 0
    return operation.operands[0], axes[0]


def _is_reduction(operation: Operation, kind: str, initial: float, sources: Sources) -> bool:
    """Whether an operation reduces one array, by an operation of that name, from that value."""
    if operation.name != "stablehlo.reduce" or len(operation.operands) != 2:
        return False
    start = uniform_value(operation.operands[1], sources)
    return start is not None and bool(start == initial) and _is_single(operation.regions[0], kind)


def _without_lower_bound(value: Value, sources: Sources) -> Value:
    """What the maximum with minus infinity was taken of."""
    operation = sources.get(value)
    if operation is None or operation.name != "stablehlo.maximum":
        return value
    for other, bound in (operation.operands, operation.operands[::-1]):
        if uniform_value(bound, sources) == -np.inf:
            return other
    return value


def _is_single(block: Block, kind: str) -> bool:
    """Whether a block does one operation with its two arguments."""
    if len(block.operations) != 1:
        return False
    (operation,) = block.operations
    same = set(operation.operands) == set(block.arguments) and operation.results == block.returned
    return same and operation.name == f"stablehlo.{kind}"


def _shifted_by_largest(value: Value, axis: int, sources: Sources) -> Value | None:
    """The x of `x - max(x)` along a dimension."""
    operation = sources.get(value)
    if operation is None or operation.name != "stablehlo.subtract":
        return None
    x, largest = operation.operands
    found, along = _reduced(largest, "maximum", -np.inf, sources)
    return x if found is x and along == axis else None
