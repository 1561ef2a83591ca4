"""Pytrees from the tables of an artifact."""

from __future__ import annotations

import json
from typing import Any

from jaxtf.serialization._artifact import schema
from jaxtf.serialization._artifact.fields import kind_of
from jaxtf.serialization._errors import ArtifactError
from jaxtf.serialization._record.kinds import DICT_NAME, PyTreeDefKind
from jaxtf.serialization._record.opaque import PREFIX
from jaxtf.serialization._record.tree import LEAF, CustomNode, Tree

__all__ = ["tree"]

_SHORT = 2**14
"""Keys in so many bytes may be whatever they are: it is little memory."""


def tree(table: schema.PyTreeDefTable) -> Tree:
    """The pytree of a table.

    Raises:
      ArtifactError: No such pytree exists.
      VersionError: A kind of node of a later format.
    """
    children = tuple(map(tree, table.children or ()))
    kind = kind_of(PyTreeDefKind, table.kind, "a pytree node")
    match kind:
        case PyTreeDefKind.LEAF | PyTreeDefKind.NONE:
            if children:
                raise ArtifactError(f"the artifact has a pytree node of kind {kind.name} with children")
            return LEAF if kind is PyTreeDefKind.LEAF else Tree(kind)
        case PyTreeDefKind.DICT:
            return _dictionary(children, table.children_names or ())
        case PyTreeDefKind.CUSTOM:
            if table.custom_name is None:
                raise ArtifactError("the artifact has a pytree node of a custom type without a name")
            auxdata = bytes(table.custom_auxdata or b"")
            if table.custom_name == DICT_NAME:
                return _dictionary(children, _keys(auxdata))
            custom = CustomNode(name=table.custom_name, auxdata_bytes=auxdata)
            is_long = len(auxdata) > _SHORT and table.custom_name.startswith(PREFIX)
            if is_long and auxdata.count(b'",') > len(children) + 2:  # they would take many times their size
                raise ArtifactError("the artifact has a pytree node with more keys than children")
            if custom.opaque is not None and len(custom.opaque.keys) != len(children):
                raise ArtifactError(
                    f"the artifact has a pytree node with {len(custom.opaque.keys)} keys and {len(children)} children"
                )
            return Tree(kind, children, custom=custom)
        case _:
            return Tree(kind, children)


def _dictionary(children: tuple[Tree, ...], keys: tuple[Any, ...]) -> Tree:
    if len(keys) != len(children) or len(set(keys)) != len(keys):
        raise ArtifactError(f"the artifact has a dictionary of {len(children)} values with the keys {keys[:20]}")
    try:
        in_order = list(keys) == sorted(keys)
    except TypeError:
        in_order = True  # JAX keeps the order of keys that cannot be sorted
    if not in_order:
        raise ArtifactError(f"the artifact has a dictionary whose keys are not sorted: {keys[:20]}")
    return Tree(PyTreeDefKind.DICT, children, keys)


def _keys(auxdata: bytes) -> tuple[Any, ...]:
    try:
        keys = json.loads(auxdata)
    except (ValueError, RecursionError) as error:
        raise ArtifactError(f"the artifact has a dictionary whose keys cannot be read: {error}") from error
    if not isinstance(keys, list) or not all(type(key) in (int, str) for key in keys):
        raise ArtifactError(f"the artifact has a dictionary whose keys are not strings and integers: {auxdata[:60]!r}")
    return tuple(keys)
