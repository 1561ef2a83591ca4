"""What the programs of this folder share: a JAX function's values and gradients in graph mode, compared with JAX's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
import tensorflow as tf

from jaxtf.convert import convert

__all__ = ["compare"]

RUNS = {
    "eager": lambda f: f,
    "graph": lambda f: tf.function(f, autograph=False),
    "compiled": lambda f: tf.function(f, autograph=False, jit_compile=True),
}


def compare(
    name: str, function: Callable[..., Any], arguments: Sequence[Any], tolerance: float, **options: Any
) -> None:
    """Prints the largest differences from JAX, relative to the largest number; exits if one is above the tolerance.

    Args:
      name: What to print.
      function: From arrays to an array or several.
      arguments: Arrays.
      tolerance: Allowed difference, relative.
      options: Of `convert`.
    """
    arguments = [np.asarray(argument) for argument in arguments]

    def loss(*args: Any) -> Any:
        return sum((leaf**2).sum() for leaf in jax.tree.leaves(function(*args)))

    expected = jax.tree.leaves(jax.jit(function)(*arguments))
    gradients = jax.jit(jax.grad(loss, tuple(range(len(arguments)))))(*arguments)
    converted = convert(function, native_serialization=False, enable_xla=False, **options)
    for mode, run in RUNS.items():
        found, slopes = values_and_gradients(run(converted), arguments)
        errors = [largest(found, expected), largest(slopes, gradients)]
        print(f"{name}, {mode}: values {errors[0]:.1e}, gradients {errors[1]:.1e}", flush=True)
        if not max(errors) <= tolerance:
            raise SystemExit(f"{name}, {mode}: differs from JAX by more than {tolerance:g}")


def values_and_gradients(function: Callable[..., Any], arguments: Sequence[np.ndarray]) -> tuple[list[Any], list[Any]]:
    """In TensorFlow."""
    tensors = [tf.constant(argument) for argument in arguments]
    with tf.GradientTape() as tape:
        tape.watch(tensors)
        results = tf.nest.flatten(function(*tensors))
        loss = tf.add_n([tf.reduce_sum(result**2) for result in results])
    return results, tape.gradient(loss, tensors, unconnected_gradients="zero")


def largest(found: Sequence[Any], expected: Sequence[Any]) -> float:
    """The largest difference relative to the largest number, of any pair."""
    assert len(found) == len(expected), f"{len(found)} results, not {len(expected)}"
    errors = []
    for ours, theirs in zip(found, expected, strict=True):
        errors.append(difference(np.asarray(ours), np.asarray(theirs)))
    return max(errors, default=0.0)


def difference(found: np.ndarray, expected: np.ndarray) -> float:
    """The same, of one pair."""
    assert found.shape == expected.shape, f"shape {found.shape}, not {expected.shape}"
    assert np.isfinite(expected).all(), "JAX's own numbers are not finite"
    return float(np.abs(found - expected).max(initial=0) / max(np.abs(expected).max(initial=0), 1e-30))
