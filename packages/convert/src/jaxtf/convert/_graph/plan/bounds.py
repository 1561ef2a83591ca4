"""Operands of operations on arrays whose sizes depend on values, which have bounds.

XLA keeps such an array in a buffer as large as the bound. An operation may have another operand of which the type has
that size: the elements that it is combined with are its first ones, as many as the array has. A tensor of TensorFlow is
as large as it is, so the other is cut; otherwise an operation of TensorFlow fails, or takes an array of one element for
a scalar. Two such arrays may have different sizes in XLA, of which the larger goes on in the buffer of the smaller;
where sizes that are to be equal are not known to be, the program is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import tensorflow as tf

from jaxtf.convert._graph.errors import unsupported
from jaxtf.convert._graph.plan.equal_sizes import EqualSizes, are_equal
from jaxtf.serialization.interop import (
    Block,
    Operation,
    Program,
    TensorType,
    Value,
    has_requirements,
    operations_of,
    requirements,
)

__all__ = ["Bounds"]

Place = tuple[int, int]
"""The number of an operand and of a dimension of it."""


class Bounds:
    """Cuts operands in the blocks of one program to the sizes that operands beside them have.

    Args:
      program: The program.
    """

    def __init__(self, program: Program) -> None:
        bodies = [function.body for function in program.functions.values()]
        made = [value for body in bodies for operation in operations_of(body) for value in operation.results]
        self._are_there = any(map(_has_bounds, [*made, *(value for body in bodies for value in body.arguments)]))
        self._sizes = EqualSizes()

    def __call__(self, block: Block, sources: Mapping[Value, Operation]) -> Block:
        """The block with such operands.

        Raises:
          GraphModeUnsupported: Two sizes that have to be equal may not be.
        """
        if not self._are_there:
            return block
        operations: list[Operation] = []
        for operation in block.operations:
            is_concerned = has_requirements(operation.name) and any(map(_has_bounds, operation.operands))
            for made in self._with_cut_operands(operation) if is_concerned else (operation,):
                self._sizes.add(made)
                operations.append(made)
        return replace(block, operations=tuple(operations))

    def _with_cut_operands(self, operation: Operation) -> Iterator[Operation]:
        """The operations that cut operands of one, and it, last."""
        operands = list(operation.operands)
        for places in _required_to_be_equal(operation):
            bounded = [place for place in places if _bound(operation, place) is not None]
            known = [place for place in places if _size(operation, place) is not None]
            if not are_equal([self._sizes.of(operation.operands[number], axis) for number, axis in bounded]):
                raise unsupported(
                    operation,
                    "it combines arrays whose sizes depend on values, and are not known to be equal",
                    "if call_tf has made it, convert the function that calls call_tf, and not what is exported of it",
                )
            if not bounded or not known:
                continue
            number, axis = bounded[0]
            size = Value(TensorType(tf.int32, ()))
            yield Operation("stablehlo.get_dimension_size", (operation.operands[number],), (size,), {"dimension": axis})
            for number, axis in known:
                cut = Value(_opened(operands[number].type, axis))
                yield Operation("stablehlo.set_dimension_size", (operands[number], size), (cut,), {"dimension": axis})
                operands[number] = cut
        yield replace(operation, operands=tuple(operands))


def _has_bounds(value: Value) -> bool:
    return isinstance(value.type, TensorType) and any(bound is not None for bound in value.type.bounds)


class _Placed(int):
    """A size of an operand, 0 if it is not known, with its place."""

    place: Place


def _required_to_be_equal(operation: Operation) -> Sequence[Sequence[Place]]:
    """The places of sizes that have to be equal, those of one size together."""
    found: list[frozenset[Place]] = []
    shapes = [_placed(number, value) for number, value in enumerate(operation.operands)]
    for required in requirements(operation, shapes, lambda number: _nothing_known(operation.operands[number])):
        pair = (required.size, required.limit)
        if required.is_most or not all(isinstance(size, _Placed) for size in pair):
            continue
        places = frozenset(size.place for size in pair)
        apart = [other for other in found if not other & places]
        found = [*apart, places.union(*(other for other in found if other & places))]
    return [sorted(places) for places in found]


def _placed(number: int, value: Value) -> list[_Placed]:
    sizes = [_Placed(size or 0) for size in _shape(value)]
    for axis, size in enumerate(sizes):
        size.place = number, axis
    return sizes


def _nothing_known(sizes: Value) -> list[None]:
    """For each of the sizes that an operand holds, that it is not known."""
    return [None] * ((_shape(sizes) or (1,))[0] or 0)


def _shape(value: Value) -> tuple[int | None, ...]:
    return value.type.shape if isinstance(value.type, TensorType) else ()


def _size(operation: Operation, place: Place) -> int | None:
    number, axis = place
    return _shape(operation.operands[number])[axis]


def _bound(operation: Operation, place: Place) -> int | None:
    number, axis = place
    type_ = operation.operands[number].type
    return type_.bounds[axis] if isinstance(type_, TensorType) and type_.bounds else None


def _opened(type_: Any, axis: int) -> TensorType:
    """The type with a size that depends on values, up to the one that it had."""
    shape, bounds = list(type_.shape), list(type_.bounds or [None] * type_.rank)
    shape[axis], bounds[axis] = None, shape[axis]
    return TensorType(type_.dtype, tuple(shape), tuple(bounds))
