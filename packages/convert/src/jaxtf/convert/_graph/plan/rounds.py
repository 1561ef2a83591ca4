"""Extremes of random numbers, which a compiler for CPU must not compute in the loop that makes the numbers.

In a loop of 8, 16, 24, ... turns LLVM (of TensorFlow 2.21) looks for a checksum, and follows each path from what the
loop carries back through what it computes. Through the 20 rounds of threefry, JAX's random bits, there are too many: in
`jnp.argmax(jax.random.normal(key, (32,)))`. XLA has functions that are called and loops of one turn in one loop with
what is around them, so that the rounds are looked for through the whole program.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

from jaxtf.serialization.interop import (
    Block,
    Function,
    Operation,
    Program,
    TensorType,
    Value,
    callee_of,
    operations_of,
    single_operation,
)

__all__ = ["APART", "kept_apart"]

APART = "jaxtf.apart"
"""The name of what gives its operand, from a loop of its own where a compiler for CPU compiles it."""

_ROUNDS = 16  # one exclusive or after the other; threefry has 20
_TURNS = 8  # and multiples

# XLA for CPU does not compute what they give in the loop that reads it.
_IN_MEMORY = frozenset((
    APART,
    "stablehlo.cholesky",
    "stablehlo.convolution",
    "stablehlo.dot_general",
    "stablehlo.dynamic_conv",
    "stablehlo.fft",
    "stablehlo.rng_bit_generator",
    "stablehlo.sort",
    "stablehlo.triangular_solve",
))  # fmt: skip

_SOFTMAX = ("jaxtf.softmax", "jaxtf.log_softmax")
_BRANCHES = ("stablehlo.if", "stablehlo.case")


def kept_apart(program: Program) -> Program:
    """The same program, where what is searched for an extreme is kept apart from the rounds that it is computed by."""
    functions = program.functions
    names = (operation.name for function in functions.values() for operation in operations_of(function.body))
    if sum(name == "stablehlo.xor" for name in names) < _ROUNDS:
        return program
    rounds = _rounds(functions)
    changed = {name: replace(function, body=_changed(function.body, rounds)) for name, function in functions.items()}
    return replace(program, functions=changed)


def _changed(block: Block, rounds: Mapping[Value, int]) -> Block:
    """The block with an operation between what makes random numbers and what searches them."""
    operations: list[Operation] = []
    apart: dict[Value, Value] = {}
    for operation in block.operations:
        for value in _searched(operation):
            if rounds[value] >= _ROUNDS and value not in apart:
                apart[value] = Value(value.type)
                made = Operation(APART, (value,), (apart[value],), {}, (), operation.location, operation.source)
                operations.append(made)
        searched = frozenset(_searched(operation))
        read = tuple(apart.get(value, value) if value in searched else value for value in operation.operands)
        regions = tuple(_changed(region, rounds) for region in operation.regions)
        operations.append(replace(operation, operands=read, regions=regions) if regions or searched else operation)
    return replace(block, operations=tuple(operations))


def _searched(operation: Operation) -> tuple[Value, ...]:
    """The arrays of which an operation keeps one element or another, in loops that may have 8, 16, ... turns."""
    if operation.name in _SOFTMAX:
        searched, axes = operation.operands, (operation.attributes["axis"],)
    elif operation.name == "stablehlo.reduce":
        if single_operation(operation.regions[0]) not in (None, "maximum", "minimum"):
            return ()
        searched, axes = operation.operands[: len(operation.operands) // 2], operation.attributes["dimensions"]
    else:
        return ()
    type_ = searched[0].type
    assert isinstance(type_, TensorType), "arrays are reduced"
    turns = [type_.shape[axis] for axis in axes]
    return () if None not in turns and math.prod(turns) % _TURNS else searched


def _rounds(functions: Mapping[str, Function]) -> Mapping[Value, int]:
    """How many exclusive ors, at most `_ROUNDS`, one loop may do one after the other for each value.

    Arguments have those of what is given, in a loop those of the first turn; what a loop carries is in memory.
    """
    rounds: defaultdict[Value, int] = defaultdict(int)

    def pass_on(given: Sequence[Value], taken: Sequence[Value]) -> None:
        for old, new in zip(given, taken, strict=True):
            rounds[new] = max(rounds[new], rounds[old])

    def visit(operation: Operation) -> None:
        callee = callee_of(operation)
        if operation.name == "stablehlo.while":
            condition, body = operation.regions
            pass_on(operation.operands, condition.arguments)
            pass_on(operation.operands, body.arguments)
            made = [body]
        elif operation.name in _BRANCHES:
            made = [*operation.regions]
        elif callee is not None:
            made = [functions[callee].body]
            pass_on(operation.operands, made[0].arguments)
        else:
            made = []
        for region in operation.regions:
            for inner in region.operations:
                visit(inner)
        for block in made:
            pass_on(block.returned, operation.results)
        if made or operation.name in _IN_MEMORY:
            return
        done = max((rounds[value] for value in operation.operands), default=0) + (operation.name == "stablehlo.xor")
        for result in operation.results:
            rounds[result] = min(done, _ROUNDS)

    known = -1
    while sum(rounds.values()) > known:
        known = sum(rounds.values())
        for function in functions.values():
            for operation in function.body.operations:
                visit(operation)
    return rounds
