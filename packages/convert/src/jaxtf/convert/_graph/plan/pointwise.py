"""Functions of each element that choose by `select`, with the derivative of the branch that is chosen, for tapes.

A module writes out erf_inv, erfc, lgamma and others so, and computes all branches. Where one that is not chosen is
infinite, the gradients of its operations are zero times infinity (`jaxtf.serialization`, `_program/pointwise.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from jaxtf.serialization.interop import (
    BROADCASTS,
    Block,
    Operation,
    Program,
    TensorType,
    Value,
    callee_of,
    operations_within,
    pointwise_functions,
)

__all__ = ["POINTWISE", "with_slopes"]

POINTWISE = "jaxtf.pointwise"
"""The operation that gives its first operand, with the derivative of its `function`, a block, by the second."""


def with_slopes(block: Block, sources: Mapping[Value, Operation], *, program: Program) -> Block:
    """The block in which the results of such functions have derivatives of their own."""
    visible = dict(sources) | {result: each for each in block.operations for result in each.results}
    functions = pointwise_functions(block, program, visible)
    within = operations_within(block, functions)

    def made(operation: Operation) -> Iterator[Operation]:
        function = functions.get(operation)
        scalars = None
        if function is not None and operation not in within and not _is_one_composite(function.operations):
            scalars = _of_scalars(function.argument, function.operations, program)
        if function is None or scalars is None:
            yield operation
            return
        [result] = operation.results
        computed = Value(result.type)
        yield replace(operation, results=(computed,))
        operands, attributes = (computed, function.argument), {"function": scalars}
        yield Operation(POINTWISE, operands, (result,), attributes, (), operation.location, operation.source)

    return replace(block, operations=tuple(each for operation in block.operations for each in made(operation)))


def _is_one_composite(operations: Sequence[Operation]) -> bool:
    """Whether a function has a name: TensorFlow may have it with a derivative; else it is looked for within."""
    [*constants, last] = operations
    return last.name == "stablehlo.composite" and all(each.name == "stablehlo.constant" for each in constants)


def _of_scalars(argument: Value, operations: Sequence[Operation], program: Program) -> Block | None:
    """The operations, of one element; None where constants have several, or where it takes integers."""
    start = _scalar(argument)
    made: list[Operation] = []
    [last] = operations[-1].results
    values = {argument: start}
    if not _add(operations, values, made, program):
        return None
    return Block((start,), tuple(made), (values[last],))


def _add(operations: Sequence[Operation], values: dict[Value, Value], made: list[Operation], program: Program) -> bool:
    """Adds operations of scalars, those of calls in their place; whether it can."""
    for operation in operations:
        if operation.name in BROADCASTS:
            values[operation.results[0]] = values[operation.operands[0]]
            continue
        callee = callee_of(operation)
        if callee is not None:
            body = program.functions[callee].body
            inner = dict(zip(body.arguments, (values[x] for x in operation.operands), strict=True))
            if not _add(body.operations, inner, made, program):
                return False
            values.update(zip(operation.results, (inner[x] for x in body.returned), strict=True))
            continue
        attributes = dict(operation.attributes)
        if operation.name == "stablehlo.constant":
            array = np.asarray(attributes["value"])
            if not array.size or not np.array_equal(array, np.broadcast_to(array.flat[0], array.shape), equal_nan=True):
                return False
            attributes["value"] = array.reshape(-1)[:1].reshape(())
        results = tuple(map(_scalar, operation.results))
        if not all(_is_real_or_truth(result) for result in results):
            return False
        values.update(zip(operation.results, results, strict=True))
        operands = tuple(values[x] for x in operation.operands)
        made.append(replace(operation, operands=operands, results=results, attributes=attributes))
    return True


def _is_real_or_truth(value: Value) -> bool:
    return isinstance(value.type, TensorType) and (value.type.dtype.is_floating or value.type.dtype.is_bool)


def _scalar(value: Value) -> Value:
    assert isinstance(value.type, TensorType), "such functions are of arrays"
    return Value(replace(value.type, shape=(), bounds=()))
