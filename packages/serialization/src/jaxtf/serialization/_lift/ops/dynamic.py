"""Operations whose sizes are operands: what symbolic shapes are lowered to. The sizes are known while JAX traces."""

from __future__ import annotations

from typing import Any

import numpy as np
from jax import lax

from jaxtf.serialization._lift.arrays import as_array
from jaxtf.serialization._lift.errors import unsupported
from jaxtf.serialization._lift.ops.shapes import counting
from jaxtf.serialization._lift.registry import Bound, lifts
from jaxtf.serialization._lift.sizes import Known, known_array, known_integers


def sizes_of(bound: Bound, operand: Any) -> list[Any]:
    """The elements of a vector of sizes: integers and symbolic dimensions."""
    if not isinstance(operand, Known):
        raise unsupported(
            bound.operation,
            "a size that is computed from values, and not from the sizes of arguments: a JAX function cannot have one",
        )
    return known_integers(operand)


@lifts("stablehlo.get_dimension_size", takes_sizes=True)
def get_dimension_size(bound: Bound, operand: Any) -> Any:
    """One size of the operand.

    Source: StableHLO specification, `get_dimension_size`.
    """
    return known_array(np.dtype(np.int32), [operand.shape[bound["dimension"]]], ())


@lifts("stablehlo.set_dimension_size", takes_sizes=True)
def set_dimension_size(bound: Bound, operand: Any, size: Any) -> Any:
    """The first elements along one dimension, up to the given size, if the type of the result leaves it open.

    Source: StableHLO specification, `set_dimension_size`.
    """
    (kept,), axis = sizes_of(bound, size), int(bound["dimension"])
    operand = as_array(operand)
    if kept == operand.shape[axis]:
        return operand
    if bound.result_type.shape[axis] is not None:
        raise unsupported(bound.operation, f"not the whole of dimension {axis}: a JAX array has no size but its shape")
    return lax.slice_in_dim(operand, 0, kept, axis=axis)


@lifts("stablehlo.dynamic_broadcast_in_dim", takes_sizes=True)
def dynamic_broadcast_in_dim(bound: Bound, operand: Any, shape: Any) -> Any:
    """As `broadcast_in_dim`, to a shape that is an operand.

    Source: StableHLO specification, `dynamic_broadcast_in_dim`.
    """
    dimensions = bound["broadcast_dimensions"]
    order = sorted(range(len(dimensions)), key=lambda i: dimensions[i])
    operand = as_array(operand)
    if order != list(range(len(order))):
        operand = lax.transpose(operand, order)
    return lax.broadcast_in_dim(operand, sizes_of(bound, shape), sorted(dimensions))


@lifts("stablehlo.dynamic_reshape", takes_sizes=True)
def dynamic_reshape(bound: Bound, operand: Any, shape: Any) -> Any:
    """As `reshape`, to a shape that is an operand.

    Source: StableHLO specification, `dynamic_reshape`.
    """
    return lax.reshape(as_array(operand), sizes_of(bound, shape))


@lifts("stablehlo.dynamic_iota", takes_sizes=True)
def dynamic_iota(bound: Bound, shape: Any) -> Any:
    """As `iota`, in a shape that is an operand.

    Source: StableHLO specification, `dynamic_iota`.
    """
    return counting(bound.result_type.dtype, tuple(sizes_of(bound, shape)), bound["iota_dimension"])


@lifts("stablehlo.dynamic_pad", takes_sizes=True)
def dynamic_pad(bound: Bound, operand: Any, value: Any, *amounts: Any) -> Any:
    """As `pad`, with amounts that are operands.

    Source: StableHLO specification, `dynamic_pad`.
    """
    columns = [sizes_of(bound, vector) for vector in amounts]
    return lax.pad(as_array(operand), as_array(value), list(zip(*columns, strict=True)))


@lifts("stablehlo.real_dynamic_slice", takes_sizes=True)
def real_dynamic_slice(bound: Bound, operand: Any, start: Any, limit: Any, stride: Any) -> Any:
    """As `slice`, with bounds that are operands; where the sizes of the result are known, the start need not be.

    Source: StableHLO specification, `real_dynamic_slice`.
    """
    operand = as_array(operand)
    if all(isinstance(vector, Known) for vector in (start, limit, stride)):
        first, last, step = (sizes_of(bound, vector) for vector in (start, limit, stride))
        return lax.slice(operand, first, last, step)
    extent = _extent(bound)
    if extent is None:
        raise unsupported(bound.operation, "bounds that are computed from values, and not from the sizes of arguments")
    first = as_array(start)
    starts = [lax.index_in_dim(first, axis, keepdims=False) for axis in range(operand.ndim)]
    return lax.dynamic_slice(operand, starts, extent, allow_negative_indices=False)


def _extent(bound: Bound) -> list[Any] | None:
    """The sizes of a slice whose limit is its start and these; None if it is not so, or the slice leaves out some."""
    _, start, limit, stride = bound.operation.operands
    step, addition = bound.value(stride), bound.sources.get(limit)
    if not isinstance(step, Known) or any(size != 1 for size in known_integers(step)):
        return None
    if addition is None or addition.name != "stablehlo.add" or start not in addition.operands:
        return None
    left, right = addition.operands
    extent = bound.value(right if left is start else left)
    return known_integers(extent) if isinstance(extent, Known) else None
