"""An artifact as the function that its module is, so that its operations are steps; JAX calls an artifact as one.

The module is evaluated with `jax.lax` (`Exported.lift`), each operation at the line of the user's program that the
module has for it. The gradient is that of the artifact: its own VJP, lifted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from jaxtf.convert import _jax
from jaxtf.convert._verify.subject import Subject, of_function
from jaxtf.serialization import Exported
from jaxtf.serialization.interop import specification

__all__ = ["gradient_lifted", "lifted"]


def lifted(exported: Exported) -> Subject:
    """The function of flat arguments, to flat results, that the module of an artifact is.

    Raises:
      LiftUnsupported: An operation that is not lifted.
    """
    return of_function(_flat(exported), _specs(exported.in_avals), has_gradient=False)


def gradient_lifted(exported: Exported) -> Subject:
    """The gradients of the inexact arguments, of flat arguments and of cotangents of the inexact results.

    Raises:
      LiftUnsupported: An operation of the artifact's VJP that is not lifted.
    """
    pull_back = _flat(exported.vjp())
    function, count = _flat(exported), len(exported.in_avals)

    def gradient(*values: Any) -> list[Any]:
        arguments, cotangents = values[:count], iter(values[count:])
        results = jax.eval_shape(function, *arguments)
        weights = [next(cotangents) if _rounds(x) else jnp.zeros(x.shape, _jax.float0) for x in results]
        pulled = zip(pull_back(*arguments, *weights), exported.in_avals, strict=True)
        return [value for value, aval in pulled if _rounds(aval)]

    specs = _specs([*exported.in_avals, *filter(_rounds, exported.out_avals)])
    return of_function(gradient, specs, has_gradient=False)


def _flat(exported: Exported) -> Callable[..., list[Any]]:
    function = exported.lift()

    def flat(*leaves: Any) -> list[Any]:
        args, kwargs = jax.tree.unflatten(exported.in_tree, leaves)
        return jax.tree.leaves(function(*args, **kwargs))

    flat.__name__ = flat.__qualname__ = exported.fun_name
    return flat


def _specs(avals: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(specification(aval.shape, aval.dtype, weak_type=aval.weak_type) for aval in avals)


def _rounds(aval: Any) -> bool:
    return bool(jnp.issubdtype(aval.dtype, jnp.inexact))
