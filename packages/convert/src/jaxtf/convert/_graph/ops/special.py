"""Special functions of CHLO that TensorFlow has.

Those it lacks are composites with a decomposition in the module, or arrive decomposed.
Source: CHLO, the operation of each name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import tensorflow as tf

from jaxtf.convert._graph._support import MOVED, widening
from jaxtf.convert._graph.registry import Bound, translates

# Kernels that TensorFlow 2.21 has on CPU: all 16-bit floats, none of them, all but bfloat16.
ALL: Mapping[tf.DType, tf.DType] = MOVED
NO_16_BIT = MOVED | widening(float32=("bfloat16", "float16"))

FUNCTIONS: Mapping[str, tuple[Callable[..., tf.Tensor], Mapping[tf.DType, tf.DType]]] = {
    "chlo.acos": (tf.acos, ALL),
    "chlo.acosh": (tf.acosh, ALL),
    "chlo.asin": (tf.asin, ALL),
    "chlo.asinh": (tf.asinh, ALL),
    "chlo.atan": (tf.atan, ALL),
    "chlo.atanh": (tf.atanh, ALL),
    "chlo.bessel_i1e": (tf.math.bessel_i1e, NO_16_BIT),
    "chlo.cosh": (tf.cosh, ALL),
    "chlo.digamma": (tf.math.digamma, NO_16_BIT),
    "chlo.erf": (tf.math.erf, ALL),
    "chlo.erf_inv": (tf.math.erfinv, NO_16_BIT),
    "chlo.erfc": (tf.math.erfc, ALL),
    "chlo.lgamma": (tf.math.lgamma, NO_16_BIT),
    "chlo.polygamma": (tf.math.polygamma, NO_16_BIT),
    "chlo.broadcast_polygamma": (tf.math.polygamma, NO_16_BIT),
    "chlo.sinh": (tf.sinh, ALL),
    "chlo.zeta": (tf.math.zeta, NO_16_BIT),
    "chlo.broadcast_zeta": (tf.math.zeta, NO_16_BIT),
}


def _function(name: str, function: Callable[..., tf.Tensor], computed_in: Mapping[tf.DType, tf.DType]) -> None:
    @translates(name, computed_in=computed_in)
    def emit(bound: Bound, *operands: tf.Tensor) -> tf.Tensor:
        return function(*operands)


for _name, (_what, _where) in FUNCTIONS.items():
    _function(_name, _what, _where)
