"""The whole table of operations: `registry` holds the entries, which the families of `ops` put there."""

from __future__ import annotations

from collections.abc import Mapping

from jaxtf.convert._errors import REMEDY_FOR_LAPACK
from jaxtf.convert._graph import ops
from jaxtf.convert._graph.errors import REMEDY, unsupported
from jaxtf.convert._graph.registry import Entry, registered
from jaxtf.serialization.interop import Operation, lapack_function

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
        raise unsupported(operation, "graph mode does not know it", _remedy(operation))
    if entry.emit is None:
        raise unsupported(operation, entry.reason, entry.remedy or REMEDY)
    return entry


def _remedy(operation: Operation) -> str:
    """What to do instead: native mode has no LAPACK either, and other custom calls only where they are registered."""
    family, _, target = operation.name.partition(".")
    if family != "custom_call":
        return REMEDY
    if lapack_function(target):
        return REMEDY_FOR_LAPACK
    return f"{REMEDY} in a process that registers the target"
