"""Floats that are put together of the bits of others: a tape that would differentiate through these is refused.

So exports of JAX 0.12 write out `lgamma`. TensorFlow's gradient stops at integers, and the derivative would lack a part
without a word. What only looks at bits (a sign, an exponent as a number) is constant almost everywhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from jaxtf.serialization.interop import Block, Operation, TensorType, Value

__all__ = ["OF_BITS", "with_refusals"]

OF_BITS = "jaxtf.of_bits"
"""The operation that gives its first operand, which is made of the bits of the others."""

_BITCAST = "stablehlo.bitcast_convert"


def with_refusals(block: Block, sources: Mapping[Value, Operation]) -> Block:
    """The block in which such floats know what they are made of."""

    def made(operation: Operation) -> Iterator[Operation]:
        floats = _taken_apart(operation, sources)
        if not floats:
            yield operation
            return
        [result] = operation.results
        computed = Value(result.type)
        yield replace(operation, results=(computed,))
        yield Operation(OF_BITS, (computed, *floats), (result,), {}, (), operation.location, operation.source)

    return replace(block, operations=tuple(each for operation in block.operations for each in made(operation)))


def _taken_apart(operation: Operation, sources: Mapping[Value, Operation]) -> list[Value]:
    """The floats whose bits become the result of an operation, in the order of the operations between."""
    if operation.name != _BITCAST or not _is_floating(operation.results[0]) or _is_floating(operation.operands[0]):
        return []
    found: dict[Value, None] = {}
    seen: set[Value] = set()
    waiting = [operation.operands[0]]
    while waiting:
        value = waiting.pop()
        source = sources.get(value)
        if source is None or value in seen:
            continue
        seen.add(value)
        for operand in source.operands:
            if source.name == _BITCAST and _is_floating(operand):
                found[operand] = None
            elif not _is_floating(operand):
                waiting.append(operand)
    return list(found)


def _is_floating(value: Value) -> bool:
    return isinstance(value.type, TensorType) and value.type.dtype.is_floating
