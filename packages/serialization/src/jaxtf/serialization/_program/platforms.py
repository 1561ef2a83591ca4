"""A module for several platforms, as it is on one of them.

JAX lowers a primitive that platforms compute differently to a `stablehlo.case` over the platform's index, which every
function that needs it takes as an argument. For one platform the branch is known: it takes the place of the case,
and what the other branches hold (calls of cuSOLVER, say) is gone. The index counts the platforms of one module: a
function of another that is called has its own, which the caller computes. So it is followed through calls, from the
main function on.
"""

from __future__ import annotations

import operator
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import numpy as np

from jaxtf.serialization._program.calls import callee_of
from jaxtf.serialization._program.program import Block, Function, Operation, Program, Value, operations_of

__all__ = ["for_platform"]

_INDEX = "_platform_index"
_COMPARED: Mapping[str, Callable[[int, int], bool]] = {
    **{"EQ": operator.eq, "NE": operator.ne, "GE": operator.ge, "GT": operator.gt},
    **{"LE": operator.le, "LT": operator.lt},
}


def for_platform(program: Program, index: int) -> Program:
    """The program without the branches of other platforms than the one of this index.

    Args:
      program: Of which the main function may take the index; no function calls itself.
      index: That of the platform among those of the program.
    """
    attributes = [each for function in program.functions.values() for each in function.argument_attributes]
    if not any(each.get("jax.global_constant") == _INDEX for each in attributes):
        return program
    given: defaultdict[Value, set[int | None]] = defaultdict(set)
    main = next(iter(program.functions.values()))
    for argument, own in zip(main.body.arguments, main.argument_attributes, strict=True):
        if own.get("jax.global_constant") == _INDEX:
            given[argument] = {index}
    functions = dict(program.functions)
    for name in _callers_first(program):
        arguments = functions[name].body.arguments
        known = {argument: next(iter(given[argument])) for argument in arguments if len(given[argument]) == 1}
        branches = _Branches({argument: number for argument, number in known.items() if number is not None})
        functions[name] = replace(functions[name], body=branches.block(functions[name].body))
        for operation in operations_of(functions[name].body):
            if (callee := callee_of(operation)) is not None:
                for argument, value in zip(functions[callee].body.arguments, operation.operands, strict=True):
                    given[argument].add(branches.known.get(value))
    return replace(program, functions=functions)


def _callers_first(program: Program) -> list[str]:
    """The names of functions, the main one first; each comes before those that it calls."""
    done: dict[str, None] = {}

    def visit(function: Function) -> None:
        for operation in operations_of(function.body):
            if (callee := callee_of(operation)) is not None and callee not in done:
                visit(program.functions[callee])
        done[function.name] = None

    for function in reversed(list(program.functions.values())):
        if function.name not in done:
            visit(function)
    return list(reversed(done))


class _Branches:
    """Takes the branches that are known in one function.

    Args:
      known: Integers that values are known to be.

    Attributes:
      known: The same, with those found.
    """

    def __init__(self, known: dict[Value, int]) -> None:
        self.known = known
        self._replacements: dict[Value, Value] = {}

    def block(self, block: Block) -> Block:
        """The block with the operations of the branches that are taken."""
        operations = tuple(made for operation in block.operations for made in self._taken(operation))
        return Block(block.arguments, operations, self._now(block.returned))

    def _now(self, values: tuple[Value, ...]) -> tuple[Value, ...]:
        """The values that replace these."""
        return tuple(self._replacements.get(value, value) for value in values)

    def _taken(self, operation: Operation) -> Iterator[Operation]:
        operands = self._now(operation.operands)
        if operation.name == "stablehlo.case" and operands[0] in self.known:
            number = self.known[operands[0]]
            # StableHLO: an index that is out of range takes the last branch.
            branch = self.block(operation.regions[number if 0 <= number < len(operation.regions) else -1])
            self._replacements.update(zip(operation.results, branch.returned, strict=True))
            yield from branch.operations
            return
        if operation.name == "stablehlo.constant":
            value = np.asarray(operation.attributes["value"])
            if value.shape == () and np.issubdtype(value.dtype, np.integer):
                self.known[operation.results[0]] = int(value)
        found = self._computed(operation, operands)
        if found is not None:
            self.known[operation.results[0]] = found
        yield replace(operation, operands=operands, regions=tuple(map(self.block, operation.regions)))

    def _computed(self, operation: Operation, operands: tuple[Value, ...]) -> int | None:
        """What an operation gives by which an index is computed from another; None if that is not known."""
        numbers = [self.known.get(value) for value in operands]
        if operation.name == "stablehlo.select" and numbers[0] is not None:
            return numbers[1 if numbers[0] else 2]
        known = [number for number in numbers if number is not None]
        if len(known) < len(numbers):
            return None
        if operation.name == "stablehlo.convert":  # any dtype has these, but for what is taken for truth
            return known[0] if 0 <= known[0] < (2 if "bool" in str(operation.results[0].type) else 128) else None
        if operation.name == "stablehlo.compare":
            return int(_COMPARED[operation.attributes["comparison_direction"]](*known))
        return None
