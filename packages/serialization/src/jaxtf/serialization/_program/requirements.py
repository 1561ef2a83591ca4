"""What StableHLO requires of the sizes of an operation's operands.

MLIR's verifier compares sizes that types know. Those that are open are known when the module is called, and then
whoever evaluates it has to: operations of JAX and TensorFlow broadcast a size of 1, some cut, pad or group what does
not fit, and StableHLO's do none of that. What such operations refuse themselves is here all the same.

Source: StableHLO specification, the constraints of each operation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from jaxtf.serialization._program.program import Operation, TensorType

__all__ = ["Requirement", "has_requirements", "requirements"]

Size: TypeAlias = Any
Shapes: TypeAlias = Sequence[Sequence[Size]]
Elements: TypeAlias = Callable[[int], Sequence[Size]]


class Requirement(NamedTuple):
    """That one size is another one, or at most that."""

    size: Size
    limit: Size
    is_most: bool = False

    def is_met(self) -> bool:
        """Of integers."""
        return bool(self.size <= self.limit if self.is_most else self.size == self.limit)

    def refusal(self, operation: Operation) -> str:
        """What is wrong where it is not met."""
        relation = "at most " if self.is_most else ""
        return (
            f"{operation.name} needs operands of sizes that agree: found {self.size}, required {relation}{self.limit}\n"
            "  remedy: call the module, which leaves sizes open, with arguments whose sizes fit each other"
        )


Found: TypeAlias = Iterator[Requirement]
Rule: TypeAlias = Callable[[Operation, Shapes, Elements], Found]


def requirements(operation: Operation, shapes: Shapes, elements: Elements) -> Found:
    """What is required, of sizes that add, multiply and divide: integers, dimensions, scalar tensors.

    Args:
      operation: As parsed.
      shapes: Of its operands.
      elements: From the number of an operand that holds sizes to those; None in the place of one that is not known.
    """
    rule = _RULES.get(operation.name)
    found = () if rule is None else rule(operation, shapes, elements)
    yield from (required for required in found if required.size is not None and required.limit is not None)


def has_requirements(name: str) -> bool:
    """Whether sizes of the operands of operations of that name have to agree."""
    return name in _RULES


def _same(shape: Sequence[Size], other: Sequence[Size]) -> Found:
    yield from (Requirement(*pair) for pair in zip(shape, other, strict=True))


def _at_most(shape: Sequence[Size], other: Sequence[Size]) -> Found:
    yield from (Requirement(*pair, is_most=True) for pair in zip(shape, other, strict=True))


def _integers(values: Any) -> list[int]:
    return [int(value) for value in values]


# --- arrays of one shape ---


def _alike(operation: Operation, shapes: Shapes, elements: Elements) -> Found:
    """All arrays of the same shape; there may be scalars among them."""
    first, *others = [shape for shape in shapes if len(shape)] or [()]
    for other in others:
        yield from _same(first, other) if other is not first else ()


def _reduced_alike(operation: Operation, shapes: Shapes, elements: Elements) -> Found:
    """All arrays that are reduced together: the first half of the operands."""
    yield from _alike(operation, shapes[: len(shapes) // 2], elements)


def _reduced_in_windows(operation: Operation, shapes: Shapes, elements: Elements) -> Found:
    yield from _alike(operation, shapes[: (len(shapes) - 5) // 2], elements)


def _searched(operation: Operation, shapes: Shapes, elements: Elements) -> Found:
    yield from _alike(operation, shapes[:2], elements)


def _concatenated(operation: Operation, shapes: Shapes, elements: Elements) -> Found:
    axis = int(operation.attributes["dimension"])
    first, *others = ([*shape[:axis], *shape[axis + 1 :]] for shape in shapes)
    for other in others:
        yield from _same(first, other)


def _batch_norm(operation: Operation, shapes: Shapes, elements: Elements) -> Found:
    first, *others = shapes
    features = [first[int(operation.attributes["feature_index"])]]
    for number, shape in enumerate(others, 1):
        is_gradient = number == 4 and operation.name == "stablehlo.batch_norm_grad"
        yield from _same(first if is_gradient else features, shape)


# --- products ---


def _dot_general(operation: Operation, shapes: Shapes, elements: Elements) -> Found:
    numbers, (left, right) = operation.attributes["dot_dimension_numbers"], shapes
    for kind in ("batching", "contracting"):
        pairs = zip(numbers[f"lhs_{kind}_dimensions"], numbers[f"rhs_{kind}_dimensions"], strict=True)
        yield from (Requirement(left[i], right[j]) for i, j in pairs)


def _dot(operation: Operation, shapes: Shapes, elements: Elements) -> Found:
    left, right = shapes
    yield Requirement(left[-1], right[0])


def _convolution(operation: Operation, shapes: Shapes, elements: Elements) -> Found:
    numbers, (operand, kernel) = operation.attributes["dimension_numbers"], shapes[:2]
    groups, batches = (int(operation.attributes.get(name, 1)) for name in ("feature_group_count", "batch_group_count"))
    features = kernel[numbers["kernel_input_feature_dimension"]]
    yield Requirement(features * groups, operand[numbers["input_feature_dimension"]])
    if groups * batches > 1:
        yield Requirement(kernel[numbers["kernel_output_feature_dimension"]] % (groups * batches), 0)
        yield Requirement(operand[numbers["input_batch_dimension"]] % batches, 0)


def _triangular_solve(operation: Operation, shapes: Shapes, elements: Elements) -> Found:
    matrix, right = shapes
    yield from _same(matrix[:-2], right[:-2])
    yield Requirement(matrix[-2], matrix[-1])
    yield Requirement(right[-2 if operation.attributes["left_side"] else -1], matrix[-1])


def _fft(operation: Operation, shapes: Shapes, elements: Elements) -> Found:
    lengths = _integers(operation.attributes["fft_length"])
    if operation.attributes["fft_type"] == "IRFFT":
        lengths[-1] = lengths[-1] // 2 + 1
    yield from _same(shapes[0][-len(lengths) :], lengths)


# --- parts of arrays ---


def _slice(operation: Operation, shapes: Shapes, elements: Elements) -> Found:
    yield from _at_most(_integers(operation.attributes["limit_indices"]), shapes[0])


def _dynamic_slice(operation: Operation, shapes: Shapes, elements: Elements) -> Found:
    yield from _at_most(_integers(operation.attributes["slice_sizes"]), shapes[0])


def _dynamic_update_slice(operation: Operation, shapes: Shapes, elements: Elements) -> Found:
    yield from _at_most(shapes[1], shapes[0])


def _real_dynamic_slice(operation: Operation, shapes: Shapes, elements: Elements) -> Found:
    start, limit = elements(1), elements(2)
    yield from _at_most([0] * len(start), start)
    yield from _at_most(start, limit)
    yield from _at_most(limit, shapes[0])


def _pad(operation: Operation, shapes: Shapes, elements: Elements) -> Found:
    """What is cut, by negative padding, is there."""
    names = "edge_padding_low", "edge_padding_high", "interior_padding"
    is_static = operation.name == "stablehlo.pad"
    amounts = [
        _integers(operation.attributes[name]) if is_static else elements(number) for number, name in enumerate(names, 2)
    ]
    for size, low, high, between in zip(shapes[0], *amounts, strict=True):
        if all(n is not None for n in (low, high, between)):
            yield Requirement(0, low + high + size * (1 + between), is_most=True)
            yield Requirement(0, size * (low + high + size + (size - 1) * between), is_most=True)


def _index_select(operation: Operation, shapes: Shapes, elements: Elements) -> Found:
    count = int(operation.attributes["batch_dims"])
    yield from _same(shapes[0][:count], shapes[1][:count])


def _gather(operation: Operation, shapes: Shapes, elements: Elements) -> Found:
    numbers, shape, indices = operation.attributes["dimension_numbers"], shapes[0], shapes[1]
    pairs = zip(numbers["operand_batching_dims"], numbers["start_indices_batching_dims"], strict=True)
    yield from (Requirement(shape[i], indices[j]) for i, j in pairs)
    yield from _components(numbers["start_index_map"], indices, numbers["index_vector_dim"])
    is_static = operation.name == "stablehlo.gather"
    yield from _at_most(_integers(operation.attributes["slice_sizes"]) if is_static else elements(2), shape)


def _scatter(operation: Operation, shapes: Shapes, elements: Elements) -> Found:
    count = len(shapes) // 2
    yield from _alike(operation, shapes[:count], elements)
    yield from _alike(operation, shapes[count + 1 :], elements)
    numbers = operation.attributes["scatter_dimension_numbers"]
    shape, indices, update = shapes[0], shapes[count], shapes[count + 1]
    batching, vector = numbers["input_batching_dims"], numbers["index_vector_dim"]
    pairs = zip(batching, numbers["scatter_indices_batching_dims"], strict=True)
    yield from (Requirement(shape[i], indices[j]) for i, j in pairs)
    yield from _components(numbers["scatter_dims_to_operand_dims"], indices, vector)
    windows = numbers["update_window_dims"]
    yield from _same(
        [size for i, size in enumerate(update) if i not in windows],
        [size for i, size in enumerate(indices) if i != vector],
    )
    kept = [size for i, size in enumerate(shape) if i not in (*numbers["inserted_window_dims"], *batching)]
    yield from _at_most([update[i] for i in windows], kept)


def _components(indexed: Sequence[int], indices: Sequence[Size], vector: int) -> Found:
    """As many components in an index as there are indexed dimensions."""
    if vector < len(indices):
        yield Requirement(indices[vector], len(indexed))


def _select_and_scatter(operation: Operation, shapes: Shapes, elements: Elements) -> Found:
    shape, source, attributes = shapes[0], shapes[1], operation.attributes
    ones, padding = [1] * len(shape), attributes.get("padding")
    lengths, strides = (_integers(attributes.get(name) or ones) for name in ("window_dimensions", "window_strides"))
    edges = [0] * len(shape) if padding is None else [int(low) + int(high) for low, high in padding]
    for size, length, stride, edge, count in zip(shape, lengths, strides, edges, source, strict=True):
        # So many windows, and not one more, lie inside; where there is none, nothing has to.
        yield Requirement(count * (stride * (count - 1) + length), count * (size + edge), is_most=True)
        yield Requirement(size + edge + 1, stride * count + length, is_most=True)


# --- sizes that are operands ---


def _shaped(operation: Operation, shapes: Shapes, elements: Elements) -> Found:
    """Of a shape that is the last operand, the sizes that the type of the result knows."""
    type_ = operation.results[0].type
    assert isinstance(type_, TensorType), "what has a shape is an array"
    yield from _same(elements(len(shapes) - 1), type_.shape)


def _broadcast(operation: Operation, shapes: Shapes, elements: Elements) -> Found:
    """Each size is 1, or that of the result."""
    yield from _shaped(operation, shapes, elements)
    made = elements(1)
    for size, axis in zip(shapes[0], operation.attributes["broadcast_dimensions"], strict=True):
        if made[axis] is not None:
            yield Requirement((size - 1) * (size - made[axis]), 0)


def _dynamic_reshape(operation: Operation, shapes: Shapes, elements: Elements) -> Found:
    yield from _shaped(operation, shapes, elements)
    made = elements(1)
    if all(size is not None for size in made):
        yield Requirement(math.prod(made), math.prod(shapes[0]))


def _reshape(operation: Operation, shapes: Shapes, elements: Elements) -> Found:
    type_ = operation.results[0].type
    assert isinstance(type_, TensorType), "what is reshaped is an array"
    if type_.is_static:
        yield Requirement(math.prod(size for size in type_.shape if size is not None), math.prod(shapes[0]))


def _set_dimension_size(operation: Operation, shapes: Shapes, elements: Elements) -> Found:
    (size,) = elements(1)
    yield Requirement(size, shapes[0][operation.attributes["dimension"]], is_most=True)


_OF_ARRAYS_ALIKE = """
    add and atan2 clamp compare complex divide map maximum minimum multiply or power remainder select shift_left
    shift_right_arithmetic shift_right_logical sort subtract xor
