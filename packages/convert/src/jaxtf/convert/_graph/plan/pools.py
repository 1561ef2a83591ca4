"""Relus that a max pool may come before: there are fewer maxima than elements.

A relu does not change which of two numbers is the larger, and is NaN where its operand is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from jaxtf.convert._graph.broadcasts import uniform_value
from jaxtf.convert._graph.plan.patterns import relu
from jaxtf.serialization.interop import Block, Function, Operation, Value, single_operation, uses_in

__all__ = ["POOL_AND_RELU", "before_relus"]

POOL_AND_RELU = "jaxtf.max_pool_and_relu"
"""The name of a relu of maxima over windows, each with an element at least; else as `stablehlo.reduce_window`."""

Sources = Mapping[Value, Operation]


def before_relus(block: Block, sources: Sources, functions: Mapping[str, Function]) -> Block:
    """The block with max pools of what relus are applied to, where nothing else uses what these give.

    Args:
      block: The block.
      sources: The operations that values come from.
      functions: Those of the program, of which one may be a relu (`jax.nn.relu` is called).
    """
    pools = {operation for operation in block.operations if _is_max_pool(operation, sources)}
    if not pools:
        return block
    uses, made_here = uses_in(block), frozenset(block.operations)

    def changed(operation: Operation) -> Operation:
        made_by = sources.get(operation.operands[0]) if operation in pools else None
        if made_by not in made_here or uses[operation.operands[0]] != 1 or not _gives_relu(made_by, functions):
            return operation
        return replace(operation, name=POOL_AND_RELU, operands=(*made_by.operands, operation.operands[1]))

    return replace(block, operations=tuple(map(changed, block.operations)))


def _gives_relu(operation: Operation, functions: Mapping[str, Function]) -> bool:
    """Whether an operation is a relu, or calls a function that is one."""
    if operation.name == "func.call":
        return _is_relu(functions[operation.attributes["callee"]].body)
    return operation.name == "jaxtf.relu"


def _is_relu(body: Block) -> bool:
    """Whether a function is a relu of its one argument."""
    sources = {result: operation for operation in body.operations for result in operation.results}
    last = sources.get(body.returned[0]) if len(body.returned) == 1 else None
    if last is None or last.name not in ("stablehlo.maximum", "jaxtf.relu"):
        return False
    form = relu(last, sources) if last.name == "stablehlo.maximum" else last
    return form is not None and form.name == "jaxtf.relu" and form.operands == body.arguments


def _is_max_pool(operation: Operation, sources: Sources) -> bool:
    """Whether an operation is the maximum over windows of numbers, from the least on."""
    if operation.name != "stablehlo.reduce_window" or len(operation.operands) != 2:
        return False
    lowest = uniform_value(operation.operands[1], sources)
    is_lowest = lowest is not None and lowest.dtype.kind == "f" and bool(lowest == -np.inf)
    return is_lowest and single_operation(operation.regions[0]) == "maximum"
