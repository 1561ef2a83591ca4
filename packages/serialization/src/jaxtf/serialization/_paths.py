"""Where an argument or a size stands, written as its caller would write it.

`args[0]['w'].shape[1]`, `kwargs['mask'].shape`: the address of a leaf of `(args, kwargs)`.
"""

from __future__ import annotations

from typing import Any

__all__ = ["argument_paths"]


def argument_paths(tree: Any) -> tuple[str, ...]:
    """The path of each leaf of a JAX treedef of `(args, kwargs)`, in flattening order.

    >>> import jax
    >>> argument_paths(jax.tree.structure(((1, {"w": 2}), {"mask": 3})))
    ('args[0]', "args[1]['w']", "kwargs['mask']")
    """
    import jax

    leaves = jax.tree_util.tree_flatten_with_path(jax.tree_util.tree_unflatten(tree, [0] * tree.num_leaves))[0]
    return tuple(("args", "kwargs")[path[0].idx] + jax.tree_util.keystr(path[1:]) for path, _ in leaves)
