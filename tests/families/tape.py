"""One random case of which TensorFlow's tape takes the gradient, as `convert_stablehlo` makes it, compared with JAX's.

The numbers are drawn so that few are where there is no derivative, and TensorFlow's convention another than JAX's.
Where JAX's gradient is not finite, none is compared.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import jax
import ml_dtypes
import numpy as np
import tensorflow as tf

from jaxtf.convert import convert_stablehlo
from jaxtf.serialization import LapackNeeded, export
from jaxtf.shapepoly import symbolic_args_specs

from .case import Argument, Case
from .trial import REFUSED, NotACase, Trial, arrays, derived, differs, enable_x64, in_jax, polymorphic_shapes

__all__ = ["compare_by_tape"]

_MAX_ERROR_IN_EPS = 64  # of numbers that are not whole, also in sums and products of many


def compare_by_tape(case: Case, trial: Trial, *, numbers: str = "normal") -> None:
    """Takes the gradient of a case at all its sizes, and compares it with that of JAX.

    Args:
      case: The case.
      trial: Its backend, x64 mode and seed.
      numbers: What `values` its arguments have in floating point.

    Raises:
      AssertionError: They differ.
      NotACase: JAX has no gradient, or TensorFlow has none of an operation.
    """
    case = replace(case, arguments=tuple(_smooth(argument, numbers) for argument in case.arguments))
    with enable_x64(trial.x64), warnings.catch_warnings():
        warnings.simplefilter("ignore", np.exceptions.ComplexWarning)
        warnings.filterwarnings("ignore", "Explicitly requested dtype", UserWarning)
        count = max(map(len, case.sizes.values()), default=1)
        rounds = [{name: case.sizes[name][i] for name in case.sizes} for i in range(count)]
        arguments = [arrays(case, trial, sizes) for sizes in rounds]
        asked = derived(case.in_jax or case.function, "vjp")
        expected = [list(map(np.conj, in_jax(asked, values, True))) for values in arguments]  # TensorFlow's convention
        try:
            exported = export(jax.jit(case.function), expand_linear_algebra=True)(
                *symbolic_args_specs(tuple(arguments[0]), polymorphic_shapes(case, len(arguments[0])))
            )
        except (*REFUSED, LapackNeeded) as error:
            raise NotACase(str(error)) from error
        backend, _, xla = trial.backend.partition("+")
        pull = _pulling(convert_stablehlo(exported, enable_xla=bool(xla)), exported.module_kept_var_idx)
        if backend != "eager":
            pull = tf.function(pull, autograph=False, jit_compile=backend == "compiled")
        for values, wanted, sizes in zip(arguments, expected, rounds, strict=True):
            try:
                found = [gradient.numpy() for gradient in pull(*map(tf.constant, values))]
            except LookupError as error:
                raise NotACase(str(error)) from error
            pairs = [_finite(*pair) for pair in zip(found, wanted, strict=True)]
            ours, theirs = ([pair[i] for pair in pairs] for i in range(2))
            difference = differs(ours, theirs, max(case.max_error_in_eps, _MAX_ERROR_IN_EPS), case.scale)
            assert difference is None, f"{case.label} at {sizes}: {difference}"


def _finite(ours: np.ndarray, theirs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The two with 0 where the second is not finite."""
    if ours.shape != theirs.shape:
        return ours, theirs
    is_finite = np.isfinite(theirs)
    return np.where(is_finite, ours, 0).astype(ours.dtype), np.where(is_finite, theirs, 0).astype(theirs.dtype)


def _smooth(argument: Argument, numbers: str) -> Argument:
    is_inexact = jax.dtypes.issubdtype(getattr(ml_dtypes, argument.dtype, argument.dtype), np.inexact)
    return replace(argument, values=numbers) if is_inexact and isinstance(argument.values, str) else argument


def _pulling(function: Callable[..., Any], used: Sequence[int]) -> Callable[..., list[tf.Tensor]]:
    """The gradient of a function for all arguments that have one, from the cotangents that JAX is given.

    Args:
      function: Of those of the arguments that it uses.
      used: Which those are.
    """

    def pull(*tensors: tf.Tensor) -> list[tf.Tensor]:
        watched = [x for x in tensors if _is_inexact(x)]
        with tf.GradientTape() as tape:
            tape.watch(watched)
            results = [y for y in tf.nest.flatten(function(*(tensors[i] for i in used))) if _is_inexact(y)]
        if not results:
            return [tf.zeros_like(x) for x in watched]
        cotangents = [_pattern(y) for y in results]
        gradients = tape.gradient(results, watched, cotangents, unconnected_gradients="zero")
        return [tf.convert_to_tensor(gradient) for gradient in gradients]

    return pull


def _is_inexact(tensor: tf.Tensor) -> bool:
    return bool(tensor.dtype.is_floating or tensor.dtype.is_complex)


def _pattern(tensor: tf.Tensor) -> tf.Tensor:
    """As `pattern`."""
    places = tf.range(tf.size(tensor)) % 3 - 1
    return tf.cast(tf.reshape(places, tf.shape(tensor)), tensor.dtype)
