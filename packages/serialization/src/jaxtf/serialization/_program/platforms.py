"""A module for several platforms, as it is on one of them.

JAX lowers a primitive that platforms compute differently to a `stablehlo.case` over the platform's index, which every
function that needs it takes as an argument. For one platform the branch is known: it takes the place of the case,
and what the other branches hold (calls of cuSOLVER, say) is gone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from jaxtf.serialization._program.program import Block, Function, Operation, Program, Value

__all__ = ["for_platform"]

_INDEX = "_platform_index"


def for_platform(program: Program, index: int) -> Program:
    """The program without the branches of other platforms than the one of this index."""
    return replace(program, functions={name: _function(f, index) for name, f in program.functions.items()})


def _function(function: Function, index: int) -> Function:
    known = {
        argument: index
        for argument, attributes in zip(function.body.arguments, function.argument_attributes, strict=True)
        if attributes.get("jax.global_constant") == _INDEX
    }
    return replace(function, body=_Branches(known).block(function.body)) if known else function


class _Branches:
    """Takes the branches that are known in one function.

    Args:
      known: Integers that values are known to be.
    """

    def __init__(self, known: dict[Value, int]) -> None:
        self._known = known
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
        if operation.name == "stablehlo.case" and operands[0] in self._known:
            number = self._known[operands[0]]
            # StableHLO: an index that is out of range takes the last branch.
            branch = self.block(operation.regions[number if 0 <= number < len(operation.regions) else -1])
            self._replacements.update(zip(operation.results, branch.returned, strict=True))
            yield from branch.operations
            return
        if operation.name == "stablehlo.constant":
            value = np.asarray(operation.attributes["value"])
            if value.shape == () and np.issubdtype(value.dtype, np.integer):
                self._known[operation.results[0]] = int(value)
        yield replace(operation, operands=operands, regions=tuple(map(self.block, operation.regions)))
