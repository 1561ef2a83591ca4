"""What the regions of reductions, scatters and sorts compute, where it is one of those that JAX writes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import ml_dtypes
import numpy as np

from jaxtf.serialization._program.program import Block, Operation, TensorType, Value

__all__ = [
    "Key",
    "comparator_keys",
    "comparison_direction",
    "counts_in",
    "defining",
    "extreme_direction",
    "is_floating",
    "single_operation",
]

_TOTAL = "TOTALORDER"
_MONOIDS = frozenset(("add", "and", "maximum", "minimum", "multiply", "or", "xor"))


def defining(block: Block) -> Mapping[Value, Operation]:
    """The operation of the block that each value comes from."""
    return {result: operation for operation in block.operations for result in operation.results}


def is_floating(value: Value) -> bool:
    """Whether an array is of floating point, not complex."""
    return isinstance(value.type, TensorType) and value.type.dtype.name.startswith(("float", "bfloat"))


def single_operation(block: Block) -> str | None:
    """`add` where the block is `add(first argument, second argument)`, in either order; None if it is not one such."""
    if len(block.operations) != 1 or len(block.arguments) != 2 or len(block.returned) != 1:
        return None
    (operation,) = block.operations
    kind = operation.name.removeprefix("stablehlo.")
    same = set(operation.operands) == set(block.arguments) and operation.results == block.returned
    return kind if same and kind in _MONOIDS else None


def extreme_direction(block: Block) -> str | None:
    """`GT` or `LT` where the block keeps the greater or lesser value, NaN above all, with the least index of it."""
    if len(block.arguments) != 4 or len(block.returned) != 2:
        return None
    value, index, other, other_index = block.arguments
    source = defining(block)

    def is_made(result: Value, name: str, *operands: Value, direction: str = "") -> bool:
        operation = source.get(result)
        if operation is None or operation.name != f"stablehlo.{name}" or operation.operands != operands:
            return False
        return not direction or (
            operation.attributes["comparison_direction"] == direction and _compare_type(operation) != _TOTAL
        )

    def operands(result: Value, name: str) -> tuple[Value, ...]:
        operation = source.get(result)
        return operation.operands if operation is not None and operation.name == f"stablehlo.{name}" else ()

    chosen = operands(block.returned[0], "select")
    chosen_index = operands(block.returned[1], "select")
    if chosen[1:] != (value, other) or chosen_index[1:] != (index, other_index):
        return None
    parts, tie = operands(chosen[0], "or"), operands(chosen_index[0], "or")
    strictly = parts[0] if parts else chosen[0]
    if parts and not is_made(parts[1], "compare", value, value, direction="NE"):
        return None
    if not parts and is_floating(value):
        return None
    both = operands(tie[1], "and") if len(tie) == 2 and tie[0] == chosen[0] else ()
    if len(both) != 2 or not is_made(both[0], "compare", value, other, direction="EQ"):
        return None
    if not is_made(both[1], "compare", index, other_index, direction="LT"):
        return None
    return next((d for d in ("GT", "LT") if is_made(strictly, "compare", value, other, direction=d)), None)


def comparison_direction(block: Block) -> str | None:
    """`GT` or `LT` where the block is that comparison of its first two arguments, not in the total order."""
    if len(block.operations) != 1 or block.operations[0].results != block.returned:
        return None
    (operation,) = block.operations
    direction = str(operation.attributes.get("comparison_direction"))
    is_plain = operation.operands == block.arguments[:2] and _compare_type(operation) != _TOTAL
    return direction if is_plain and direction in ("GT", "LT") else None


def counts_in(dtype: np.dtype[Any], count: int | None) -> bool:
    """Whether 0, 1, 2, ... for so many elements are in ascending order in a dtype, which may be one whose values wrap.

    Of an open number, in 32 bits and more.
    """
    if dtype.name.startswith(("float", "bfloat")):
        return True  # rounded, so that neighbours may be equal
    greatest = int(ml_dtypes.iinfo(dtype).max)  # type: ignore[no-untyped-call]
    return greatest >= (2**31 if count is None else count) - 1


@dataclass(frozen=True)
class Key:
    """What elements are ordered by.

    Attributes:
      operand: Which of the sorted arrays.
      part: `real` or `imag` of a complex one, else empty.
      merges: Whether -0 counts as 0 and all NaN are alike.
      total: Whether floats are compared in the total order.
      descending: Whether the greatest come first.
    """

    operand: int
    part: str = ""
    merges: bool = False
    total: bool = False
    descending: bool = False


def comparator_keys(block: Block, sources: Mapping[Value, Operation]) -> list[Key] | None:
    """The keys that a comparator orders by, first the most significant; None if it does something else.

    Args:
      block: The comparator.
      sources: The operations that values around it come from: its constants lie there or in it.
    """
    return _Comparator(block, sources).keys(block.returned[0]) if len(block.returned) == 1 else None


def _compare_type(comparison: Operation) -> str:
    return str(comparison.attributes.get("compare_type", ""))


class _Comparator:
    """Reads a comparator's block.

    Args:
      block: Its arguments are left and right element of each array.
      sources: The operations that values around it come from.
    """

    def __init__(self, block: Block, sources: Mapping[Value, Operation]) -> None:
        self._source: Mapping[Value, Operation] = defining(block)
        self._around = sources
        self._place = {argument: divmod(i, 2) for i, argument in enumerate(block.arguments)}

    def keys(self, result: Value) -> list[Key] | None:
        """`less`, or `less or (equal and further keys)`."""
        operation = self._source.get(result)
        if operation is None:
            return None
        if operation.name == "stablehlo.compare":
            return self._less(operation)
        parts = self._operands(result, "or")
        rest = self._operands(parts[1], "and") if len(parts) == 2 else ()
        if len(rest) != 2:
            return None
        first, others, equal = self.keys(parts[0]), self.keys(rest[1]), self._source.get(rest[0])
        if first is None or others is None or len(first) != 1 or equal is None or equal.name != "stablehlo.compare":
            return None
        if equal.attributes["comparison_direction"] != "EQ" or self._key(equal) != replace(first[0], descending=False):
            return None
        return [*first, *others]

    def _less(self, operation: Operation) -> list[Key] | None:
        direction = operation.attributes["comparison_direction"]
        key = self._key(operation)
        if key is None or direction not in ("LT", "GT"):
            return None
        return [replace(key, descending=direction == "GT")]

    def _key(self, operation: Operation) -> Key | None:
        """The key that a comparison compares, left with right."""
        left, right = map(self._described, operation.operands)
        if left is None or right is None or left[0] != right[0] or (left[1], right[1]) != (0, 1):
            return None
        total = _compare_type(operation) == _TOTAL
        key = replace(left[0], total=total)
        # NaN has no place in another order.
        return None if is_floating(operation.operands[0]) and not total else key

    def _described(self, value: Value) -> tuple[Key, int] | None:
        """What a value is made of: the key, and 0 for the left or 1 for the right element."""
        if value in self._place:
            operand, side = self._place[value]
            return Key(operand), side
        for part in ("real", "imag"):
            operands = self._operands(value, part)
            if operands and operands[0] in self._place:
                operand, side = self._place[operands[0]]
                return Key(operand, part), side
        choice = self._operands(value, "select")
        condition = self._source.get(choice[0]) if choice else None
        if condition is None or condition.name != "stablehlo.compare":
            return None
        return self._merged(condition, choice)

    def _merged(self, condition: Operation, choice: tuple[Value, ...]) -> tuple[Key, int] | None:
        """`select(x != x, NaN, select(x == 0, 0, x))`."""
        inner = self._operands(choice[2], "select")
        zero = self._source.get(inner[0]) if inner else None
        if zero is None or zero.name != "stablehlo.compare" or zero.attributes["comparison_direction"] != "EQ":
            return None
        x = inner[2]
        if condition.attributes["comparison_direction"] != "NE" or condition.operands != (x, x):
            return None
        if zero.operands[0] != x or _TOTAL in map(_compare_type, (condition, zero)):
            return None
        if not all(map(self._is_zero, (zero.operands[1], inner[1]))) or not self._is_nan(choice[1]):
            return None
        described = self._described(x)
        return None if described is None else (replace(described[0], merges=True), described[1])

    def _is_zero(self, value: Value) -> bool:
        """Whether it is a constant 0 or -0."""
        constant = self._constant(value)
        return constant is not None and bool(constant == 0)

    def _is_nan(self, value: Value) -> bool:
        """Whether it is a constant NaN, and one that comes last: without a sign."""
        constant = self._constant(value)
        return constant is not None and bool(np.isnan(constant)) and not np.signbit(constant)

    def _constant(self, value: Value) -> Any:
        operation = self._source.get(value, self._around.get(value))
        if operation is None or operation.name != "stablehlo.constant":
            return None
        return np.asarray(operation.attributes["value"]).reshape(-1)[0]

    def _operands(self, value: Value, name: str) -> tuple[Value, ...]:
        operation = self._source.get(value)
        return operation.operands if operation is not None and operation.name == f"stablehlo.{name}" else ()
