"""The path of an argument, a result or a size, written as its caller would write it.

`args[0]['w'].shape[1]`, `kwargs['mask'].shape`: the address of a leaf of `(args, kwargs)`;
`result['loss']`: that of a leaf of the result. Imports JAX.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import jax

__all__ = ["argument_paths", "result_paths"]


def argument_paths(tree: Any, leaves: Sequence[Any] | None = None) -> tuple[str, ...]:
    """The path of each leaf of a JAX treedef of `(args, kwargs)`, in flattening order.

    Args:
      tree: The treedef.
      leaves: What to unflatten it with, for classes that look at their children; else a number in each place. Of a
        class that takes neither, children are named by their positions.

    >>> import jax
    >>> argument_paths(jax.tree.structure(((1, {"w": 2}), {"mask": 3})))
    ('args[0]', "args[1]['w']", "kwargs['mask']")
    """
    return tuple(("args", "kwargs")[path[0].idx] + jax.tree_util.keystr(path[1:]) for path in _paths(tree, leaves))


def result_paths(tree: Any, leaves: Sequence[Any] | None = None) -> tuple[str, ...]:
    """The path of each leaf of a JAX treedef of a result, in flattening order; `leaves` as for `argument_paths`.

    >>> import jax
    >>> result_paths(jax.tree.structure({"loss": 1, "state": (2, 3)}))
    ("result['loss']", "result['state'][0]", "result['state'][1]")
    """
    return tuple("result" + jax.tree_util.keystr(path) for path in _paths(tree, leaves))


def _paths(tree: Any, leaves: Sequence[Any] | None) -> Iterator[tuple[Any, ...]]:
    try:
        whole = jax.tree_util.tree_unflatten(tree, [0] * tree.num_leaves if leaves is None else leaves)
    except Exception:  # whatever a class of the user's makes of children that are not those it expects
        return _paths_by_node(tree)
    found = jax.tree_util.tree_flatten_with_path(whole)[0]
    return (path for path, _ in found)


def _paths_by_node(tree: Any) -> Iterator[tuple[Any, ...]]:
    """Paths, by the keys that the containers of Python have; of other classes by the positions of their children."""
    node, children = tree.node_data(), tree.children()
    if node is None:
        yield from [()] * tree.num_leaves
        return
    kind, auxiliary = node
    for position, child in enumerate(children):
        if issubclass(kind, dict) and isinstance(auxiliary, list | tuple) and len(auxiliary) == len(children):
            key: Any = jax.tree_util.DictKey(auxiliary[position])
        elif issubclass(kind, tuple) and hasattr(kind, "_fields"):
            key = jax.tree_util.GetAttrKey(kind._fields[position])
        elif kind in (tuple, list):
            key = jax.tree_util.SequenceKey(position)
        else:
            key = jax.tree_util.FlattenedIndexKey(position)
        for path in _paths_by_node(child):
            yield (key, *path)
