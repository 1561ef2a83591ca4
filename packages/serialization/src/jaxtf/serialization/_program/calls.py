"""Which functions of a program are called, and by which operations."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from jaxtf.serialization._program.program import Operation, Program, operations_of
from jaxtf.serialization._program.reading import Reading

__all__ = ["callee_of", "reached"]


def reached(program: Program, reading: Reading) -> Program:
    """The program with the functions that its main one reaches by calls, and no others.

    Raises:
      ValueError: A function that is called is not in the module.
      Exception: Of the class that `reading` has: a function that calls itself, directly or through others.
    """
    finished: dict[str, None] = {}

    def visit(name: str, callers: tuple[str, ...]) -> None:
        if name in callers:
            path = " -> ".join((*callers[callers.index(name) :], name))
            raise reading.error(
                f"the function '{name}' calls itself ({path}), which {reading.name} does not translate\n"
                "  remedy: write the recursion as a loop (stablehlo.while)"
            )
        if name in finished:
            return
        if name not in program.functions:
            raise ValueError(f"'{callers[-1]}' calls a function '{name}', which the module does not have")
        for operation in operations_of(program.functions[name].body):
            for callee in _called_by(operation):
                visit(callee, (*callers, name))
        finished[name] = None

    visit(next(iter(program.functions)), ())
    kept = {name: function for name, function in program.functions.items() if name in finished}
    return replace(program, functions=kept)


def _called_by(operation: Operation) -> Iterator[str]:
    """The functions that an operation calls, or combines with."""
    callee = callee_of(operation)
    if callee is not None:
        yield callee
    yield from operation.attributes.get("called_computations", ())


def callee_of(operation: Operation) -> str | None:
    """The function that an operation calls."""
    attribute = {"func.call": "callee", "stablehlo.composite": "decomposition"}.get(operation.name)
    return None if attribute is None else operation.attributes[attribute]
