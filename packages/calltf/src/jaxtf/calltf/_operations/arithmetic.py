"""Integers and conditions computed from sizes: elements of results, where those of the operands are known.

They are known exactly, as symbolic sizes: of bits and narrow integers too, by remainders; a condition that depends on a
size is 1 where it holds and 0 elsewhere. What can leave 32 bits, where it matters, is not known.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from jaxtf.calltf._interpreter import Interpreter
from jaxtf.calltf._jax import is_symbolic
from jaxtf.calltf._operations.conditions import is_within
from jaxtf.calltf._operations.table import INTEGERS
from jaxtf.calltf._symbolic_values import Known, Value, array_of, decided, is_positive, larger, selected, smaller

_MOST_RUNS = 1  # of ones in a mask of bits
# Narrow integers, to which TensorFlow casts by taking the last bits: how many, and the least.
_NARROW = {tf.int8: (8, -128), tf.uint8: (8, 0), tf.int16: (16, -(1 << 15)), tf.uint16: (16, 0)}


def _floordiv(x: Any, y: Any) -> Any:
    return x // y if decided(operator.ge, y, 1) else None


def _floormod(x: Any, y: Any) -> Any:
    return x % y if decided(operator.ge, y, 1) else None


def _truncatediv(x: Any, y: Any) -> Any:
    return x // y if decided(operator.ge, y, 1) and decided(operator.ge, x, 0) else None


def _equal(x: Any, y: Any) -> Any:
    holds = decided(operator.eq, x, y)
    return 1 - smaller(larger(x - y, y - x), 1) if holds is None else holds


def _and(x: Any, mask: Any) -> Any:
    """The bits that a mask has: those of each run of ones are a remainder."""
    if is_symbolic(mask):
        return None if is_symbolic(x) else _and(mask, x)
    if mask < 0:
        rest = _and(x, ~mask)
        return None if rest is None else x - rest
    runs, start = [], 0
    while mask >> start:
        start += _trailing(mask >> start, 0)
        length = _trailing(mask >> start, 1)
        runs.append((start, length))
        start += length
    if len(runs) > _MOST_RUNS:
        return None
    return sum(((x // (1 << start)) % (1 << length)) * (1 << start) for start, length in runs)


def _trailing(number: int, bit: int) -> int:
    """How many of the last bits of a positive number are all this one."""
    count = 0
    while number >> count & 1 == bit:
        count += 1
    return count


def _or(x: Any, y: Any) -> Any:
    common = _and(x, y)
    return None if common is None else x + y - common


def _xor(x: Any, y: Any) -> Any:
    common = _and(x, y)
    return None if common is None else x + y - 2 * common


def _shifted_right(x: Any, count: Any) -> Any:
    return x // (1 << count) if not is_symbolic(count) and 0 <= count < 31 else None


def _shifted_left(x: Any, count: Any) -> Any:
    return x * (1 << count) if not is_symbolic(count) and 0 <= count < 31 else None


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
    "Invert": lambda x: -x - 1,
    "LeftShift": _shifted_left,
}
_CHOOSING: dict[str, Callable[..., Any]] = {
    "Maximum": larger,
    "Minimum": smaller,
    "Abs": lambda x: larger(x, -x),
    "Sign": lambda x: smaller(larger(x, -1), 1),
    "FloorDiv": _floordiv,
    "FloorMod": _floormod,
    "TruncateDiv": _truncatediv,
    "Equal": _equal,
    "NotEqual": lambda x, y: _not(_equal(x, y)),
    "Less": lambda x, y: is_positive(y - x),
    "LessEqual": lambda x, y: _not(is_positive(x - y)),
    "Greater": lambda x, y: is_positive(x - y),
    "GreaterEqual": lambda x, y: _not(is_positive(y - x)),
    "BitwiseAnd": _and,
    "BitwiseOr": _or,
    "BitwiseXor": _xor,
    "RightShift": _shifted_right,
}


def _not(x: Any) -> Any:
    return 1 - x if is_symbolic(x) else not x


# Of conditions.
_LOGICAL: dict[str, Callable[..., Any]] = {
    "LogicalAnd": smaller,
    "LogicalOr": larger,
    "LogicalNot": _not,
    "Identity": lambda x: x,
}


def computed(i: Interpreter, op: Any, inputs: list[Value]) -> Known | None:
    """The elements of the result, if those of the operands are known."""
    arrays = [value.known for value in inputs if value.known is not None]
    function = _function(i, op, arrays) if len(arrays) == len(inputs) else None
    if function is None:
        return None
    broadcasted = np.broadcast_arrays(*arrays)
    results = [function(*column) for column in zip(*(array.flat for array in broadcasted), strict=True)]
    if any(result is None for result in results):
        return None
    return array_of(results, broadcasted[0].shape)


def _function(i: Interpreter, op: Any, arrays: list[Known]) -> Callable[..., Any] | None:
    """What computes an element of the result; None if that is not known, or not exact."""
    dtypes = [x.dtype for x in op.inputs]
    stays_within = all(is_within(i, x) for array in arrays for x in array.flat)
    if op.type == "Cast":
        return _cast(dtypes[0], op.outputs[0].dtype, stays_within)
    if op.type == "SelectV2":
        return selected if dtypes[1] in INTEGERS else None
    if all(dtype == tf.bool for dtype in dtypes):
        return _LOGICAL.get(op.type)
    if not all(dtype in INTEGERS for dtype in dtypes):
        return None
    return _EXACT.get(op.type) or (_CHOOSING.get(op.type) if stays_within else None)


def _cast(before: Any, after: Any, stays_within: bool) -> Callable[..., Any] | None:
    if before not in (tf.bool, *INTEGERS, *_NARROW):
        return None
    if after in INTEGERS:
        return (lambda x: x if is_symbolic(x) else int(x)) if stays_within or before == after else None
    if after in _NARROW and before != tf.bool and stays_within:
        bits, least = _NARROW[after]
        return lambda x: (x - least) % (1 << bits) + least
    return None
