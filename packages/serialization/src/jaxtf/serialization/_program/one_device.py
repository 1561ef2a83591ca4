"""Modules for one device, without operations that move data between devices or ask which of them runs.

Over a mesh of one device JAX writes collectives too. There they give what they take: the only part is the whole, and
the only device is number 0. TensorFlow runs some of them so on CPU, has no place for others (`all_gather`,
`reduce_scatter`), and ends the process at a `collective_permute` (2.19 to 2.21).

Source: StableHLO specification, `all_reduce` and its kind, `partition_id`, `replica_id`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jaxtf.serialization._jaxlib import ir

__all__ = ["rewrite_for_one_device"]

_GROUPED = ("all_gather", "all_reduce", "all_to_all", "collective_broadcast", "reduce_scatter")
_PERMUTE = "stablehlo.collective_permute"
_NUMBERS = ("stablehlo.partition_id", "stablehlo.replica_id")
_NAMES = (*(f"stablehlo.{name}" for name in _GROUPED), _PERMUTE, *_NUMBERS)
_OF_A_MESH = ("SPMDFullToShardShape", "SPMDShardToFullShape")
_COUNTS = ("mhlo.num_partitions", "mhlo.num_replicas")


def rewrite_for_one_device(module: Any) -> None:
    """Puts what they give in the place of collectives and of numbers of devices, in place.

    Of a module that says that it is for one device; any other is left as it is, and so is what names other devices.
    """
    attributes = module.operation.attributes
    if any(name not in attributes or ir.IntegerAttr(attributes[name]).value != 1 for name in _COUNTS):
        return
    found: list[Any] = []

    def visit(operation: Any) -> Any:
        if operation.operation.name in _NAMES or _is_of_a_mesh(operation.operation):
            found.append(operation.operation)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    with module.context:
        for operation in found:
            _rewrite(operation)


def _is_of_a_mesh(operation: Any) -> bool:
    """Whether it goes from an array to its part on a device, or back."""
    return operation.name == "stablehlo.custom_call" and _target(operation) in _OF_A_MESH


def _target(call: Any) -> str:
    return str(ir.StringAttr(call.attributes["call_target_name"]).value)


def _rewrite(operation: Any) -> None:
    given = _given(operation)
    if given is None:
        return
    for result, value in zip(operation.results, given, strict=True):
        result.replace_all_uses_with(value)
    operation.erase()


def _given(operation: Any) -> Sequence[Any] | None:
    """What one device is given; None where that cannot be said."""
    types = [result.type for result in operation.results]
    if operation.name in _NUMBERS:
        return [_zero(operation, types[0])]
    if _is_of_a_mesh(operation):
        return operation.operands[:1] if operation.operands[0].type == types[0] else None  # sizes follow
    if [operand.type for operand in operation.operands] != types:
        return None
    if operation.name == _PERMUTE:
        pairs = _integers(operation, "source_target_pairs")
        if pairs == []:
            return [_zero(operation, types[0])] if ir.RankedTensorType(types[0]).has_static_shape else None
        return operation.operands if pairs == [0, 0] else None
    return operation.operands if _integers(operation, "replica_groups") in ([], [0]) else None


def _integers(operation: Any, name: str) -> list[int] | None:
    """The elements of an attribute; None if it is of another kind, such as axes of a mesh."""
    attribute = operation.attributes[name]
    if not isinstance(attribute, ir.DenseIntElementsAttr):
        return None
    return [int(attribute[index]) for index in range(len(attribute))]


def _zero(operation: Any, type_: Any) -> Any:
    """An array of zeros before an operation; a complex one from its parts: the bindings have no constants of those."""
    array = ir.RankedTensorType(type_)
    element = array.element_type
    with ir.InsertionPoint(operation), operation.location:
        if isinstance(element, ir.ComplexType):
            part = _zero(operation, ir.RankedTensorType.get(array.shape, ir.ComplexType(element).element_type))
            return ir.Operation.create("stablehlo.complex", results=[type_], operands=[part, part]).result
        zero = "false" if str(element) == "i1" else "0" if isinstance(element, ir.IntegerType) else "0.0"
        value = ir.Attribute.parse(f"dense<{zero}> : {type_}")
        return ir.Operation.create("stablehlo.constant", results=[type_], attributes={"value": value}).result
