"""Elementwise arithmetic: one TensorFlow operation for each, with the exceptions spelled out.

NaN, infinities and signed zeros give what XLA gives, but where an entry says how it differs; results are rounded by
TensorFlow's functions, which may be some units in the last place from XLA's. Sums, products and quotients are computed
in the order in which they are written.
The operations of `chlo` with implicit broadcasting have the same entries, for TensorFlow broadcasts as they do.
Source: StableHLO specification, the operation of each name.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import tensorflow as tf

from jaxtf.convert._graph._support import BINARY, MOVED, hidden_from_xla, typed, where, widening
from jaxtf.convert._graph.derivatives import differentiated, differentiated_as, without_slope
from jaxtf.convert._graph.grappler import difference, hidden, logarithm, multiplied
from jaxtf.convert._graph.nodes import elementwise
from jaxtf.convert._graph.ops.complex_roots import complex_reciprocal_root
from jaxtf.convert._graph.ops.complex_slopes import differentiable_root, with_slope
from jaxtf.convert._graph.optimizer import computed_by_xla, uniform_of
from jaxtf.convert._graph.registry import Bound, translates
from jaxtf.convert._tf import traces_compiled

# TensorFlow operations that are the StableHLO operation as they are, for every dtype they have a kernel for.
PLAIN: dict[str, Callable[..., tf.Tensor]] = {
    "stablehlo.atan2": elementwise("Atan2", tf.atan2),
    "stablehlo.ceil": elementwise("Ceil", tf.math.ceil),
    "stablehlo.complex": tf.complex,
    "stablehlo.cosine": elementwise("Cos", tf.cos),
    "stablehlo.exponential": elementwise("Exp", tf.exp),
    "stablehlo.floor": elementwise("Floor", tf.floor),
    "stablehlo.is_finite": elementwise("IsFinite", tf.math.is_finite),
    "stablehlo.log": lambda x: logarithm(hidden_from_xla(x, "Exp") if x.dtype.is_complex else x),
    "stablehlo.logistic": elementwise("Sigmoid", tf.sigmoid),
    "stablehlo.round_nearest_even": elementwise("Round", tf.round),
    "stablehlo.sine": elementwise("Sin", tf.sin),
    "stablehlo.tan": elementwise("Tan", tf.tan),
    "stablehlo.tanh": elementwise("Tanh", tf.tanh),
    "chlo.broadcast_atan2": tf.atan2,
    "chlo.broadcast_complex": tf.complex,
    "chlo.conj": tf.math.conj,
    "chlo.square": lambda x: multiplied(x, x) if x.dtype.is_integer else tf.square(x),
    "chlo.tan": tf.tan,
}

# How they differ from XLA's, as `test_graph_special_values.py` finds it.
_OF_ZEROS = "of 0 and -0 either may be given; compiled for CPU, NaN is taken for any number"
_OF_PARTS = "complex: infinite and NaN parts may be NaN where XLA has a number, or the reverse"
_OF_SIGNS = f"{_OF_PARTS}; the sign of a zero part"
_OF_NAN = "complex, compiled for CPU: where one part is NaN the other may be a number"
DIFFERS = {
    "log": _OF_NAN,
    "logistic": _OF_PARTS,
    "maximum": _OF_ZEROS,
    "minimum": _OF_ZEROS,
    "multiply": _OF_PARTS,
    "sqrt": _OF_NAN,
    "square": _OF_PARTS,
    "tan": _OF_SIGNS,
    "tanh": _OF_SIGNS,
}

NEGATIVE = elementwise("Neg", tf.negative)
SQRT, RSQRT = elementwise("Sqrt", tf.sqrt), elementwise("Rsqrt", tf.math.rsqrt)

# Cube roots lose the last bits in their own precision.
CUBE_ROOT_IN = MOVED | widening(float32=("bfloat16", "float16"))


def _plain(name: str, function: Callable[..., tf.Tensor]) -> None:
    kind = name.partition(".")[2].removeprefix("broadcast_")

    @translates(name, computed_in=MOVED, differs=DIFFERS.get(kind, ""))
    def emit(bound: Bound, *operands: tf.Tensor) -> tf.Tensor:
        result = function(*operands)
        return with_slope(bound, kind, result, operands[0]) if len(operands) == 1 else result


for _name, _function in PLAIN.items():
    _plain(_name, _function)
for _name, _function in BINARY.items():
    _plain(f"stablehlo.{_name}", _function)
    _plain(f"chlo.broadcast_{_name}", _function)


@translates("stablehlo.subtract", "chlo.broadcast_subtract", computed_in=MOVED)
def subtract(bound: Bound, left: tf.Tensor, right: tf.Tensor) -> tf.Tensor:
    """The difference; of 0 and 0 it is 0, though Grappler (2.21) makes -x of `0 - x`.

    Source: StableHLO specification, `subtract`.
    """
    is_inexact = left.dtype.is_floating or left.dtype.is_complex
    if not (is_inexact and _is_zero(left)):
        return difference(left, right)
    # Of a choice at 0 a tape has another slope.
    return difference(hidden(left), right) if bound.is_differentiated else _from_zero(left, right)


def _is_zero(tensor: tf.Tensor) -> bool:
    """Whether all elements are known to be 0, and not -0, less which -x is the difference."""
    number = uniform_of(tensor)
    return number == 0 and all(math.copysign(1, part) == 1 for part in (number.real, number.imag))


def _from_zero(zero: tf.Tensor, right: tf.Tensor) -> tf.Tensor:
    if right.dtype.is_complex:
        return tf.complex(*(_from_zero(part(zero), part(right)) for part in (tf.math.real, tf.math.imag)))
    return where(tf.equal(right, 0), zero, NEGATIVE(right))


@translates("stablehlo.abs", computed_in=MOVED)
def absolute(bound: Bound, operand: tf.Tensor) -> tf.Tensor:
    """The absolute value; of a complex number, its modulus.

    Differs: of an infinite and a NaN part of a complex number the modulus may be either.
    Source: StableHLO specification, `abs`.
    """
    return operand if operand.dtype.is_unsigned else tf.abs(operand)


@translates("stablehlo.negate", computed_in=MOVED)
def negate(bound: Bound, operand: tf.Tensor) -> tf.Tensor:
    """Minus the operand, modulo 2**bits for integers (Neg has no kernel for unsigned ones).

    Source: StableHLO specification, `negate`.
    """
    if operand.dtype.is_unsigned:
        return tf.bitwise.invert(operand) + tf.ones([], operand.dtype)
    return NEGATIVE(operand)


@translates("stablehlo.sign", computed_in=MOVED)
def sign(bound: Bound, operand: tf.Tensor) -> tf.Tensor:
    """-1, 0 or 1; NaN stays NaN and -0 stays -0; of a complex number, the number divided by its modulus.

    Differs: complex, compiled for CPU: where one part is NaN the other may be a number.
    Source: StableHLO specification, `sign`.
    """
    if operand.dtype.is_unsigned:
        return tf.cast(tf.not_equal(operand, tf.zeros([], operand.dtype)), operand.dtype)
    if operand.dtype.is_complex:
        return _complex_sign(bound, operand)
    result = tf.sign(operand)
    if operand.dtype.is_floating:
        is_kept = tf.logical_or(tf.math.is_nan(operand), tf.equal(operand, 0))
        result = where(is_kept, without_slope(bound, operand), result)
    return result


def _complex_sign(bound: Bound, operand: tf.Tensor) -> tf.Tensor:
    modulus = tf.abs(operand)
    is_zero = tf.equal(modulus, 0)
    safe = where(is_zero, tf.ones_like(modulus), modulus)
    parts = tf.math.real(operand), tf.math.imag(operand)
    real, imaginary = (where(is_zero, without_slope(bound, part), part / safe) for part in parts)
    return tf.complex(real, imaginary)


@translates("stablehlo.rsqrt", computed_in=MOVED)
def rsqrt(bound: Bound, operand: tf.Tensor) -> tf.Tensor:
    """The reciprocal of the square root.

    Differs: complex, not compiled: the sign of a zero part.
    Source: StableHLO specification, `rsqrt`.
    """
    if not operand.dtype.is_complex:
        return RSQRT(operand)
    result = RSQRT(operand) if computed_by_xla(operand) else complex_reciprocal_root(bound, operand)
    if not traces_compiled():
        return result

    def gradient(upwards: tf.Tensor, operand: tf.Tensor) -> tuple[tf.Tensor]:
        return (upwards * tf.math.conj(typed(-0.5, operand.dtype) * rsqrt(bound, operand) / operand),)

    return differentiated(bound, result, gradient, operand)


@translates("stablehlo.sqrt", computed_in=MOVED, differs=DIFFERS["sqrt"])
def square_root(bound: Bound, operand: tf.Tensor) -> tf.Tensor:
    """The square root; of a complex number, the one of a real part that is not negative.

    Source: StableHLO specification, `sqrt`.
    """
    if not operand.dtype.is_complex:
        return SQRT(operand)
    return differentiable_root(bound, operand)


@translates("stablehlo.cbrt", computed_in=CUBE_ROOT_IN)
def cube_root(bound: Bound, operand: tf.Tensor) -> tf.Tensor:
    """The real cube root: a power, then a step of Newton's method, which mends its last bits.

    Source: StableHLO specification, `cbrt`.
    """
    dtype = operand.dtype
    magnitude = tf.abs(operand)
    ordinary = tf.logical_and(tf.math.is_finite(operand), tf.not_equal(operand, 0))
    safe = where(ordinary, magnitude, tf.ones_like(magnitude))
    root = tf.pow(safe, typed(1 / 3, dtype))
    root -= (root - safe / (root * root)) / typed(3, dtype)
    result = where(ordinary, where(operand < 0, -root, root), operand)

    def gradient(upwards: tf.Tensor, operand: tf.Tensor) -> tuple[tf.Tensor]:
        return (upwards * typed(1 / 3, dtype) / tf.square(cube_root(bound, operand)),)

    return differentiated(bound, result, gradient, operand)


@translates("stablehlo.round_nearest_afz", computed_in=MOVED)
def round_away_from_zero(bound: Bound, operand: tf.Tensor) -> tf.Tensor:
    """The nearest integer, of two equally near the one farther from zero; keeps the sign of zero.

    Source: StableHLO specification, `round_nearest_afz`.
    """
    magnitude = tf.abs(operand)
    whole = tf.floor(magnitude)
    half = typed(0.5, operand.dtype)
    rounded = where(magnitude - whole >= half, whole + tf.ones([], operand.dtype), whole)
    signed = where(operand < 0, -rounded, rounded)
    is_rounded = tf.logical_and(tf.math.is_finite(operand), tf.not_equal(operand, 0))
    return where(is_rounded, signed, without_slope(bound, operand))


@translates("stablehlo.exponential_minus_one", computed_in=MOVED)
def exponential_minus_one(bound: Bound, operand: tf.Tensor) -> tf.Tensor:
    """exp(x) - 1, accurate near zero also for complex numbers, by expm1 and sines of the parts.

    Differs: of a complex number with a real part of -0, the sign of the real part.
    Source: StableHLO specification, `exponential_minus_one`.
    """
    if not operand.dtype.is_complex:
        return tf.math.expm1(operand)
    real, imaginary = tf.math.real(operand), tf.math.imag(operand)
    half_sine = tf.sin(imaginary / 2)
    twice = 2 * half_sine * half_sine  # 1 - cos(imaginary)
    zero = tf.zeros([], imaginary.dtype)
    turned = where(tf.equal(imaginary, zero), zero, tf.exp(real) * tf.sin(imaginary))
    result = tf.complex(tf.math.expm1(real) * tf.cos(imaginary) - twice, turned)
    return differentiated_as(bound, result, tf.exp, operand)


@translates("stablehlo.log_plus_one", computed_in=MOVED)
def log_plus_one(bound: Bound, operand: tf.Tensor) -> tf.Tensor:
    """log(1 + x), accurate near zero.

    Differs: the real part for complex x near the unit circle around -1 has fewer right digits; compiled for CPU, where
    one part is NaN the other may be a number.
    Source: StableHLO specification, `log_plus_one`.
    """
    return with_slope(bound, "log_plus_one", tf.math.log1p(operand), operand)


@translates("stablehlo.real", "stablehlo.imag")
def part(bound: Bound, operand: tf.Tensor) -> tf.Tensor:
    """The real or the imaginary part; of a real number, itself or zero.

    Source: StableHLO specification, `real` and `imag`.
    """
    if bound.operation.name == "stablehlo.real":
        return tf.math.real(operand)
    return tf.math.imag(operand) if operand.dtype.is_complex else tf.zeros_like(operand)
