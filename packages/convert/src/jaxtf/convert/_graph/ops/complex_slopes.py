"""Derivatives of functions of complex numbers whose TensorFlow gradients, compiled, have wrong gradients of their own.

TensorFlow (2.21) takes the derivative of a logarithm or a tangent by Reciprocal, and those of roots by SqrtGrad. XLA
compiles the gradient of a Reciprocal and of a root without the conjugate, which is right for real numbers alone. By
quotients, gradients of every order are right.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import tensorflow as tf

from jaxtf.convert._graph._support import typed
from jaxtf.convert._graph.derivatives import differentiated, differentiated_when_saved
from jaxtf.convert._graph.grappler import divided
from jaxtf.convert._graph.ops.complex_roots import complex_root
from jaxtf.convert._graph.registry import Bound
from jaxtf.convert._tf import traces_compiled

__all__ = ["differentiable_root", "with_slope"]


def _reciprocal(operand: tf.Tensor) -> tf.Tensor:
    return divided(tf.ones([], operand.dtype), operand)


def _slope_of_tan(operand: tf.Tensor) -> tf.Tensor:
    secant = _reciprocal(tf.cos(operand))
    return secant * secant


_SLOPES: Mapping[str, Callable[[tf.Tensor], tf.Tensor]] = {
    "atan": lambda x: _reciprocal(typed(1, x.dtype) + x * x),
    "atanh": lambda x: _reciprocal(typed(1, x.dtype) - x * x),
    "log": _reciprocal,
    "log_plus_one": lambda x: _reciprocal(typed(1, x.dtype) + x),
    "tan": _slope_of_tan,
}


def with_slope(bound: Bound, name: str, result: tf.Tensor, operand: tf.Tensor) -> tf.Tensor:
    """The result of a function of one operand, with a derivative by quotients where it is of complex numbers.

    Not compiled, TensorFlow's own is right; what is saved may be compiled when it is loaded. In a SavedModel the
    gradient in a loop or a branch is TensorFlow's.

    Args:
      bound: The operation.
      name: Of the operation, without that of the dialect; others than those with such a slope are left as they are.
      result: What the function gives for the operand.
      operand: What it is differentiated with respect to.
    """
    slope = _SLOPES.get(name)
    if slope is None or not result.dtype.is_complex:
        return result

    def gradient(upwards: tf.Tensor, operand: tf.Tensor) -> tuple[tf.Tensor]:
        return (upwards * tf.math.conj(slope(operand)),)

    if traces_compiled():
        return differentiated(bound, result, gradient, operand, refused_in_saved_loops=False)
    return differentiated_when_saved(bound, result, lambda upwards, _, given: gradient(upwards, given), operand)


def differentiable_root(bound: Bound, operand: tf.Tensor, *, by_sign: bool = False) -> tf.Tensor:
    """The square root of complex numbers, of a real part that is not negative; `by_sign` as of `complex_root`."""
    root = complex_root(bound, operand, by_sign=by_sign)
    if not traces_compiled():
        return root

    def gradient(upwards: tf.Tensor, operand: tf.Tensor) -> tuple[tf.Tensor]:
        root = differentiable_root(bound, operand, by_sign=by_sign)
        return (upwards * tf.math.conj(typed(0.5, operand.dtype) / root),)

    return differentiated(bound, root, gradient, operand)
