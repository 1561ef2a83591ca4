"""Transposes that a product of arrays does by itself, and transposes of transposes.

JAX writes `x @ w.T` as a transpose and a product, and a gradient for `w` as a product and a transpose. TensorFlow's
products read either matrix by rows or by columns, so that a transpose of an operand is another number in
`dot_dimension_numbers`, and one of the result is the other order of the operands.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from jaxtf.serialization.interop import Block, Operation, TensorType, Value, uses_in

__all__ = ["leave_to_products"]

Sources = Mapping[Value, Operation]

_PRODUCT = "stablehlo.dot_general"
_TRANSPOSE = "stablehlo.transpose"


def leave_to_products(block: Block, sources: Sources) -> Block:
    """The block with products that take operands, and give results, without a transpose; and with one for several."""
    known = dict(sources)
    products: dict[Value, Operation] = {}
    uses = uses_in(block)

    def alone(operation: Operation) -> Operation:
        if operation.name == _TRANSPOSE:
            value = operation.operands[0]
            swapped = _swapped(products[value], operation) if value in products and uses[value] == 1 else None
            found = swapped or _joined(operation, known)
        elif operation.name == _PRODUCT:
            found = _of_what_is_transposed(operation, known)
        else:
            return operation
        known[operation.results[0]] = found
        if found.name == _PRODUCT:
            products[operation.results[0]] = found
        return found

    return replace(block, operations=tuple(map(alone, block.operations)))


def _joined(transpose: Operation, sources: Sources) -> Operation:
    """One transpose for a chain of them."""
    value, permutation = transpose.operands[0], tuple(transpose.attributes["permutation"])
    while (source := sources.get(value)) is not None and source.name == _TRANSPOSE:
        value, inner = source.operands[0], source.attributes["permutation"]
        permutation = tuple(inner[axis] for axis in permutation)
    if value is transpose.operands[0]:
        return transpose
    return replace(transpose, operands=(value,), attributes={**transpose.attributes, "permutation": permutation})


# --- products ---


def _of_what_is_transposed(product: Operation, sources: Sources) -> Operation:
    """The product of what its operands were before they were transposed, where it reads those as easily."""
    numbers: dict[str, Any] = dict(product.attributes["dot_dimension_numbers"])
    operands = list(product.operands)
    for index, side in enumerate(("lhs", "rhs")):
        names = f"{side}_batching_dimensions", f"{side}_contracting_dimensions"
        batching, contracting = (tuple(numbers[name]) for name in names)
        free = _free(_rank(operands[index]), batching, contracting)
        while (source := sources.get(operands[index])) is not None and source.name == _TRANSPOSE:
            permutation = source.attributes["permutation"]
            before = [tuple(permutation[axis] for axis in axes) for axes in (batching, free, contracting)]
            # The free dimensions of the result are in the order of the operand.
            is_in_order = list(before[1]) == sorted(before[1])
            if not is_in_order or (_is_matrices(batching, free, contracting) and not _is_matrices(*before)):
                break
            operands[index], (batching, free, contracting) = source.operands[0], before
        numbers.update(zip(names, (batching, contracting), strict=True))
    if all(new is old for new, old in zip(operands, product.operands, strict=True)):
        return product
    attributes = {**product.attributes, "dot_dimension_numbers": numbers}
    return replace(product, operands=tuple(operands), attributes=attributes)


def _swapped(product: Operation, transpose: Operation) -> Operation | None:
    """The product with its operands in the other order, where that is what a transpose of its result amounts to."""
    numbers = product.attributes["dot_dimension_numbers"]
    batches = len(numbers["lhs_batching_dimensions"])
    of_left = _rank(product.operands[0]) - batches - len(numbers["lhs_contracting_dimensions"])
    rank = _rank(product.results[0])
    swapped = [*range(batches), *range(batches + of_left, rank), *range(batches, batches + of_left)]
    if list(transpose.attributes["permutation"]) != swapped:
        return None
    others = {
        f"{other}_{kind}_dimensions": numbers[f"{side}_{kind}_dimensions"]
        for kind in ("batching", "contracting")
        for side, other in (("lhs", "rhs"), ("rhs", "lhs"))
    }
    return replace(
        product,
        operands=product.operands[::-1],
        results=transpose.results,
        attributes={**product.attributes, "dot_dimension_numbers": {**numbers, **others}},
    )


def _rank(value: Value) -> int:
    assert isinstance(value.type, TensorType), "operands and results of products are arrays"
    return value.type.rank


def _free(rank: int, *taken: Sequence[int]) -> tuple[int, ...]:
    return tuple(axis for axis in range(rank) if not any(axis in axes for axes in taken))


def _is_matrices(batching: Sequence[int], free: Sequence[int], contracting: Sequence[int]) -> bool:
    """Whether an array with these dimensions is, as it lies there, batches of matrices, by rows or by columns."""
    order = list(range(len(batching) + len(free) + len(contracting)))
    return order in ([*batching, *free, *contracting], [*batching, *contracting, *free])
