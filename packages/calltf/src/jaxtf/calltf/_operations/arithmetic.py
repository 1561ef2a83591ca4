"""Integers computed from sizes: the elements of results, where those of the operands are known and it is exact."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from jaxtf.calltf._interpreter import Interpreter
from jaxtf.calltf._operations.conditions import is_within
from jaxtf.calltf._operations.table import INTEGERS
from jaxtf.calltf._symbolic_values import Known, Value, array_of, decided, larger, smaller


def _floordiv(x: Any, y: Any) -> Any:
    return x // y if decided(operator.ge, y, 1) else None


def _floormod(x: Any, y: Any) -> Any:
    return x % y if decided(operator.ge, y, 1) else None


def _truncatediv(x: Any, y: Any) -> Any:
    return x // y if decided(operator.ge, y, 1) and decided(operator.ge, x, 0) else None


def _comparison(compare: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda x, y: decided(compare, x, y)


# Sums and products cannot leave 32 bits where they are sizes of tensors; the others keep, of a number that has wrapped,
# what is not the size: they are known where no operand can have wrapped.
_EXACT: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(("Add", "AddV2"), operator.add),
    "AddN": lambda *xs: sum(xs),
    "Sub": operator.sub,
    "Mul": operator.mul,
    "Neg": operator.neg,
    "Square": lambda x: x * x,
    "Identity": lambda x: x,
    "Cast": lambda x: x,
}
_CHOOSING: dict[str, Callable[..., Any]] = {
    "Maximum": larger,
    "Minimum": smaller,
    "Abs": lambda x: larger(x, -x),
    "FloorDiv": _floordiv,
    "FloorMod": _floormod,
    "TruncateDiv": _truncatediv,
    "Equal": _comparison(operator.eq),
    "NotEqual": _comparison(operator.ne),
    "Less": _comparison(operator.lt),
    "LessEqual": _comparison(operator.le),
    "Greater": _comparison(operator.gt),
    "GreaterEqual": _comparison(operator.ge),
}


def computed(i: Interpreter, op: Any, inputs: list[Value]) -> Known | None:
    """The elements of the result, if those of the operands are known, in 32 or 64 bits."""
    if any(value.known is None for value in inputs):
        return None
    if op.type == "SelectV2":
        known = i.moved(op, inputs, (1, 2))
        return None if known is None else known[0]
    function = _EXACT.get(op.type) or _CHOOSING.get(op.type)
    if function is None or any(x.dtype not in INTEGERS for x in op.inputs):
        return None
    if op.type == "Cast" and op.outputs[0].dtype not in INTEGERS:
        return None
    arrays = [value.known for value in inputs if value.known is not None]
    may_wrap = op.type in _CHOOSING or (op.type == "Cast" and op.outputs[0].dtype != op.inputs[0].dtype)
    if may_wrap and not all(is_within(i, x) for array in arrays for x in array.flat):
        return None
    broadcasted = np.broadcast_arrays(*arrays)
    results = [function(*column) for column in zip(*(array.flat for array in broadcasted), strict=True)]
    if any(result is None for result in results):
        return None
    return array_of(results, broadcasted[0].shape)
