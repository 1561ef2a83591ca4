"""Exports a JAX function with the large arrays that it closes over as arguments of the module.

Tracing finds them: they are the constants of the jaxpr, and of jaxprs of `jit` inside. The function
is exported with them as further keyword arguments, after its own; for its VJP they stay constants,
lifted out in the same way. Small arrays stay in the module, where the compiler can fold them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import jax
import numpy as np
from jax.extend.core import ClosedJaxpr, jaxpr_as_fun

from jaxtf.convert import _jax
from jaxtf.convert._convert.target import Target
from jaxtf.convert._function.constants import Constants
from jaxtf.convert._function.function import ExportedFunction
from jaxtf.serialization.interop import vjp_function

__all__ = ["LARGE_BYTES", "export_lifted"]

# What is in the module is there once more in each VJP's, is written and parsed with it, and counts towards the 2 GB
# of a graph; an argument more costs an eager call about 1 us.
LARGE_BYTES = 1 << 16

# Sorts after every name that Python allows for an argument, so that constants are the last of the flat arguments.
_KEY = "~constants"


def export_lifted(
    jitted: Any, target: Target, constants: Constants, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> ExportedFunction:
    """The function exported for specifications of its arguments, large constants beside its module.

    Args:
      jitted: What `jax.jit` returned.
      target: How to export it, and what to make of that.
      constants: Where the large arrays go.
      args: Specifications of the arguments.
      kwargs: Likewise.
    """
    traced = jitted.trace(*args, **kwargs)
    specifications = jax.tree.leaves((args, kwargs))
    large = list(_large(traced.jaxpr)) if _is_plain(traced, len(specifications)) else []
    if not large:
        return target.make(target.export(jitted)(*args, **kwargs))
    held = list(dict.fromkeys(map(constants.of, large)))

    def lifted(*args: Any, **kwargs: Any) -> Any:
        arrays = dict(zip(held, kwargs.pop(_KEY), strict=True))
        results = _evaluate(traced.jaxpr, jax.tree.leaves((args, kwargs)), constants, arrays)
        return jax.tree.unflatten(traced.out_tree, results)

    lifted.__name__ = lifted.__qualname__ = traced.fun_name
    arrays = tuple(jax.ShapeDtypeStruct(constant.value.shape, constant.value.dtype) for constant in held)
    exported = target.export(jax.jit(lifted))(*args, **kwargs, **{_KEY: arrays})
    return target.make(exported, tuple(held), partial(_export_vjp, traced, specifications, target, constants))


def _export_vjp(traced: Any, specifications: Sequence[Any], target: Target, constants: Constants) -> ExportedFunction:
    """The VJP of a traced function, in the same form; the constants have no cotangents."""
    vjp = vjp_function(traced, len(specifications))
    cotangents = [_jax.cotangent_specification(aval) for aval in traced.jaxpr.out_avals]
    return export_lifted(jax.jit(vjp), target, constants, (*specifications, *cotangents), {})


def _is_plain(traced: Any, argument_count: int) -> bool:
    """Whether the jaxpr is all there is of a function: no static arguments, no shardings, effects or donation."""
    return len(traced.jaxpr.in_avals) == argument_count and not traced.jaxpr.effects and not _jax.has_shardings(traced)


def _large(jaxpr: ClosedJaxpr) -> Iterator[Any]:
    """The large arrays of a jaxpr and of the jaxprs of `jit` in it, over and over if used so."""
    yield from filter(_is_large, jaxpr.consts)
    for equation in jaxpr.jaxpr.eqns:
        inner = _jax.jaxpr_of_jit(equation)
        if inner is not None:
            yield from _large(inner)


def _is_large(array: Any) -> bool:
    dtype = getattr(array, "dtype", None)
    return isinstance(dtype, np.dtype) and dtype.itemsize * int(np.prod(array.shape)) >= LARGE_BYTES


def _closes_over_large(equation: Any) -> bool:
    inner = _jax.jaxpr_of_jit(equation)
    return inner is not None and next(_large(inner), None) is not None


def _evaluate(
    jaxpr: ClosedJaxpr, arguments: Sequence[Any], constants: Constants, arrays: dict[Any, Any]
) -> Sequence[Any]:
    """Computes a jaxpr with other arrays in place of its large constants."""

    def replaced(array: Any) -> Any:
        return arrays[constants.of(array)] if _is_large(array) else array

    consts = list(map(replaced, jaxpr.consts))
    if not any(map(_closes_over_large, jaxpr.jaxpr.eqns)):
        results: Sequence[Any] = jaxpr_as_fun(ClosedJaxpr(jaxpr.jaxpr, consts))(*arguments)
        return results
    values = dict(zip((*jaxpr.jaxpr.constvars, *jaxpr.jaxpr.invars), (*consts, *arguments), strict=True))

    def read(atom: Any) -> Any:
        return atom.val if _jax.is_literal(atom) else values[atom]

    for equation in jaxpr.jaxpr.eqns:
        inner = _jax.jaxpr_of_jit(equation)
        if inner is not None and _closes_over_large(equation):
            computed = _evaluate(inner, list(map(read, equation.invars)), constants, arrays)
        else:
            single = _jax.of_one_equation(jaxpr, equation)
            computed = jaxpr_as_fun(single)(*(values[variable] for variable in single.jaxpr.invars))
        values.update(zip(equation.outvars, computed, strict=True))
    return list(map(read, jaxpr.jaxpr.outvars))
