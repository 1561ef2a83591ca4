"""Loops that count: a `while` whose number of rounds is known, so that JAX differentiates it in reverse mode.

JAX writes `scan` and `fori_loop` with known bounds as a loop whose counter starts at a constant, is compared with a
constant and grows by one. Such a loop is a `lax.scan` again:

- what the body returns unchanged is not state of the loop;
- an array that is only read, one row at the counter at a time, is scanned over;
- an array that is only written, one row at the counter at a time, is stacked from the rows.

Without the last two a round would carry, and its reverse save, the whole of the arrays. All three are read from the
body exactly; a loop that does anything else with such a value carries it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from jaxtf.serialization._program.program import Block, Function, Operation, TensorType, Value, operations_of

__all__ = ["Counted", "Row", "counted", "kept_by"]


@dataclass(frozen=True)
class Row:
    """An operation that reads or writes one row of an array at the counter.

    Attributes:
      operation: A `dynamic_slice`, a `dynamic_update_slice`, or a call of a function that is no more than that.
      is_last_first: Whether the first round is at the last row.
    """

    operation: Operation
    is_last_first: bool


@dataclass(frozen=True)
class Counted:
    """A loop that counts.

    Attributes:
      counter: Position of the counter among the values of the loop.
      start: The first value of the counter.
      rounds: How many times the body is applied.
      kept: Positions of the values that the body returns as it took them, those that are read by row among them.
      read: By position, the rows of an array that is only read so.
      written: By position, the row of an array that is only written so.
    """

    counter: int
    start: int
    rounds: int
    kept: frozenset[int]
    read: Mapping[int, tuple[Row, ...]]
    written: Mapping[int, Row]


def counted(
    operation: Operation,
    starts: Mapping[int, int],
    sources: Mapping[Value, Operation],
    functions: Mapping[str, Function],
) -> Counted | None:
    """What is known of a `while` that counts; None if it does not, or if that is not seen.

    Args:
      operation: The loop.
      starts: By position, the integers that values of the loop are known to start with.
      sources: The operation that each value of the program comes from.
      functions: Those of the module.
    """
    condition, body = operation.regions
    kept = kept_by(body)
    found = _bound(condition, {i: starts[i] for i in kept if i in starts}, sources)
    if found is None:
        return None
    counter, limit = found
    if counter not in starts or not _grows_by_one(body, counter, sources):
        return None
    start = starts[counter]
    rounds = max(0, limit - start)
    if start:
        return Counted(counter, start, rounds, kept, {}, {})
    rows = _Rows(body, counter, rounds, sources, functions)
    read = {i: r for i in kept if (r := rows.read(i))}
    written = {i: w for i in range(len(body.arguments)) if i not in kept and (w := rows.written(i))}
    return Counted(counter, start, rounds, kept, read, written)


def kept_by(body: Block) -> frozenset[int]:
    """Positions of the values that the body of a loop returns as it took them."""
    return frozenset(i for i, value in enumerate(body.arguments) if body.returned[i] is value)


def _bound(
    condition: Block, constants: Mapping[int, int], sources: Mapping[Value, Operation]
) -> tuple[int, int] | None:
    """The position of the counter and the constant that it stays below; `constants` stay as they are."""
    (result,) = condition.returned
    compare = sources.get(result)
    if compare is None or compare.name != "stablehlo.compare" or len(condition.operations) > 2:
        return None
    if any(o is not compare and o.name != "stablehlo.constant" for o in condition.operations):
        return None
    left, right = compare.operands
    if compare.attributes["comparison_direction"] != "LT" or left not in condition.arguments:
        return None
    limit = constant_of(right, sources)
    if limit is None and right in condition.arguments:
        limit = constants.get(condition.arguments.index(right))
    return None if limit is None else (condition.arguments.index(left), limit)


def _grows_by_one(body: Block, counter: int, sources: Mapping[Value, Operation]) -> bool:
    step = sources.get(body.returned[counter])
    if step is None or step.name != "stablehlo.add" or body.arguments[counter] not in step.operands:
        return False
    left, right = step.operands
    other = right if left is body.arguments[counter] else left
    return constant_of(other, sources) == 1


def constant_of(value: Value, sources: Mapping[Value, Operation]) -> int | None:
    """The integer that a scalar is known to be."""
    operation = sources.get(value)
    if operation is None or operation.name != "stablehlo.constant":
        return None
    array = np.asarray(operation.attributes["value"])
    return int(array) if array.shape == () and np.issubdtype(array.dtype, np.integer) else None


def _sizes(value: Value) -> tuple[int, ...] | None:
    """The shape of an array whose sizes are all known."""
    if not isinstance(value.type, TensorType) or None in value.type.shape:
        return None
    return tuple(size for size in value.type.shape if size is not None)


class _Rows:
    """Finds what a body reads and writes by rows.

    Args:
      body: Of the loop.
      counter: The position of its counter, which starts at 0.
      rounds: How many rounds there are.
      sources: The operation that each value of the program comes from.
      functions: Those of the module.
    """

    def __init__(
        self,
        body: Block,
        counter: int,
        rounds: int,
        sources: Mapping[Value, Operation],
        functions: Mapping[str, Function],
    ) -> None:
        self._body = body
        self._counter = body.arguments[counter]
        self._rounds = rounds
        self._sources = sources
        self._functions = functions
        self._uses: dict[Value, list[Operation]] = {}
        for operation in operations_of(body):
            for operand in operation.operands:
                self._uses.setdefault(operand, []).append(operation)
            for region in operation.regions:
                for value in region.returned:
                    self._uses.setdefault(value, []).append(operation)
        self._own = frozenset(map(id, body.operations))

    def read(self, position: int) -> tuple[Row, ...]:
        """The rows that are read of a value; none if it is used otherwise."""
        array = self._body.arguments[position]
        uses = self._uses.get(array, [])
        rows = [self._row_read(use, array) for use in uses]
        found = tuple(row for row in rows if row is not None)
        return found if found and len(found) == len(uses) and len({row.is_last_first for row in found}) == 1 else ()

    def written(self, position: int) -> Row | None:
        """The row that is written of a value; None if it is used otherwise."""
        array = self._body.arguments[position]
        uses = self._uses.get(array, [])
        if len(uses) != 1 or self._body.returned.count(self._body.returned[position]) != 1:
            return None
        (use,) = uses
        if array in self._body.returned or use.results != (self._body.returned[position],):
            return None
        if self._uses.get(use.results[0]):
            return None
        return self._row_written(use, array)

    def _row_read(self, use: Operation, array: Value) -> Row | None:
        slice_, index = self._inlined(use, "stablehlo.dynamic_slice", {"stablehlo.reshape"})
        if slice_ is None or use.operands[0] is not array or array in use.operands[1:]:
            return None
        sizes = tuple(int(size) for size in slice_.attributes["slice_sizes"])
        return self._row(use, slice_, sizes, index)

    def _row_written(self, use: Operation, array: Value) -> Row | None:
        allowed = {"stablehlo.reshape", "stablehlo.broadcast_in_dim"}
        update, index = self._inlined(use, "stablehlo.dynamic_update_slice", allowed)
        if update is None or use.operands[0] is not array or array in use.operands[1:]:
            return None
        sizes, given = _sizes(update.operands[1]), _sizes(use.operands[1])
        if sizes is None or given is None or prod(sizes) != prod(given):
            return None
        return self._row(use, update, sizes, index)

    def _inlined(self, use: Operation, name: str, others: set[str]) -> tuple[Operation | None, Sequence[Value]]:
        """The operation of this name that a use is, or that the function that it calls consists of; and its indices."""
        skipped = 1 if name == "stablehlo.dynamic_slice" else 2
        if id(use) not in self._own:
            return None, ()
        if use.name == name:
            return use, use.operands[skipped:]
        if use.name != "func.call":
            return None, ()
        body = self._functions[use.attributes["callee"]].body
        moves = [operation for operation in body.operations if operation.name == name]
        rest = {operation.name for operation in body.operations} - {name, "stablehlo.constant"}
        if len(moves) != 1 or rest - others or not body.arguments:
            return None, ()
        (move,) = moves
        if not self._is_plain(body, move):
            return None, ()
        given = dict(zip(body.arguments, use.operands, strict=True))
        return move, [given.get(value, value) for value in move.operands[skipped:]]

    def _is_plain(self, body: Block, move: Operation) -> bool:
        """Whether a function moves its first argument, or into it, and returns what that gives, or a reshape of it."""
        if len(body.returned) != 1 or move.operands[0] is not body.arguments[0]:
            return False
        if move.name == "stablehlo.dynamic_update_slice" and not self._is_raised(body, move.operands[1]):
            return False
        (result,) = body.returned
        last = self._sources.get(result)
        if last is not None and last.name == "stablehlo.reshape" and move.name == "stablehlo.dynamic_slice":
            result = last.operands[0]
        return result is move.results[0]

    def _is_raised(self, body: Block, value: Value) -> bool:
        """Whether a value is the second argument of a function, with dimensions of size 1 added."""
        operation = self._sources.get(value)
        while operation is not None and operation in body.operations:
            if operation.name not in ("stablehlo.reshape", "stablehlo.broadcast_in_dim"):
                return False
            dimensions = list(operation.attributes.get("broadcast_dimensions", ()))
            if dimensions != sorted(dimensions):
                return False
            value = operation.operands[0]
            operation = self._sources.get(value)
        return len(body.arguments) > 1 and value is body.arguments[1]

    def _row(self, use: Operation, move: Operation, sizes: tuple[int, ...], indices: Sequence[Value]) -> Row | None:
        """The row, if it is all of one at the counter, counted from the first or from the last one."""
        type_ = use.operands[0].type
        if not isinstance(type_, TensorType) or not type_.shape or type_.shape[0] != self._rounds:
            return None
        if sizes != (1, *type_.shape[1:]) or any(constant_of(i, self._sources) != 0 for i in indices[1:]):
            return None
        if indices[0] is self._counter:
            return Row(use, False)
        return Row(use, True) if self._counts_down(indices[0]) else None

    def _counts_down(self, index: Value) -> bool:
        """Whether an index is `rounds - counter - 1`."""
        outer = self._sources.get(index)
        if outer is None or outer.name != "stablehlo.subtract":
            return False
        inner = self._sources.get(outer.operands[0])
        if inner is None or inner.name != "stablehlo.subtract":
            if constant_of(outer.operands[0], self._sources) == self._rounds - 1:
                return outer.operands[1] is self._counter
            return False
        return (
            constant_of(outer.operands[1], self._sources) == 1
            and constant_of(inner.operands[0], self._sources) == self._rounds
            and inner.operands[1] is self._counter
        )
