"""How often a loop turns, where it counts to a number that is known: XLA takes the gradient of no other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from jaxtf.convert._graph.known import known_value
from jaxtf.convert._graph.registry import Bound
from jaxtf.serialization.interop import Value, defining

__all__ = ["most_turns"]


def most_turns(bound: Bound, initial: Sequence[tf.Tensor]) -> int | None:
    """The number of turns of a `stablehlo.while` that adds a constant to a counter until it is no less than a limit.

    None for other loops, one if there is none: XLA wants room.
    """
    condition, body = bound.operation.regions
    comparison = defining(condition).get(condition.returned[0])
    if comparison is None or comparison.name != "stablehlo.compare":
        return None
    counter, last = comparison.operands
    if comparison.attributes["comparison_direction"] != "LT" or counter not in condition.arguments:
        return None
    index = condition.arguments.index(counter)
    start, limit, step = known_value(initial[index]), _number(bound, last), _step(bound, index)
    if last in condition.arguments:
        other = condition.arguments.index(last)
        limit = known_value(initial[other]) if body.returned[other] == body.arguments[other] else None
    if start is None or limit is None or step is None:
        return None
    turns = max(-((int(start) - int(limit)) // step), 1)
    return turns if int(start) + turns * step <= np.iinfo(start.dtype).max else None  # else the counter wraps


def _step(bound: Bound, index: int) -> int | None:
    """What a turn adds to a counter, if it is a positive constant."""
    body = bound.operation.regions[1]
    counter, addition = body.arguments[index], defining(body).get(body.returned[index])
    if addition is None or addition.name != "stablehlo.add" or counter not in addition.operands:
        return None
    left, right = addition.operands
    step = _number(bound, right if left == counter else left)
    return int(step) if step is not None and step > 0 else None


def _number(bound: Bound, value: Value) -> Any:
    """A scalar integer that is a constant of the module."""
    source = bound.constants.get(value)
    number = None if source is None else np.asarray(source.attributes["value"])
    return number if number is not None and number.ndim == 0 and number.dtype.kind in "iu" else None
