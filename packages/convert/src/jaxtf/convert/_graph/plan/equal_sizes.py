"""Which sizes that depend on values are known to be equal: what has the size of what, and what is computed alike."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from jaxtf.serialization.interop import Operation, TensorType, Value, single_operation

__all__ = ["KEEP_SIZES", "EqualSizes"]

_ELEMENTWISE = """
    abs add and atan2 bitcast_convert cbrt ceil clamp compare complex convert cosine count_leading_zeros divide
    exponential exponential_minus_one floor imag is_finite log log_plus_one logistic map maximum minimum multiply negate
    not or popcnt power real reduce_precision remainder reverse round_nearest_afz round_nearest_even rsqrt select
    shift_left shift_right_arithmetic shift_right_logical sign sine sort sqrt subtract tan tanh xor
"""
KEEP_SIZES = frozenset(f"stablehlo.{name}" for name in _ELEMENTWISE.split())
"""Operations of which a result has the sizes of every operand of its rank."""

_NEUTRAL = {"add": 0, "subtract": 0, "multiply": 1, "divide": 1}


class EqualSizes:
    """The sizes of the values of a program, to which operations are added in their order."""

    def __init__(self) -> None:
        self._sizes: dict[tuple[Value, int], Hashable] = {}
        self._computed: dict[Value, Hashable] = {}
        self._numbers: dict[Hashable, int] = {}
        self._most: dict[Hashable, int] = {}

    def of(self, value: Value, axis: int) -> Hashable:
        """What is the same for sizes that are known to be equal.

        Args:
          value: An array.
          axis: The number of a dimension.
        """
        assert isinstance(value.type, TensorType), "a size is of an array"
        known = value.type.shape[axis]
        return ("known", known) if known is not None else self._sizes.get((value, axis), (value, axis))

    def add(self, operation: Operation) -> None:
        """Adds an operation whose operands come from those that have been added."""
        for number, result in enumerate(operation.results):
            if not isinstance(result.type, TensorType):
                continue
            self._computed[result] = self._what_computes(operation, number)
            for axis, size in enumerate(result.type.shape):
                if size is None:
                    found = self._sizes[result, axis] = self._size(operation, result, axis)
                    bound = result.type.bounds[axis] if result.type.bounds else None
                    if bound is not None:
                        self._most[found] = min(bound, self._most.get(found, bound))

    # --- numbers ---

    def _what_computes(self, operation: Operation, number: int) -> Hashable:
        """What is the same for two results that are equal, as they are computed alike from equal operands."""
        name, result = operation.name.removeprefix("stablehlo."), operation.results[number]
        operands = [self._computed.get(value, value) for value in operation.operands]
        if name == "get_dimension_size":
            return self.of(operation.operands[0], operation.attributes["dimension"])
        if _is_integer(result) and _is_integer(operation.operands[0] if operands else result):
            if name == "constant":
                return ("known", int(operation.attributes["value"]))
            if name in ("convert", "reshape") or (len(operands) == 2 and self._gives_first(name, *operands)):
                return operands[0]
        regions = [single_operation(region) for region in operation.regions]
        if operation.name not in _COMPUTE_ALIKE or None in regions:
            return result
        type_ = result.type
        assert isinstance(type_, TensorType), "an array"
        computed = (name, number, *operands, *regions, *_frozen(operation.attributes), str(type_.dtype), type_.shape)
        return ("computed", self._numbers.setdefault(computed, len(self._numbers)))

    def _gives_first(self, name: str, first: Hashable, second: Hashable) -> bool:
        """Whether an operation on two scalars gives the first."""
        number = _known(second)
        if number is None:
            return False
        if name == "minimum":
            return first in self._most and self._most[first] <= number
        if name == "maximum":
            return first in self._most and number <= 0
        return number == _NEUTRAL.get(name)

    # --- sizes ---

    def _size(self, operation: Operation, result: Value, axis: int) -> Hashable:
        """The size of a result."""
        if operation.name in KEEP_SIZES:
            rank = _rank(result)
            alike = [self.of(value, axis) for value in operation.operands if _rank(value) == rank]
            return next((size for size in alike if _known(size) is None), (result, axis))
        rule = _RULES.get(operation.name)
        found = None if rule is None else rule(self, operation, axis)
        return (result, axis) if found is None else found

    def _set(self, operation: Operation, axis: int) -> Hashable:
        operand, size = operation.operands
        if axis != operation.attributes["dimension"]:
            return self.of(operand, axis)
        return self._computed.get(size, size)

    def _sliced(self, operation: Operation, axis: int) -> Hashable:
        names = "start_indices", "limit_indices", "strides"
        start, limit, step = (int(operation.attributes[name][axis]) for name in names)
        whole = self.of(operation.operands[0], axis)
        is_whole = start == 0 and step == 1 and whole in self._most and self._most[whole] <= limit
        return whole if is_whole else ("slice", whole, start, limit, step)

    def _padded(self, operation: Operation, axis: int) -> Hashable:
        names = "edge_padding_low", "edge_padding_high", "interior_padding"
        added = tuple(int(operation.attributes[name][axis]) for name in names)
        whole = self.of(operation.operands[0], axis)
        return ("pad", whole, *added) if any(added) else whole

    def _reshaped(self, operation: Operation, axis: int) -> Hashable:
        """Of as many elements, where one size is open and the others give the same product."""
        before, after = (_shape(value) for value in (operation.operands[0], operation.results[0]))
        (open_before, others_before), (open_after, others_after) = map(_parted, (before, after))
        is_same = len(open_before) == len(open_after) == 1 and others_before == others_after > 0
        return self.of(operation.operands[0], open_before[0]) if is_same else None

    def _broadcast(self, operation: Operation, axis: int) -> Hashable:
        places = list(operation.attributes["broadcast_dimensions"])
        return self.of(operation.operands[0], places.index(axis)) if axis in places else None

    def _transposed(self, operation: Operation, axis: int) -> Hashable:
        return self.of(operation.operands[0], int(operation.attributes["permutation"][axis]))

    def _reduced(self, operation: Operation, axis: int) -> Hashable:
        left_out = set(operation.attributes["dimensions"])
        kept = [i for i in range(_rank(operation.operands[0])) if i not in left_out]
        return self.of(operation.operands[0], kept[axis])

    def _concatenated(self, operation: Operation, axis: int) -> Hashable:
        sizes = [self.of(value, axis) for value in operation.operands]
        if axis == operation.attributes["dimension"]:
            return ("concatenate", *sizes)
        return next((size for size in sizes if _known(size) is None), None)

    def _gathered(self, operation: Operation, axis: int) -> Hashable:
        """Of a batch as the indices have it, or of a whole dimension."""
        numbers, (operand, indices) = operation.attributes["dimension_numbers"], operation.operands[:2]
        batch = [i for i in range(_rank(operation.results[0])) if i not in numbers["offset_dims"]]
        if axis in batch:
            of_indices = [i for i in range(_rank(indices)) if i != numbers["index_vector_dim"]]
            return self.of(indices, of_indices[batch.index(axis)])
        left_out = (*numbers["collapsed_slice_dims"], *numbers["operand_batching_dims"])
        kept = [i for i in range(_rank(operand)) if i not in left_out]
        place = kept[list(numbers["offset_dims"]).index(axis)]
        whole = self.of(operand, place)
        is_whole = whole in self._most and self._most[whole] <= int(operation.attributes["slice_sizes"][place])
        return whole if is_whole else None

    def _multiplied(self, operation: Operation, axis: int) -> Hashable:
        numbers, (left, right) = operation.attributes["dot_dimension_numbers"], operation.operands
        batch = list(numbers["lhs_batching_dimensions"])
        sides = [
            (value, [i for i in range(_rank(value)) if i not in (*numbers[f"{side}_batching_dimensions"], *contracted)])
            for value, side in ((left, "lhs"), (right, "rhs"))
            for contracted in (numbers[f"{side}_contracting_dimensions"],)
        ]
        places = [(left, i) for i in batch] + [(value, i) for value, free in sides for i in free]
        return self.of(*places[axis])


_RULES: Mapping[str, Any] = {
    "stablehlo.broadcast_in_dim": EqualSizes._broadcast,
    "stablehlo.concatenate": EqualSizes._concatenated,
    "stablehlo.dot_general": EqualSizes._multiplied,
    "stablehlo.dynamic_reshape": EqualSizes._reshaped,
    "stablehlo.gather": EqualSizes._gathered,
    "stablehlo.pad": EqualSizes._padded,
    "stablehlo.reduce": EqualSizes._reduced,
    "stablehlo.reshape": EqualSizes._reshaped,
    "stablehlo.set_dimension_size": EqualSizes._set,
    "stablehlo.slice": EqualSizes._sliced,
    "stablehlo.transpose": EqualSizes._transposed,
}

_COMPUTE_ALIKE = KEEP_SIZES | _RULES.keys() | {"stablehlo.constant", "stablehlo.iota"}


def _known(size: Hashable) -> int | None:
    return size[1] if isinstance(size, tuple) and size[0] == "known" else None


def _is_integer(value: Value) -> bool:
    """Whether it is one integer, of which the dtype has every size."""
    type_ = value.type
    return isinstance(type_, TensorType) and not type_.rank and type_.dtype.is_integer and type_.dtype.size >= 4


def _shape(value: Value) -> Sequence[int | None]:
    return value.type.shape if isinstance(value.type, TensorType) else ()


def _rank(value: Value) -> int:
    return len(_shape(value))


def _parted(shape: Sequence[int | None]) -> tuple[list[int], int]:
    """The numbers of the dimensions whose sizes are not known, and the product of the others."""
    return [i for i, size in enumerate(shape) if size is None], math.prod(size for size in shape if size is not None)


def _frozen(attributes: Mapping[str, Any]) -> list[Hashable]:
    """Attributes as what compares equal where they do."""
    return [(name, _hashable(value)) for name, value in sorted(attributes.items())]


def _hashable(value: Any) -> Hashable:
    if isinstance(value, np.ndarray | np.generic):
        return str(value.dtype), value.shape, value.tobytes()
    if isinstance(value, Mapping):
        return tuple(_frozen(value))
    return tuple(map(_hashable, value)) if isinstance(value, list | tuple) else value
