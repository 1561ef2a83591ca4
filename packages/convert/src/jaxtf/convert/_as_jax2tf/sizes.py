"""The questions of `jax.export` about sizes, answered for those of jaxtf.shapepoly too."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from jaxtf import shapepoly

__all__ = ["for_sizes_of_both"]

_OURS = {
    "is_symbolic_dim": shapepoly.is_symbolic_dim,
    "symbolic_dim_bounds": shapepoly.symbolic_dim_bounds,
}


def for_sizes_of_both(functions: dict[str, Any]) -> dict[str, Callable[[Any], Any]]:
    """Those of JAX's functions that ask about one size, as functions that also answer for ours.

    Args:
      functions: The public names of `jax.export`. JAX 0.10 has no `symbolic_dim_bounds`; then there is none here.
    """
    return {name: _for_both(functions[name], ours) for name, ours in _OURS.items() if name in functions}


def _for_both(of_jax: Callable[[Any], Any], ours: Callable[[Any], Any]) -> Callable[[Any], Any]:
    @functools.wraps(of_jax)
    def answer(dimension: Any) -> Any:
        return (ours if shapepoly.is_symbolic_dim(dimension) else of_jax)(dimension)

    return answer
