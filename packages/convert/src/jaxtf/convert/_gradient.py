"""Gradients of a converted function: TensorFlow asks, JAX differentiates.

In graphs the function is wrapped in a `tf.custom_gradient` whose gradient runs the exported VJP,
made when first asked for and wrapped in the same way, so that gradients of gradients exist. In
eager mode the tapes that watch are told the same.
Integers and booleans have no gradient: TensorFlow's None on one side, JAX's `float0`, held as
bool, on the other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from jaxtf.convert import _tf
from jaxtf.convert._native import NativeFunction

__all__ = ["GRADIENT_PREVENTED", "NO_VJP", "run_differentiable", "run_without_gradient"]

GRADIENT_PREVENTED = (
    "The jaxtf-converted function does not support gradients. Use `with_gradient` parameter to enable gradients"
)

NO_VJP = (
    "The artifact of the jaxtf-converted function holds too few orders of VJP for this gradient. Write it with "
    "`serialize(vjp_order=...)` one higher"
)


def run_differentiable(function: NativeFunction, arguments: Sequence[tf.Tensor]) -> list[tf.Tensor]:
    """Applies the function so that tapes, `tf.gradients` and SavedModels find its VJP."""
    if not arguments or not function.exported.out_avals:
        return function(arguments)
    if not function.exported.has_vjp():
        return run_without_gradient(function, arguments, NO_VJP)
    if tf.executing_eagerly():
        return _run_recorded(function, arguments) if _tf.any_tape_watches() else function(arguments)

    @tf.custom_gradient  # type: ignore[untyped-decorator, unused-ignore]
    def run(*arguments: tf.Tensor) -> tuple[tuple[tf.Tensor, ...], Callable[..., Any]]:
        results = function(arguments)

        def gradient(*cotangents: tf.Tensor | None, variables: Any = None) -> list[tf.Tensor | None]:
            assert not variables, f"variables are read before the call, so none is captured in it: {variables}"
            return _pull_back(function, arguments, results, cotangents)

        return tuple(results), gradient

    return list(run(*arguments))


def _run_recorded(function: NativeFunction, arguments: Sequence[tf.Tensor]) -> list[tf.Tensor]:
    """Applies the function eagerly and tells the tapes how to differentiate it."""
    with _tf.without_recording():
        results = function(arguments)
    # A copy: tapes keep it, whatever becomes of the list that the caller gets.
    kept = tuple(results)

    def gradient(*cotangents: tf.Tensor | None) -> list[tf.Tensor | None]:
        return _pull_back(function, arguments, kept, cotangents)

    _tf.record_gradient(results, arguments, gradient)
    return results


def run_without_gradient(
    function: NativeFunction, arguments: Sequence[tf.Tensor], message: str = GRADIENT_PREVENTED
) -> list[tf.Tensor]:
    """Applies the function so that asking for its gradient is an error, also when reloaded."""
    return [tf.raw_ops.PreventGradient(input=result, message=message) for result in function(arguments)]


def _pull_back(
    function: NativeFunction,
    arguments: Sequence[tf.Tensor],
    results: Sequence[tf.Tensor],
    cotangents: Sequence[tf.Tensor | None],
) -> list[tf.Tensor | None]:
    """The cotangents of the arguments, None for those without."""

    def cotangent_of(result: tf.Tensor, cotangent: tf.Tensor | None, has_gradient: bool) -> tf.Tensor:
        if not has_gradient:
            # Whatever TensorFlow passes for it (None, or zeros of some dtype), JAX expects float0.
            return tf.zeros_like(result, dtype=tf.bool)
        return tf.zeros_like(result) if cotangent is None else cotangent

    given = map(cotangent_of, results, cotangents, function.result_has_gradient)
    with tf.name_scope("jaxtf_vjp"):
        pulled = run_differentiable(function.vjp, [*arguments, *given])
    return [
        cotangent if has_gradient else None
        for cotangent, has_gradient in zip(pulled, function.argument_has_gradient, strict=True)
    ]
