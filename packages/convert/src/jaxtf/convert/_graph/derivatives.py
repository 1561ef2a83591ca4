"""Gradients of results that are computed otherwise than they are to be differentiated, for tapes that see operations.

`convert_stablehlo` leaves gradients to TensorFlow, which differentiates what it sees. A `where` that mends a value, as
at 0, has another slope than the function there, and what is computed by the bits of numbers has none. An entry that
emits such a thing gives its result the gradient that it is to have. The functions of `convert` have JAX's: nothing is
added to their graphs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import tensorflow as tf

from jaxtf.convert import _tf
from jaxtf.convert._function.saved_gradients import refused_in_control_flow, takes_of_control_flow
from jaxtf.convert._function.vectorized import gradient_for_all
from jaxtf.convert._graph.registry import Bound

__all__ = ["differentiated", "differentiated_as", "differentiated_when_saved", "slope_of", "without_slope"]

Gradient = Callable[..., Sequence[tf.Tensor | None]]
"""From the cotangent of a result and the operands to the cotangents of the operands."""

_REMEDY = "  remedy: save a function that takes the gradient"


def differentiated(
    bound: Bound,
    result: tf.Tensor,
    gradient: Gradient,
    *operands: tf.Tensor,
    refused_in_saved_loops: bool = True,
) -> tf.Tensor:
    """The result, with a gradient of its own where TensorFlow may be asked for one.

    Args:
      bound: The operation.
      result: Of inexact numbers.
      gradient: From the cotangent of the result and the operands to the cotangents of the operands, in TensorFlow's
        convention: of complex numbers, the conjugate of JAX's. Those of a larger shape than their operand are summed.
      operands: What it is differentiated with respect to, no constants of another graph.
      refused_in_saved_loops: Whether a loaded loop or branch, for which no gradient can be saved, is refused one; if
        not, it has that of what the result was made by.
    """
    if not bound.is_differentiated or tf.executing_eagerly():
        return result

    def pulled(
        results: Sequence[tf.Tensor], arguments: Sequence[tf.Tensor], *cotangents: tf.Tensor | None
    ) -> list[tf.Tensor | None]:
        if cotangents[0] is None:
            return [None] * len(arguments)
        if takes_of_control_flow(arguments):
            return refused_in_control_flow(bound.operation.name, _REMEDY, cotangents, arguments)
        return _pulled(gradient, cotangents[0], arguments)

    if refused_in_saved_loops:
        return _tf.graph_results([result], operands, pulled, gradient_for_all)[0]

    def where_possible(own: Gradient) -> Callable[..., Sequence[tf.Tensor | None] | None]:
        return lambda results, arguments, *cotangents: (
            None if takes_of_control_flow(arguments) else own(results, arguments, *cotangents)
        )

    return _tf.graph_results(
        [result], operands, where_possible(pulled), lambda _, varies: where_possible(gradient_for_all(pulled, varies))
    )[0]


def differentiated_as(
    bound: Bound, result: tf.Tensor, function: Callable[..., tf.Tensor], *operands: tf.Tensor
) -> tf.Tensor:
    """The result, with the gradient that TensorFlow has of a function of the operands, computed where it is asked for.

    Args:
      bound: The operation.
      result: Of inexact numbers.
      function: Of the operands; it has the slope that the result is to have.
      operands: What it is differentiated with respect to.
    """
    return differentiated(bound, result, slope_of(function), *operands)


def differentiated_when_saved(bound: Bound, result: tf.Tensor, gradient: Gradient, *operands: tf.Tensor) -> tf.Tensor:
    """The result of a `tf.cond` that only chooses how it is computed, with a gradient of its own in a SavedModel.

    TensorFlow (2.21) differentiates a branch that was loaded by optionals of what it computes, which XLA does not
    compile. In this process, and in loops and branches, of which a SavedModel has no gradient, it differentiates what
    it sees: what a branch has computed is not computed again.

    Args:
      bound: The operation.
      result: Of any numbers.
      gradient: As of `differentiated`, but from the cotangent, the result and the operands. One that has a `tf.cond`
        takes the gradients in its branches.
      operands: What it is differentiated with respect to.
    """
    if not bound.is_differentiated or tf.executing_eagerly() or _tf.traces_control_flow() or _tf.is_vectorized():
        return result
    is_inexact = result.dtype.is_floating or result.dtype.is_complex
    if not is_inexact or _tf.traces_saved_gradient():  # of a gradient's own gradients a SavedModel has none
        return result

    def of_saved(own: Gradient) -> Callable[..., Sequence[tf.Tensor | None] | None]:
        return lambda *given: own(*given) if _tf.traces_saved_gradient() else None

    def pulled(
        results: Sequence[tf.Tensor], arguments: Sequence[tf.Tensor], *cotangents: tf.Tensor | None
    ) -> list[tf.Tensor | None]:
        own = partial(_after, gradient, results[0])
        return [None] * len(arguments) if cotangents[0] is None else _pulled(own, cotangents[0], arguments)

    return _tf.graph_results(
        [result], operands, of_saved(pulled), lambda _, varies: of_saved(gradient_for_all(pulled, varies))
    )[0]


def slope_of(function: Callable[..., tf.Tensor]) -> Gradient:
    """The gradient that TensorFlow has of a function."""

    def gradient(cotangent: tf.Tensor, *arguments: tf.Tensor) -> list[tf.Tensor | None]:
        # Tensors of this graph: else in a loop a gradient of the gradient would not see those that are captured.
        arguments = tuple(tf.identity(argument) for argument in arguments)
        with tf.GradientTape() as tape:
            tape.watch(arguments)
            made = function(*arguments)
        return list(tape.gradient(made, arguments, cotangent))

    return gradient


def without_slope(bound: Bound, operand: tf.Tensor) -> tf.Tensor:
    """The operand, as one that does not vary, where the result that it is chosen for has no slope."""
    return tf.stop_gradient(operand) if bound.is_differentiated else operand


def _after(gradient: Gradient, result: tf.Tensor, cotangent: tf.Tensor, *operands: tf.Tensor) -> Any:
    return gradient(cotangent, result, *operands)


def _pulled(gradient: Gradient, cotangent: tf.Tensor, operands: Sequence[tf.Tensor]) -> list[tf.Tensor | None]:
    """The cotangents of the operands, in their shapes."""
    found = gradient(tf.convert_to_tensor(cotangent), *operands)
    return [made if made is None else _summed_to(made, operand) for made, operand in zip(found, operands, strict=True)]


def _summed_to(cotangent: tf.Tensor, operand: tf.Tensor) -> tf.Tensor:
    """A cotangent added up over the dimensions in which the operand was broadcast."""
    cotangent = tf.convert_to_tensor(cotangent)
    if cotangent.shape.is_fully_defined() and cotangent.shape == operand.shape:
        return cotangent
    axes = tf.raw_ops.BroadcastGradientArgs(s0=tf.shape(operand), s1=tf.shape(cotangent)).r0
    return tf.reshape(tf.reduce_sum(cotangent, axes), tf.shape(operand))
