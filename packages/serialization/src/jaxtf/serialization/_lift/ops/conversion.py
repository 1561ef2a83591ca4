"""Dtypes: converting, reading bits as another dtype, rounding to fewer bits."""

from __future__ import annotations

from typing import Any

from jax import lax

from jaxtf.serialization._lift.registry import Bound, lifts


@lifts("stablehlo.convert")
def convert(bound: Bound, operand: Any) -> Any:
    """The value in another dtype.

    Source: StableHLO specification, `convert`.
    """
    dtype = bound.result_type.dtype
    if operand.dtype.kind == "c" and dtype.kind != "c":
        operand = lax.real(operand)
    return lax.convert_element_type(operand, dtype)


@lifts("stablehlo.bitcast_convert")
def bitcast_convert(bound: Bound, operand: Any) -> Any:
    """The bits as another dtype; a dimension more or less where the width differs.

    Source: StableHLO specification, `bitcast_convert`.
    """
    return lax.bitcast_convert_type(operand, bound.result_type.dtype)


@lifts("stablehlo.reduce_precision")
def reduce_precision(bound: Bound, operand: Any) -> Any:
    """Rounded to fewer bits of exponent and mantissa.

    Source: StableHLO specification, `reduce_precision`.
    """
    return lax.reduce_precision(operand, bound["exponent_bits"], bound["mantissa_bits"])
