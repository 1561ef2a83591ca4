"""Elements at positions that are operands. Those outside are moved inside, as StableHLO says, not counted backwards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jax import lax

from jaxtf.serialization._lift.arrays import as_array
from jaxtf.serialization._lift.registry import Bound, lifts
from jaxtf.serialization._lift.sizes import Known, known_integers

__all__ = ["indices_last"]


@lifts("stablehlo.dynamic_slice")
def dynamic_slice(bound: Bound, operand: Any, *starts: Any) -> Any:
    """A slice of known sizes that starts at positions that are operands.

    Source: StableHLO specification, `dynamic_slice`.
    """
    sizes = [int(size) for size in bound["slice_sizes"]]
    return lax.dynamic_slice(operand, starts, sizes, allow_negative_indices=False)


@lifts("stablehlo.dynamic_update_slice")
def dynamic_update_slice(bound: Bound, operand: Any, update: Any, *starts: Any) -> Any:
    """The operand with a slice replaced.

    Source: StableHLO specification, `dynamic_update_slice`.
    """
    return lax.dynamic_update_slice(operand, update, starts, allow_negative_indices=False)


def indices_last(indices: Any, index_vector_dim: int) -> Any:
    """Indices with the dimension of their vectors last; one of size 1 where they have none."""
    rank = indices.ndim
    if index_vector_dim == rank:
        return lax.expand_dims(indices, (rank,))
    if index_vector_dim == rank - 1:
        return indices
    return lax.transpose(indices, (*(i for i in range(rank) if i != index_vector_dim), index_vector_dim))


@lifts("stablehlo.gather")
def gather(bound: Bound, operand: Any, indices: Any) -> Any:
    """Slices of known sizes from positions that are operands.

    Source: StableHLO specification, `gather`.
    """
    return gathered(bound, operand, indices, [int(size) for size in bound["slice_sizes"]])


@lifts("stablehlo.dynamic_gather", takes_sizes=True)
def dynamic_gather(bound: Bound, operand: Any, indices: Any, sizes: Any) -> Any:
    """As `gather`, with slices of sizes that are an operand.

    Source: StableHLO specification, `dynamic_gather`.
    """
    from_sizes = known_integers(sizes) if isinstance(sizes, Known) else [int(size) for size in sizes]
    return gathered(bound, as_array(operand), as_array(indices), from_sizes)


def gathered(bound: Bound, operand: Any, indices: Any, sizes: Sequence[Any]) -> Any:
    """The slices; positions are clamped, in derivatives too."""
    numbers: Mapping[str, Any] = bound["dimension_numbers"]
    return lax.gather(
        operand,
        indices_last(indices, numbers["index_vector_dim"]),
        lax.GatherDimensionNumbers(
            offset_dims=tuple(numbers["offset_dims"]),
            collapsed_slice_dims=tuple(numbers["collapsed_slice_dims"]),
            start_index_map=tuple(numbers["start_index_map"]),
            operand_batching_dims=tuple(numbers["operand_batching_dims"]),
            start_indices_batching_dims=_without(numbers["start_indices_batching_dims"], numbers["index_vector_dim"]),
        ),
        slice_sizes=tuple(sizes),
        indices_are_sorted=bool(bound.get("indices_are_sorted", False)),
        mode=lax.GatherScatterMode.CLIP,
    )


def _without(dimensions: Sequence[int], moved: int) -> tuple[int, ...]:
    """Dimensions after one has been moved to the end."""
    return tuple(dimension - (dimension > moved) for dimension in dimensions)


@lifts("stablehlo.torch_index_select")
def torch_index_select(bound: Bound, operand: Any, indices: Any) -> Any:
    """The slices of the operand at indices along a dimension, for each element of the batch dimensions.

    Source: XLA, `TorchIndexSelect`.
    """
    dim, batch = int(bound["dim"]), int(bound["batch_dims"])
    shape = operand.shape
    offset = [i for i in range(operand.ndim + indices.ndim - 1 - batch) if not dim <= i < dim + indices.ndim - batch]
    numbers = lax.GatherDimensionNumbers(
        offset_dims=tuple(offset[batch:]),
        collapsed_slice_dims=(dim,),
        start_index_map=(dim,),
        operand_batching_dims=tuple(range(batch)),
        start_indices_batching_dims=tuple(range(batch)),
    )
    sizes = tuple(1 if i == dim or i < batch else size for i, size in enumerate(shape))
    return lax.gather(operand, lax.expand_dims(indices, (indices.ndim,)), numbers, sizes, mode="clip")
