"""Exports a JAX function with the large arrays that it closes over as arguments of the module.

The function is exported with them as further keyword arguments, after its own; for its VJP they stay constants, lifted
out in the same way, with JAX's settings and the numbers of the time of export.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from functools import cache, partial
from typing import Any

import jax
import numpy as np
from jax.errors import UnexpectedTracerError

from jaxtf.convert import _jax
from jaxtf.convert._convert.target import Target
from jaxtf.convert._function.constants import Constant, Constants
from jaxtf.convert._function.function import ExportedFunction
from jaxtf.serialization.interop import (
    closed_over,
    frozen,
    rules_hold_writable,
    tracing_settings,
    vjp_function,
    vjp_unavailable,
)

__all__ = ["LARGE_BYTES", "export_lifted"]

# What is in the module is there once more in each VJP's, is written and parsed with it, and counts towards the 2 GB
# of a graph; an argument more costs an eager call about 1 us.
LARGE_BYTES = 1 << 16

# Sorts after every name that Python allows for an argument, so that constants are the last of the flat arguments.
_KEY = "~constants"


def export_lifted(
    jitted: Any,
    target: Target,
    constants: Constants,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    *,
    is_vjp: bool = False,
) -> ExportedFunction:
    """The function exported for specifications of its arguments, large constants outside its module.

    Args:
      jitted: What `jax.jit` returned.
      target: How to export it, and what to make of that.
      constants: Where the large arrays go.
      args: Specifications of the arguments.
      kwargs: Likewise.
      is_vjp: Whether it is the VJP of another, of which no VJP is made before it is asked for.
    """
    traced = jitted.trace(*args, **kwargs)
    specifications = jax.tree.leaves((args, kwargs))
    copies: list[Constant] = []  # kept until they are in use

    def copy(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        if array.nbytes < LARGE_BYTES:
            return np.array(array)
        copies.append(constants.copy_of(array))
        return copies[-1].value

    large = closed_over(traced, len(specifications), LARGE_BYTES)
    if large is not None and not constants.as_variables:  # these are written within the same call
        traced = frozen(traced, copy)
        large = closed_over(traced, len(specifications), LARGE_BYTES)
    if large is None or not large.arrays:
        return target.make(target.export(jitted)(*args, **kwargs))
    held = tuple(map(constants.of, large.arrays))

    def lifted(*args: Any, **kwargs: Any) -> Any:
        arrays = kwargs.pop(_KEY)
        return jax.tree.unflatten(traced.out_tree, large.evaluate(jax.tree.leaves((args, kwargs)), arrays))

    lifted.__name__ = lifted.__qualname__ = traced.fun_name
    arrays = tuple(jax.ShapeDtypeStruct(constant.value.shape, constant.value.dtype) for constant in held)
    exported = target.export(jax.jit(lifted))(*args, **kwargs, **{_KEY: arrays})
    vjp = cache(partial(_export_vjp, traced, specifications, target, constants, tracing_settings()))
    if not is_vjp and rules_hold_writable(traced.jaxpr):
        with suppress(Exception):  # it has none, as it will say when it is asked
            vjp()
    return target.make(exported, held, vjp)


def _export_vjp(
    traced: Any,
    specifications: Sequence[Any],
    target: Target,
    constants: Constants,
    settings: Callable[[], AbstractContextManager[None]],
) -> ExportedFunction:
    """The VJP of a traced function, in the same form; the constants have no cotangents."""
    vjp = vjp_function(traced, len(specifications))
    cotangents = [_jax.cotangent_specification(aval) for aval in traced.jaxpr.out_avals]
    try:
        with settings():
            return export_lifted(jax.jit(vjp), target, constants, (*specifications, *cotangents), {}, is_vjp=True)
    except UnexpectedTracerError as error:
        raise vjp_unavailable(traced) from error
