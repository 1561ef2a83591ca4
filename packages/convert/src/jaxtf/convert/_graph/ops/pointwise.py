"""Functions of each element that choose, with the derivative of the branch that is chosen (`plan.pointwise`).

The derivative is computed with the function, from its argument on: what a `select` drops is dropped from it too. It is
a function of the argument that chooses, with such a derivative itself.

Where operations within have none, that of the function may exist: `max(x, 0) + log1p(exp(-abs(x)))`, the softplus, has
1/2 at 0. So theirs are the means of those on both sides: 0 for `abs`, a half for each of the equal operands of a
maximum. Of `sign(x) * f(abs(x))`, as asinh is written, they are those on the right.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import tensorflow as tf

from jaxtf.convert._graph._support import typed, where
from jaxtf.convert._graph.derivatives import differentiated
from jaxtf.convert._graph.ops.comparison import compared
from jaxtf.convert._graph.plan.pointwise import POINTWISE
from jaxtf.convert._graph.registry import Bound, translates
from jaxtf.serialization.interop import Block, Value

__all__: list[str] = []


@translates(POINTWISE)
def pointwise(bound: Bound, result: tf.Tensor, argument: tf.Tensor) -> tf.Tensor:
    """What operations have computed, with the derivative of the function of an element that they are."""
    return _with_derivative(bound, 1, result, argument)


def _with_derivative(bound: Bound, order: int, result: tf.Tensor, argument: tf.Tensor) -> tf.Tensor:
    """The result with the derivative of an order as its own; in a loaded loop or branch with that of its operations."""
    return differentiated(bound, result, partial(_pulled, bound, order), argument, refused_in_saved_loops=False)


def _pulled(bound: Bound, order: int, upwards: tf.Tensor, argument: tf.Tensor) -> tuple[tf.Tensor]:
    slope = _with_derivative(bound, order + 1, _derivative(bound["function"], order, argument), argument)
    return (upwards * tf.cast(slope, upwards.dtype),)


class _Varying(NamedTuple):
    """A number and its derivative by the argument: tensors, or for higher orders such pairs."""

    number: Any
    slope: Any


def _derivative(function: Block, order: int, argument: tf.Tensor) -> tf.Tensor:
    """The derivative of that order."""
    number: Any = argument
    for _ in range(order):
        number = _Varying(number, tf.ones_like(argument))
    values = dict(zip(function.arguments, [number], strict=True))
    signs = _signs_of_product(function)
    for operation in function.operations:
        if operation.name == "stablehlo.constant":
            made = tf.constant(operation.attributes["value"])
        else:
            dtype = operation.results[0].type.dtype  # type: ignore[union-attr]
            attributes = {**operation.attributes, "dtype": dtype, "is_on_the_right": bool(signs)}
            operands = [values[x] for x in operation.operands]
            if operation is function.operations[-1]:
                operands = [
                    _sign_on_the_right(values[signs[x]], y) if x in signs else y
                    for x, y in zip(operation.operands, operands, strict=True)
                ]
            made = _applied(operation.name.removeprefix("stablehlo."), attributes, *operands)
        values[operation.results[0]] = made
    found = values[function.returned[0]]
    for _ in range(order):
        found = found.slope if isinstance(found, _Varying) else None
    return tf.zeros_like(argument) if found is None else tf.broadcast_to(found, tf.shape(argument))


def _signs_of_product(function: Block) -> dict[Value, Value]:
    """If the function is a product with signs, of what these are, by sign."""
    last = function.operations[-1]
    signs = {each.results[0]: each.operands[0] for each in function.operations if each.name == "stablehlo.sign"}
    return {x: signs[x] for x in last.operands if x in signs} if last.name == "stablehlo.multiply" else {}


def _sign_on_the_right(number: Any, sign: Any) -> Any:
    if not isinstance(number, _Varying):
        return sign
    return _call("select", _compare("EQ", number, _like(0, number)), _call("sign", number.slope), sign)


def _applied(name: str, attributes: Mapping[str, Any], *operands: Any) -> Any:
    """The result of an operation, with its derivative where an operand varies."""
    if not any(isinstance(x, _Varying) for x in operands):
        return _OPERATIONS[name](attributes, *operands)
    numbers = [x.number if isinstance(x, _Varying) else x for x in operands]
    slopes = [x.slope if isinstance(x, _Varying) else None for x in operands]
    result = _applied(name, attributes, *numbers)
    of_name = _SLOPES.get(name)
    slope = None if of_name is None else of_name(attributes, result, numbers, slopes)
    return result if slope is None else _Varying(result, slope)


# --- the operations ---


def _rounded_away(operand: tf.Tensor) -> tf.Tensor:
    whole = tf.floor(tf.abs(operand))
    return tf.sign(operand) * tf.where(tf.abs(operand) - whole >= 0.5, whole + 1, whole)


def _cube_root(operand: tf.Tensor) -> tf.Tensor:
    return tf.sign(operand) * tf.pow(tf.abs(operand), typed(1 / 3, operand.dtype))


def _of_numbers(function: Callable[..., tf.Tensor]) -> Callable[..., tf.Tensor]:
    return lambda attributes, *operands: function(*operands)


_FUNCTIONS: Mapping[str, Callable[..., tf.Tensor]] = {
    "abs": tf.abs,
    "add": tf.add,
    "and": tf.logical_and,
    "atan2": tf.atan2,
    "cbrt": _cube_root,
    "ceil": tf.math.ceil,
    "clamp": lambda least, x, most: tf.minimum(tf.maximum(x, least), most),
    "cosine": tf.cos,
    "divide": tf.divide,
    "exponential": tf.exp,
    "exponential_minus_one": tf.math.expm1,
    "floor": tf.floor,
    "is_finite": tf.math.is_finite,
    "log": tf.math.log,
    "log_plus_one": tf.math.log1p,
    "logistic": tf.sigmoid,
    "maximum": tf.maximum,
    "minimum": tf.minimum,
    "multiply": tf.multiply,
    "negate": tf.negative,
    "not": tf.logical_not,
    "or": tf.logical_or,
    "power": tf.pow,
    "remainder": lambda x, y: tf.raw_ops.TruncateMod(x=x, y=y),
    "round_nearest_afz": _rounded_away,
    "round_nearest_even": tf.round,
    "rsqrt": tf.math.rsqrt,
    "select": where,
    "sign": tf.sign,
    "sine": tf.sin,
    "sqrt": tf.sqrt,
    "subtract": tf.subtract,
    "tan": tf.tan,
    "tanh": tf.tanh,
    "xor": tf.math.logical_xor,
}
_OPERATIONS: Mapping[str, Callable[..., tf.Tensor]] = {
    **{name: _of_numbers(function) for name, function in _FUNCTIONS.items()},
    "compare": compared,
    "convert": lambda attributes, x: tf.cast(x, attributes["dtype"]),
}


# --- their derivatives: of attributes, result, operands and their derivatives, None of what is constant ---


def _call(name: str, *operands: Any) -> Any:
    return _applied(name, {}, *operands)


def _times(left: Any, right: Any) -> Any:
    return None if left is None or right is None else _call("multiply", left, right)


def _plus(left: Any, right: Any) -> Any:
    if left is None or right is None:
        return right if left is None else left
    return _call("add", left, right)


def _minus(slope: Any) -> Any:
    return None if slope is None else _call("negate", slope)


def _like(value: float, number: Any) -> tf.Tensor:
    while isinstance(number, _Varying):
        number = number.number
    return typed(value, number.dtype)


def _by_slope(slope_of: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """Of a function of one operand, from the result and the operand."""
    return lambda attributes, result, numbers, slopes: _times(slopes[0], slope_of(result, numbers[0]))


def _chosen(condition: Any, left: Any, right: Any, like: Any) -> Any:
    """The derivative of what is chosen."""
    if left is None and right is None:
        return None
    zero = _like(0, like)
    return _call("select", condition, zero if left is None else left, zero if right is None else right)


def _of_select(attributes: Any, result: Any, numbers: Any, slopes: Any) -> Any:
    return _chosen(numbers[0], slopes[1], slopes[2], result)


def _compare(direction: str, left: Any, right: Any) -> Any:
    return _applied("compare", {"comparison_direction": direction}, left, right)


def _of_extreme(attributes: Any, result: Any, numbers: Any, slopes: Any) -> Any:
    """Equal operands have half of it each."""
    left, right = (_compare("EQ", number, result) for number in numbers)
    halves = [_times(None if slope is None else _like(0.5, result), slope) for slope in slopes]
    of_one = _chosen(left, slopes[0], slopes[1], result)
    return _chosen(_call("and", left, right), _plus(*halves), of_one, result)


def _of_clamp(attributes: Any, result: Any, numbers: Any, slopes: Any) -> Any:
    """At the bounds that of the number."""
    least, x, most = numbers
    of_bounds = _chosen(_compare("GT", x, most), slopes[2], slopes[0], result)
    is_inside = _call("and", _compare("GE", x, least), _compare("LE", x, most))
    return _chosen(is_inside, slopes[1], of_bounds, result)


def _of_absolute(attributes: Any, result: Any, numbers: Any, slopes: Any) -> Any:
    [number], [slope] = numbers, slopes
    found = _times(slope, _call("sign", number))
    if not attributes.get("is_on_the_right"):
        return found
    return _call("select", _compare("EQ", number, _like(0, number)), _call("abs", slope), found)


def _of_product(attributes: Any, result: Any, numbers: Any, slopes: Any) -> Any:
    return _plus(_times(slopes[0], numbers[1]), _times(numbers[0], slopes[1]))


def _of_quotient(attributes: Any, result: Any, numbers: Any, slopes: Any) -> Any:
    above = _plus(slopes[0], _minus(_times(result, slopes[1])))
    return None if above is None else _call("divide", above, numbers[1])


def _of_power(attributes: Any, result: Any, numbers: Any, slopes: Any) -> Any:
    """Of a base up to 0 none by the exponent."""
    base, exponent = numbers
    zero, one = _like(0, base), _like(1, base)
    is_constant = _compare("EQ", exponent, zero)
    less = _call("power", base, _call("select", is_constant, one, _call("subtract", exponent, one)))
    by_base = _times(slopes[0], _call("multiply", exponent, less))
    logarithm = _call("log", _call("select", _compare("GT", base, zero), base, one))
    return _plus(by_base, _times(slopes[1], _call("multiply", result, logarithm)))


def _of_atan2(attributes: Any, result: Any, numbers: Any, slopes: Any) -> Any:
    y, x = numbers
    above = _plus(_times(slopes[0], x), _minus(_times(slopes[1], y)))
    return _call("divide", above, _call("add", _call("multiply", x, x), _call("multiply", y, y)))


def _of_remainder(attributes: Any, result: Any, numbers: Any, slopes: Any) -> Any:
    if slopes[1] is None:
        return slopes[0]
    count = _call("divide", _call("subtract", numbers[0], result), numbers[1])
    return _plus(slopes[0], _minus(_times(slopes[1], count)))


def _of_conversion(attributes: Any, result: Any, numbers: Any, slopes: Any) -> Any:
    return _applied("convert", attributes, slopes[0]) if attributes["dtype"].is_floating else None


_SLOPES: Mapping[str, Callable[..., Any]] = {
    "abs": _of_absolute,
    "add": lambda attributes, result, numbers, slopes: _plus(*slopes),
    "atan2": _of_atan2,
    "cbrt": _by_slope(lambda y, x: _call("divide", _like(1 / 3, y), _call("multiply", y, y))),
    "clamp": _of_clamp,
    "convert": _of_conversion,
    "cosine": _by_slope(lambda y, x: _minus(_call("sine", x))),
    "divide": _of_quotient,
    "exponential": _by_slope(lambda y, x: y),
    "exponential_minus_one": _by_slope(lambda y, x: _call("exponential", x)),
    "log": _by_slope(lambda y, x: _call("divide", _like(1, x), x)),
    "log_plus_one": _by_slope(lambda y, x: _call("divide", _like(1, x), _call("add", x, _like(1, x)))),
    "logistic": _by_slope(lambda y, x: _call("multiply", y, _call("subtract", _like(1, y), y))),
    "maximum": _of_extreme,
    "minimum": _of_extreme,
    "multiply": _of_product,
    "negate": lambda attributes, result, numbers, slopes: _minus(slopes[0]),
    "power": _of_power,
    "remainder": _of_remainder,
    "rsqrt": _by_slope(lambda y, x: _call("divide", _call("multiply", _like(-0.5, x), y), x)),
    "select": _of_select,
    "sine": _by_slope(lambda y, x: _call("cosine", x)),
    "sqrt": _by_slope(lambda y, x: _call("divide", _like(0.5, x), y)),
    "subtract": lambda attributes, result, numbers, slopes: _plus(slopes[0], _minus(slopes[1])),
    "tan": _by_slope(lambda y, x: _call("add", _like(1, y), _call("multiply", y, y))),
    "tanh": _by_slope(lambda y, x: _call("subtract", _like(1, y), _call("multiply", y, y))),
}
