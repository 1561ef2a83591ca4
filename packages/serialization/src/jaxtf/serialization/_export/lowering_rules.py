"""Which lowering rules take the place of JAX's. Imports JAX.

Those of linear algebra: expanded, they need no LAPACK on CPU (`linear_algebra`); named, they are custom calls
(`named_operations`). Those of windows (`reducers`), always.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
from jax.interpreters import mlir

from jaxtf.serialization import _jax
from jaxtf.serialization._export import linear_algebra as linear_algebra_module
from jaxtf.serialization._export.named_operations import call_by_name
from jaxtf.serialization._export.reducers import lower_known_reduce_window, lower_reduce_window
from jaxtf.serialization._export.target import LinearAlgebra

__all__ = ["overriding_rules"]

_ALWAYS: tuple[tuple[Any, Callable[..., Any]], ...] = (
    (jax.lax.reduce_window_p, lower_reduce_window),
    *(
        (primitive, functools.partial(lower_known_reduce_window, primitive))
        for primitive in (jax.lax.reduce_window_sum_p, jax.lax.reduce_window_max_p, jax.lax.reduce_window_min_p)
    ),
)


def overriding_rules(linear_algebra: LinearAlgebra, platforms: tuple[str, ...]) -> Any:
    """The (primitive, rule) pairs to lower with instead of JAX's rules.

    Linear algebra becomes calls of LAPACK on CPU; expanded, operations of StableHLO; or calls by name.
    """
    if linear_algebra == "named":
        return (*_ALWAYS, *_named_rules())
    if linear_algebra == "expanded" and "cpu" in platforms:
        return (*_ALWAYS, *_expanded_rules())
    return _ALWAYS


@functools.cache
def _expanded_rules() -> Any:
    """For each primitive of linear algebra that can do without LAPACK on CPU, the rule that does."""
    # XLA expands what the default rules of these write, or they write all of it.
    by_xla = (
        jax.lax.linalg.cholesky_p,
        jax.lax.linalg.triangular_solve_p,
        jax.lax.linalg.ormqr_p,
    )
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
    return tuple(
        (primitive, functools.partial(_jax.lower_on_cpu_by, primitive, rule)) for primitive, rule in rules.items()
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
    )


def _rule_of(function: Callable[..., Any], multiple_results: bool) -> Callable[..., Any]:
    """The lowering rule that traces `function`, whatever the caller has configured for jax.numpy."""

    def traced(*args: Any, **params: Any) -> Any:
        with jax.numpy_rank_promotion("allow"), jax.numpy_dtype_promotion("standard"):
            return function(*args, **params)

    return mlir.lower_fun(traced, multiple_results)
