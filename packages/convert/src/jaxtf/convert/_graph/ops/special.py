"""Special functions of CHLO that TensorFlow has.

Those it lacks are composites with a decomposition in the module, or arrive decomposed.
Source: CHLO, the operation of each name.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial

import tensorflow as tf

from jaxtf.convert._graph._support import MOVED, typed, where, widening, without_sign_of_zero
from jaxtf.convert._graph.derivatives import differentiated
from jaxtf.convert._graph.ops.complex_inverses import COMPILES_INVERSES, acos, acosh, atanh
from jaxtf.convert._graph.ops.complex_roots import root_by_sign
from jaxtf.convert._graph.ops.complex_slopes import differentiable_root, with_slope
from jaxtf.convert._graph.optimizer import computed_by_xla
from jaxtf.convert._graph.registry import Bound, translates
from jaxtf.convert._tf import traces_compiled, traces_saved_gradient

# Kernels that TensorFlow 2.21 has on CPU: all 16-bit floats, none of them, all but bfloat16.
ALL: Mapping[tf.DType, tf.DType] = MOVED
NO_16_BIT = MOVED | widening(float32=("bfloat16", "float16"))


def _erf(operand: tf.Tensor) -> tf.Tensor:
    """As `tf.math.erf`, whose kernel for float64 gives NaN for what is infinite or huge (TensorFlow 2.21)."""
    result = tf.math.erf(operand)
    return where(tf.abs(operand) > 8, tf.sign(operand), result) if operand.dtype == tf.float64 else result


# Of x, x**3, ... in the series of erf_inv; source: NIST, Digital Library of Mathematical Functions, 7.17(ii).
_SERIES = [
    0.5 * math.pi**0.5 * factor * math.pi**power
    for power, factor in enumerate((1, 1 / 12, 7 / 480, 127 / 40320, 4369 / 5806080))
]
# Below these sizes so many terms are exact to rounding, and more exact than TensorFlow's function.
_NEAR_ZERO = {tf.float32: (0.05, 3), tf.float64: (0.02, 5)}


def _erf_inv(operand: tf.Tensor) -> tf.Tensor:
    """As `tf.math.erfinv`, which gives the quantile at (x + 1) / 2: of small x nothing is left (TensorFlow 2.21)."""
    result = tf.math.erfinv(operand)
    if traces_compiled():
        return result
    limit, terms = _NEAR_ZERO[operand.dtype]
    square, (*rest, last) = operand * operand, _SERIES[:terms]
    factor = typed(last, operand.dtype)
    for coefficient in reversed(rest):
        factor = factor * square + typed(coefficient, operand.dtype)
    return where(tf.abs(operand) < limit, operand * factor, result)


def _of_complex(
    function: Callable[[tf.Tensor], tf.Tensor],
    *,
    older: Callable[[tf.Tensor], tf.Tensor] | None = None,
    without_sign_of: str = "",
    slope: Callable[[Bound, tf.Tensor, tf.Tensor], tf.Tensor] | None = None,
) -> Callable[[Bound, tf.Tensor], tf.Tensor]:
    """A function that has branch cuts.

    Args:
      function: Of TensorFlow.
      older: In its place for complex numbers and a TensorFlow whose XLA has it wrong.
      without_sign_of: The part, real or imaginary, that is zero on the cut, where its sign does not count; none if "".
      slope: From the operation and the two parts, without that sign, the derivative: TensorFlow's own is that of the
        other side of a cut.
    """
    of_complex = function if older is None or COMPILES_INVERSES else older

    def apply(bound: Bound, operand: tf.Tensor) -> tf.Tensor:
        if not operand.dtype.is_complex:
            return function(operand)
        if not without_sign_of or slope is None:
            return with_slope(bound, bound.operation.name.partition(".")[2], of_complex(operand), operand)

        def mended(operand: tf.Tensor) -> tf.Tensor:
            return without_sign_of_zero(operand, by_real=without_sign_of == "real")

        def gradient(upwards: tf.Tensor, operand: tf.Tensor) -> tuple[tf.Tensor]:
            operand = mended(operand)
            return (upwards * tf.math.conj(slope(bound, tf.math.real(operand), tf.math.imag(operand))),)

        result = of_complex(operand if computed_by_xla(operand) else mended(operand))
        return differentiated(bound, result, gradient, operand)

    return apply


def _reciprocal_of_roots(bound: Bound, *parts: tuple[tf.Tensor, tf.Tensor]) -> tf.Tensor:
    """1 by the square roots of two complex numbers: of their product the sign of a zero part may be lost."""
    root: Callable[[tf.Tensor], tf.Tensor]
    if traces_compiled():
        root = partial(differentiable_root, bound, by_sign=True)
    elif traces_saved_gradient():  # by powers, whose gradients are right where they are compiled after loading
        root = partial(tf.pow, y=0.5)
    else:
        root = root_by_sign
    first, second = (root(tf.complex(*each)) for each in parts)
    return tf.ones([], first.dtype) / (first * second)


def _slope_of_asin(bound: Bound, real: tf.Tensor, imaginary: tf.Tensor) -> tf.Tensor:
    return _reciprocal_of_roots(bound, (1 - real, -imaginary), (1 + real, imaginary))


def _slope_of_acos(bound: Bound, real: tf.Tensor, imaginary: tf.Tensor) -> tf.Tensor:
    return -_slope_of_asin(bound, real, imaginary)


def _slope_of_acosh(bound: Bound, real: tf.Tensor, imaginary: tf.Tensor) -> tf.Tensor:
    return _reciprocal_of_roots(bound, (real - 1, imaginary), (real + 1, imaginary))


def _slope_of_asinh(bound: Bound, real: tf.Tensor, imaginary: tf.Tensor) -> tf.Tensor:
    return _reciprocal_of_roots(bound, (1 - imaginary, real), (1 + imaginary, -real))


INVERSES: Mapping[str, Callable[[Bound, tf.Tensor], tf.Tensor]] = {
    "chlo.acos": _of_complex(tf.acos, older=acos, without_sign_of="imaginary", slope=_slope_of_acos),
    "chlo.acosh": _of_complex(tf.acosh, older=acosh, without_sign_of="imaginary", slope=_slope_of_acosh),
    "chlo.asin": _of_complex(tf.asin, without_sign_of="imaginary", slope=_slope_of_asin),
    "chlo.asinh": _of_complex(tf.asinh, without_sign_of="real", slope=_slope_of_asinh),
    "chlo.atanh": _of_complex(tf.atanh, older=atanh),
}

FUNCTIONS: Mapping[str, tuple[Callable[..., tf.Tensor], Mapping[tf.DType, tf.DType]]] = {
    "chlo.atan": (tf.atan, ALL),
    "chlo.bessel_i1e": (tf.math.bessel_i1e, NO_16_BIT),
    "chlo.cosh": (tf.cosh, ALL),
    "chlo.digamma": (tf.math.digamma, NO_16_BIT),
    "chlo.erf": (_erf, ALL),
    "chlo.erf_inv": (_erf_inv, NO_16_BIT),
    "chlo.erfc": (tf.math.erfc, ALL),
    "chlo.lgamma": (tf.math.lgamma, NO_16_BIT),
    "chlo.polygamma": (tf.math.polygamma, NO_16_BIT),
    "chlo.broadcast_polygamma": (tf.math.polygamma, NO_16_BIT),
    "chlo.sinh": (tf.sinh, ALL),
    "chlo.zeta": (tf.math.zeta, NO_16_BIT),
    "chlo.broadcast_zeta": (tf.math.zeta, NO_16_BIT),
}


# As `test_graph_special_values.py` finds it; compiled, they do not differ.
_OF_NAN = "complex, not compiled: where one part is NaN the other may be another NaN or number"
_OF_INFINITY = f"{_OF_NAN}; where one is infinite, the sign of the other"
_OF_SIGNS = "complex, not compiled: the sign of a zero part; other NaN of infinite parts"
DIFFERS = {
    **dict.fromkeys(("chlo.acos", "chlo.acosh", "chlo.asin", "chlo.asinh"), _OF_NAN),
    "chlo.atanh": _OF_INFINITY,
    **dict.fromkeys(("chlo.cosh", "chlo.sinh"), _OF_SIGNS),
}


def _function(name: str, function: Callable[..., tf.Tensor], computed_in: Mapping[tf.DType, tf.DType]) -> None:
    @translates(name, computed_in=computed_in, differs=DIFFERS.get(name, ""))
    def emit(bound: Bound, *operands: tf.Tensor) -> tf.Tensor:
        result = function(*operands)
        return with_slope(bound, name.partition(".")[2], result, operands[0]) if len(operands) == 1 else result


for _name, _inverse in INVERSES.items():
    translates(_name, computed_in=ALL, differs=DIFFERS[_name])(_inverse)
for _name, (_what, _where) in FUNCTIONS.items():
    _function(_name, _what, _where)
