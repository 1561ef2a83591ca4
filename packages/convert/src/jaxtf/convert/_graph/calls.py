"""Which functions of a program are called, which of them are emitted there, and which become functions of the graph.

A graph is to grow with the program and not with the number of its calls; a consumer is to see no more functions than
needed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from jaxtf.convert._errors import GraphModeUnsupported
from jaxtf.convert._graph.program import Operation, Program, operations_of

__all__ = ["functions_kept", "reached"]

# A function of fewer operations than this is emitted anew for each of its calls.
_SMALL = 8


def reached(program: Program) -> Program:
    """The program with the functions that its main one reaches by calls, and no others.

    Raises:
      ValueError: A function that is called is not in the module.
      GraphModeUnsupported: A function that calls itself, perhaps by way of others.
    """
    finished: dict[str, None] = {}

    def visit(name: str, callers: tuple[str, ...]) -> None:
        if name in callers:
            path = " -> ".join((*callers[callers.index(name) :], name))
            raise GraphModeUnsupported(
                f"the function '{name}' calls itself ({path}), which graph mode does not translate\n"
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
    callee = _callee(operation)
    if callee is not None:
        yield callee
    yield from operation.attributes.get("called_computations", ())


def functions_kept(program: Program) -> frozenset[str]:
    """The functions called from several places, counted after small ones have been put where they are called."""
    calls = {
        name: Counter(callee for operation in operations_of(function.body) if (callee := _callee(operation)))
        for name, function in program.functions.items()
    }
    callers: dict[str, list[str]] = {name: [] for name in program.functions}
    for caller, counts in calls.items():
        for callee in counts:
            callers[callee].append(caller)
    copies: dict[str, int] = {}

    def is_kept(name: str) -> bool:
        return copies_of(name) > 1 and len(program.functions[name].body.operations) >= _SMALL

    def copies_of(name: str) -> int:
        """In how many places the function is called; what is called nowhere is there once, as the main function."""
        if name not in copies:
            sites = (calls[caller][name] * (1 if is_kept(caller) else copies_of(caller)) for caller in callers[name])
            copies[name] = sum(sites) or 1
        return copies[name]

    return frozenset(filter(is_kept, program.functions))


def _callee(operation: Operation) -> str | None:
    """The function that an operation calls."""
    attribute = {"func.call": "callee", "stablehlo.composite": "decomposition"}.get(operation.name)
    return None if attribute is None else operation.attributes[attribute]
