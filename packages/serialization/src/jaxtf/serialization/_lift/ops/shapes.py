"""Where elements are: broadcasting, reshaping, transposing, joining, padding, slicing."""

from __future__ import annotations

from typing import Any

import numpy as np
from jax import lax

from jaxtf.serialization._lift.errors import unsupported
from jaxtf.serialization._lift.registry import Bound, lifts

__all__ = ["static_shape"]


def static_shape(bound: Bound) -> tuple[int, ...]:
    """The shape of the only result, which its type knows."""
    shape = bound.result_type.shape
    if None in shape:
        raise unsupported(bound.operation, "the type of its result leaves a size open, and no operand gives it")
    return tuple(size for size in shape if size is not None)


@lifts("stablehlo.broadcast_in_dim")
def broadcast_in_dim(bound: Bound, operand: Any) -> Any:
    """Repeats elements along new dimensions and along those of size 1.

    Source: StableHLO specification, `broadcast_in_dim`.
    """
    dimensions = bound["broadcast_dimensions"]
    if not operand.ndim and not static_shape(bound):
        return operand  # a constant stays one: of a reduction, the initial value is looked at
    order = sorted(range(len(dimensions)), key=lambda i: dimensions[i])
    if order != list(range(len(order))):
        operand = lax.transpose(operand, order)
    return lax.broadcast_in_dim(operand, static_shape(bound), sorted(dimensions))


@lifts("stablehlo.broadcast")
def broadcast(bound: Bound, operand: Any) -> Any:
    """Repeats the operand along new leading dimensions.

    Source: XLA operation semantics, `Broadcast`.
    """
    return lax.broadcast(operand, tuple(int(size) for size in bound["broadcast_sizes"]))


@lifts("stablehlo.reshape")
def reshape(bound: Bound, operand: Any) -> Any:
    """The same elements in row-major order in another shape.

    Source: StableHLO specification, `reshape`.
    """
    return lax.reshape(operand, static_shape(bound))


@lifts("stablehlo.transpose")
def transpose(bound: Bound, operand: Any) -> Any:
    """Dimensions in another order.

    Source: StableHLO specification, `transpose`.
    """
    return lax.transpose(operand, tuple(bound["permutation"]))


@lifts("stablehlo.concatenate")
def concatenate(bound: Bound, *operands: Any) -> Any:
    """One after the other along a dimension.

    Source: StableHLO specification, `concatenate`.
    """
    return lax.concatenate(operands, bound["dimension"])


@lifts("stablehlo.reverse")
def reverse(bound: Bound, operand: Any) -> Any:
    """Backwards along the given dimensions.

    Source: StableHLO specification, `reverse`.
    """
    return lax.rev(operand, tuple(bound["dimensions"]))


@lifts("stablehlo.iota")
def iota(bound: Bound) -> Any:
    """0, 1, 2, ... along one dimension.

    Source: StableHLO specification, `iota`.
    """
    return counting(bound.result_type.dtype, static_shape(bound), bound["iota_dimension"])


def counting(dtype: np.dtype[Any], shape: tuple[Any, ...], dimension: int) -> Any:
    """Indices along a dimension, in dtypes too for which JAX has none."""
    if dtype.kind in "iu" or dtype.name in ("float32", "float64", "float16", "bfloat16"):
        return lax.broadcasted_iota(dtype, shape, dimension)
    return lax.convert_element_type(lax.broadcasted_iota(np.dtype(np.int32), shape, dimension), dtype)


@lifts("stablehlo.pad")
def pad(bound: Bound, operand: Any, value: Any) -> Any:
    """The operand with a value around it and between its elements; cut where the amount is negative.

    Source: StableHLO specification, `pad`.
    """
    amounts = zip(bound["edge_padding_low"], bound["edge_padding_high"], bound["interior_padding"], strict=True)
    return lax.pad(operand, value, list(amounts))


@lifts("stablehlo.slice")
def slice_(bound: Bound, operand: Any) -> Any:
    """Every so many elements between two bounds of each dimension.

    Source: StableHLO specification, `slice`.
    """
    strides = tuple(bound["strides"])
    return lax.slice(
        operand, bound["start_indices"], bound["limit_indices"], None if all(s == 1 for s in strides) else strides
    )
