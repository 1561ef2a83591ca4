"""Dtypes: converting, reading bits as another dtype, rounding to fewer bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax import lax

from jaxtf.serialization._lift.errors import unsupported
from jaxtf.serialization._lift.registry import Bound, lifts


@lifts("stablehlo.convert")
def convert(bound: Bound, operand: Any) -> Any:
    """The value in another dtype.

    Source: StableHLO specification, `convert`.
    """
    return converted(operand, bound.result_type.dtype)


def converted(array: Any, dtype: np.dtype[Any]) -> Any:
    """An array in another dtype; of complex numbers the real parts."""
    if array.dtype.kind == "c" and dtype.kind != "c":
        array = lax.real(array)
    return lax.convert_element_type(array, dtype)


@lifts(
    "stablehlo.bitcast_convert",
    differs="a derivative is refused where the bits of a float become a float again",
)
def bitcast_convert(bound: Bound, operand: Any) -> Any:
    """The bits as another dtype; a dimension more or less where the width differs.

    Source: StableHLO specification, `bitcast_convert`.
    """
    dtype = bound.result_type.dtype
    if not bound.is_taken_apart:
        return lax.bitcast_convert_type(operand, dtype)
    return _not_differentiated(bound, lambda x: lax.bitcast_convert_type(x, dtype))(operand)


def _not_differentiated(bound: Bound, function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A function whose derivative is refused."""
    apply = jax.custom_jvp(function)

    @apply.defjvp
    def refused(primals: Any, tangents: Any) -> Any:
        raise unsupported(
            bound.operation,
            "a derivative of it: the module takes a float apart by its bits and makes a float of them again, as where "
            "a function such as lgamma is written out, and JAX would give 0 for that",
            "differentiate the function before it is exported, and export that, or write serialize(vjp_order=)",
        )

    return apply


@lifts("stablehlo.reduce_precision")
def reduce_precision(bound: Bound, operand: Any) -> Any:
    """Rounded to fewer bits of exponent and mantissa.

    Source: StableHLO specification, `reduce_precision`.
    """
    return lax.reduce_precision(operand, bound["exponent_bits"], bound["mantissa_bits"])
