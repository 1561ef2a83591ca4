"""Gradients of a converted function: TensorFlow asks, JAX differentiates.

The function is wrapped in a `tf.custom_gradient` whose gradient runs the exported VJP, made
when first asked for and wrapped in the same way, so that gradients of gradients exist.
Integers and booleans have no gradient: TensorFlow's None on one side, JAX's `float0`, held as
bool, on the other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from jaxtf.convert import _tf
from jaxtf.convert._native import run_exported
from jaxtf.serialization import Exported

__all__ = ["GRADIENT_PREVENTED", "run_differentiable", "run_without_gradient"]

GRADIENT_PREVENTED = (
    "The jaxtf-converted function does not support gradients. Use `with_gradient` parameter to enable gradients"
)


def run_differentiable(exported: Exported, arguments: Sequence[tf.Tensor]) -> list[tf.Tensor]:
    """Applies the exported function so that tapes, `tf.gradients` and SavedModels find its VJP."""
    if not arguments or not exported.out_avals or (tf.executing_eagerly() and not _tf.any_tape_watches()):
        return run_exported(exported, arguments)

    @tf.custom_gradient  # type: ignore[untyped-decorator, unused-ignore]
    def run(*arguments: tf.Tensor) -> tuple[tuple[tf.Tensor, ...], Callable[..., Any]]:
        results = run_exported(exported, arguments)

        def gradient(*cotangents: tf.Tensor | None, variables: Any = None) -> list[tf.Tensor | None]:
            assert not variables, f"variables are read before the call, so none is captured in it: {variables}"
            return _pull_back(exported, arguments, results, cotangents)

        return tuple(results), gradient

    return list(run(*arguments))


def run_without_gradient(exported: Exported, arguments: Sequence[tf.Tensor]) -> list[tf.Tensor]:
    """Applies the exported function so that asking for its gradient is an error, also when reloaded."""
    return [
        tf.raw_ops.PreventGradient(input=result, message=GRADIENT_PREVENTED)
        for result in run_exported(exported, arguments)
    ]


def _pull_back(
    exported: Exported,
    arguments: Sequence[tf.Tensor],
    results: Sequence[tf.Tensor],
    cotangents: Sequence[tf.Tensor | None],
) -> list[tf.Tensor | None]:
    """The cotangents of the arguments, None for those without."""
    vjp = exported.vjp()
    expected = vjp.in_avals[len(arguments) :]
    given = [
        # TensorFlow passes None, or some zeros, for results that have no gradient.
        tf.zeros_like(result, dtype=tf.bool) if _is_float0(aval.dtype) else _or_zeros(cotangent, result)
        for aval, result, cotangent in zip(expected, results, cotangents, strict=True)
    ]
    with tf.name_scope("jaxtf_vjp"):
        pulled = run_differentiable(vjp, [*arguments, *given])
    return [
        None if _is_float0(aval.dtype) else cotangent for aval, cotangent in zip(vjp.out_avals, pulled, strict=True)
    ]


def _or_zeros(cotangent: tf.Tensor | None, result: tf.Tensor) -> tf.Tensor:
    return tf.zeros_like(result) if cotangent is None else cotangent


def _is_float0(dtype: Any) -> bool:
    # float0 is the one structured dtype of JAX: [('float0', 'V')].
    return isinstance(dtype, np.dtype) and dtype.names is not None
