"""How often a loop turns, where it counts to a number that is known: XLA keeps no more of a loop for its gradient."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from jaxtf.convert._graph.known import known_value
from jaxtf.serialization.interop import Block, Operation, Value, defining

__all__ = ["most_turns"]


def most_turns(operation: Operation, initial: Sequence[tf.Tensor]) -> int | None:
    """The number of turns of a `stablehlo.while` that adds a constant to a counter until it is no less than a limit.

    None for other loops.
    """
    condition, body = operation.regions
    before, inside = defining(condition), defining(body)
    comparison = before.get(condition.returned[0])
    if comparison is None or comparison.name != "stablehlo.compare":
        return None
    if comparison.attributes["comparison_direction"] != "LT" or comparison.operands[0] not in condition.arguments:
        return None
    index = condition.arguments.index(comparison.operands[0])
    start, limit = known_value(initial[index]), _number(comparison.operands[1], before)
    if limit is None and comparison.operands[1] in condition.arguments:
        other = condition.arguments.index(comparison.operands[1])
        limit = known_value(initial[other]) if body.returned[other] == body.arguments[other] else None
    step = _step(body, index, inside)
    if start is None or limit is None or step is None:
        return None
    turns = max(-((int(start) - int(limit)) // step), 0)
    return turns if int(start) + turns * step <= np.iinfo(start.dtype).max else None  # else the counter wraps


def _step(body: Block, index: int, inside: Mapping[Value, Operation]) -> int | None:
    """What a turn adds to a counter, if it is a positive constant."""
    addition = inside.get(body.returned[index])
    if addition is None or addition.name != "stablehlo.add" or body.arguments[index] not in addition.operands:
        return None
    left, right = addition.operands
    step = _number(right if left == body.arguments[index] else left, inside)
    return int(step) if step is not None and step > 0 else None


def _number(value: Value, sources: Mapping[Value, Operation]) -> Any:
    """A constant integer."""
    source = sources.get(value)
    if source is None or source.name != "stablehlo.constant":
        return None
    number = np.asarray(source.attributes["value"])
    return number if number.ndim == 0 and number.dtype.kind in "iu" else None
