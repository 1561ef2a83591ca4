"""Which lowering rules take the place of JAX's. Imports JAX.

Those of linear algebra: expanded, they need no LAPACK on CPU (`linear_algebra`); named, they are custom calls
(`named_operations`). Those of windows (`reducers`) and of triangular solves, always.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import jax
from jax.interpreters import mlir

from jaxtf.serialization import _jax
from jaxtf.serialization._export import linear_algebra as linear_algebra_module
from jaxtf.serialization._export.named_operations import call_by_name
from jaxtf.serialization._export.reducers import lower_known_reduce_window, lower_reduce_window
from jaxtf.serialization._export.target import LinearAlgebra
from jaxtf.shapepoly import is_symbolic_dim

__all__ = ["overriding_rules"]


def _lower_triangular_solve(own: Mapping[str, Any], ctx: Any, *args: Any, **flags: Any) -> Any:
    """Lowers by the rules of `own`, then JAX's, which take 1 or `np.True_` for a flag on CPU only."""
    booleans = {name: bool(flag) for name, flag in flags.items()}
    return _jax.lower_by_platform(jax.lax.linalg.triangular_solve_p, own, ctx, *args, **booleans)


_ALWAYS: tuple[tuple[Any, Callable[..., Any]], ...] = (
    (jax.lax.linalg.triangular_solve_p, functools.partial(_lower_triangular_solve, {})),
    (jax.lax.reduce_window_p, lower_reduce_window),
    *(
        (primitive, functools.partial(lower_known_reduce_window, primitive))
        for primitive in (jax.lax.reduce_window_sum_p, jax.lax.reduce_window_max_p, jax.lax.reduce_window_min_p)
    ),
)


def overriding_rules(linear_algebra: LinearAlgebra, platforms: tuple[str, ...]) -> Any:
    """The (primitive, rule) pairs to lower with instead of JAX's rules.

    Linear algebra becomes calls of LAPACK on CPU; expanded, operations of StableHLO; or calls by name. Of two rules for
    a primitive JAX takes the first.
    """
    if linear_algebra == "named":
        return (*_named_rules(), *_ALWAYS)
    if linear_algebra == "expanded" and "cpu" in platforms:
        return (*_expanded_rules(), *_ALWAYS)
    return _ALWAYS


@functools.cache
def _expanded_rules() -> Any:
    """For each primitive of linear algebra that can do without LAPACK on CPU, the rule that does."""
    # XLA expands what the default rules of these write, or they write all of it.
    by_xla = (jax.lax.linalg.cholesky_p, jax.lax.linalg.ormqr_p)
    ours: dict[Any, Callable[..., Any]] = {
        _jax.geqrf_p: linear_algebra_module.geqrf,
        jax.lax.linalg.householder_product_p: linear_algebra_module.householder_product,
        jax.lax.linalg.eigh_p: linear_algebra_module.eigh,
        jax.lax.linalg.svd_p: linear_algebra_module.svd,
        jax.lax.linalg.lu_p: linear_algebra_module.lu,
        jax.lax.linalg.tridiagonal_solve_p: linear_algebra_module.tridiagonal_solve,
    }
    rules = {primitive: _jax.default_rule(primitive) for primitive in by_xla}
    rules |= {primitive: _rule_of(function, primitive.multiple_results) for primitive, function in ours.items()}
    solve = {"cpu": _jax.default_rule(jax.lax.linalg.triangular_solve_p)}
    return (
        (jax.lax.linalg.triangular_solve_p, functools.partial(_lower_triangular_solve, solve)),
        *(
            (primitive, functools.partial(_jax.lower_by_platform, primitive, {"cpu": rule}))
            for primitive, rule in rules.items()
        ),
    )


@functools.cache
def _named_rules() -> Any:
    """Rules for primitives of linear algebra that JAX has no rules for on a platform without a name."""
    named = (
        jax.lax.linalg.eigh_p,
        jax.lax.linalg.svd_p,
        jax.lax.linalg.eig_p,
        jax.lax.linalg.qr_p,
        jax.lax.linalg.schur_p,
        jax.lax.linalg.hessenberg_p,
        jax.lax.linalg.tridiagonal_p,
        _jax.geqp3_p,
    )
    written_out: dict[Any, Callable[..., Any]] = {
        _jax.geqrf_p: linear_algebra_module.geqrf,
        jax.lax.linalg.householder_product_p: linear_algebra_module.householder_product,
    }
    return (
        *((primitive, functools.partial(call_by_name, primitive.name)) for primitive in named),
        *((primitive, _rule_of(function, primitive.multiple_results)) for primitive, function in written_out.items()),
        (jax.lax.linalg.lu_p, _lower_lu),
    )


def _lower_lu(ctx: Any, operand: Any) -> Any:
    """By JAX's rule, which counts the columns in Python; where their number is symbolic, by ours."""
    _, pivots, _ = _jax.result_avals(ctx)
    if is_symbolic_dim(pivots.shape[-1]):
        return _rule_of(linear_algebra_module.lu, True)(ctx, operand)
    return _jax.default_rule(jax.lax.linalg.lu_p)(ctx, operand)


def _rule_of(function: Callable[..., Any], multiple_results: bool) -> Callable[..., Any]:
    """The lowering rule that traces `function`, whatever the caller has configured for jax.numpy."""

    def traced(*args: Any, **params: Any) -> Any:
        with jax.numpy_rank_promotion("allow"), jax.numpy_dtype_promotion("standard"):
            return function(*args, **params)

    return mlir.lower_fun(traced, multiple_results)