"""

_RULES: Mapping[str, Rule] = {
    **dict.fromkeys((f"stablehlo.{name}" for name in _OF_ARRAYS_ALIKE.split()), _alike),
    **dict.fromkeys(("chlo.mulhi", "chlo.next_after", "chlo.polygamma", "chlo.zeta"), _alike),
    "custom_call.ApproxTopK": _searched,
    "custom_call.stablehlo.dynamic_reduce_window": _reduced_in_windows,
    "stablehlo.batch_norm_grad": _batch_norm,
    "stablehlo.batch_norm_inference": _batch_norm,
    "stablehlo.batch_norm_training": _batch_norm,
    "stablehlo.concatenate": _concatenated,
    "stablehlo.convolution": _convolution,
    "stablehlo.dot": _dot,
    "stablehlo.dot_general": _dot_general,
    "stablehlo.dynamic_broadcast_in_dim": _broadcast,
    "stablehlo.dynamic_conv": _convolution,
    "stablehlo.dynamic_gather": _gather,
    "stablehlo.dynamic_iota": _shaped,
    "stablehlo.dynamic_pad": _pad,
    "stablehlo.dynamic_reshape": _dynamic_reshape,
    "stablehlo.dynamic_slice": _dynamic_slice,
    "stablehlo.dynamic_update_slice": _dynamic_update_slice,
    "stablehlo.fft": _fft,
    "stablehlo.gather": _gather,
    "stablehlo.pad": _pad,
    "stablehlo.real_dynamic_slice": _real_dynamic_slice,
    "stablehlo.reduce": _reduced_alike,
    "stablehlo.reduce_window": _reduced_alike,
    "stablehlo.reshape": _reshape,
    "stablehlo.scatter": _scatter,
    "stablehlo.select_and_scatter": _select_and_scatter,
    "stablehlo.set_dimension_size": _set_dimension_size,
    "stablehlo.slice": _slice,
    "stablehlo.torch_index_select": _index_select,
    "stablehlo.triangular_solve": _triangular_solve,
}
