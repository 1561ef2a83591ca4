"""Gradients of results that are computed otherwise than they are to be differentiated, for tapes that see operations.

`convert_stablehlo` leaves gradients to TensorFlow, which differentiates what it sees. A `where` that mends a value, as
at 0, has another slope than the function there, and what is computed by the bits of numbers has none. An entry that
emits such a thing gives its result the gradient that it is to have. The functions of `convert` have JAX's: nothing is
added to their graphs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import tensorflow as tf

from jaxtf.convert import _tf
from jaxtf.convert._function.saved_gradients import refused_in_control_flow, takes_of_control_flow
from jaxtf.convert._function.vectorized import gradient_for_all
from jaxtf.convert._graph.registry import Bound

__all__ = ["differentiated", "differentiated_as", "without_slope"]

_REMEDY = "  remedy: save a function that takes the gradient"


def differentiated(
    bound: Bound, result: tf.Tensor, gradient: Callable[..., Sequence[tf.Tensor | None]], *operands: tf.Tensor
) -> tf.Tensor:
    """The result, with a gradient of its own where TensorFlow may be asked for one.

    Args:
      bound: The operation.
      result: Of inexact numbers.
      gradient: From the cotangent of the result and the operands to the cotangents of the operands, in TensorFlow's
        convention: of complex numbers, the conjugate of JAX's. Those of a larger shape than their operand are summed.
      operands: What it is differentiated with respect to, no constants of another graph.
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
        found = gradient(tf.convert_to_tensor(cotangents[0]), *arguments)
        return [
            made if made is None else _summed_to(made, operand) for made, operand in zip(found, arguments, strict=True)
        ]

    return _tf.graph_results([result], operands, pulled, gradient_for_all)[0]


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

    def gradient(cotangent: tf.Tensor, *arguments: tf.Tensor) -> list[tf.Tensor | None]:
        # Tensors of this graph: else in a loop a gradient of the gradient would not see those that are captured.
        arguments = tuple(tf.identity(argument) for argument in arguments)
        with tf.GradientTape() as tape:
            tape.watch(arguments)
            made = function(*arguments)
        return list(tape.gradient(made, arguments, cotangent))

    return differentiated(bound, result, gradient, *operands)


def without_slope(bound: Bound, operand: tf.Tensor) -> tf.Tensor:
    """The operand, as one that does not vary, where the result that it is chosen for has no slope."""
    return tf.stop_gradient(operand) if bound.is_differentiated else operand


def _summed_to(cotangent: tf.Tensor, operand: tf.Tensor) -> tf.Tensor:
    """A cotangent added up over the dimensions in which the operand was broadcast."""
    cotangent = tf.convert_to_tensor(cotangent)
    if cotangent.shape.is_fully_defined() and cotangent.shape == operand.shape:
        return cotangent
    axes = tf.raw_ops.BroadcastGradientArgs(s0=tf.shape(operand), s1=tf.shape(cotangent)).r0
    return tf.reshape(tf.reduce_sum(cotangent, axes), tf.shape(operand))
