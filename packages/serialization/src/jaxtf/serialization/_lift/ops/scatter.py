"""Scattering: updates combined with slices of an array, at positions that are operands; those outside are left out.

Where the region adds, multiplies, takes the lesser or greater, or the update itself, it is a function of `jax.lax` with
rules of differentiation. Any other region is applied to one slice after the other, in row-major order of the updates.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np
from jax import lax

from jaxtf.serialization._lift.arrays import of_arrays
from jaxtf.serialization._lift.errors import unsupported
from jaxtf.serialization._lift.ops.accumulating import kind_of
from jaxtf.serialization._lift.ops.indexing import indices_last
from jaxtf.serialization._lift.registry import Bound, lifts
from jaxtf.serialization._program.program import Block

SCATTERS: dict[str, Callable[..., Any]] = {
    "add": lax.scatter_add,
    "multiply": lax.scatter_mul,
    "minimum": lax.scatter_min,
    "maximum": lax.scatter_max,
    "subtract": lax.scatter_sub,
    "replace": lax.scatter,
}


@lifts(
    "stablehlo.scatter",
    differs="of positions that occur more than once, with a region that is not associative, the order is row-major",
)
def scatter(bound: Bound, *operands: Any) -> Any:
    """The operands with their slices at positions combined with updates by a region.

    Source: StableHLO specification, `scatter`.
    """
    count = (len(operands) - 1) // 2
    arrays, positions, updates = operands[:count], operands[count], operands[count + 1 :]
    numbers: Mapping[str, Any] = bound["scatter_dimension_numbers"]
    indices = indices_last(positions, numbers["index_vector_dim"])
    dimension_numbers = _dimension_numbers(numbers)
    kind = _kind(bound.operation.regions[0]) if count == 1 else None
    if kind is not None and arrays[0].dtype != np.bool_:
        return SCATTERS[kind](
            arrays[0],
            indices,
            updates[0],
            dimension_numbers,
            indices_are_sorted=bool(bound.get("indices_are_sorted", False)),
            unique_indices=bool(bound.get("unique_indices", False)),
            mode=lax.GatherScatterMode.FILL_OR_DROP,
        )
    if kind == "replace":
        return lax.scatter(arrays[0], indices, updates[0], dimension_numbers, mode=lax.GatherScatterMode.FILL_OR_DROP)
    return _one_after_the_other(bound, arrays, indices, updates, dimension_numbers)


def _kind(block: Block) -> str | None:
    """The operation that a region is, `replace` if it gives the update."""
    if not block.operations and block.returned == (block.arguments[1],):
        return "replace"
    kind = kind_of(block)
    if kind is None and len(block.operations) == 1:
        (operation,) = block.operations
        if operation.name == "stablehlo.subtract" and operation.operands == block.arguments:
            return "subtract" if operation.results == block.returned else None
    return kind if kind in SCATTERS else None


def _dimension_numbers(numbers: Mapping[str, Any]) -> lax.ScatterDimensionNumbers:
    moved = numbers["index_vector_dim"]
    return lax.ScatterDimensionNumbers(
        update_window_dims=tuple(numbers["update_window_dims"]),
        inserted_window_dims=tuple(numbers["inserted_window_dims"]),
        scatter_dims_to_operand_dims=tuple(numbers["scatter_dims_to_operand_dims"]),
        operand_batching_dims=tuple(numbers["input_batching_dims"]),
        scatter_indices_batching_dims=tuple(d - (d > moved) for d in numbers["scatter_indices_batching_dims"]),
    )


def _one_after_the_other(
    bound: Bound, arrays: Sequence[Any], indices: Any, updates: Sequence[Any], numbers: lax.ScatterDimensionNumbers
) -> list[Any]:
    """Each slice combined with its update by the region, elementwise, in order."""
    shape = updates[0].shape
    scattered = [i for i in range(len(shape)) if i not in numbers.update_window_dims]
    batch = [shape[i] for i in scattered]
    if not all(isinstance(size, int) for size in shape):
        raise unsupported(bound.operation, "a region that is not one operation, with a symbolic size")
    order = (*scattered, *numbers.update_window_dims)
    window = [shape[i] for i in numbers.update_window_dims]
    rows = [lax.reshape(lax.transpose(x, order), (math.prod(batch), *window)) for x in updates]
    places = lax.reshape(_wide_enough(indices), (math.prod(batch), indices.shape[-1]))
    kept = [
        i for i in range(arrays[0].ndim) if i not in (*numbers.inserted_window_dims, *numbers.operand_batching_dims)
    ]
    extent = [1] * arrays[0].ndim
    for axis, size in zip(kept, window, strict=True):
        extent[axis] = size
    counters = np.indices(batch).reshape(len(batch), math.prod(batch))
    combine = _elementwise(bound)

    def step(state: tuple[Any, ...], row: Any) -> tuple[tuple[Any, ...], None]:
        place, batches, *parts = row
        starts: list[Any] = [np.zeros((), place.dtype)] * len(extent)
        for position, axis in enumerate(numbers.scatter_dims_to_operand_dims):
            starts[axis] = place[position]
        for axis, own in zip(numbers.operand_batching_dims, numbers.scatter_indices_batching_dims, strict=True):
            starts[axis] = lax.convert_element_type(batches[own], place.dtype)
        limits = [size - length for size, length in zip(state[0].shape, extent, strict=True)]
        fits: Any = np.asarray(True)
        for start, limit in zip(starts, limits, strict=True):
            inside = lax.bitwise_and(lax.ge(start, lax.full_like(start, 0)), lax.le(start, lax.full_like(start, limit)))
            fits = lax.bitwise_and(fits, inside)
        old = [lax.dynamic_slice(x, starts, extent, allow_negative_indices=False) for x in state]
        new = combine(*old, *(lax.reshape(part, extent) for part in parts))
        kept_or_new = [lax.select(lax.broadcast(fits, n.shape), n, o) for n, o in zip(new, old, strict=True)]
        updated = [
            lax.dynamic_update_slice(x, n, starts, allow_negative_indices=False)
            for x, n in zip(state, kept_or_new, strict=True)
        ]
        return tuple(updated), None

    if any(limit < 0 for limit in (s - e for s, e in zip(arrays[0].shape, extent, strict=True))):
        return list(arrays)
    rows_of_batch = np.ascontiguousarray(counters.T.astype(np.int32)).reshape(math.prod(batch), len(batch))
    return list(lax.scan(step, tuple(arrays), (places, rows_of_batch, *rows))[0])


def _wide_enough(indices: Any) -> Any:
    """Indices in signed integers that hold every size; those that these do not hold become negative ones, outside."""
    is_wide = indices.dtype.itemsize == 8
    return lax.convert_element_type(indices, np.dtype(np.int64 if is_wide else np.int32))


def _elementwise(bound: Bound) -> Callable[..., list[Any]]:
    """The region of scalars, applied to arrays."""

    def apply(*operands: Any) -> list[Any]:
        shape = operands[0].shape
        flat = [lax.reshape(x, (math.prod(shape),)) for x in operands]
        made = jax.vmap(of_arrays(bound.regions[0]))(*flat)
        return [lax.reshape(x, shape) for x in made]

    return apply
