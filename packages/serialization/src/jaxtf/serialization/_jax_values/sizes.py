"""Symbolic sizes that `jax.export.symbolic_shape` made, as sizes of `jaxtf.shapepoly`, with their constraints.

JAX traces with either; the exported main function, and the checks of a call, know only those of `jaxtf.shapepoly`.
"""

from __future__ import annotations

from typing import Any

import jax

from jaxtf.serialization import _jax
from jaxtf.shapepoly import ScopeError, SymbolicScope, is_symbolic_dim, symbolic_shape

__all__ = ["with_own_sizes"]


def with_own_sizes(tree: Any) -> Any:
    """A pytree of specifications, those with sizes of `jax.export` replaced by ones with the same sizes of ours.

    Raises:
      ScopeError: Sizes of several scopes, or sizes of jaxtf and of `jax.export`.
    """
    leaves = jax.tree.leaves(tree)
    foreign = {id(scope): scope for leaf in leaves for size in _shape(leaf) if (scope := _jax.scope_of(size))}
    if not foreign:
        return tree
    if len(foreign) > 1 or any(is_symbolic_dim(size) for leaf in leaves for size in _shape(leaf)):
        raise ScopeError(
            "the arguments have symbolic sizes of several scopes, some of jax.export\n"
            "  remedy: make them in one call of jaxtf.shapepoly.symbolic_shape, or pass the scope of one"
        )
    (scope,) = foreign.values()
    own = SymbolicScope(_jax.constraint_texts(scope))

    def replaced(leaf: Any) -> Any:
        shape = _shape(leaf)
        if not any(map(_jax.scope_of, shape)):
            return leaf
        sizes = tuple(symbolic_shape(str(size), scope=own)[0] if _jax.scope_of(size) else size for size in shape)
        return jax.ShapeDtypeStruct(
            sizes, leaf.dtype, sharding=getattr(leaf, "sharding", None), weak_type=getattr(leaf, "weak_type", False)
        )

    return jax.tree.map(replaced, tree)


def _shape(leaf: Any) -> tuple[Any, ...]:
    shape = getattr(leaf, "shape", ())
    return shape if isinstance(shape, tuple) else ()
