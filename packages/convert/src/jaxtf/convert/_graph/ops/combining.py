"""What is known of the regions of reductions, and arrays combined by a region that nothing is known of.

XLA promises no order: a region that is not associative has no defined result. On CPU it combines in row-major order,
one element after the other, from the initial value on, except for long reductions and scans. So does graph mode, so
that what a program gives in JAX on CPU it gives here; where a region is known to be associative, it takes fewer steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
import tensorflow as tf

from jaxtf.convert._graph._support import BINARY, as_shape, is_identity_of, sizes
from jaxtf.convert._graph.known import known_value
from jaxtf.convert._graph.registry import Bound
from jaxtf.serialization.interop import Block, Value, defining

__all__ = ["Combine", "are_neutral", "in_order", "is_associative", "region_of", "where_present"]

Combine: TypeAlias = Callable[[Sequence[tf.Tensor], Sequence[tf.Tensor]], list[tf.Tensor]]


def region_of(bound: Bound, index: int = 0) -> Combine:
    """The region as a function of tensors of any one shape, though it is written for scalars."""

    def combine(left: Sequence[tf.Tensor], right: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        results = bound.regions[index](*left, *right)
        return [
            tf.broadcast_to(r, as_shape(sizes(a))) if r.shape.rank == 0 and a.shape.rank else r
            for r, a in zip(results, left, strict=True)
        ]

    return combine


def in_order(combine: Combine, parts: Sequence[list[tf.Tensor]]) -> list[tf.Tensor]:
    """The parts combined one after the other."""
    result, *others = parts
    for other in others:
        result = combine(result, other)
    return list(result)


def where_present(combine: Combine) -> Combine:
    """The region for arrays of which some elements are not there: the last of them says of which the others are.

    It is a truth value for each element, or for each place of one dimension. What is not there does not count.
    """

    def combined(left: Sequence[tf.Tensor], right: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        *a, has_a = left
        *b, has_b = right
        both = tf.logical_and(has_a, has_b)
        made = combine(a, b)
        kept = [tf.where(both, c, tf.where(has_a, x, y)) for c, x, y in zip(made, a, b, strict=True)]
        return [*kept, tf.logical_or(has_a, has_b)]

    return combined


def is_associative(block: Block) -> bool:
    """Whether a region is known to be associative, up to rounding, for all values.

    So it is where every result is a sum, a product, an extreme or a bitwise operation of two arguments, one of either
    side and for that result; or one of the two itself; and for JAX's `logaddexp`. A choice by a comparison is not: a
    NaN is neither less nor greater.
    """
    count = len(block.returned)
    if len(block.arguments) != 2 * count:
        return False
    source = defining(block)
    for i, result in enumerate(block.returned):
        pair = block.arguments[i], block.arguments[i + count]
        operation = source.get(result)
        if operation is None:
            if result not in pair:
                return False
        elif set(operation.operands) != set(pair) or operation.name.removeprefix("stablehlo.") not in BINARY:
            return count == 1 and _written(block) == _LOGADDEXP
    return True


def are_neutral(block: Block, initial: Sequence[tf.Tensor]) -> bool:
    """Whether a region is known to be associative, and initial values to change nothing, of either side."""
    if not is_associative(block):
        return False
    if len(initial) == 1 and _written(block) == _LOGADDEXP:
        value = known_value(initial[0])
        return value is not None and bool(value == -np.inf)
    source = defining(block)
    operations = [source.get(result) for result in block.returned]
    return all(
        operation is not None and is_identity_of(operation.name.removeprefix("stablehlo."), value)
        for operation, value in zip(operations, initial, strict=True)
    )


# `jnp.logaddexp` in JAX 0.10 and 0.12: each operation with what it takes, the arguments being 0 and 1.
_LOGADDEXP = (
    ("maximum", "", 0, 1),
    ("subtract", "", 0, 1),
    ("compare", "NE", 3, 3),
    ("add", "", 0, 1),
    ("abs", "", 3),
    ("negate", "", 6),
    ("exponential", "", 7),
    ("log_plus_one", "", 8),
    ("add", "", 2, 9),
    ("select", "", 4, 5, 10),
)


def _written(block: Block) -> tuple[tuple[str | int, ...], ...]:
    """The operations of a block of one result, the last of them, with the numbers of what each takes; empty if it is
    not of that form.
    """
    numbers: dict[Value, int] = {value: i for i, value in enumerate(block.arguments)}
    lines: list[tuple[str | int, ...]] = []
    for operation in block.operations:
        if len(operation.results) != 1 or operation.regions or any(v not in numbers for v in operation.operands):
            return ()
        numbers[operation.results[0]] = len(numbers)
        direction = operation.attributes.get("comparison_direction", "")
        if operation.attributes.get("compare_type") == "TOTALORDER":
            direction += " in the total order"
        name = operation.name.removeprefix("stablehlo.")
        lines.append((name, direction, *(numbers[value] for value in operation.operands)))
    return tuple(lines) if block.operations and block.returned == block.operations[-1].results else ()
