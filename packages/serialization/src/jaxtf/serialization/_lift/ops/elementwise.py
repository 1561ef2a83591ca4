"""Elementwise arithmetic: a function of `jax.lax` for each, which lowers to the operation that it is the entry of.

The operations of `chlo` with implicit broadcasting broadcast first.
Source: StableHLO specification, the operation of each name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np
from jax import dtypes, lax

from jaxtf.serialization._lift.errors import unsupported
from jaxtf.serialization._lift.registry import Bound, lifts

__all__ = ["broadcast_together"]

UNARY: dict[str, Callable[[Any], Any]] = {
    "abs": lax.abs,
    "ceil": lax.ceil,
    "count_leading_zeros": lax.clz,
    "floor": lax.floor,
    "is_finite": lax.is_finite,
    "negate": lax.neg,
    "not": lax.bitwise_not,
    "popcnt": lax.population_count,
    "round_nearest_afz": lambda x: lax.round(x, lax.RoundingMethod.AWAY_FROM_ZERO),
    "round_nearest_even": lambda x: lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN),
    "sign": lax.sign,
}


def _logistic(operand: Any) -> Any:
    """As one operation; `lax.logistic` is one over the exponential, which 8 bits do not hold."""
    if operand.dtype.itemsize > 1:
        return lax.logistic(operand)
    wide = lax.convert_element_type(operand, np.dtype(np.float32))
    return lax.convert_element_type(lax.logistic(wide), operand.dtype)


# These have an attribute that says how exact the result is to be.
WITH_ACCURACY: dict[str, Callable[..., Any]] = {
    "cbrt": lax.cbrt,
    "cosine": lax.cos,
    "exponential": lax.exp,
    "exponential_minus_one": lax.expm1,
    "log": lax.log,
    "log_plus_one": lax.log1p,
    "logistic": _logistic,
    "rsqrt": lax.rsqrt,
    "sine": lax.sin,
    "sqrt": lax.sqrt,
    "tan": lax.tan,
    "tanh": lax.tanh,
}

BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": lax.add,
    "and": lax.bitwise_and,
    "atan2": lax.atan2,
    "complex": lax.complex,
    "divide": lax.div,
    "maximum": lax.max,
    "minimum": lax.min,
    "multiply": lax.mul,
    "or": lax.bitwise_or,
    "remainder": lax.rem,
    "shift_left": lax.shift_left,
    "shift_right_arithmetic": lax.shift_right_arithmetic,
    "shift_right_logical": lax.shift_right_logical,
    "subtract": lax.sub,
    "xor": lax.bitwise_xor,
}

# Of truth values, StableHLO's arithmetic is logic; `jax.lax` has these for numbers only.
OF_TRUTH: dict[str, Callable[[Any, Any], Any]] = {
    "add": lax.bitwise_or,
    "maximum": lax.bitwise_or,
    "minimum": lax.bitwise_and,
    "multiply": lax.bitwise_and,
}


def broadcast_together(bound: Bound, operands: Sequence[Any]) -> list[Any]:
    """The operands of an operation of `chlo`, broadcast to one shape: the lesser rank at the given dimensions.

    By default at the last ones, as NumPy does.

    Raises:
      LiftUnsupported: The given dimensions are not in order.
    """
    rank = max(x.ndim for x in operands)
    given = bound.broadcast_places
    if given is None:
        dimensions = list(bound["broadcast_dimensions"])
        raise unsupported(bound.operation, f"broadcast_dimensions {dimensions} are not different ones in order")
    raised = []
    for x, places in zip(operands, given, strict=True):
        shape = [1] * rank
        for axis, size in zip(places, x.shape, strict=True):
            shape[axis] = size
        raised.append(lax.reshape(x, shape) if x.ndim < rank else x)
    shape = [
        next((size for size in column if not (isinstance(size, int) and size == 1)), 1)
        for column in zip(*(x.shape for x in raised), strict=True)
    ]
    return [x if list(x.shape) == shape else lax.broadcast_in_dim(x, shape, range(rank)) for x in raised]


def binary(name: str) -> Callable[[Any, Any], Any]:
    """The function of two operands of a dtype."""

    def apply(left: Any, right: Any) -> Any:
        function = OF_TRUTH.get(name, BINARY[name]) if left.dtype == np.bool_ else BINARY[name]
        return function(left, right)

    return apply


def _unary(name: str) -> None:
    @lifts(f"stablehlo.{name}")
    def evaluate(bound: Bound, operand: Any) -> Any:
        return UNARY[name](operand)


def _with_accuracy(name: str) -> None:
    @lifts(f"stablehlo.{name}", *(["chlo.tan"] if name == "tan" else []))
    def evaluate(bound: Bound, operand: Any) -> Any:
        accuracy = str(bound.get("result_accuracy", ""))
        if not accuracy or "DEFAULT" in accuracy or "mode" not in accuracy:
            if "atol" in accuracy or "TOLERANCE" in accuracy:
                raise unsupported(bound.operation, "the tolerance that it asks for")
            return WITH_ACCURACY[name](operand)
        if "HIGHEST" in accuracy:
            return WITH_ACCURACY[name](operand, accuracy=lax.AccuracyMode.HIGHEST)
        raise unsupported(bound.operation, f"the accuracy that it asks for: {accuracy}")


def _binary(name: str) -> None:
    function = binary(name)

    @lifts(f"stablehlo.{name}")
    def evaluate(bound: Bound, left: Any, right: Any) -> Any:
        return function(left, right)

    @lifts(f"chlo.broadcast_{name}")
    def evaluate_broadcast(bound: Bound, left: Any, right: Any) -> Any:
        return function(*broadcast_together(bound, (left, right)))


for _name in UNARY:
    _unary(_name)
for _name in WITH_ACCURACY:
    _with_accuracy(_name)
for _name in BINARY:
    _binary(_name)


@lifts("stablehlo.power", "chlo.broadcast_power")
def power(bound: Bound, base: Any, exponent: Any) -> Any:
    """The power; of integers, modulo 2**bits by squaring; 0 for a negative exponent unless the base is 1 or -1.

    Differs: an operation on integers is not one of `jax.lax`: it becomes products.
    Source: StableHLO specification, `power`.
    """
    base, exponent = broadcast_together(bound, (base, exponent))
    if not dtypes.issubdtype(base.dtype, np.integer):
        return lax.pow(base, exponent)
    one, zero = lax.full_like(base, 1), lax.full_like(base, 0)
    result, factor = one, base
    limits = ml_dtypes.iinfo(base.dtype)  # type: ignore[no-untyped-call]
    is_signed = limits.min < 0
    bits = limits.bits - is_signed
    for bit in range(bits):
        is_set = lax.ne(lax.bitwise_and(exponent, lax.full_like(exponent, 1 << bit)), zero)
        result = lax.select(is_set, lax.mul(result, factor), result)
        factor = lax.mul(factor, factor)
    if not is_signed:
        return result
    minus_one = lax.full_like(base, -1)
    is_odd = lax.ne(lax.bitwise_and(exponent, one), zero)
    of_minus_one = lax.select(is_odd, minus_one, one)
    of_negative = lax.select(lax.eq(base, minus_one), of_minus_one, lax.select(lax.eq(base, one), one, zero))
    return lax.select(lax.lt(exponent, zero), of_negative, result)


@lifts("stablehlo.real", "stablehlo.imag")
def part(bound: Bound, operand: Any) -> Any:
    """The real or the imaginary part; of a real number, itself or zero.

    Source: StableHLO specification, `real` and `imag`.
    """
    is_real = bound.operation.name == "stablehlo.real"
    if np.issubdtype(operand.dtype, np.complexfloating):
        return lax.real(operand) if is_real else lax.imag(operand)
    return operand if is_real else lax.full_like(operand, 0)
