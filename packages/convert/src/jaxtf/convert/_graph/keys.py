"""Sorts by keys, found when a program is planned: constants of a comparator may lie outside of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from jaxtf.serialization.interop import Operation, Value, comparator_keys

__all__ = ["KEYS", "keyed"]

KEYS = "keys"


def keyed(operation: Operation, sources: Mapping[Value, Operation]) -> Operation | None:
    """A sort that says by which keys it orders, if its comparator is one by keys."""
    keys = comparator_keys(operation.regions[0], sources)
    return None if keys is None else replace(operation, attributes={**operation.attributes, KEYS: tuple(keys)})
