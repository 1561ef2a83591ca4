"""What a module says of devices: shardings, the axes that these name, and what computes by the devices of a mesh.

A module has shardings in a form of Shardy's, or in XLA's own, for the partitioner before it. They change no value: a
program without them computes the same. Collectives, and what runs by device (`sdy.manual_computation`), do.

Source: Shardy, "Sharding representation"; OpenXLA, custom calls of the SPMD partitioner.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from jax.extend.mlir import ir

__all__ = [
    "GROUPED",
    "MANUAL",
    "NUMBERS",
    "OF_SHARDY",
    "OF_XLA",
    "all_operations",
    "change_attributes",
    "computes_by_device",
    "named_axes",
    "sharding_texts",
    "splits",
    "take_out_shardings",
]

OF_SHARDY, OF_XLA = "sdy.sharding", "mhlo.sharding"
MANUAL = "sdy.manual_computation"
NUMBERS = ("stablehlo.partition_id", "stablehlo.replica_id")
GROUPED = tuple(
    f"stablehlo.{name}"
    for name in (
        "all_gather",
        "all_reduce",
        "all_to_all",
        "collective_broadcast",
        "collective_permute",
        "reduce_scatter",
    )
)

_ATTRIBUTES_OF_SHARDY = (OF_SHARDY, "sharding", "in_shardings", "out_shardings")
_ATTRIBUTES_OF_VALUES = ("arg_attrs", "res_attrs")

# Operations and custom calls that give their operand as it is, placed.
_PLACING_OPERATIONS = ("sdy.sharding_constraint", "sdy.reshard")
_PLACING_CALLS = ("Sharding", "xla.sdy.FuncResultSharding")

# Operations of Shardy that say where values are, and no more; any other computes by the devices of a mesh.
_ERASED = ("sdy.mesh", "sdy.sharding_group")
_SAYING = ("sdy.propagation_barrier", "sdy.return", *_ERASED, *_PLACING_OPERATIONS)
_CALLS_BY_DEVICE = (
    *("SPMDFullToShardShape", "SPMDShardToFullShape"),
    *("xla.sdy.GlobalToLocalShape", "xla.sdy.LocalToGlobalShape"),
)

_MESH = re.compile(r"mesh<\[.*?\](?:, device_ids=\[.*?\])?>")
_QUOTED = re.compile(r'"([^"]*)"')


def all_operations(module: ir.Module) -> list[Any]:
    """All operations of a module, those inside of others too."""
    found: list[Any] = []

    def visit(operation: Any) -> Any:
        found.append(operation.operation)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return found


def computes_by_device(operation: Any) -> bool:
    """Whether it computes by the devices of a mesh, even of one."""
    if operation.name == "stablehlo.custom_call":
        return _target(operation) in _CALLS_BY_DEVICE
    if operation.name.startswith("sdy."):
        return operation.name not in _SAYING
    return operation.name in GROUPED or operation.name in NUMBERS


def _target(call: Any) -> str:
    return str(ir.StringAttr(call.attributes["call_target_name"]).value)


def take_out_shardings(module: ir.Module) -> list[str]:
    """Takes all shardings out of a module, if nothing in it computes by the devices of a mesh.

    Returns:
      The names of what does, sorted: then the module is left as it is.
    """
    operations = all_operations(module)
    if found := {_name(operation) for operation in operations if computes_by_device(operation)}:
        return sorted(found)
    for operation in operations:
        _take_out_attributes(operation)
        if operation.name in _PLACING_OPERATIONS or _name(operation) in _PLACING_CALLS:
            operation.results[0].replace_all_uses_with(operation.operands[0])
            operation.erase()
        elif operation.name in _ERASED:
            operation.erase()
    return []


def _name(operation: Any) -> str:
    return _target(operation) if operation.name == "stablehlo.custom_call" else str(operation.name)


def _take_out_attributes(operation: Any) -> None:
    for name in (OF_SHARDY, OF_XLA):
        if name in operation.attributes:
            del operation.attributes[name]
    change_attributes(operation, lambda of_one: {n: a for n, a in of_one.items() if n not in (OF_SHARDY, OF_XLA)})


def change_attributes(function: Any, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Changes the attributes of each argument and each result of a function."""
    for name in _ATTRIBUTES_OF_VALUES:
        if name in function.attributes:
            changed = [change(of_one) for of_one in _of_values(function.attributes[name])]
            function.attributes[name] = ir.ArrayAttr.get([ir.DictAttr.get(of_one) for of_one in changed])


def _of_values(attributes: Any) -> Iterator[dict[str, Any]]:
    for of_one in map(ir.DictAttr, ir.ArrayAttr(attributes)):
        yield {a.name: a.attr for a in of_one}


def sharding_texts(operation: Any, form: str = OF_SHARDY) -> list[str]:
    """The shardings that an operation has, or a function for its arguments and results, as MLIR writes them.

    Args:
      operation: Of MLIR.
      form: `OF_SHARDY` or `OF_XLA`.
    """
    attributes = operation.attributes
    names = (OF_XLA,) if form == OF_XLA else _ATTRIBUTES_OF_SHARDY
    texts = [str(attributes[name]) for name in names if name in attributes]
    for name in _ATTRIBUTES_OF_VALUES:
        if name in attributes:
            texts += [str(of_one[form]) for of_one in _of_values(attributes[name]) if form in of_one]
    return texts


def named_axes(text: str) -> frozenset[str]:
    """The axes of meshes that shardings of Shardy, or the axes of a manual computation, name."""
    return frozenset(_QUOTED.findall(_MESH.sub("", text)))


def splits(operations: Sequence[Any]) -> bool:
    """Whether any of the operations is split over devices by Shardy."""
    return any(op.name == MANUAL or any('{"' in text for text in sharding_texts(op)) for op in operations)
