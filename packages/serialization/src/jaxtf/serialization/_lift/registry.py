"""The table of operations that `lift` evaluates: one small entry each (`lifts`), or a reason (`refuses`).

`ops` holds the entries by family; `ops/__init__.py` imports every family by name. A second entry for a name is an
error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from jaxtf.serialization._program.bound import BoundOperation
from jaxtf.serialization._program.program import Function, Operation, Value

__all__ = ["Bound", "Entry", "lifts", "refuses", "registered"]

Arrays = Any  # a JAX array or several
Apply = Callable[..., list[Any]]


@dataclass(frozen=True)
class Bound(BoundOperation):
    """An operation where it is evaluated: what it is, and what its entry may use.

    Attributes:
      regions: For each region, a function of arrays that evaluates it and returns what it returns.
      apply: Evaluates a region, by its number, for arguments; a mapping has functions that take the place of
        operations of it, from their operands to their results.
      call: Evaluates a call of a function of the module, by name.
      functions: Those of the module, by name.
      sources: The operation of the same function that each value comes from.
      value: What a value of the block, or of one around it, is.
      varying: Makes arrays vary over the axes of a mesh, inside of `jax.shard_map`, over which the arguments do.
      is_taken_apart: Whether it reads the bits of floats that become floats again.
      checks_shapes: Whether assertions about sizes are checked.
    """

    regions: tuple[Apply, ...] = ()
    apply: Callable[[int, Sequence[Any], Mapping[Operation, Apply]], list[Any]] = field(default=lambda *_: [])
    call: Callable[[str, Sequence[Any]], list[Any]] = field(default=lambda name, operands: [])
    functions: Mapping[str, Function] = field(default_factory=dict)
    sources: Mapping[Value, Operation] = field(default_factory=dict)
    value: Callable[[Value], Any] = field(default=lambda value: None)
    varying: Callable[[Sequence[Any]], list[Any]] = list
    is_taken_apart: bool = False
    checks_shapes: bool = True


@dataclass(frozen=True)
class Entry:
    """What is known about one operation.

    Attributes:
      name: Of the operation.
      evaluate: From the bound operation and its operands to its results; None where it is refused.
      takes_sizes: Whether operands that are known sizes are given as `Known`, not as arrays.
      reason: Why it is refused, in words; empty if it is not.
      differs: How results or derivatives differ from those of the module, in words; empty if they do not.
    """

    name: str
    evaluate: Callable[..., Arrays] | None
    takes_sizes: bool = False
    reason: str = ""
    differs: str = ""


_ENTRIES: dict[str, Entry] = {}


def lifts(
    *names: str, takes_sizes: bool = False, differs: str = ""
) -> Callable[[Callable[..., Arrays]], Callable[..., Arrays]]:
    """Makes the decorated function the entry of these operations: `evaluate(bound, *operands) -> array or arrays`."""

    def register(evaluate: Callable[..., Arrays]) -> Callable[..., Arrays]:
        for name in names:
            _add(Entry(name, evaluate, takes_sizes, differs=differs))
        return evaluate

    return register


def refuses(*names: str, reason: str) -> None:
    """Says why these operations are not lifted."""
    for name in names:
        _add(Entry(name, None, reason=reason))


def registered() -> Mapping[str, Entry]:
    """The entries of the families that have been imported, by the name of the operation; `table` has them all."""
    return _ENTRIES


def _add(entry: Entry) -> None:
    assert entry.name not in _ENTRIES, f"{entry.name} has an entry already"
    _ENTRIES[entry.name] = entry
