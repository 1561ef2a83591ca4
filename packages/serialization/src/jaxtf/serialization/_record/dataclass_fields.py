"""The fields of a dataclass that is a node of pytrees: by what keys and names JAX keeps them, and in which order.

JAX keeps the values of static fields without their names, in the order in which they were registered, and children
likewise. Two releases of a class may have them in another order, or have others. A treedef with another number of
static fields than the class has ends the process when a node is made of it (JAX 0.10.2), so both are compared before.

Method: JAX takes an instance apart whose fields hold markers; of the class only its functions for JAX run.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, fields, is_dataclass
from types import ModuleType
from typing import Any

__all__ = ["Fields", "fields_of"]


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


def _is_marker(value: Any, names: dict[object, str]) -> bool:
    return type(value) is object and value in names
