"""The lowering rules for windows: those that JAX's own rules write as XLA cannot compile them. Imports JAX.

Where several arrays are reduced together and padding takes away more than a dimension has, XLA ends the process (JAX
0.10 to 0.12, TensorFlow 2.21). There is nothing to compute: results without elements are written as such.

Where windows have one element, next to each other, and padding only takes elements away, XLA replaces a sum, a maximum
or a minimum by the operation on the whole operand, and ends the process because the shape is another one (the same
releases). Here the operand is cut first, also by symbolic sizes that are known to be no padding.

Of windows of symbolic sizes JAX lowers the reducer to a function of the module of its own, and each call in it
(`jnp.where` is one: of a function under `jax.jit`) to a call that hands on the sizes of the function around it. A
function of StableHLO sees no values of another one: the module is refused by the verifier, and in JAX 0.10 to 0.12
taking it down damages the memory of the process, which ends later. Here the calls are written out first, so that there
is nothing to hand on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal
from jax.interpreters import mlir

from jaxtf.serialization import _jax
from jaxtf.serialization._errors import LoweringRuleMissing
from jaxtf.serialization._export.constants import items_of
from jaxtf.serialization._export.jaxprs import equations
from jaxtf.shapepoly import is_symbolic_dim, max_dim, min_dim, symbolic_dim_bounds

__all__ = ["lower_known_reduce_window", "lower_reduce_window"]

# Equations that compute what one of their parameters says, on their operands: the parameter.
_BODIES = ("jaxpr", "call_jaxpr", "fun_jaxpr")
_CALLS = {"jit", "pjit", "closed_call", "core_call", "remat2", "checkpoint", "custom_jvp_call", "custom_vjp_call"}
# Those whose jaxprs become blocks within a function; the body of a scan becomes a function in JAX 0.10.
_CONTROL_FLOW = {"cond", "while"}
# The value of a symbolic size, ours and JAX's.
_SIZES = {"symbolic_dimension_value", "dim_as_value"}


def lower_reduce_window(ctx: Any, *args: Any, jaxpr: Any, consts: Any, **params: Any) -> Any:
    """Lowers `lax.reduce_window` by any reducer.

    Raises:
      LoweringRuleMissing: The size of a window is symbolic, and the reducer computes with a symbolic size.
    """
    avals = _jax.result_avals(ctx)
    if any(isinstance(size, int) and size == 0 for aval in avals for size in aval.shape):
        return mlir.lower_fun(lambda *_: _zeros(avals), multiple_results=True)(ctx, *args)
    if _only_cuts(**params):
        return _cut_first(jax.lax.reduce_window_p, ctx, args, jaxpr=jaxpr, consts=consts, **params)
    rule = _jax.default_rule(jax.lax.reduce_window_p)
    sizes = [
        *params["window_dimensions"],
        *params["window_strides"],
        *params["base_dilation"],
        *params["window_dilation"],
        *(size for pair in params["padding"] for size in pair),
    ]
    if any(map(is_symbolic_dim, sizes)):
        written_out = _written_out(jaxpr, consts)
        _check(written_out)
        jaxpr, consts = written_out.jaxpr, written_out.consts
    return rule(ctx, *args, jaxpr=jaxpr, consts=tuple(consts), **params)


def lower_known_reduce_window(primitive: Any, ctx: Any, *args: Any, **params: Any) -> Any:
    """Lowers `lax.reduce_window` by a sum, a maximum or a minimum, each of which is a primitive of its own."""
    if _only_cuts(**params):
        return _cut_first(primitive, ctx, args, **params)
    return _jax.default_rule(primitive)(ctx, *args, **params)


def _only_cuts(
    *,
    window_dimensions: Sequence[Any],
    window_strides: Sequence[Any],
    base_dilation: Sequence[Any],
    padding: Sequence[tuple[Any, Any]],
    window_dilation: Sequence[Any],
) -> bool:
    """Whether windows may have one element each, next to each other, with padding that takes elements away only.

    A size that is symbolic may be 1.
    """
    del window_dilation  # A window of one element is the same with any.
    edges = [symbolic_dim_bounds(size) if is_symbolic_dim(size) else (size, size) for pair in padding for size in pair]
    return (
        all(is_symbolic_dim(size) or size == 1 for size in (*window_dimensions, *window_strides))
        and all(size == 1 for size in base_dilation)
        and all(upper <= 0 for _, upper in edges)
        and any(lower < 0 for lower, _ in edges)
    )


def _cut_first(
    primitive: Any, ctx: Any, args: Sequence[Any], *, padding: Sequence[tuple[Any, Any]], **params: Any
) -> Any:
    """Lowers windows over operands from which their negative padding is taken away before."""
    count = len(_jax.result_avals(ctx))

    def reduced(*args: Any) -> Any:
        cut = [_cut(operand, padding) for operand in args[:count]]
        return primitive.bind(*cut, *args[count:], padding=((0, 0),) * len(padding), **params)

    return mlir.lower_fun(reduced, primitive.multiple_results)(ctx, *args)


def _cut(operand: jax.Array, padding: Sequence[tuple[Any, Any]]) -> jax.Array:
    """The operand without what negative padding takes away, which may be more than there is."""
    starts: list[Any] = [min_dim(-low, size) for (low, _), size in zip(padding, operand.shape, strict=True)]
    sizes = zip(starts, padding, operand.shape, strict=True)
    ends: list[Any] = [max_dim(start, size + high) for start, (_, high), size in sizes]
    return jax.lax.slice(operand, starts, ends)


def _zeros(avals: Sequence[Any]) -> list[jax.Array]:
    return [jnp.zeros(aval.shape, aval.dtype) for aval in avals]


def _check(reducer: ClosedJaxpr) -> None:
    for equation in equations(reducer):
        name = equation.primitive.name
        if name in _SIZES:
            raise LoweringRuleMissing(
                "lax.reduce_window of a symbolic window with a reducer that computes with a symbolic size: a reducer "
                "of StableHLO sees no sizes of the function around it\n"
                "  remedy: leave the size out of the reducer, and compute with it before or after the reduction"
            )
        if name not in _CONTROL_FLOW and any(map(_has_jaxpr, equation.params.values())):
            raise LoweringRuleMissing(
                f"lax.reduce_window of a symbolic window with a reducer that calls a function by {name}: a reducer of "
                "StableHLO that JAX lowers to a function of its own cannot call another one\n"
                f"  remedy: write the reducer without {name}"
            )


def _has_jaxpr(value: Any) -> bool:
    return any(isinstance(item, ClosedJaxpr | Jaxpr) for item in items_of(value))


def _written_out(jaxpr: Any, consts: Sequence[Any]) -> ClosedJaxpr:
    """The jaxpr without calls, also in the bodies of its loops and branches."""

    def evaluated(*args: Any) -> list[Any]:
        return _evaluate(jaxpr, consts, args)

    closed: ClosedJaxpr = jax.make_jaxpr(evaluated)(*(v.aval for v in jaxpr.invars))
    return closed


def _evaluate(jaxpr: Any, consts: Sequence[Any], args: Sequence[Any]) -> list[Any]:
    values: dict[Any, Any] = {}

    def read(atom: Any) -> Any:
        return atom.val if isinstance(atom, Literal) else values[atom]

    values.update(zip(jaxpr.constvars, consts, strict=True))
    values.update(zip(jaxpr.invars, args, strict=True))
    for equation in jaxpr.eqns:
        operands = [read(atom) for atom in equation.invars]
        if equation.primitive.name in _CALLS:
            body = next(equation.params[name] for name in _BODIES if name in equation.params)
            results = _evaluate(getattr(body, "jaxpr", body), getattr(body, "consts", ()), operands)
        else:
            params = {name: _parameter(value) for name, value in equation.params.items()}
            result = equation.primitive.bind(*operands, **params)
            results = result if equation.primitive.multiple_results else [result]
        values.update(zip(equation.outvars, results, strict=True))
    return [read(atom) for atom in jaxpr.outvars]


def _parameter(value: Any) -> Any:
    if isinstance(value, ClosedJaxpr):
        return _written_out(value.jaxpr, value.consts)
    return tuple(map(_parameter, value)) if type(value) is tuple else value
