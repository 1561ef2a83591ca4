"""The whole table of operations: `registry` holds the entries, which the families of `ops` put there."""

from __future__ import annotations

from collections.abc import Mapping

from jaxtf.serialization._lift import ops
from jaxtf.serialization._lift.errors import unsupported
from jaxtf.serialization._lift.registry import Entry, registered
from jaxtf.serialization._program.calls import callee_of
from jaxtf.serialization._program.composites import of_chlo
from jaxtf.serialization._program.program import Operation, Program, operations_of

__all__ = ["FAMILIES", "check", "entries", "entry_of"]

FAMILIES = tuple(ops.__all__)


def entries() -> Mapping[str, Entry]:
    """Every entry, by the name of the operation."""
    return registered()


def entry_of(operation: Operation) -> Entry:
    """The entry that evaluates an operation.

    Raises:
      LiftUnsupported: None does.
    """
    entry = registered().get(operation.name)
    if entry is None:
        raise unsupported(operation, "lift does not know it")
    if entry.evaluate is None:
        raise unsupported(operation, entry.reason)
    return entry


def check(program: Program) -> None:
    """Refuses a program with an operation that is not lifted, before any of it is evaluated.

    The body of a composite that is an operation of CHLO with an entry does not count.

    Raises:
      LiftUnsupported: Names the first.
    """
    seen: set[str] = set()
    waiting = [next(iter(program.functions))]
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        for operation in operations_of(program.functions[name].body):
            if operation.name == "stablehlo.constant":
                continue
            of_name = of_chlo(operation)
            if of_name is not None and of_name.name in registered():
                continue
            entry_of(operation)
            callee = callee_of(operation)
            waiting += [callee] if callee is not None else []
            waiting += operation.attributes.get("called_computations", ())
