"""Comparing and choosing. Floats compare as IEEE 754 says, or in the total order: -NaN, -inf, -0, 0, inf, NaN."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxtf.serialization._lift.guarded import guarded
from jaxtf.serialization._lift.ops.elementwise import broadcast_together
from jaxtf.serialization._lift.registry import Bound, lifts

__all__ = ["total_order"]

COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "EQ": lax.eq,
    "NE": lax.ne,
    "LT": lax.lt,
    "LE": lax.le,
    "GT": lax.gt,
    "GE": lax.ge,
}


def is_floating(dtype: Any) -> bool:
    """Whether floating point, those of `ml_dtypes` included."""
    return str(np.dtype(dtype).name).startswith(("float", "bfloat"))


def total_order(operand: Any) -> Any:
    """Integers in the total order of floats: the bits, all but the sign turned over where that is set.

    Of a dtype without a sign, the bits; of one whose only NaN has the bits of -0, that comes before all numbers.
    """
    name, width = np.dtype(operand.dtype).name, 8 * operand.dtype.itemsize
    if name.startswith("float8_e8m0"):
        return lax.bitcast_convert_type(operand, np.dtype(f"uint{width}"))
    bits = np.dtype(f"int{width}")
    integers = lax.bitcast_convert_type(operand, bits)
    most, least = (np.asarray(n, bits) for n in (np.iinfo(bits).max, np.iinfo(bits).min))
    ordered = lax.select(
        lax.lt(integers, lax.full_like(integers, 0)),
        lax.bitwise_xor(integers, lax.full_like(integers, most)),
        integers,
    )
    if not name.endswith("fnuz"):
        return ordered
    wide = lax.convert_element_type(ordered, np.dtype(f"int{2 * width}"))
    is_nan = lax.eq(integers, lax.full_like(integers, least))
    return lax.select(is_nan, lax.full_like(wide, int(least) - 1), wide)


@lifts("stablehlo.compare", "chlo.broadcast_compare")
def compare(bound: Bound, left: Any, right: Any) -> Any:
    """Whether the relation holds.

    Source: StableHLO specification, `compare`.
    """
    left, right = broadcast_together(bound, (left, right))
    if bound.get("compare_type") == "TOTALORDER" and is_floating(left.dtype):
        left, right = total_order(left), total_order(right)
    return COMPARISONS[bound["comparison_direction"]](left, right)


@lifts("stablehlo.select")
def select(bound: Bound, condition: Any, on_true: Any, on_false: Any) -> Any:
    """Elements of one or the other operand; the condition may be a scalar. An array, or itself: see `guarded`.

    Source: StableHLO specification, `select`.
    """
    of_true, of_false = bound.operation.operands[1:]
    is_choice = of_true is not of_false or not jnp.issubdtype(on_true.dtype, np.inexact)
    return lax.select(condition, on_true, on_false) if is_choice else guarded(condition, on_true)


@lifts("chlo.broadcast_select")
def broadcast_select(bound: Bound, condition: Any, on_true: Any, on_false: Any) -> Any:
    """As `select`, broadcasting.

    Source: CHLO, `broadcast_select`.
    """
    return lax.select(*broadcast_together(bound, (condition, on_true, on_false)))


@lifts("stablehlo.clamp")
def clamp(bound: Bound, low: Any, operand: Any, high: Any) -> Any:
    """The operand between low and high, which may be scalars.

    Source: StableHLO specification, `clamp`.
    """
    low, high = (x if x.ndim in (0, operand.ndim) else lax.broadcast(x, operand.shape) for x in (low, high))
    if (low.ndim == 0) != (high.ndim == 0):
        low, high = (lax.broadcast(x, operand.shape) if x.ndim == 0 else x for x in (low, high))
    return lax.clamp(low, operand, high)
