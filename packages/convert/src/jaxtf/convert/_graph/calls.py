"""Which functions of a program are emitted where they are called, and which become functions of the graph.

A graph is to grow with the program and not with the number of its calls; a consumer is to see no more functions than
needed.
"""

from __future__ import annotations

from collections import Counter

from jaxtf.serialization.interop import Program, callee_of, operations_of

__all__ = ["functions_kept"]

# A function of fewer operations than this is emitted again for each of its calls.
_SMALL = 8


def functions_kept(program: Program) -> frozenset[str]:
    """The functions called from several places, counted after small ones have been put where they are called."""
    calls = {
        name: Counter(callee for operation in operations_of(function.body) if (callee := callee_of(operation)))
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
