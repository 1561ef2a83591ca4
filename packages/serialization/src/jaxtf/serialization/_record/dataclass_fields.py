"""The fields of a dataclass that is a node of pytrees: by what keys and names JAX keeps them, and in which order.

JAX keeps the values of static fields without their names, in the order in which they were registered, and children
likewise. Two releases of a class may have them in another order, or have others. A treedef with another number of
static fields than the class has ends the process when a node is made of it (JAX 0.10.2), so both are compared before.
Bytes of a user's function may hold the values by their order or by their names: which one is seen by their texts.

Method: JAX takes an instance apart whose fields hold markers; of the class only its functions for JAX run.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass
from types import ModuleType
from typing import Any

from jaxtf.serialization._record.opaque import static_text

__all__ = ["Fields", "fields_of", "other_static_fields", "static_texts"]


@dataclass(frozen=True)
class Fields:
    """What is known of such a class.

    Attributes:
      keys: The step to each child, as it is written in a path: `.mu`.
      static: The name of each static field, in the order of the auxiliary data; None where these are something else.
    """

    keys: tuple[str, ...]
    static: tuple[str, ...] | None


def fields_of(node_type: type[Any], trees: ModuleType) -> Fields | None:
    """The fields of a dataclass that is registered with JAX; None for other classes, and where they cannot be found.

    Args:
      node_type: The class.
      trees: `jax.tree_util`.
    """
    if not is_dataclass(node_type):
        return None
    known: Any = node_type
    return _fields_of(known, trees)


@functools.lru_cache(maxsize=256)
def _fields_of(node_type: Any, trees: Any) -> Fields | None:
    names = {object(): field.name for field in fields(node_type)}
    try:
        example = object.__new__(node_type)
        for marker, name in names.items():
            object.__setattr__(example, name, marker)
        pairs, structure = trees.tree_flatten_with_path(example, is_leaf=lambda item: item is not example)
    except Exception:  # of a class that looks at the values of its fields
        return None
    if structure == trees.tree_structure(0) or not all(_is_marker(child, names) for _, child in pairs):
        return None
    auxdata = structure.node_data()[1]
    is_static = isinstance(auxdata, tuple) and all(_is_marker(value, names) for value in auxdata)
    return Fields(
        tuple(trees.keystr(path) for path, _ in pairs), tuple(map(names.__getitem__, auxdata)) if is_static else None
    )


def static_texts(node_type: type[Any], auxdata: Any, trees: ModuleType) -> tuple[tuple[str, str], ...]:
    """Name and text of each static field of a node of a dataclass; none where they are not known.

    Args:
      node_type: The class.
      auxdata: The auxiliary data of the node.
      trees: `jax.tree_util`.
    """
    fields = fields_of(node_type, trees)
    if fields is None or fields.static is None or not isinstance(auxdata, tuple) or len(auxdata) != len(fields.static):
        return ()
    return tuple(zip(fields.static, map(static_text, auxdata), strict=True))


def other_static_fields(
    written: tuple[tuple[str, str], ...], static: tuple[str, ...], auxdata: Sequence[Any]
) -> str | None:
    """What is wrong with auxiliary data that were read for a class with these static fields; None if nothing is.

    As many fields of other names are others. A field that is at another place here must have the text that it had
    where it was written, so that the bytes were read by names, and not by the order of another release.

    Args:
      written: Name and text of each static field where the node was written; empty where they are unknown.
      static: The names here.
      auxdata: As many values, as read.
    """
    names = tuple(name for name, _ in written)
    if not written or names == static:
        return None
    if len(names) == len(static) and set(names) != set(static):
        return f"with the static fields {', '.join(names)}; those of the class here are {', '.join(static)}"
    texts = dict(zip(static, map(static_text, auxdata), strict=True))
    places = dict(enumerate(static))
    moved = [(name, text) for place, (name, text) in enumerate(written) if places.get(place) != name and name in texts]
    if all(texts[name] == text and "?" not in text for name, text in moved):
        return None
    before, here = (", ".join(f"{name}={text:.40}" for name, text in pairs) for pairs in (written, texts.items()))
    return f"with the static fields {before}; the class here has them in another order, and reads {here}"


def _is_marker(value: Any, names: dict[object, str]) -> bool:
    return type(value) is object and value in names
