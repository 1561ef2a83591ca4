"""Reductions: by the functions of `jax.lax` where the region is one operation, else by the region.

Those have rules of differentiation; a reduction by another region has JAX's general one. What is combined first is
promised by neither.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxtf.serialization._lift.arrays import of_arrays
from jaxtf.serialization._lift.ops.accumulating import REDUCERS, combined, is_identity, kind_of
from jaxtf.serialization._lift.registry import Bound, lifts
from jaxtf.serialization._program.program import Block, Operation, TensorType, Value
from jaxtf.serialization._program.regions import counts_in, extreme_direction, is_floating

__all__ = ["region_function"]


def region_function(bound: Bound, number: int = 0) -> Any:
    """A region that combines two groups of values, as `jax.lax` takes it: two arrays, or two tuples."""
    count = len(bound.operation.regions[number].arguments) // 2
    region = of_arrays(bound.regions[number])

    def combine(left: Any, right: Any) -> Any:
        return region(left, right)[0] if count == 1 else tuple(region(*left, *right))

    return combine


@lifts("stablehlo.reduce")
def reduce(bound: Bound, *operands_and_initial: Any) -> Any:
    """One or several arrays reduced together by a region over some dimensions.

    Source: StableHLO specification, `reduce`.
    """
    count = len(operands_and_initial) // 2
    operands, initial = list(operands_and_initial[:count]), list(operands_and_initial[count:])
    axes = tuple(int(axis) for axis in bound["dimensions"])
    block = bound.operation.regions[0]
    # The elements may be promoted to the dtype that the region computes in.
    dtypes = [value.type.dtype for value in block.arguments[:count]]  # type: ignore[union-attr]
    operands = [x if x.dtype == d else lax.convert_element_type(x, d) for x, d in zip(operands, dtypes, strict=True)]
    initial = [x if x.dtype == d else lax.convert_element_type(x, d) for x, d in zip(initial, dtypes, strict=True)]
    kind = kind_of(block)
    if kind in REDUCERS and count == 1 and not operands[0].dtype.name.startswith("float8_e8m0"):  # which has no 0
        reduced = REDUCERS[kind](operands[0], axes)
        if is_identity(kind, initial[0]):
            return reduced
        return combined(kind)(reduced, lax.broadcast(initial[0], reduced.shape))
    direction = _search(bound, block, axes, operands[0].shape)
    if direction is not None:
        return _extreme(direction, operands, initial, axes[0])
    if not axes:
        return _combined_once(bound, operands, initial)
    if count == 1:
        return lax.reduce(operands[0], initial[0], region_function(bound), axes)
    return lax.reduce(tuple(operands), tuple(initial), region_function(bound), axes)


def _combined_once(bound: Bound, operands: list[Any], initial: list[Any]) -> list[Any]:
    """A reduction over no dimension: each element combined with the initial value."""
    wide = [lax.broadcast(x, operands[0].shape) for x in initial]
    combine = of_arrays(bound.regions[0])
    flat = [lax.reshape(x, (math.prod(x.shape),)) for x in (*wide, *operands)]
    made = lax.map(lambda elements: tuple(combine(*elements)), tuple(flat))
    return [lax.reshape(x, operands[0].shape) for x in made]


def _search(bound: Bound, block: Block, axes: tuple[int, ...], shape: tuple[Any, ...]) -> str | None:
    """`GT` or `LT` where the first greatest or least element along one axis is looked for, and only its index used.

    The index then comes from `lax.argmax`, which JAX differentiates (it is constant), vectorizes and lowers as this.
    """
    direction = extreme_direction(block)
    if direction is None or len(axes) != 1 or not _counts(bound.operation.operands[1], axes[0], bound.sources):
        return None
    indices, count = bound.operation.operands[1], shape[axes[0]]
    assert isinstance(indices.type, TensorType), "indices are an array"
    is_ascending = counts_in(indices.type.dtype, count if isinstance(count, int) else None)
    return direction if is_ascending and not is_floating(indices) else None


def _counts(indices: Value, axis: int, sources: Mapping[Value, Operation]) -> bool:
    """Whether an array is 0, 1, 2, ... along a dimension."""
    operation = sources.get(indices)
    if operation is None:
        return False
    if operation.name in ("stablehlo.iota", "stablehlo.dynamic_iota"):
        return bool(operation.attributes["iota_dimension"] == axis)
    if operation.name != "stablehlo.broadcast_in_dim":
        return False
    dimensions = list(operation.attributes["broadcast_dimensions"])
    inner, outer = operation.operands[0], operation.results[0]
    if axis not in dimensions:
        return False
    before = dimensions.index(axis)
    kept = inner.type.shape[before] == outer.type.shape[axis]  # type: ignore[union-attr]
    return kept and _counts(inner, before, sources)


def _extreme(direction: str, operands: list[Any], initial: list[Any], axis: int) -> list[Any]:
    """The first extreme value along an axis, NaN above all, and its index; also combined with the initial pair."""
    operand, indices = operands
    search = lax.argmax if direction == "GT" else lax.argmin
    index = search(operand, axis, indices.dtype)
    value = _taken(operand, index, axis)
    if value.dtype != np.bool_ and jnp.issubdtype(value.dtype, jnp.floating):  # of several zeros it is the last one
        backwards = lax.rev(operand, (axis,))
        last = _taken(backwards, search(backwards, axis, indices.dtype), axis)
        value = lax.select(lax.eq(value, lax.full_like(value, 0)), last, value)
    if is_identity("maximum" if direction == "GT" else "minimum", initial[0]) and is_identity("add", initial[1]):
        return [value, index]  # of nothing but the worst value, too, the first element is the one
    worst, first = (lax.broadcast(x, value.shape) for x in initial)
    better = (lax.gt if direction == "GT" else lax.lt)(worst, value)
    if operand.dtype.kind not in "iub" or operand.dtype.name.startswith(("bfloat", "float")):
        better = lax.bitwise_and(lax.bitwise_or(better, lax.ne(worst, worst)), lax.eq(value, value))
        tie = lax.bitwise_or(lax.eq(worst, value), lax.bitwise_and(lax.ne(worst, worst), lax.ne(value, value)))
    else:
        tie = lax.eq(worst, value)
    earlier = lax.bitwise_and(tie, lax.lt(first, index))
    chosen = lax.bitwise_or(better, earlier)
    return [lax.select(better, worst, value), lax.select(chosen, first, index)]


def _taken(operand: Any, index: Any, axis: int) -> Any:
    """The element of each line along an axis at an index."""
    there = lax.expand_dims(index, (axis,))
    return lax.squeeze(jnp.take_along_axis(operand, there, axis, mode="promise_in_bounds"), (axis,))
