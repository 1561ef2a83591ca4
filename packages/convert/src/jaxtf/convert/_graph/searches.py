"""Searches for the first extreme along a dimension, as JAX writes them: a reduction of values and their indices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import tensorflow as tf

from jaxtf.convert._graph.broadcasts import before_broadcasts, uniform_value
from jaxtf.serialization.interop import Operation, TensorType, Value, counts_in, extreme_direction

__all__ = ["SEARCHES", "TAKES_VALUE", "search"]

SEARCHES, TAKES_VALUE = "searches", "takes_value"
"""The attribute of a reduction that is a search: `GT` for the greatest value, `LT` for the least."""

Sources = Mapping[Value, Operation]


def search(operation: Operation, sources: Sources) -> Operation | None:
    """A reduction, along one dimension, to the greater or lesser value, NaN above all, with the least index of it.

    So it is where the indices count the elements, of which there are some, and the initial value is the worst, at index
    0.
    """
    dimensions = operation.attributes["dimensions"]
    if len(operation.operands) != 4 or len(dimensions) != 1:
        return None
    _, indices, worst, first = operation.operands
    assert isinstance(indices.type, TensorType), "indices are an array"
    if not indices.type.shape[dimensions[0]] and indices.type.shape[dimensions[0]] is not None:
        return None
    direction = extreme_direction(operation.regions[0])
    if direction is None or not _counts(indices, int(dimensions[0]), sources):
        return None
    start, number = uniform_value(worst, sources), uniform_value(first, sources)
    if start is None or start != _worst(direction, start.dtype) or number is None or number != 0:
        return None
    return replace(operation, attributes={**operation.attributes, SEARCHES: direction})


def _worst(direction: str, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """The least value for the search of the greatest, and the greatest for that of the least."""
    if dtype == np.bool_:
        return np.asarray(direction == "LT")
    is_greatest = direction == "GT"
    if not tf.as_dtype(dtype).is_floating:
        integers = ml_dtypes.iinfo(dtype)  # type: ignore[no-untyped-call]
        return np.asarray(integers.min if is_greatest else integers.max, dtype)
    infinity = np.asarray(-np.inf if is_greatest else np.inf).astype(dtype)
    if np.isinf(infinity):
        return infinity
    floats = ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]
    return np.asarray(floats.min if is_greatest else floats.max, dtype)


def _counts(indices: Value, axis: int, sources: Sources) -> bool:
    """Whether an array is 0, 1, 2, ... along a dimension."""
    source, dimensions = before_broadcasts(indices, sources)
    operation = sources.get(source)
    if operation is None:
        return False
    if operation.name in ("stablehlo.iota", "stablehlo.dynamic_iota"):
        assert isinstance(indices.type, TensorType), "indices are an array"
        is_along = bool(dimensions[operation.attributes["iota_dimension"]] == axis)
        dtype = np.dtype(tf.as_dtype(indices.type.dtype).as_numpy_dtype)
        return is_along and counts_in(dtype, indices.type.shape[axis])
    if operation.name != "stablehlo.constant" or axis not in dimensions:
        return False
    array = operation.attributes["value"]
    size = array.shape[dimensions.index(axis)]
    numbers = np.arange(size).reshape([-1 if d == axis else 1 for d in dimensions])
    return size == indices.type.shape[axis] and bool(np.all(array == numbers))  # type: ignore[union-attr]
