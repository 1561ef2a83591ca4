"""What is done to a `Program` before it is emitted: passes over its blocks, in order, and refusals made at once.

A pass takes a block, the operations that visible values come from, and gives a block that computes the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from jaxtf.convert._graph.broadcasts import leave_to_consumers
from jaxtf.convert._graph.plan.agreed import with_agreed_sizes
from jaxtf.convert._graph.plan.bits import with_refusals
from jaxtf.convert._graph.plan.bounds import Bounds
from jaxtf.convert._graph.plan.choices import marked
from jaxtf.convert._graph.plan.complex_functions import with_derivatives
from jaxtf.convert._graph.plan.empty_batches import with_empty_batches
from jaxtf.convert._graph.plan.folding import Folding
from jaxtf.convert._graph.plan.patterns import PATTERNS, PATTERNS_FOR_CONSUMERS, recognized
from jaxtf.convert._graph.plan.pointwise import with_slopes
from jaxtf.convert._graph.plan.pools import before_relus
from jaxtf.convert._graph.plan.rounds import kept_apart
from jaxtf.convert._graph.plan.sums import in_one
from jaxtf.convert._graph.plan.transposes import leave_to_products
from jaxtf.convert._graph.reshapes import as_matrices, joined, kept_dimensions
from jaxtf.convert._graph.table import entry_of
from jaxtf.serialization import Exported
from jaxtf.serialization.interop import (
    Block,
    Function,
    Operation,
    Program,
    TensorType,
    Value,
    operations_of,
    read_in,
)

__all__ = ["check", "plan"]

_TAKE_FUNCTIONS = ("custom_call.stablehlo.dynamic_reduce_window", "custom_call.ApproxTopK")

Pass = Callable[[Block, Mapping[Value, Operation]], Block]


def plan(
    program: Program,
    allows_xla: bool = True,
    *,
    exported: Exported | None = None,
    checks_operands: bool = False,
    is_differentiated: bool = False,
) -> Program:
    """The same program, with less in it to emit.

    Args:
      program: As parsed.
      exported: The function that it is of, if it is of one.
      allows_xla: Whether TensorFlow's XLA operations may be used; if not, other consumers are expected.
      checks_operands: Whether operands are compared when they are emitted (`agreement`); operations whose sizes are not
        known to agree then stay as they are.
      is_differentiated: Whether TensorFlow differentiates the operations.
    """
    if exported is not None:
        program = with_empty_batches(program, exported)
    if checks_operands:
        program = with_agreed_sizes(program)
    for_tapes = (with_derivatives, partial(with_slopes, program=program), with_refusals, marked)
    passes: tuple[Pass, ...] = (
        partial(_with_regions, functions=program.functions),
        *(for_tapes if is_differentiated else ()),
        Bounds(program),
        partial(_sizes_known, only_agreed=checks_operands),
        Folding(program),
        partial(recognized, patterns=PATTERNS if allows_xla else PATTERNS_FOR_CONSUMERS, only_agreed=checks_operands),
        *((partial(before_relus, functions=program.functions),) if allows_xla else ()),
        *((partial(in_one, only_agreed=checks_operands),) if allows_xla else ()),
        partial(leave_to_consumers, only_agreed=checks_operands, is_differentiated=is_differentiated),
        leave_to_products,
        partial(as_matrices, only_agreed=checks_operands),
        partial(joined, only_agreed=checks_operands),
        kept_dimensions,
    )
    effectful = _with_effects(program)
    functions = {
        name: replace(function, body=_without_dead_code(_passed(function.body, passes, {}), effectful))
        for name, function in program.functions.items()
    }
    return kept_apart(replace(program, functions=functions))


def _with_regions(block: Block, sources: Mapping[Value, Operation], functions: Mapping[str, Function]) -> Block:
    """The block with a region, as other operations have it, for the function that a custom call names."""
    operations = (
        replace(operation, regions=tuple(functions[name].body for name in operation.attributes["called_computations"]))
        if operation.name in _TAKE_FUNCTIONS
        else operation
        for operation in block.operations
    )
    return replace(block, operations=tuple(operations))


def _sizes_known(block: Block, sources: Mapping[Value, Operation], *, only_agreed: bool) -> Block:
    """The block with constants for sizes that types know; `only_agreed` for those that nothing has to compare first."""
    operations = (
        operation
        if operation.name != "stablehlo.get_dimension_size"
        or (only_agreed and _tells_sizes(sources.get(operation.operands[0])))
        else _size_known(operation)
        for operation in block.operations
    )
    return replace(block, operations=tuple(operations))


def _tells_sizes(operation: Operation | None) -> bool:
    """Whether the types of the results may know sizes that do not follow from those of the operands."""
    if operation is None:  # of an argument
        return False
    types = (value.type for value in operation.operands)
    return "dynamic" in operation.name or any(isinstance(t, TensorType) and None in t.shape for t in types)


def _size_known(operation: Operation) -> Operation:
    size = operation.operands[0].type.shape[operation.attributes["dimension"]]  # type: ignore[union-attr]
    if size is None or size > np.iinfo(np.int32).max:
        return operation
    dtype = operation.results[0].type.dtype.as_numpy_dtype  # type: ignore[union-attr]
    return replace(operation, name="stablehlo.constant", operands=(), attributes={"value": np.asarray(size, dtype)})


def _passed(block: Block, passes: Sequence[Pass], outer: Mapping[Value, Operation]) -> Block:
    """The block and the regions in it after all passes."""
    sources = {**outer, **_sources(block)}
    for run in passes:
        block = run(block, sources)
        sources = {**sources, **_sources(block)}
    operations = (
        replace(operation, regions=tuple(_passed(region, passes, sources) for region in operation.regions))
        if operation.regions
        else operation
        for operation in block.operations
    )
    return replace(block, operations=tuple(operations))


def _sources(block: Block) -> dict[Value, Operation]:
    return {result: operation for operation in block.operations for result in operation.results}


def check(program: Program) -> None:
    """Refuses a program with an operation that has no translation.

    Raises:
      GraphModeUnsupported: Of the first such operation.
    """
    for function in program.functions.values():
        for operation in operations_of(function.body):
            if operation.name != "stablehlo.constant":
                entry_of(operation)


def _without_dead_code(block: Block, effectful: frozenset[str]) -> Block:
    """The block without operations whose results nobody uses; `effectful` functions are called all the same."""
    kept: list[Operation] = []
    used: set[Value] = set(block.returned)
    for operation in reversed(block.operations):
        if used.isdisjoint(operation.results) and not _has_effect(operation, effectful):
            continue
        regions = tuple(_without_dead_code(region, effectful) for region in operation.regions)
        kept.append(replace(operation, regions=regions) if regions else operation)
        used.update(operation.operands)
        for region in regions:
            used.update(read_in(region))
    return replace(block, operations=tuple(reversed(kept)))


def _has_effect(operation: Operation, effectful: frozenset[str]) -> bool:
    """Whether an operation does more than give results: an assertion does, and what calls or holds one."""
    if not operation.results or operation.attributes.get("has_side_effect", False):
        return True
    if operation.name == "func.call" and operation.attributes["callee"] in effectful:
        return True
    return any(_has_effect(inner, effectful) for region in operation.regions for inner in region.operations)


def _with_effects(program: Program) -> frozenset[str]:
    """The functions that do more than give results, directly or by a call."""
    found: frozenset[str] = frozenset()
    while True:
        more = {
            name
            for name, function in program.functions.items()
            if any(_has_effect(operation, found) for operation in function.body.operations)
        }
        if more == found:
            return found
        found = frozenset(more)
