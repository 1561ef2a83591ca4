"""Products of arrays summed over dimensions, with the precision and the algorithm that the module asks for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxtf.serialization._lift.ops.conversion import converted
from jaxtf.serialization._lift.registry import Bound, lifts
from jaxtf.serialization._program.attributes import dtype_of_text
from jaxtf.serialization._program.product_dtypes import dtype_of_products
from jaxtf.serialization._record.avals import dtype_from_name

__all__ = ["in_summed_dtype", "precision_of"]


def precision_of(bound: Bound) -> Any:
    """The precision of each operand; explicitly the default, whatever JAX is configured to."""
    given = bound.get("precision_config") or ("DEFAULT", "DEFAULT")
    left, right = (lax.Precision[name] for name in given)
    return left, right


def _algorithm(given: Mapping[str, Any]) -> Any:
    """The algorithm of a product, as JAX has it: a preset, if there is one, for platforms know presets."""
    preset = _preset(given)
    if preset is not None:
        return preset

    def dtype(name: str) -> np.dtype[Any]:
        return dtype_from_name(dtype_of_text(given[name]))  # type: ignore[no-any-return]

    return lax.DotAlgorithm(
        lhs_precision_type=dtype("lhs_precision_type"),
        rhs_precision_type=dtype("rhs_precision_type"),
        accumulation_type=dtype("accumulation_type"),
        lhs_component_count=given["lhs_component_count"],
        rhs_component_count=given["rhs_component_count"],
        num_primitive_operations=given["num_primitive_operations"],
        allow_imprecise_accumulation=given["allow_imprecise_accumulation"],
    )


def _preset(given: Mapping[str, Any]) -> Any:
    """The preset of JAX for an algorithm: `BF16_BF16_F32_X3`, by the types and the number of operations."""
    if given["allow_imprecise_accumulation"] or given["lhs_component_count"] != 1 or given["rhs_component_count"] != 1:
        return None
    types = [given[f"{part}_type"].upper() for part in ("lhs_precision", "rhs_precision", "accumulation")]
    count = int(given["num_primitive_operations"])
    return getattr(lax.DotAlgorithmPreset, "_".join([*types, *([f"X{count}"] if count > 1 else [])]), None)


@lifts("stablehlo.dot_general")
def dot_general(bound: Bound, left: Any, right: Any) -> Any:
    """The sum of products over contracting dimensions, in the dtype that XLA sums in.

    Source: StableHLO specification, `dot_general`.
    """
    numbers: Mapping[str, Sequence[int]] = bound["dot_dimension_numbers"]
    dimensions = (
        (numbers["lhs_contracting_dimensions"], numbers["rhs_contracting_dimensions"]),
        (numbers["lhs_batching_dimensions"], numbers["rhs_batching_dimensions"]),
    )
    algorithm = bound.get("algorithm")
    precision = precision_of(bound) if algorithm is None else _algorithm(algorithm)
    return contracted(bound, left, right, dimensions, precision)


@lifts("stablehlo.dot")
def dot(bound: Bound, left: Any, right: Any) -> Any:
    """The last dimension of the left with the first of the right.

    Source: XLA operation semantics, `Dot`.
    """
    return contracted(bound, left, right, (((left.ndim - 1,), (0,)), ((), ())), precision_of(bound))


def contracted(bound: Bound, left: Any, right: Any, dimensions: Any, precision: Any) -> Any:
    """The product, summed in the dtype that XLA sums in, in that of the result."""
    left, right, summed = in_summed_dtype(bound, left, right)
    product = lax.dot_general(left, right, dimensions, precision=precision, preferred_element_type=summed)
    return converted(product, bound.result_type.dtype)


def in_summed_dtype(bound: Bound, left: Any, right: Any) -> tuple[Any, Any, np.dtype[Any]]:
    """Operands of products that JAX takes, and the dtype that their sums are in."""
    dtype = bound.result_type.dtype
    summed = dtype_of_products(dtype, left.dtype, right.dtype)
    if left.dtype != right.dtype or summed != dtype or _kind(left.dtype) != _kind(dtype):
        left, right = converted(left, summed), converted(right, summed)
    return left, right, summed


def _kind(dtype: np.dtype[Any]) -> str:
    return "f" if jnp.issubdtype(dtype, np.floating) else dtype.kind  # that of bfloat16 is another in NumPy
