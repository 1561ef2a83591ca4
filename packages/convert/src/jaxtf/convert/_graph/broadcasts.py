"""Broadcasts that an elementwise operation does by itself.

StableHLO writes every broadcast; TensorFlow's elementwise operations broadcast as NumPy does, and consumers of the
graph (TFLite) fuse them only so. Where another operand has all the sizes of the result, one that is broadcast is given
as it was before, with dimensions of size 1. Constants of equal elements are given as scalars.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product

import numpy as np

from jaxtf.convert._graph.accumulated import is_added_in_steps
from jaxtf.convert._graph.plan.agreed import agrees
from jaxtf.serialization.interop import Block, Operation, TensorType, Value

__all__ = [
    "EXPAND",
    "MOST_RUNS",
    "before_broadcasts",
    "is_left_a_broadcast",
    "leave_to_consumers",
    "most_runs",
    "same_as",
    "uniform_value",
]

EXPAND = "jaxtf.expand"
"""The name of the operation that puts dimensions of size 1 before those of its operand, or between them: `axes`.

Without any it gives its operand, and nothing is emitted."""

MOST_RUNS = 5
"""Of dimensions that TensorFlow (2.21), not compiled, broadcasts: as many as its kernels have loops.

Neighbours are one run where the same operands have size 1 in them; those in which the result has size 1 do not count.
"""

_BROADCASTS = frozenset(("stablehlo.broadcast_in_dim", "stablehlo.dynamic_broadcast_in_dim"))

# Which operands may be smaller than the result, of operations whose translation broadcasts: for any dtype here, for
# floating point below.
_MAY_BE_SMALLER = {
    **dict.fromkeys(
        (
            f"stablehlo.{name}"
            for name in ("add", "subtract", "multiply", "maximum", "minimum", "compare", "and", "or", "xor")
        ),
        (0, 1),
    ),
    "stablehlo.select": (0, 1, 2),
    "stablehlo.clamp": (0, 2),
}
_MAY_BE_SMALLER_IF_FLOATING = {f"stablehlo.{name}": (0, 1) for name in ("divide", "power")}

# Of more dimensions than these, TFLite's kernels (TensorFlow 2.21) end the process instead of broadcasting.
_MOST_BY_TFLITE = {"stablehlo.and": 4, "stablehlo.or": 4, "stablehlo.divide": 5}


def same_as(value: Value, operation: Operation) -> Operation:
    """The operation as one that gives another value, which has the same shape; nothing is emitted for it."""
    return replace(operation, name=EXPAND, operands=(value,), attributes={"axes": ()})


def leave_to_consumers(
    block: Block, sources: Mapping[Value, Operation], only_agreed: bool = False, is_differentiated: bool = False
) -> Block:
    """The block with elementwise operations that take operands from before their broadcasts.

    Args:
      block: The block.
      sources: The operations that values come from.
      only_agreed: Whether operations whose sizes are compared when they are emitted, and those after a broadcast of
        such, keep the operands that they have.
      is_differentiated: Whether TensorFlow differentiates the operations: broadcasts whose gradient it would add in
        float16 then stay as they are.
    """
    operations: list[Operation] = []
    seen = {value: made for value, made in sources.items() if agrees(made)} if only_agreed else sources
    for operation in block.operations:
        if only_agreed and not agrees(operation):
            operations.append(operation)
            continue
        needed, changed = _changed(operation, seen, is_differentiated)
        operations += [*needed, changed]
    return replace(block, operations=tuple(operations))


def is_left_a_broadcast(operation: Operation) -> bool:
    """Whether an operation may take an operand from before its broadcast though sizes that are not known are compared.

    Those of its operands are known, and MLIR has compared them.
    """
    is_one = operation.name in _MAY_BE_SMALLER or operation.name in _MAY_BE_SMALLER_IF_FLOATING
    return is_one and all(map(_is_static, operation.operands))


def _changed(
    operation: Operation, sources: Mapping[Value, Operation], is_differentiated: bool
) -> tuple[list[Operation], Operation]:
    """The operation with smaller operands, and the operations that make those."""
    candidates = _MAY_BE_SMALLER.get(operation.name, ())
    if not candidates and operation.name in _MAY_BE_SMALLER_IF_FLOATING:
        type_ = operation.operands[0].type
        candidates = _MAY_BE_SMALLER_IF_FLOATING[operation.name] if _is_floating(type_) else ()
    if is_differentiated:
        candidates = tuple(index for index in candidates if not _is_kept(operation.operands[index], sources))
    most = _MOST_BY_TFLITE.get(operation.name)
    if most is not None and isinstance(type_ := operation.results[0].type, TensorType) and type_.rank > most:
        # The converter multiplies by a constant divisor, which may stay a scalar.
        candidates = tuple(
            index
            for index in candidates
            if index == 1 and uniform_value(operation.operands[index], sources) is not None
        )
    smaller = {index: _smaller(operation.operands[index], sources) for index in candidates}
    made = {index: found for index, found in smaller.items() if found is not None}
    if not made:
        return [], operation
    result = operation.results[0]
    sizes = _types(operation, made)
    if not any(_is_whole(type_, result.type, i in made) for i, type_ in enumerate(sizes)):
        made.pop(min(made) if operation.name == "stablehlo.power" else max(made))
    if isinstance(result.type, TensorType) and result.type.rank > MOST_RUNS:
        made = _within_kernels(operation, made, result.type)
    if operation.name in ("stablehlo.add", "stablehlo.subtract"):
        made = _without_fused_products(operation, made)
    operands = tuple(made[i][-1].results[0] if i in made else v for i, v in enumerate(operation.operands))
    return [new for found in made.values() for new in found], replace(operation, operands=operands)


def _types(operation: Operation, made: Mapping[int, Sequence[Operation]]) -> list[object]:
    """The types of the operands, some of them replaced."""
    return [(made[i][-1].results[0] if i in made else value).type for i, value in enumerate(operation.operands)]


def _without_fused_products(operation: Operation, made: dict[int, list[Operation]]) -> dict[int, list[Operation]]:
    """Those smaller operands of a sum that TensorFlow adds correctly; a matrix stays broadcast if the bias is larger.

    Grappler (2.21) fuses `matmul(a, b) + c` where all sizes of `c` but the last are 1, however many there are, and the
    result then has the shape of the product. A product may be one of a function around; a difference from what is
    negated is a sum by then.
    """
    types = _types(operation, made)
    assert all(isinstance(type_, TensorType) for type_ in types), "operands of a sum are arrays"
    shapes = [type_.shape for type_ in types if isinstance(type_, TensorType)]
    wrong = [
        i
        for i, other in ((0, 1), (1, 0))
        if len(shapes[i]) == 2 < len(shapes[other]) and all(size in (1, None) for size in shapes[other][:-1])
    ]
    return {index: found for index, found in made.items() if index not in wrong}


def _within_kernels(
    operation: Operation, made: dict[int, list[Operation]], result: TensorType
) -> dict[int, list[Operation]]:
    """Those smaller operands that TensorFlow has kernels for, of two; a choice is of any.

    The limits of a clamp are operands one after the other.
    """
    if operation.name == "stablehlo.select":
        return made
    shapes = {i: new[-1].results[0].type.shape for i, new in made.items()}  # type: ignore[union-attr]
    if operation.name != "stablehlo.clamp" and most_runs(list(shapes.values()), result.shape) <= MOST_RUNS:
        return made
    kept = {i for i, shape in shapes.items() if most_runs([shape], result.shape) <= MOST_RUNS}
    if operation.name != "stablehlo.clamp" and most_runs([shapes[i] for i in kept], result.shape) > MOST_RUNS:
        kept.remove(max(kept))
    return {i: new for i, new in made.items() if i in kept}


def most_runs(shapes: Sequence[Sequence[int | None]], whole: Sequence[int | None]) -> int:
    """The most runs of dimensions that a broadcast of shapes to a whole one can have, where some sizes are not known.

    >>> most_runs([(2, 1, 1, 3)], (2, 5, 5, 3)), most_runs([(2, 1), (5,)], (2, 5)), most_runs([(None, None)], (2, 2))
    (3, 2, 2)
    """
    best: dict[tuple[bool, ...], int] = {}
    padded = [(*[1] * (len(whole) - len(shape)), *shape) for shape in shapes]
    for size, *sizes in zip(whole, *padded, strict=True):
        if size != 1:
            choices = product(*((False, True) if n is None else (n == 1,) for n in sizes))
            best = {ones: max((count + (ones != last) for last, count in best.items()), default=1) for ones in choices}
    return max(best.values(), default=0)


def _is_whole(type_: object, result: object, is_made: bool) -> bool:
    """Whether an operand has the sizes of the result, which one has to have."""
    assert isinstance(type_, TensorType), "operands and results of elementwise operations are arrays"
    assert isinstance(result, TensorType), "operands and results of elementwise operations are arrays"
    # A size that is not known may be 1 before a broadcast and more after it.
    return type_.shape == result.shape and result.is_static if is_made else type_.rank == result.rank


def _is_static(value: Value) -> bool:
    return isinstance(value.type, TensorType) and value.type.is_static


def _is_floating(type_: object) -> bool:
    return isinstance(type_, TensorType) and type_.dtype.is_floating


def _is_kept(value: Value, sources: Mapping[Value, Operation]) -> bool:
    """Whether it is a broadcast of float16 whose gradient TensorFlow adds in float16, step by step."""
    type_ = value.type
    if not isinstance(type_, TensorType) or type_.dtype.name != "float16":
        return False
    source, dimensions = before_broadcasts(value, sources)
    if source is value or ((operation := sources.get(source)) is not None and operation.name == "stablehlo.constant"):
        return False
    assert isinstance(source.type, TensorType)
    repeated = {
        axis for size, axis in zip(source.type.shape, dimensions, strict=True) if size == 1 != type_.shape[axis]
    }
    return is_added_in_steps(type_.shape, sorted(repeated | set(range(type_.rank)) - set(dimensions)))


def _smaller(value: Value, sources: Mapping[Value, Operation]) -> list[Operation] | None:
    """Operations of which the last gives what a value is broadcast from; None if it is not broadcast."""
    type_ = value.type
    if not isinstance(type_, TensorType) or not type_.rank:
        return None
    uniform = uniform_value(value, sources)
    if uniform is not None:
        scalar = Value(TensorType(type_.dtype, ()))
        return [Operation("stablehlo.constant", (), (scalar,), {"value": uniform})]
    source, dimensions = before_broadcasts(value, sources)
    if source is value or list(dimensions) != sorted(set(dimensions)):
        return None
    assert isinstance(source.type, TensorType)
    first = dimensions[0] if dimensions else type_.rank
    axes = tuple(axis for axis in range(first, type_.rank) if axis not in dimensions)
    shape = [1] * (type_.rank - first)
    sizes: list[int | None] = list(shape)
    for size, axis in zip(source.type.shape, dimensions, strict=True):
        sizes[axis - first] = size
    expanded = Value(TensorType(type_.dtype, tuple(sizes)))
    return [Operation(EXPAND, (source,), (expanded,), {"axes": tuple(axis - first for axis in axes)})]


def before_broadcasts(value: Value, sources: Mapping[Value, Operation]) -> tuple[Value, tuple[int, ...]]:
    """What a value is broadcast from, through any number of broadcasts, and to which of its dimensions."""
    assert isinstance(value.type, TensorType)
    dimensions = tuple(range(value.type.rank))
    while (operation := sources.get(value)) is not None and operation.name in _BROADCASTS:
        dimensions = tuple(dimensions[axis] for axis in operation.attributes["broadcast_dimensions"])
        value = operation.operands[0]
    return value, dimensions


def uniform_value(value: Value, sources: Mapping[Value, Operation]) -> np.ndarray | None:
    """The one element of a constant, also of one that is broadcast; None for anything else."""
    source, _ = before_broadcasts(value, sources) if isinstance(value.type, TensorType) else (value, ())
    operation = sources.get(source)
    if operation is None or operation.name != "stablehlo.constant":
        return None
    array: np.ndarray = operation.attributes["value"]
    if array.size == 1 or (array.size > 1 and not any(array.strides)):
        return np.asarray(array.flat[0], array.dtype)
    return None
