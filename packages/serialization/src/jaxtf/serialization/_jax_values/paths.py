"""Where an argument, a result or a size stands, written as its caller would write it.

`args[0]['w'].shape[1]`, `kwargs['mask'].shape`: the address of a leaf of `(args, kwargs)`;
`result['loss']`: that of a leaf of the result. Imports JAX.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax

__all__ = ["argument_paths", "result_paths"]


def argument_paths(tree: Any) -> tuple[str, ...]:
    """The path of each leaf of a JAX treedef of `(args, kwargs)`, in flattening order.

    >>> import jax
    >>> argument_paths(jax.tree.structure(((1, {"w": 2}), {"mask": 3})))
    ('args[0]', "args[1]['w']", "kwargs['mask']")
    """
    return tuple(("args", "kwargs")[path[0].idx] + jax.tree_util.keystr(path[1:]) for path in _paths(tree))


def result_paths(tree: Any) -> tuple[str, ...]:
    """The path of each leaf of a JAX treedef of a result, in flattening order.

    >>> import jax
    >>> result_paths(jax.tree.structure({"loss": 1, "state": (2, 3)}))
    ("result['loss']", "result['state'][0]", "result['state'][1]")
    """
    return tuple("result" + jax.tree_util.keystr(path) for path in _paths(tree))


def _paths(tree: Any) -> Iterator[tuple[Any, ...]]:
    leaves = jax.tree_util.tree_flatten_with_path(jax.tree_util.tree_unflatten(tree, [0] * tree.num_leaves))[0]
    return (path for path, _ in leaves)
