"""Operations whose operands are all known sizes, evaluated in Python: they give known sizes again.

What is folded is small: scalars, and vectors as long as shapes are. Everything else is evaluated by JAX.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from jaxtf.serialization._lift.sizes import ELEMENTS, Known, compared, known_array
from jaxtf.serialization._program.program import Operation, TensorType

__all__ = ["folded", "known_constant"]

# More elements than a shape, or a table of paddings, has.
_MOST_ELEMENTS = 512


def known_constant(value: np.ndarray[Any, Any]) -> Known | None:
    """A small array of integers or truth values as known sizes; None for any other."""
    if value.size > _MOST_ELEMENTS or value.ndim > 2 or value.dtype.kind not in "biu":
        return None
    return known_array(value.dtype, value.flatten().tolist(), value.shape)


def folded(operation: Operation, operands: Sequence[Known]) -> Known | None:
    """The result of an operation on known sizes; None if it is to be evaluated by JAX."""
    if len(operation.results) != 1 or operation.regions or not operands:
        return None
    type_ = operation.results[0].type
    name = operation.name.removeprefix("stablehlo.")
    if not isinstance(type_, TensorType) or type_.dtype.kind not in "biu":
        return None
    if name in _MOVED:
        elements = _MOVED[name](operation, operands)
        return None if elements is None else Known(type_.dtype, elements)
    if name not in ELEMENTS and name not in ("compare", "convert"):
        return None
    if name in _BITWISE and type_.dtype.kind != "b":
        return None
    return _elementwise(name, operation, operands, type_)


_BITWISE = ("and", "or", "not")


def _elementwise(name: str, operation: Operation, operands: Sequence[Known], type_: TensorType) -> Known | None:
    arrays = [operand.elements for operand in operands]
    if len({array.shape for array in arrays}) > 1:
        return None
    columns = zip(*(array.flat for array in arrays), strict=True)
    if name == "compare":
        direction = operation.attributes["comparison_direction"]
        made = [compared(direction, left, right) for left, right in columns]
    elif name == "convert":
        made = _converted(operands[0], type_.dtype)
    else:
        made = [ELEMENTS[name](*column) for column in columns]
    return known_array(type_.dtype, made, arrays[0].shape)


def _converted(operand: Known, dtype: np.dtype[Any]) -> list[Any]:
    """Elements in another dtype: a truth value as 0 or 1, a number as whether it is not 0."""
    elements = list(operand.elements.flat)
    if dtype == operand.dtype:
        return elements
    if dtype == np.bool_:
        return [compared("NE", element, 0) for element in elements]
    if operand.dtype == np.bool_:
        return [ELEMENTS["select"](element, 1, 0) for element in elements]
    return elements


def _broadcast(operation: Operation, operands: Sequence[Known]) -> Any:
    type_ = operation.results[0].type
    assert isinstance(type_, TensorType)
    shape = [size for size in type_.shape if size is not None]
    if len(shape) != type_.rank or np.prod(shape, dtype=np.int64) > _MOST_ELEMENTS or len(shape) > 2:
        return None
    elements, dimensions = operands[0].elements, list(operation.attributes["broadcast_dimensions"])
    placed = [1] * len(shape)
    for axis, size in zip(dimensions, elements.shape, strict=True):
        placed[axis] = size
    return np.broadcast_to(elements.transpose(np.argsort(dimensions)).reshape(placed), shape)


def _reshaped(operation: Operation, operands: Sequence[Known]) -> Any:
    type_ = operation.results[0].type
    assert isinstance(type_, TensorType)
    return None if None in type_.shape else operands[0].elements.reshape(type_.shape)


def _sliced(operation: Operation, operands: Sequence[Known]) -> Any:
    given = operation.attributes
    parts = zip(given["start_indices"], given["limit_indices"], given["strides"], strict=True)
    return operands[0].elements[tuple(slice(*part) for part in parts)]


_MOVED: Mapping[str, Callable[[Operation, Sequence[Known]], Any]] = {
    "broadcast_in_dim": _broadcast,
    "concatenate": lambda operation, operands: np.concatenate(
        [operand.elements for operand in operands], axis=operation.attributes["dimension"]
    ),
    "reshape": _reshaped,
    "slice": _sliced,
    "transpose": lambda operation, operands: operands[0].elements.transpose(operation.attributes["permutation"]),
}
