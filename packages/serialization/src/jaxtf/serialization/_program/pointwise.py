"""Which operations of a block are together a function of each element of one array, with a choice by `select`.

So modules write out functions that are operations elsewhere: erfc, lgamma, digamma, the Bessel functions. Each branch
is computed for all elements, also where it overflows or divides by zero, and `select` drops what is not chosen. A
derivative in forward mode drops it too. One in reverse mode multiplies zero by infinity: the exact GELU of a small
number has NaN for a gradient. Differentiated as one function, as JAX does where it is one operation, it has the
derivative of the branch that is chosen, in both modes and to any order.

Source: the JAX FAQ, "Gradients contain NaN where using where".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from jaxtf.serialization._program.calls import callee_of
from jaxtf.serialization._program.program import Block, Operation, Program, TensorType, Value, read_in
from jaxtf.serialization._program.regions import is_floating

__all__ = ["BROADCASTS", "Pointwise", "operations_within", "pointwise_functions"]

# What may be infinite or NaN itself, or in its derivative, where operands are not.
_SINGULAR = frozenset(
    f"stablehlo.{name}"
    for name in (
        "atan2",
        "cbrt",
        "divide",
        "exponential",
        "exponential_minus_one",
        "log",
        "log_plus_one",
        "power",
        "rsqrt",
        "sqrt",
        "tan",
    )
)
_SMOOTH = frozenset(
    f"stablehlo.{name}"
    for name in (
        "abs",
        "add",
        "and",
        "ceil",
        "clamp",
        "compare",
        "convert",
        "cosine",
        "floor",
        "is_finite",
        "logistic",
        "maximum",
        "minimum",
        "multiply",
        "negate",
        "not",
        "or",
        "remainder",
        "round_nearest_afz",
        "round_nearest_even",
        "select",
        "sign",
        "sine",
        "subtract",
        "tanh",
        "xor",
    )
)
_ELEMENTWISE = _SINGULAR | _SMOOTH
BROADCASTS = ("stablehlo.broadcast_in_dim", "stablehlo.dynamic_broadcast_in_dim")
_SELECT, _CONSTANT = "stablehlo.select", "stablehlo.constant"
_MULTIPLY, _SIGN = "stablehlo.multiply", "stablehlo.sign"
_NONE: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Pointwise:
    """A function of each element.

    Attributes:
      argument: The array.
      operations: In order; the last one selects the result, or multiplies it with a sign.
      sizes: What else they use: the shapes that constants are broadcast to.
      is_logistic: Whether it is the logistic function.
      alike: Of complex numbers, the function of JAX that has its derivative.
    """

    argument: Value
    operations: tuple[Operation, ...]
    sizes: tuple[Value, ...]
    is_logistic: bool = False
    alike: Callable[[Any], Any] | None = None


def pointwise_functions(
    block: Block, program: Program, sources: Mapping[Value, Operation]
) -> dict[Operation, Pointwise]:
    """The functions of real numbers of a block that choose, by the operation that ends each.

    Args:
      block: Its operations in order.
      program: Whose functions it calls.
      sources: The operation that each value of the program is a result of.
    """
    functions: dict[Operation, Pointwise] = {}
    names = {operation: _elementwise_names(operation, program, ()) for operation in block.operations}
    if not any(_SELECT in found for found in names.values()):
        return functions
    positions = {operation: position for position, operation in enumerate(block.operations)}
    origins = _origins(block, names, sources)
    for operation, found in names.items():
        chooses = _SELECT in found or _is_odd(operation, names, sources)
        if chooses and origins[operation.results[0]] is not operation.results[0]:
            function = _function(operation, origins, sources, positions)
            if function is not None and any(names.get(each, _NONE) & _SINGULAR for each in function.operations):
                functions[operation] = function
    return functions


def operations_within(block: Block, functions: Mapping[Operation, Pointwise]) -> frozenset[Operation]:
    """The operations of functions that nothing else uses."""
    members = {operation for function in functions.values() for operation in function.operations}
    read = set(block.returned)
    unused = set()
    for operation in reversed(block.operations):
        if operation in members and not any(result in read for result in operation.results):
            unused.add(operation)
        elif operation in functions:
            read.update((functions[operation].argument, *functions[operation].sizes))
        else:
            read.update(operation.operands)
            for region in operation.regions:
                read.update(read_in(region))
    return frozenset(unused)


def _is_odd(
    operation: Operation, names: Mapping[Operation, frozenset[str]], sources: Mapping[Value, Operation]
) -> bool:
    """Whether a sign is multiplied with what is chosen, as asinh and i1e are written."""
    made_by = [sources.get(operand) for operand in operation.operands] if operation.name == _MULTIPLY else []
    has_sign = any(source is not None and source.name == _SIGN for source in made_by)
    return has_sign and any(_SELECT in names.get(source, _NONE) for source in made_by if source is not None)


def _elementwise_names(operation: Operation, program: Program, callers: tuple[str, ...]) -> frozenset[str]:
    """The names of the operations that an elementwise operation, or a call of such, consists of; else none."""
    if operation.name in _ELEMENTWISE:
        return frozenset((operation.name,))
    callee = callee_of(operation)
    if callee is None or callee not in program.functions or callee in callers or len(operation.results) != 1:
        return _NONE
    found: set[str] = set()
    for inner in program.functions[callee].body.operations:
        names = _elementwise_names(inner, program, (*callers, callee))
        if not names and inner.name != _CONSTANT and not _is_broadcast_of_scalar(inner):
            return _NONE
        found |= names
    return frozenset(found)


def _is_broadcast_of_scalar(operation: Operation) -> bool:
    type_ = operation.operands[0].type if operation.name in BROADCASTS else None
    return isinstance(type_, TensorType) and type_.rank == 0


def _origins(
    block: Block, names: Mapping[Operation, frozenset[str]], sources: Mapping[Value, Operation]
) -> dict[Value, Value | None]:
    """For each result the one array that its elements are functions of, perhaps itself; None for constants."""
    origins: dict[Value, Value | None] = {}

    def origin(value: Value) -> Value | None:
        if value not in origins:
            source = sources.get(value)
            origins[value] = None if source is not None and source.name == _CONSTANT else value
        return origins[value]

    for operation in block.operations:
        if names[operation]:
            [result] = operation.results
            given = {operand: origin(operand) for operand in operation.operands}
            found = {each for each in given.values() if each is not None}
            same_shape = all(_shape(x) == _shape(result) for x, each in given.items() if each is not None)
            if not found or (len(found) == 1 and same_shape and all(map(is_floating, found))):
                origins[result] = next(iter(found), None)
                continue
        elif operation.name in BROADCASTS and origin(operation.operands[0]) is None:
            origins[operation.results[0]] = None
            continue
        for result in operation.results:
            origin(result)
    return origins


def _shape(value: Value) -> tuple[int | None, ...] | None:
    return value.type.shape if isinstance(value.type, TensorType) else None


def _function(
    last: Operation,
    origins: Mapping[Value, Value | None],
    sources: Mapping[Value, Operation],
    positions: Mapping[Operation, int],
) -> Pointwise | None:
    """The function that ends with an operation; None if that is a constant or no floating point."""
    argument = origins[last.results[0]]
    if argument is None or not is_floating(last.results[0]):
        return None
    found: set[Operation] = set()
    sizes: dict[Value, None] = {}
    waiting = [last]
    while waiting:
        operation = waiting.pop()
        if operation in found:
            continue
        found.add(operation)
        needed = operation.operands[:1] if operation.name in BROADCASTS else operation.operands
        sizes.update(dict.fromkeys(operation.operands[len(needed) :]))
        waiting += [sources[value] for value in needed if value is not argument]
    ordered = sorted(found, key=lambda operation: positions.get(operation, -1))  # constants of outer blocks first
    return Pointwise(argument, tuple(ordered), tuple(sizes))
