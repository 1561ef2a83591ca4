"""Scatters of several updates without an index, written with one.

All updates are for the same place then. XLA, as jaxlib 0.10 and TensorFlow 2.21 have it (that of jaxlib 0.12 does not),
combines only the last of them.
"""

from __future__ import annotations

from typing import Any

from jax.extend.mlir import ir
from jax.extend.mlir.dialects import stablehlo

from jaxtf.serialization._program.constants import zero_of

__all__ = ["give_an_index", "has_no_index"]


def has_no_index(scatter: Any) -> bool:
    """Whether a scatter has several updates, or an unknown number, and no index, and can have one."""
    numbers = _numbers(scatter)
    if numbers.scattered_dims_to_operand_dims or _dimension(scatter) is None:
        return False
    indices = _indices(scatter)
    batches = [i for i in range(indices.rank) if i != numbers.index_vector_dim]
    return any(indices.is_dynamic_dim(i) or indices.shape[i] != 1 for i in batches)


def give_an_index(scatter: Any) -> None:
    """Gives a scatter without an index, in place, the index 0 of a dimension that it does not go through in batches."""
    numbers, indices = _numbers(scatter), _indices(scatter)
    place = _place_of_indices(scatter)
    nothing = [0] * indices.rank
    one_more = [int(i == numbers.index_vector_dim) for i in range(indices.rank)]
    with ir.InsertionPoint(scatter), scatter.location:
        padded = stablehlo.pad(scatter.operands[place], zero_of(indices.element_type), nothing, one_more, nothing)
    scatter.operands[place] = padded
    scatter.attributes["scatter_dimension_numbers"] = stablehlo.ScatterDimensionNumbers.get(
        list(numbers.update_window_dims),
        list(numbers.inserted_window_dims),
        list(numbers.input_batching_dims),
        list(numbers.scatter_indices_batching_dims),
        [_dimension(scatter)],
        numbers.index_vector_dim,
    )


def _numbers(scatter: Any) -> Any:
    return stablehlo.ScatterDimensionNumbers(scatter.attributes["scatter_dimension_numbers"])


def _place_of_indices(scatter: Any) -> int:
    """Which operand the indices are: as many arrays come before as updates after."""
    return len(scatter.operands) // 2


def _indices(scatter: Any) -> Any:
    return ir.RankedTensorType(scatter.operands[_place_of_indices(scatter)].type)


def _dimension(scatter: Any) -> int | None:
    """A dimension of the arrays that may have an index; None if there is none."""
    rank = ir.RankedTensorType(scatter.operands[0].type).rank
    return next((i for i in range(rank) if i not in _numbers(scatter).input_batching_dims), None)
