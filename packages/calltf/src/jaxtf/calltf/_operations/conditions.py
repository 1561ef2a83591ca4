"""What an entry asks of sizes: that they are equal, not negative, numbers, within 32 bits.

What TensorFlow refuses is looked at when the program runs, if it is not decided for all sizes (`Interpreter.require`).
What only a program for all sizes needs is refused by the name of the operation.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from jaxtf.calltf._interpreter import Interpreter
from jaxtf.calltf._jax import is_symbolic
from jaxtf.calltf._symbolic_values import Shape, Value, decided, same


def broadcast(i: Interpreter, op: Any, shapes: Iterable[Shape]) -> Shape:
    """The common shape of operands: sizes are equal for all sizes, or one of them is the number 1."""
    result: list[Any] = []
    for shape in shapes:
        longer = max(len(result), len(shape))
        pairs = zip([1] * (longer - len(result)) + result, [1] * (longer - len(shape)) + list(shape), strict=True)
        result = [_broadcast_size(i, op, x, y) for x, y in pairs]
    return tuple(result)


def _broadcast_size(i: Interpreter, op: Any, x: Any, y: Any) -> Any:
    if is_one(x):
        return y
    if is_one(y) or same(x, y):
        return x
    raise i.refused(op, f"broadcasts sizes {x} and {y}, not equal for all sizes,")


def is_one(size: Any) -> bool:
    """Whether a size is the number 1, along which TensorFlow broadcasts."""
    return not is_symbolic(size) and size == 1


def require_same(i: Interpreter, op: Any, x: Sequence[Any], y: Sequence[Any]) -> None:
    """Requires shapes to be equal."""
    what = f"has operands of shapes {list(x)} and {list(y)}"
    if len(x) != len(y):
        raise i.refused(op, f"{what},")
    for size, other in zip(x, y, strict=True):
        i.require(op, size, "==", other, what)


def is_within(i: Interpreter, number: Any) -> bool:
    """Whether an integer cannot leave 32 bits, in which JAX computes sizes.

    Arrays have at most 2**31 - 2**21 elements.
    """
    if not is_symbolic(number):
        return bool(abs(number) < 1 << 31)
    if decided(operator.ge, (1 << 31) - 1, number) and decided(operator.ge, number, -(1 << 31)):
        return True
    limits = [count + (1 << 20) for count in i.counts]
    return any(
        decided(operator.ge, limit, number) is True and decided(operator.ge, number + limit, 0) is True
        for limit in limits
    )


def bounded(i: Interpreter, op: Any, number: Any) -> Any:
    """The number, if it cannot leave 32 bits."""
    if not is_within(i, number):
        raise i.refused(op, f"has a bound {number} that may leave 32 bits,")
    return number


def not_negative(i: Interpreter, op: Any, numbers: Iterable[Any]) -> None:
    """Requires sizes not to be negative."""
    for number in numbers:
        i.require(op, number, ">=", 0, f"has a size {number}")


def constant_size(i: Interpreter, op: Any, size: Any) -> Any:
    """The size, if it is a number."""
    if is_symbolic(size):
        raise i.refused(op, f"needs a size to be a number, but it is {size},")
    return size


def indices_within(i: Interpreter, op: Any, indices: Value, sizes: Shape, *, dropped_below: bool = False) -> None:
    """Requires constant indices to be of elements that there are; those that are computed are data.

    Args:
      i: The interpreter.
      op: The operation.
      indices: Of one axis, or of several along the last axis of the indices.
      sizes: Of that axis, or of these.
      dropped_below: Whether TensorFlow drops what has a negative index.
    """
    places = _constants(indices)
    if places is None or not places.size:
        return
    columns = places.reshape(-1, len(sizes)) if len(sizes) > 1 else places.reshape(-1, 1)
    for size, column in zip(sizes, columns.T, strict=True):
        least, most = int(min(column)), int(max(column))
        if not dropped_below:
            i.require(op, least, ">=", 0, f"takes element {least} of {size}")
        i.require(op, size, ">=", most + 1, f"takes element {most} of {size}")


def _constants(value: Value) -> np.ndarray[Any, Any] | None:
    """The elements of a tensor that are the same for all sizes, however many; None if they are not known."""
    if value.known is not None:
        return value.known if value.is_constant else None
    # Of integers, in which it reads nothing that NumPy deprecates.
    found = tf.get_static_value(value.tensor) if value.is_static else None  # noqa: TID251
    return found if isinstance(found, np.ndarray) else None
