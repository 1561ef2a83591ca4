"""Which sizes are known to be equal before a program runs: what has the size of what, and what is computed alike.

A size has names, and two with a name in common are equal: the names of a size of a result hold once that result is
there, and so what its operation requires of its operands holds too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import tensorflow as tf

from jaxtf.serialization.interop import Operation, TensorType, Value, single_operation

__all__ = ["KEEP_SIZES", "EqualSizes", "Names", "Sizes", "are_equal", "is_of_array", "known_of", "united"]

Names: TypeAlias = tuple[Hashable, ...]
"""What a size is known to be: integers, and whatever else it is equal to; the first one stands for it."""

Sizes: TypeAlias = tuple[Names, ...]

_ELEMENTWISE = """
    abs add and atan2 bitcast_convert cbrt ceil clamp compare complex convert cosine count_leading_zeros divide
    exponential exponential_minus_one floor imag is_finite log log_plus_one logistic map maximum minimum multiply negate
    not or popcnt power real reduce_precision remainder reverse round_nearest_afz round_nearest_even rsqrt select
    shift_left shift_right_arithmetic shift_right_logical sign sine sort sqrt subtract tan tanh xor
"""
KEEP_SIZES = frozenset(f"stablehlo.{name}" for name in _ELEMENTWISE.split())
"""Operations of which a result has the sizes of every operand of its rank."""

# Those of which a result has the sizes of the operand of its number, or of the first one.
_OF_ONE_OPERAND = frozenset(
    (
        *("chlo.constant_like", "chlo.erf", "chlo.erfc", "chlo.erf_inv", "chlo.square", "chlo.lgamma", "chlo.digamma"),
        *("chlo.acos", "chlo.acosh", "chlo.asin", "chlo.asinh", "chlo.atan", "chlo.atanh", "chlo.cosh", "chlo.sinh"),
        *("chlo.tan", "chlo.conj", "chlo.is_inf", "chlo.is_neg_inf", "chlo.is_pos_inf", "chlo.bessel_i1e"),
        *("custom_call.Sharding", "custom_call.annotate_device_placement", "sdy.sharding_constraint"),
        "custom_call.xla.sdy.FuncResultSharding",
        *("stablehlo.batch_norm_inference", "stablehlo.cholesky", "stablehlo.dynamic_update_slice"),
        *("stablehlo.optimization_barrier", "stablehlo.scatter", "stablehlo.select_and_scatter"),
        *("stablehlo.uniform_quantize", "stablehlo.uniform_dequantize"),
    )
)

# Those whose last operand is the shape of the result.
_OF_A_SHAPE = frozenset(f"stablehlo.dynamic_{name}" for name in ("broadcast_in_dim", "iota", "reshape"))

_NEUTRAL = {"add": 0, "subtract": 0, "multiply": 1, "divide": 1}

# Vectors of more elements hold no shape.
_MOST_ELEMENTS = 32


class EqualSizes:
    """The sizes of the values of a program, to which operations are added in their order.

    Args:
      others: Those of another part of the program, so that what is computed alike has the same name in both.
    """

    def __init__(self, others: EqualSizes | None = None) -> None:
        self._sizes: dict[tuple[Value, int], Names] = {}
        self._computed: dict[Value, Names] = {}
        self._elements: dict[Value, Sizes] = {}
        self._most: dict[Hashable, int] = {}
        self._numbers: dict[Hashable, int] = {} if others is None else others._numbers
        self._of_int32: set[Hashable] = set() if others is None else others._of_int32

    def copy(self) -> EqualSizes:
        """The same, to which other operations may be added."""
        made = EqualSizes(self)
        made._sizes, made._computed = dict(self._sizes), dict(self._computed)
        made._elements, made._most = dict(self._elements), dict(self._most)
        return made

    def of(self, value: Value, axis: int) -> Names:
        """The names of a size.

        Args:
          value: An array.
          axis: The number of a dimension.
        """
        assert isinstance(value.type, TensorType), "a size is of an array"
        known = value.type.shape[axis]
        found = self._sizes.get((value, axis), () if known is not None else ((value, axis),))
        return found if known is None else united((known,), found)

    def shape(self, value: Value) -> Sizes:
        """The names of all sizes; none of what is no array."""
        return tuple(self.of(value, axis) for axis in range(_rank(value)))

    def elements(self, value: Value) -> Sizes | None:
        """The names of integers in a scalar or a vector, if it may be a shape."""
        if not _holds_sizes(value):
            return None
        if not _rank(value):
            return (self._names(value),)
        count = _shape(value)[0]
        assert count is not None, "a vector of sizes has a known one"
        return self._elements.get(value, tuple((("element", *self._names(value)[:1], i),) for i in range(count)))

    def set(self, value: Value, sizes: Sizes, elements: Sizes | None) -> None:
        """Gives a value, such as the argument of a function, names of sizes and elements that hold where it is."""
        for axis, names in enumerate(sizes):
            self._sizes[value, axis] = names
        if elements is not None and _holds_sizes(value):
            if _rank(value):
                self._elements[value] = elements
            else:
                self._computed[value] = elements[0]

    def add(self, operation: Operation) -> None:
        """Adds an operation whose operands come from those that have been added."""
        for number, result in enumerate(operation.results):
            if not isinstance(result.type, TensorType):
                continue
            names = self._computed[result] = self._what_computes(operation, number)
            if result.type.dtype == tf.int32:
                self._of_int32.update(names)
            found = self._listed(operation, result)
            if found is None:
                self._elements.pop(result, None)
            else:
                self._elements[result] = found
            for axis in range(result.type.rank):
                size = self._sizes[result, axis] = self._size(operation, number, axis)
                bound = result.type.bounds[axis] if result.type.bounds else None
                if bound is not None and result.type.shape[axis] is None:
                    self._most[size[0]] = min(bound, self._most.get(size[0], bound))

    # --- numbers ---

    def _names(self, value: Value) -> Names:
        if value not in self._computed and isinstance(value.type, TensorType) and value.type.dtype == tf.int32:
            self._of_int32.add(value)
        return self._computed.get(value, (value,))

    def _what_computes(self, operation: Operation, number: int) -> Names:
        """Names of the value of a result, which another has that is computed alike from equal operands."""
        name, result = operation.name.removeprefix("stablehlo."), operation.results[number]
        operands = [self._names(value) for value in operation.operands]
        if name == "get_dimension_size":
            return self.of(operation.operands[0], operation.attributes["dimension"])
        if _is_integer(result) and _is_integer(operation.operands[0] if operands else result):
            if name == "constant":
                return (int(operation.attributes["value"]),)
            if name == "reshape" or (name == "convert" and self._keeps_value(operation, operands[0])):
                return operands[0]
            if len(operands) == 2 and self._gives_first(name, *operands):
                return operands[0]
        elif _is_integer(result) and name == "reshape" and (found := self.elements(operation.operands[0])) is not None:
            return found[0]
        regions = [single_operation(region) for region in operation.regions]
        if operation.name not in _COMPUTE_ALIKE or None in regions:
            return (result,)
        type_ = result.type
        assert isinstance(type_, TensorType), "an array"
        first = [names[0] for names in operands]
        computed = (name, number, *first, *regions, *_frozen(operation.attributes), str(type_.dtype), type_.shape)
        return (("computed", self._numbers.setdefault(computed, len(self._numbers))),)

    def _keeps_value(self, conversion: Operation, names: Names) -> bool:
        """Whether an integer of these names is the same in another dtype of integers."""
        before, after = (value.type.dtype for value in (*conversion.operands, *conversion.results))  # type: ignore[union-attr]
        is_wider = before.size < after.size and (before.is_unsigned or not after.is_unsigned)
        if is_wider or before == after:
            return True
        return any(is_of_array(name) or (name in self._of_int32 and not after.is_unsigned) for name in names)

    def _gives_first(self, name: str, first: Names, second: Names) -> bool:
        """Whether an operation on two scalars gives the first."""
        number = known_of(second)
        if number is None:
            return False
        if name == "minimum":
            return self._is_within(first, number)
        if name == "maximum":
            return number <= 0 and any(each in self._most or is_of_array(each) for each in first)
        return number == _NEUTRAL.get(name)

    def _is_within(self, names: Names, limit: int) -> bool:
        return any(self._most.get(name, limit + 1) <= limit for name in names)

    def _listed(self, operation: Operation, result: Value) -> Sizes | None:
        """The elements of a vector of integers."""
        if not _holds_sizes(result) or not _rank(result):
            return None
        name, operands = operation.name.removeprefix("stablehlo."), operation.operands
        if name == "constant":
            return tuple((int(n),) for n in np.asarray(operation.attributes["value"]).ravel())
        lists = [self.elements(value) for value in operands]
        if any(found is None for found in lists):
            return None
        if name == "concatenate":
            return tuple(names for found in lists for names in found or ())
        if name == "reshape" or (
            name == "convert" and all(self._keeps_value(operation, names) for names in lists[0] or ())
        ):
            return lists[0]
        if name == "slice":
            start, limit, step = (
                int(operation.attributes[key][0]) for key in ("start_indices", "limit_indices", "strides")
            )
            return (lists[0] or ())[start:limit:step]
        return None

    # --- sizes ---

    def _size(self, operation: Operation, number: int, axis: int) -> Names:
        """The names of a size of a result."""
        result = operation.results[number]
        own: Names = ((result, axis),)
        if operation.name in KEEP_SIZES:
            rank = _rank(result)
            alike = [self.of(value, axis) for value in operation.operands if _rank(value) == rank]
            return united(*alike) or own
        if operation.name in _OF_ONE_OPERAND:
            operand = operation.operands[number if number < len(operation.operands) else 0]
            return self.of(operand, axis) if _rank(operand) == _rank(result) else own
        if operation.name in _OF_A_SHAPE:
            shape = self.elements(operation.operands[-1])
            reshaped = self._reshaped(operation, axis) if operation.name == "stablehlo.dynamic_reshape" else None
            return united(() if shape is None else shape[axis], reshaped or ()) or own
        rule = _RULES.get(operation.name)
        return own if rule is None else rule(self, operation, axis) or own

    def _set(self, operation: Operation, axis: int) -> Names:
        operand, size = operation.operands
        if axis != operation.attributes["dimension"]:
            return self.of(operand, axis)
        return self._names(size)

    def _sliced(self, operation: Operation, axis: int) -> Names:
        names = "start_indices", "limit_indices", "strides"
        start, limit, step = (int(operation.attributes[name][axis]) for name in names)
        whole = self.of(operation.operands[0], axis)
        is_whole = start == 0 and step == 1 and self._is_within(whole, limit)
        return whole if is_whole else (("slice", whole[0], start, limit, step),)

    def _sliced_by_operands(self, operation: Operation, axis: int) -> Names | None:
        """From 0, as many as the limit is."""
        start, limit, step = (self.elements(value) for value in operation.operands[1:])
        if start is None or limit is None or step is None:
            return None
        return limit[axis] if (known_of(start[axis]), known_of(step[axis])) == (0, 1) else None

    def _padded(self, operation: Operation, axis: int) -> Names:
        names = "edge_padding_low", "edge_padding_high", "interior_padding"
        added = tuple(int(operation.attributes[name][axis]) for name in names)
        whole = self.of(operation.operands[0], axis)
        return (("pad", whole[0], *added),) if any(added) else whole

    def _padded_by_operands(self, operation: Operation, axis: int) -> Names | None:
        amounts = [self.elements(value) for value in operation.operands[2:]]
        is_whole = all(amount is not None and known_of(amount[axis]) == 0 for amount in amounts)
        return self.of(operation.operands[0], axis) if is_whole else None

    def _reshaped(self, operation: Operation, axis: int) -> Names | None:
        """Of as many elements, where one size is open and the others give the same product."""
        before, after = (_shape(value) for value in (operation.operands[0], operation.results[0]))
        (open_before, others_before), (open_after, others_after) = map(_parted, (before, after))
        is_same = len(open_before) == len(open_after) == 1 and others_before == others_after > 0
        return self.of(operation.operands[0], open_before[0]) if is_same and open_after == [axis] else None

    def _broadcast(self, operation: Operation, axis: int) -> Names | None:
        places = list(operation.attributes["broadcast_dimensions"])
        return self.of(operation.operands[0], places.index(axis)) if axis in places else None

    def _transposed(self, operation: Operation, axis: int) -> Names:
        return self.of(operation.operands[0], int(operation.attributes["permutation"][axis]))

    def _reduced(self, operation: Operation, axis: int) -> Names:
        left_out = set(operation.attributes["dimensions"])
        kept = [i for i in range(_rank(operation.operands[0])) if i not in left_out]
        arrays = operation.operands[: len(operation.operands) // 2]
        return united(*(self.of(array, kept[axis]) for array in arrays))

    def _concatenated(self, operation: Operation, axis: int) -> Names:
        sizes = [self.of(value, axis) for value in operation.operands]
        if axis == operation.attributes["dimension"]:
            return (("concatenate", *(names[0] for names in sizes)),)
        return united(*sizes)

    def _gathered(self, operation: Operation, axis: int) -> Names | None:
        """Of a batch as the indices have it, or of a whole dimension."""
        numbers, (operand, indices) = operation.attributes["dimension_numbers"], operation.operands[:2]
        batch = [i for i in range(_rank(operation.results[0])) if i not in numbers["offset_dims"]]
        if axis in batch:
            of_indices = [i for i in range(_rank(indices)) if i != numbers["index_vector_dim"]]
            return self.of(indices, of_indices[batch.index(axis)])
        left_out = (*numbers["collapsed_slice_dims"], *numbers["operand_batching_dims"])
        kept = [i for i in range(_rank(operand)) if i not in left_out]
        place = kept[list(numbers["offset_dims"]).index(axis)]
        if operation.name == "stablehlo.dynamic_gather":
            lengths = self.elements(operation.operands[2])
            return None if lengths is None else lengths[place]
        whole = self.of(operand, place)
        return whole if self._is_within(whole, int(operation.attributes["slice_sizes"][place])) else None

    def _multiplied(self, operation: Operation, axis: int) -> Names:
        numbers, (left, right) = operation.attributes["dot_dimension_numbers"], operation.operands
        batch = list(zip(numbers["lhs_batching_dimensions"], numbers["rhs_batching_dimensions"], strict=True))
        if axis < len(batch):
            i, j = batch[axis]
            return united(self.of(left, i), self.of(right, j))
        free = [
            (value, i)
            for value, side in ((left, "lhs"), (right, "rhs"))
            for i in range(_rank(value))
            if i not in (*numbers[f"{side}_batching_dimensions"], *numbers[f"{side}_contracting_dimensions"])
        ]
        return self.of(*free[axis - len(batch)])

    def _convolved(self, operation: Operation, axis: int) -> Names | None:
        """The batch and the features."""
        numbers, (operand, kernel) = operation.attributes["dimension_numbers"], operation.operands[:2]
        if axis == numbers["output_batch_dimension"] and int(operation.attributes.get("batch_group_count", 1)) == 1:
            return self.of(operand, numbers["input_batch_dimension"])
        if axis == numbers["output_feature_dimension"]:
            return self.of(kernel, numbers["kernel_output_feature_dimension"])
        return None

    def _in_windows(self, operation: Operation, axis: int) -> Names | None:
        """Of windows of one element, side by side."""
        attributes = operation.attributes
        padding = attributes.get("padding")
        is_one = int(attributes["window_dimensions"][axis]) == 1 and (padding is None or not np.any(padding[axis]))
        for name in ("window_strides", "base_dilations", "window_dilations"):
            given = attributes.get(name)
            is_one = is_one and (given is None or len(given) == 0 or int(given[axis]) == 1)
        arrays = operation.operands[: len(operation.operands) // 2]
        return united(*(self.of(array, axis) for array in arrays)) if is_one else None

    def _solved(self, operation: Operation, axis: int) -> Names:
        return self.of(operation.operands[1], axis)

    def _transformed(self, operation: Operation, axis: int) -> Names | None:
        count = len(operation.attributes["fft_length"])
        is_batch = axis < _rank(operation.operands[0]) - count
        return self.of(operation.operands[0], axis) if is_batch else None


_RULES: Mapping[str, Callable[[EqualSizes, Operation, int], Names | None]] = {
    "stablehlo.broadcast_in_dim": EqualSizes._broadcast,
    "stablehlo.concatenate": EqualSizes._concatenated,
    "stablehlo.convolution": EqualSizes._convolved,
    "stablehlo.dot_general": EqualSizes._multiplied,
    "stablehlo.dynamic_conv": EqualSizes._convolved,
    "stablehlo.dynamic_gather": EqualSizes._gathered,
    "stablehlo.dynamic_pad": EqualSizes._padded_by_operands,
    "stablehlo.fft": EqualSizes._transformed,
    "stablehlo.gather": EqualSizes._gathered,
    "stablehlo.pad": EqualSizes._padded,
    "stablehlo.real_dynamic_slice": EqualSizes._sliced_by_operands,
    "stablehlo.reduce": EqualSizes._reduced,
    "stablehlo.reduce_window": EqualSizes._in_windows,
    "stablehlo.reshape": EqualSizes._reshaped,
    "stablehlo.set_dimension_size": EqualSizes._set,
    "stablehlo.slice": EqualSizes._sliced,
    "stablehlo.transpose": EqualSizes._transposed,
    "stablehlo.triangular_solve": EqualSizes._solved,
}

_COMPUTE_ALIKE = KEEP_SIZES | _RULES.keys() | _OF_A_SHAPE | {"stablehlo.constant", "stablehlo.iota"}


def united(*names: Names) -> Names:
    """All names, each once."""
    return tuple(dict.fromkeys(name for each in names for name in each))


def are_equal(sizes: Sequence[Names]) -> bool:
    """Whether sizes are known to be equal to one another, where all are there."""
    if not sizes:
        return True
    (first, *left), is_new = sizes, True
    while left and is_new:
        apart = [names for names in left if not set(names) & set(first)]
        is_new = len(apart) < len(left)
        first, left = united(first, *(names for names in left if names not in apart)), apart
    return not left


def known_of(names: Names) -> int | None:
    """The number that a size is known to be."""
    return next((name for name in names if isinstance(name, int)), None)


def is_of_array(name: Hashable) -> bool:
    """Whether it names the size of an array, which is not negative, and which int32 holds where it is a number."""
    return isinstance(name, tuple) and len(name) == 2 and isinstance(name[0], Value)


def _is_integer(value: Value) -> bool:
    """Whether it is one integer, of which the dtype has every size."""
    type_ = value.type
    return isinstance(type_, TensorType) and not type_.rank and type_.dtype.is_integer and type_.dtype.size >= 4


def _holds_sizes(value: Value) -> bool:
    """Whether it is an integer, or a vector of a few."""
    type_ = value.type
    if not isinstance(type_, TensorType) or type_.rank > 1 or not type_.dtype.is_integer or type_.dtype.size < 4:
        return False
    return not type_.rank or (type_.shape[0] is not None and type_.shape[0] <= _MOST_ELEMENTS)


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
