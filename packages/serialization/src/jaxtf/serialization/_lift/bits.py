"""Which floats a module takes apart by their bits and puts together again: there a derivative is refused.

`bitcast_convert` to integers, arithmetic, and back is how functions such as `lgamma` are written out. JAX
differentiates neither step, and would give 0 for all of it. What only looks at the bits (a sign, an exponent as a
number) is constant almost everywhere, and its derivative 0 is right: so only floats are refused whose bits become a
float again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from jaxtf.serialization._program.calls import callee_of
from jaxtf.serialization._program.program import Block, Operation, Program, TensorType, Value, operations_of
from jaxtf.serialization._program.regions import is_floating

__all__ = ["taken_apart"]

_BITCAST = "stablehlo.bitcast_convert"


def taken_apart(program: Program) -> frozenset[Operation]:
    """The operations that read the bits of floats which become floats again."""
    operations = [operation for f in program.functions.values() for operation in operations_of(f.body)]
    bitcasts = [operation for operation in operations if operation.name == _BITCAST]
    puts_together = [o for o in bitcasts if _is_integer(o.operands[0]) and is_floating(o.results[0])]
    if not puts_together or not any(is_floating(o.operands[0]) for o in bitcasts):
        return frozenset()
    flow = _Flow.of(program, operations)
    found: set[Operation] = set()
    seen: set[Value] = set()
    waiting = [operation.operands[0] for operation in puts_together]
    while waiting:
        value = waiting.pop()
        if value in seen or not _is_integer(value):
            continue
        seen.add(value)
        operation = flow.sources.get(value)
        if operation is not None and operation.name == _BITCAST and is_floating(operation.operands[0]):
            found.add(operation)
        else:
            waiting += flow.before(value)
    return frozenset(found)


def _is_integer(value: Value) -> bool:
    return isinstance(value.type, TensorType) and value.type.dtype.name.startswith(("int", "uint"))


@dataclass(frozen=True)
class _Flow:
    """What values are made of, through calls, loops and branches.

    Attributes:
      sources: The operation that each value is a result of.
      given: What each argument of a function or a region may be.
      program: The module.
    """

    sources: Mapping[Value, Operation]
    given: Mapping[Value, list[Value]]
    program: Program

    @staticmethod
    def of(program: Program, operations: list[Operation]) -> _Flow:
        """That of a program."""
        sources = {result: operation for operation in operations for result in operation.results}
        given: dict[Value, list[Value]] = {}
        for operation in operations:
            for block in _entered(program, operation):
                for position, argument in enumerate(block.arguments):
                    made = given.setdefault(argument, [])
                    made += operation.operands if operation.name != "stablehlo.while" else ()
                    if operation.name == "stablehlo.while":
                        made += [operation.operands[position], operation.regions[1].returned[position]]
        return _Flow(sources, given, program)

    def before(self, value: Value) -> Iterator[Value]:
        """What a value is computed from."""
        operation = self.sources.get(value)
        if operation is None:
            yield from self.given.get(value, ())
            return
        yield from operation.operands
        for block in _entered(self.program, operation):
            yield from block.returned


def _entered(program: Program, operation: Operation) -> Iterator[Block]:
    """The bodies that an operation evaluates."""
    yield from operation.regions
    callee = callee_of(operation)
    if callee is not None and callee in program.functions:
        yield program.functions[callee].body
