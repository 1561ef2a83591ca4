"""The logistic function as modules write it out: `1 / (1 + exp(-x))`.

JAX writes `logistic`, and so sigmoid, SiLU and GLU, in this form. The value is right also where the exponential is
infinite; the quotient rule then gives the NaN of infinity over infinity, in float32 below -88, in float16 below -11. As
`lax.logistic`, which JAX lowers to the same operations, it has the same value and the derivative y * (1 - y).
"""

from __future__ import annotations

import re
from collections.abc import Container, Mapping

import numpy as np

from jaxtf.serialization._program.program import Operation, TensorType, Value

__all__ = ["operations_of_logistic"]

_BROADCASTS = ("stablehlo.broadcast_in_dim", "stablehlo.dynamic_broadcast_in_dim")

_ACCURATE = re.compile("HIGHEST|TOLERANCE|atol")


def operations_of_logistic(
    last: Operation, sources: Mapping[Value, Operation], within: Container[Operation]
) -> tuple[Value, tuple[Operation, ...]] | None:
    """The argument of a logistic function that ends with an operation, and all its operations in order.

    Args:
      last: Any operation.
      sources: The operation that each value is a result of.
      within: Where all but constants have to be.
    """
    if last.name != "stablehlo.divide":
        return None
    one, denominator = last.operands
    added = sources.get(denominator)
    if added is None or added.name != "stablehlo.add":
        return None
    for other, exponential in (added.operands, added.operands[::-1]):
        power = sources.get(exponential)
        if power is None or power.name != "stablehlo.exponential" or _ACCURATE.search(_accuracy_of(power)):
            continue
        negated = sources.get(power.operands[0])
        ones = [_one(value, sources) for value in (one, other)]
        if negated is None or negated.name != "stablehlo.negate" or None in ones:
            continue
        [x] = negated.operands
        found = [*(operation for each in ones if each is not None for operation in each), negated, power, added, last]
        if all(operation in within for operation in found if operation.name != "stablehlo.constant"):
            return x, tuple(dict.fromkeys(found))
    return None


def _one(value: Value, sources: Mapping[Value, Operation]) -> list[Operation] | None:
    """The operations that make a value of ones; None if it is another."""
    operation = sources.get(value)
    if operation is None:
        return None
    if operation.name in _BROADCASTS:
        made = _one(operation.operands[0], sources)
        return None if made is None else [*made, operation]
    is_floating = operation.name == "stablehlo.constant" and isinstance(value.type, TensorType)
    return [operation] if is_floating and bool(np.all(operation.attributes["value"] == 1)) else None


def _accuracy_of(operation: Operation) -> str:
    return str(operation.attributes.get("result_accuracy", ""))
