"""Reshapes that need not be: between others, of what has been reshaped so before, and after reductions.

Every third operation for a transformer would be one: JAX reshapes after a reduction to keep the reduced dimensions, and
a product of arrays is one of matrices, between reshapes. Here these are written down (`as_matrices`), so that reshapes
meet; of those that meet one is left, and the same one of a value is made once (`joined`); a reduction keeps its
dimensions itself (`kept_dimensions`).

All of them become `RESHAPE`, which has a shape with at most one size that is not known, so that a constant tells it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from jaxtf.convert._graph.broadcasts import EXPAND, same_as
from jaxtf.convert._graph.plan.agreed import agrees
from jaxtf.serialization.interop import Block, Operation, TensorType, Value, uses_in

__all__ = ["KEEPS_DIMENSIONS", "RESHAPE", "as_matrices", "joined", "kept_dimensions"]

RESHAPE = "jaxtf.reshape"
"""The name of the operation that gives the elements of its operand the shape of its result."""

KEEPS_DIMENSIONS = "keeps_dimensions"
"""The attribute of a reduction of one array whose result has the reduced dimensions with size 1."""

Shape = tuple[int | None, ...]
Sources = Mapping[Value, Operation]

_COMPARED = frozenset(("stablehlo.reshape", "stablehlo.dynamic_reshape"))
_RESHAPES = _COMPARED | {RESHAPE, EXPAND}


def _shape_of(value: Value) -> Shape:
    assert isinstance(value.type, TensorType), "what is reshaped is an array"
    return value.type.shape


def _typed(value: Value, shape: Shape) -> Value:
    """A new value of the dtype of another."""
    assert isinstance(value.type, TensorType), "what is reshaped is an array"
    return Value(replace(value.type, shape=shape))


def _fits_a_constant(shape: Shape) -> bool:
    """Whether the known sizes and the number of elements determine the other sizes: -1 in TensorFlow."""
    return None not in shape or (shape.count(None) == 1 and 0 not in shape)


# --- products ---


def as_matrices(block: Block, sources: Sources, only_agreed: bool = False) -> Block:
    """The block with products of matrices between reshapes for those products of arrays that amount to that.

    Args:
      block: The block.
      sources: The operations that values come from.
      only_agreed: Whether those whose sizes are compared when they are emitted stay.
    """
    operations = (made for operation in block.operations for made in _as_matrices(operation, only_agreed))
    return replace(block, operations=tuple(operations))


def _as_matrices(operation: Operation, only_agreed: bool) -> Sequence[Operation]:
    if operation.name != "stablehlo.dot_general":
        return (operation,)
    numbers = operation.attributes["dot_dimension_numbers"]
    shapes = [_shape_of(value) for value in (*operation.operands, *operation.results)]
    if only_agreed and not agrees(operation):
        return (operation,)
    if numbers["lhs_batching_dimensions"] or all(len(shape) == 2 for shape in shapes):
        return (operation,)
    left = _as_matrix(shapes[0], numbers["lhs_contracting_dimensions"], is_left=True)
    right = _as_matrix(shapes[1], numbers["rhs_contracting_dimensions"], is_left=False)
    if left is None or right is None or not all(map(_fits_a_constant, (left[0], right[0], shapes[2]))):
        return (operation,)
    made = [
        replace(operation, name=RESHAPE, operands=(value,), results=(_typed(value, shape),), attributes={})
        for value, (shape, _) in zip(operation.operands, (left, right), strict=True)
    ]
    contracting = {"lhs_contracting_dimensions": (left[1],), "rhs_contracting_dimensions": (right[1],)}
    product = replace(
        operation,
        operands=tuple(matrix.results[0] for matrix in made),
        results=(_typed(operation.results[0], (left[0][1 - left[1]], right[0][1 - right[1]])),),
        attributes={**operation.attributes, "dot_dimension_numbers": {**numbers, **contracting}},
    )
    return *made, product, replace(operation, name=RESHAPE, operands=product.results, attributes={})


def _as_matrix(shape: Shape, contracting: Sequence[int], *, is_left: bool) -> tuple[Shape, int] | None:
    """The shape of an array as a matrix, and its contracted dimension; None where that takes a transposition."""
    count, free = len(contracting), len(shape) - len(contracting)
    if tuple(contracting) == tuple(range(free, len(shape))) and (is_left or free):
        return (_product(shape[:free]), _product(shape[free:])), 1
    if tuple(contracting) == tuple(range(count)):
        return (_product(shape[:count]), _product(shape[count:])), 0
    return None


def _product(sizes: Shape) -> int | None:
    known = [size for size in sizes if size is not None]
    return math.prod(known) if len(known) == len(sizes) else None


# --- chains ---


def joined(block: Block, sources: Sources, only_agreed: bool = False) -> Block:
    """The block with one reshape for a chain of them, and one for all of the same value to the same shape.

    Args:
      block: The block.
      sources: The operations that values come from.
      only_agreed: Whether those stay whose numbers of elements are compared when they are emitted.
    """
    known = dict(sources)
    made: dict[tuple[Value, Shape], Value] = {}

    def alone(operation: Operation) -> Operation:
        if not _is_reshape(operation, only_agreed):
            return operation
        found = known[operation.results[0]] = _joined(operation, known, made, only_agreed)
        return found

    return replace(block, operations=tuple(map(alone, block.operations)))


def _joined(
    operation: Operation, sources: Sources, made: dict[tuple[Value, Shape], Value], only_agreed: bool
) -> Operation:
    """The operation with the first value of its chain as its operand, or as another name for what is there already."""
    value, result = operation.operands[0], operation.results[0]
    shape = _shape_of(result)
    fits = _fits_a_constant(shape)
    while fits and (source := sources.get(value)) is not None and _is_reshape(source, only_agreed):
        value = source.operands[0]
    if _shape_of(value) == shape and fits:
        return same_as(value, operation)
    first = made.setdefault((value, shape), result) if fits else result
    if first is not result:
        return same_as(first, operation)
    return replace(operation, name=RESHAPE, operands=(value,), attributes={}) if fits else operation


def _is_reshape(operation: Operation, only_agreed: bool) -> bool:
    """Whether all that an operation does is to give its first operand another shape."""
    if operation.name != "stablehlo.broadcast_in_dim":
        is_left = only_agreed and operation.name in _COMPARED and not agrees(operation)
        return operation.name in _RESHAPES and not is_left
    before, after = (_product(_shape_of(value)) for value in (*operation.operands, *operation.results))
    dimensions = list(operation.attributes["broadcast_dimensions"])
    return before is not None and before == after and dimensions == sorted(dimensions)


# --- reductions ---


def kept_dimensions(block: Block, sources: Sources) -> Block:
    """The block with reductions that keep their dimensions, where all that is done with one is to put those back."""
    uses = uses_in(block)
    expansions = {
        operation.operands[0]: operation
        for operation in block.operations
        if operation.name in (RESHAPE, EXPAND) and uses[operation.results[0]]
    }
    kept: dict[Value, Value] = {}

    def keeping(operation: Operation) -> Operation:
        if operation.name in (RESHAPE, EXPAND) and operation.operands[0] in kept:
            return same_as(kept[operation.operands[0]], operation)
        if operation.name != "stablehlo.reduce" or len(operation.results) > 1:
            return operation
        (result,), shape = operation.results, _kept(operation)
        if uses[result] != 1 or result not in expansions or _shape_of(expansions[result].results[0]) != shape:
            return operation
        kept[result] = _typed(result, shape)
        attributes = {**operation.attributes, KEEPS_DIMENSIONS: True}
        return replace(operation, results=(kept[result],), attributes=attributes)

    return replace(block, operations=tuple(map(keeping, block.operations)))


def _kept(reduction: Operation) -> Shape:
    """The shape of a reduced array with the reduced dimensions."""
    axes = reduction.attributes["dimensions"]
    return tuple(1 if axis in axes else size for axis, size in enumerate(_shape_of(reduction.operands[0])))
