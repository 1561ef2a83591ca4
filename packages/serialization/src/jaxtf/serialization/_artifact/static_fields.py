"""The static fields that dataclasses had when an artifact was written, from its notes and for them.

The auxiliary data of a node of a custom type are bytes of the user's, mostly the values of static fields in the order
that the class had. The notes have the name and the text of each, for every node of a custom type of the arguments, then
of the results, each node before those below it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from jaxtf.serialization._errors import ArtifactError
from jaxtf.serialization._record.tree import Tree

__all__ = ["Written", "static_fields", "with_static_fields"]

Written = tuple[tuple[tuple[str, str], ...], ...]
"""For each node the name and the text of each field."""


def static_fields(*trees: Tree) -> Written:
    """The static fields of the custom nodes of trees; nothing where none has any."""
    found = tuple(node.custom.static_fields for tree in trees for node in _nodes(tree) if node.custom is not None)
    return found if any(found) else ()


def with_static_fields(trees: Sequence[Tree], written: Written) -> tuple[Tree, ...]:
    """The trees, their custom nodes with the static fields that they had.

    Args:
      trees: As read.
      written: What `static_fields` gave for them.

    Raises:
      ArtifactError: They have another number of custom nodes.
    """
    if not written:
        return tuple(trees)
    count = sum(node.custom is not None for tree in trees for node in _nodes(tree))
    if count != len(written):
        raise ArtifactError(
            f"the notes of the artifact have static fields of {len(written)} pytree nodes of custom types; it has "
            f"{count}"
        )
    remaining = iter(written)
    return tuple(_with_fields(tree, remaining) for tree in trees)


def _nodes(tree: Tree) -> Iterator[Tree]:
    yield tree
    for child in tree.children:
        yield from _nodes(child)


def _with_fields(tree: Tree, written: Iterator[tuple[tuple[str, str], ...]]) -> Tree:
    custom = None if tree.custom is None else replace(tree.custom, written=next(written))
    return replace(tree, custom=custom, children=tuple(_with_fields(child, written) for child in tree.children))
