"""Pytrees with the containers of TensorFlow and Keras among their nodes."""

from __future__ import annotations

from typing import Any

import jax
from jax.tree_util import PyTreeDef

from jaxtf.serialization._record.containers import plain_containers

__all__ = ["unwrapped"]


def unwrapped(leaves: list[Any], tree: PyTreeDef) -> tuple[list[Any], PyTreeDef]:
    """Leaves and structure of a pytree of which JAX takes no container for a leaf (`plain_containers`).

    Args:
      leaves: As JAX flattened it.
      tree: Likewise.
    """
    if not any(isinstance(leaf, dict | list | tuple) for leaf in leaves):
        return leaves, tree
    flat: tuple[list[Any], PyTreeDef] = jax.tree.flatten(jax.tree.unflatten(tree, map(plain_containers, leaves)))
    return flat
