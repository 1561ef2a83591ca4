"""The VJP of a traced function, as a function of flat arguments and result cotangents.

JAX differentiates, so custom derivative rules of the function are respected.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
from jax.extend.core import jaxpr_as_fun

__all__ = ["vjp_function"]


def vjp_function(jaxpr: Any, argument_count: int) -> Callable[..., tuple[Any, ...]]:
    """From a closed jaxpr to the function `(*arguments, *result cotangents) -> argument cotangents`."""
    primal = jaxpr_as_fun(jaxpr)

    def vjp(*flat: Any) -> tuple[Any, ...]:
        arguments, cotangents = flat[:argument_count], flat[argument_count:]
        _, pullback = jax.vjp(primal, *arguments)
        return tuple(pullback(list(cotangents)))

    return vjp
