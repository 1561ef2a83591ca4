"""The keys that the children of custom nodes had when an artifact was written, from the paths in its notes.

A tree in an artifact has no keys for the children of custom types; the path of each leaf has one for each node above.
A path that has another number of keys than there are nodes (of a class whose keys are texts of its own) says nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from jaxtf.serialization._record.kinds import PyTreeDefKind
from jaxtf.serialization._record.tree import Tree

__all__ = ["with_steps"]

_STEP = re.compile(r"""\.\w+|\[(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^\]'"]*)\]""")
_ROOT = re.compile(r"\w*")


def with_steps(tree: Tree, paths: Sequence[str], *, has_roots: bool) -> Tree:
    """The tree, its custom nodes with the keys that the paths of its leaves have.

    Args:
      tree: As read.
      paths: Of each leaf.
      has_roots: Whether the first key is the beginning of the path, such as `args`, and not a step.
    """
    if not _has_custom(tree):
        return tree
    return _with_steps(tree, iter(paths), int(has_roots))[0]


def _has_custom(tree: Tree) -> bool:
    return tree.custom is not None or any(map(_has_custom, tree.children))


def _with_steps(tree: Tree, paths: Iterator[str], roots: int, depth: int = 0) -> tuple[Tree, list[str] | None]:
    """The tree and the steps to its first leaf, of those from the root; None where it has none, or they are unknown."""
    if tree.kind is PyTreeDefKind.LEAF:
        steps = _steps(next(paths))
        return tree, steps if len(steps) == depth - roots else None
    found = [_with_steps(child, paths, roots, depth + 1) for child in tree.children]
    children = tuple(child for child, _ in found)
    first = next((steps for _, steps in found if steps is not None), None)
    if tree.custom is None:
        return replace(tree, children=children), first
    own = tuple(None if steps is None else steps[depth - roots] for _, steps in found)
    return replace(tree, children=children, steps=own), first


def _steps(path: str) -> list[str]:
    """The steps of a path; none where it is not made of steps alone."""
    at = _ROOT.match(path).end()  # type: ignore[union-attr]  # it matches every text
    steps = []
    while match := _STEP.match(path, at):
        steps.append(match[0])
        at = match.end()
    return steps if at == len(path) else []
