"""Which operations of a block are evaluated as one function of each element, with the derivative of that.

Those that choose (`_program.pointwise`), the logistic function, and functions of complex numbers that are written out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from jaxtf.serialization._lift.complex_functions import complex_function
from jaxtf.serialization._lift.logistic import operations_of_logistic
from jaxtf.serialization._program.pointwise import BROADCASTS, Pointwise, operations_within, pointwise_functions
from jaxtf.serialization._program.program import Block, Operation, Program, Value
from jaxtf.serialization._program.regions import is_floating

__all__ = ["Plan", "Pointwise", "planned"]


@dataclass(frozen=True)
class Plan:
    """How to evaluate a block.

    Attributes:
      functions: By the operation that ends each.
      within: Operations of functions whose results nothing else uses.
      logistic: The logistic functions in the block, also within others, by the operation that ends each.
    """

    functions: Mapping[Operation, Pointwise]
    within: frozenset[Operation]
    logistic: Mapping[Operation, Pointwise]


def planned(block: Block, program: Program, sources: Mapping[Value, Operation]) -> Plan:
    """The plan for a block of a program.

    Args:
      block: Its operations in order.
      program: Whose functions it calls.
      sources: The operation that each value of the program is a result of.
    """
    positions = {operation: position for position, operation in enumerate(block.operations)}
    logistic = _logistic(block, sources, positions)
    functions = {
        **logistic,
        **_of_complex(block, sources, positions),
        **pointwise_functions(block, program, sources),
    }
    return Plan(functions, operations_within(block, functions), logistic)


def _logistic(
    block: Block, sources: Mapping[Value, Operation], positions: Mapping[Operation, int]
) -> dict[Operation, Pointwise]:
    """The logistic functions of a block, by the operation that ends each."""
    found = {}
    for operation in block.operations:
        matched = operations_of_logistic(operation, sources, positions)
        if matched is not None and is_floating(operation.results[0]):
            argument, operations = matched
            found[operation] = Pointwise(argument, operations, _sizes_of(operations), is_logistic=True)
    return found


def _of_complex(
    block: Block, sources: Mapping[Value, Operation], positions: Mapping[Operation, int]
) -> dict[Operation, Pointwise]:
    """The functions of complex numbers of a block, by the operation that ends each."""
    found = {}
    for operation in block.operations:
        matched = complex_function(operation, sources, positions)
        if matched is not None:
            argument, operations, alike = matched
            found[operation] = Pointwise(argument, operations, _sizes_of(operations), alike=alike)
    return found


def _sizes_of(operations: Sequence[Operation]) -> tuple[Value, ...]:
    """The shapes that operations broadcast constants to."""
    sizes = (size for each in operations if each.name in BROADCASTS for size in each.operands[1:])
    return tuple(dict.fromkeys(sizes))
