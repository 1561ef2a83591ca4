"""Special functions of CHLO, as operations and as composites of these names: JAX has a function for each.

Source: CHLO, the operation of each name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxtf.serialization._lift.ops.elementwise import broadcast_together
from jaxtf.serialization._lift.registry import Bound, lifts

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "acos": lax.acos,
    "acosh": lax.acosh,
    "asin": lax.asin,
    "asinh": lax.asinh,
    "atan": lax.atan,
    "atanh": lax.atanh,
    "bessel_i1e": lax.bessel_i1e,
    "conj": jnp.conj,
    "cosh": lax.cosh,
    "digamma": lax.digamma,
    "erf": lax.erf,
    "erf_inv": lax.erf_inv,
    "erfc": lax.erfc,
    "lgamma": lax.lgamma,
    "sinh": lax.sinh,
    "square": lax.square,
}

OF_TWO: dict[str, Callable[..., Any]] = {
    "next_after": lax.nextafter,
    "polygamma": lax.polygamma,
    "zeta": lax.zeta,
}


def _of_one(name: str) -> None:
    @lifts(f"chlo.{name}")
    def evaluate(bound: Bound, operand: Any) -> Any:
        return FUNCTIONS[name](operand)


def _of_two(name: str) -> None:
    @lifts(f"chlo.{name}", f"chlo.broadcast_{name}")
    def evaluate(bound: Bound, left: Any, right: Any) -> Any:
        return OF_TWO[name](*broadcast_together(bound, (left, right)))


for _name in FUNCTIONS:
    _of_one(_name)
for _name in OF_TWO:
    _of_two(_name)

# What JAX wrote where StableHLO had no such operation yet.
MHLO = {"acosh": "acosh", "asinh": "asinh", "atanh": "atanh", "erf": "erf", "sinh": "sinh"}


def _of_mhlo(name: str) -> None:
    @lifts(f"custom_call.mhlo.{name}")
    def evaluate(bound: Bound, operand: Any) -> Any:
        return FUNCTIONS[name](operand)


for _name in MHLO.values():
    _of_mhlo(_name)


@lifts("custom_call.mhlo.tan")
def tan(bound: Bound, operand: Any) -> Any:
    """The tangent.

    Source: StableHLO specification, `tan`.
    """
    return lax.tan(operand)


@lifts("chlo.is_inf", "chlo.is_pos_inf", "chlo.is_neg_inf")
def is_infinite(bound: Bound, operand: Any) -> Any:
    """Whether infinite: of either sign, or of one.

    Source: CHLO, `is_inf`, `is_pos_inf` and `is_neg_inf`.
    """
    kind = bound.operation.name.removeprefix("chlo.")
    tested = lax.abs(operand) if kind == "is_inf" else operand
    return lax.eq(tested, lax.full_like(operand, -np.inf if kind == "is_neg_inf" else np.inf))


@lifts("chlo.constant_like")
def constant_like(bound: Bound, operand: Any) -> Any:
    """The value in every element of the operand's shape.

    Source: CHLO, `constant_like`.
    """
    return lax.full_like(operand, bound["value"])


@lifts("chlo.mulhi")
def high_bits_of_product(bound: Bound, left: Any, right: Any) -> Any:
    """The upper half of the bits of the product of two integers.

    Source: CHLO, `mulhi`.
    """
    return lax.mulhi(left, right)
