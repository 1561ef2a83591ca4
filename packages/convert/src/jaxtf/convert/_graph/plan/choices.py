"""Choices between an array and itself, as JAX writes before a branch of `jax.vmap(jax.lax.cond)`.

They are marked before operations share what they take: of one broadcast array each operand becomes a value of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from jaxtf.serialization.interop import Block, Operation, Value

__all__ = ["OF_ITSELF", "marked"]

OF_ITSELF = "jaxtf.of_itself"
"""The attribute of a select that gives the same array whether the condition holds or not."""


def marked(block: Block, sources: Mapping[Value, Operation]) -> Block:
    """The block in which such choices have the attribute."""
    return replace(block, operations=tuple(map(_marked, block.operations)))


def _marked(operation: Operation) -> Operation:
    if operation.name != "stablehlo.select" or operation.operands[1] is not operation.operands[2]:
        return operation
    return replace(operation, attributes={**operation.attributes, OF_ITSELF: True})
