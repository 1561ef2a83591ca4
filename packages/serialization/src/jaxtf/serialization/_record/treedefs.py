"""Whether two treedefs of JAX are of one structure.

Treedefs that are equal may be of different classes: nodes of `register_dataclass` are compared by their static fields
and their number of children (JAX 0.10.2), so that children would be taken by position. Their hashes tell such classes
apart, which is why dictionaries and caches that have treedefs for keys need nothing of this; but those of one structure
also have different hashes where JAX made one of them while it traced.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

__all__ = ["is_same_structure"]


def is_same_structure(one: Any, other: Any) -> bool:
    """Whether two treedefs are equal, also in the classes of their nodes.

    >>> import jax
    >>> is_same_structure(jax.tree.structure({"a": (1, 2)}), jax.tree.structure({"a": (3, 4)}))
    True
    """
    return one == other and (hash(one) == hash(other) or list(_classes(one)) == list(_classes(other)))


def _classes(treedef: Any) -> Iterator[type[Any] | None]:
    node_data = treedef.node_data()
    yield None if node_data is None else node_data[0]
    for child in treedef.children():
        yield from _classes(child)
