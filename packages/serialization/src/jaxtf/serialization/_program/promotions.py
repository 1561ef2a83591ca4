"""Operations that accumulate in a wider type than that of their operands, as conversions and operations of one type.

The region of a reduction or a scatter may take elements of a wider type than the arrays have; it is the type of the
results. So says the StableHLO specification (`is_promotable`), of `reduce`, `reduce_window`, `scatter` and
`select_and_scatter`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from jaxtf.serialization._program.program import Operation, TensorType, Value

__all__ = ["promoted"]

_OF_EACH_RESULT = ("stablehlo.reduce", "stablehlo.reduce_window")
_SCATTER, _OF_THE_RESULT = "stablehlo.scatter", "stablehlo.select_and_scatter"


def promoted(operation: Operation) -> Iterator[Operation]:
    """The operation, after conversions of those of its operands that have another element type than its results."""
    if operation.name not in (*_OF_EACH_RESULT, _SCATTER, _OF_THE_RESULT):
        yield operation
        return
    operands = list(operation.operands)
    for place, result in _accumulated(operation):
        found, wanted = operands[place].type, result.type
        assert isinstance(found, TensorType)
        assert isinstance(wanted, TensorType)
        if found.dtype != wanted.dtype:
            made = Value(replace(found, dtype=wanted.dtype))
            yield Operation(
                "stablehlo.convert", (operands[place],), (made,), location=operation.location, source=operation.source
            )
            operands[place] = made
    yield replace(operation, operands=tuple(operands)) if operands != list(operation.operands) else operation


def _accumulated(operation: Operation) -> Iterator[tuple[int, Value]]:
    """The places of the operands that are accumulated, and the result of each."""
    results, count = operation.results, len(operation.results)
    for place in range(len(operation.operands)):
        if operation.name in _OF_EACH_RESULT:
            yield place, results[place % count]
        elif operation.name == _OF_THE_RESULT:
            yield place, results[0]
        elif place != count:  # the indices of a scatter, between arrays and updates
            yield place, results[place if place < count else place - count - 1]
