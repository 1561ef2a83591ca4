"""The whole table of operations: `registry` holds the entries, which the families of `ops` put there."""

from __future__ import annotations

from collections.abc import Mapping

from jaxtf.convert._graph import ops
from jaxtf.convert._graph.errors import unsupported
from jaxtf.convert._graph.registry import Entry, registered
from jaxtf.serialization.interop import Operation

__all__ = ["FAMILIES", "entries", "entry_of"]

FAMILIES = tuple(ops.__all__)


def entries() -> Mapping[str, Entry]:
    """Every entry, by the name of the operation."""
    return registered()


def entry_of(operation: Operation) -> Entry:
    """The entry that translates an operation.

    Raises:
      GraphModeUnsupported: None does.
    """
    entry = registered().get(operation.name)
    if entry is None:
        raise unsupported(operation, "graph mode does not know it")
    if entry.emit is None:
        raise unsupported(operation, entry.reason)
    return entry
