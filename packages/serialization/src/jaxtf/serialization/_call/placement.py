"""A call over several devices: how many there must be, and where its arguments and results are.

The main function of a module says by attributes how its arguments and results are split. Called
from another module it is a function like any other, whose attributes partitioners do not read, so
that each becomes an operation at the call: `sdy.sharding_constraint` for Shardy, the custom call
`Sharding` for the partitioner before it. Imports JAX.

Source: Shardy, "Sharding representation"; OpenXLA, custom calls of the SPMD partitioner.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
from jax.extend.mlir import ir

from jaxtf.serialization._errors import DeviceCountError, PartitionerError
from jaxtf.serialization._jax_values.settings import uses_shardy
from jaxtf.serialization._jax_values.shardings import has_axes, to_jax
from jaxtf.serialization._record.exported import Exported
from jaxtf.serialization._record.shardings import NamedSharding

__all__ = [
    "constrained",
    "fit_to_devices",
    "in_memory_spaces",
    "on_default_device",
    "spell_out_meshes",
    "typed_shardings",
]

_SHARDY, _BEFORE = "sdy.sharding", "mhlo.sharding"
_NAMED = "#sdy.sharding<"
_ATTRIBUTES_OF_SHARDY = (_SHARDY, "sharding", "in_shardings", "out_shardings", "arg_attrs", "res_attrs")
_MANUAL = "sdy.manual_computation"

# Operations and custom calls that give their operand as it is, placed.
_PLACING_OPERATIONS = ("sdy.sharding_constraint", "sdy.reshard")
_PLACING_CALLS = ("Sharding", "xla.sdy.FuncResultSharding")

# What computes by the devices of a mesh, even of one.
_COLLECTIVES = (
    "all_gather",
    "all_reduce",
    "all_to_all",
    "collective_broadcast",
    "collective_permute",
    "reduce_scatter",
)
_BY_DEVICE_OPERATIONS = (
    _MANUAL,
    *(f"stablehlo.{name}" for name in (*_COLLECTIVES, "partition_id", "replica_id")),
)
_BY_DEVICE_CALLS = ("SPMDFullToShardShape", "SPMDShardToFullShape")


def fit_to_devices(exported: Exported, module: ir.Module, found: int) -> None:
    """Makes the module one for a program for `found` devices, or refuses the call.

    A module for one device runs in any program: over a mesh of one device its shardings say nothing, and they are taken
    out where the program has more.

    Raises:
      DeviceCountError: It is for another number of devices, or for one, by whose number it computes.
      PartitionerError: It is split by Shardy, which is switched off.
    """
    alone = exported.nr_devices == 1 and found != 1
    if found != exported.nr_devices and not (alone and _take_out_shardings(module)):
        raise DeviceCountError(
            f"Function '{exported.fun_name}' was exported for {exported.nr_devices} devices and is called in a context "
            f"with {found} devices, which is not allowed.\n"
            f"  remedy: place the arguments over {exported.nr_devices} devices (jax.device_put with "
            "`Exported.in_shardings_jax(mesh)`, or jax.jit with in_shardings), or call it under jax.set_mesh(mesh)"
        )
    if exported.uses_shardy and not uses_shardy() and _splits(module):
        raise PartitionerError(
            f"Function '{exported.fun_name}' was exported with Shardy enabled and is called with Shardy disabled: its "
            "shardings would be ignored\n"
            "  remedy: jax.config.update('jax_use_shardy_partitioner', True), or export it with Shardy disabled"
        )


def _take_out_shardings(module: ir.Module) -> bool:
    """Takes all shardings out of a module; whether nothing in it computes by the devices of a mesh."""
    operations: list[Any] = []

    def visit(operation: Any) -> Any:
        operations.append(operation.operation)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    if any(_is_one_of(operation, _BY_DEVICE_OPERATIONS, _BY_DEVICE_CALLS) for operation in operations):
        return False
    for operation in operations:
        _take_out_attributes(operation)
        if _is_one_of(operation, _PLACING_OPERATIONS, _PLACING_CALLS):
            operation.results[0].replace_all_uses_with(operation.operands[0])
            operation.erase()
        elif operation.name == "sdy.mesh":
            operation.erase()
    return True


def _is_one_of(operation: Any, names: Sequence[str], custom_calls: Sequence[str]) -> bool:
    if operation.name != "stablehlo.custom_call":
        return operation.name in names
    return ir.StringAttr(operation.attributes["call_target_name"]).value in custom_calls


def _take_out_attributes(operation: Any) -> None:
    for name in (_SHARDY, _BEFORE):
        if name in operation.attributes:
            del operation.attributes[name]
    _change_attributes(operation, lambda of_one: {n: a for n, a in of_one.items() if n not in (_SHARDY, _BEFORE)})


def _change_attributes(function: Any, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Changes the attributes of each argument and each result of a function."""
    for name in ("arg_attrs", "res_attrs"):
        if name in function.attributes:
            each = map(ir.DictAttr, ir.ArrayAttr(function.attributes[name]))
            changed = [change({a.name: a.attr for a in of_one}) for of_one in each]
            function.attributes[name] = ir.ArrayAttr.get([ir.DictAttr.get(of_one) for of_one in changed])


def _splits(module: ir.Module) -> bool:
    """Whether anything in the module is split over devices."""
    found = False

    def visit(operation: Any) -> Any:
        nonlocal found
        attributes = operation.operation.attributes
        texts = [str(attributes[name]) for name in _ATTRIBUTES_OF_SHARDY if name in attributes]
        found = (
            found or operation.operation.name == _MANUAL or any('{"' in text and "sharding" in text for text in texts)
        )
        return ir.WalkResult.INTERRUPT if found else ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return found


def spell_out_meshes(module: ir.Module) -> None:
    """Writes the meshes of the shardings of arguments and results of functions where these name them.

    A module that is merged into another may get new names for its meshes, and these attributes keep the old ones.
    """
    operations = [each.operation for each in module.body.operations]
    meshes = {
        f"@{ir.StringAttr(each.attributes['sym_name']).value}": str(each.attributes["mesh"]).removeprefix("#sdy.")
        for each in operations
        if each.name == "sdy.mesh"
    }

    def spelled_out(of_one: dict[str, Any]) -> dict[str, Any]:
        head, comma, rest = str(of_one.get(_SHARDY, "")).removeprefix(_NAMED).partition(",")
        if head not in meshes:
            return of_one
        return of_one | {_SHARDY: ir.Attribute.parse(f"{_NAMED}{meshes[head]}{comma}{rest}")}

    with module.context:
        for function in operations if meshes else ():
            _change_attributes(function, spelled_out)


def constrained(values: Sequence[Any], function: Any, attributes: str) -> list[Any]:
    """The values, placed as a function's `arg_attrs` or `res_attrs` say."""
    if attributes not in function.attributes:
        return list(values)
    each = map(ir.DictAttr, function.attributes[attributes])
    return [_constrained(value, of_one) for value, of_one in zip(values, each, strict=True)]


def _constrained(value: Any, attributes: Any) -> Any:
    if _SHARDY in attributes:
        return ir.Operation.create(
            "sdy.sharding_constraint",
            results=[value.type],
            operands=[value],
            attributes={"sharding": attributes[_SHARDY]},
        ).result
    if _BEFORE in attributes:
        return ir.Operation.create(
            "stablehlo.custom_call",
            results=[value.type],
            operands=[value],
            attributes={
                "call_target_name": ir.StringAttr.get("Sharding"),
                "backend_config": ir.StringAttr.get(""),
                _BEFORE: attributes[_BEFORE],
            },
        ).result
    return value


def typed_shardings(
    results: Sequence[Any], shardings: Sequence[NamedSharding | None], arguments: Sequence[Any]
) -> tuple[Any, ...]:
    """The avals of the results, with the shardings that the function gives them in their types.

    They are over the caller's mesh where that has the same axes, and these are explicit; else over the function's own,
    by which JAX then names them.
    """
    meshes = [aval.sharding.mesh for aval in arguments if not aval.sharding.mesh.empty]
    mesh = meshes[0] if meshes else jax.sharding.get_abstract_mesh()
    return tuple(
        aval if sharding is None or not sharding.mesh.axis_names else aval.update(sharding=_over(sharding, mesh))
        for aval, sharding in zip(results, shardings, strict=True)
    )


def _over(sharding: NamedSharding, mesh: Any) -> jax.sharding.NamedSharding:
    """A sharding over the caller's mesh, or, where that has other axes, over its own."""
    recorded = to_jax(sharding, mesh if has_axes(sharding, mesh) and mesh.are_all_axes_explicit else None)
    return jax.sharding.NamedSharding(recorded.mesh, recorded.spec)


def in_memory_spaces(results: Sequence[Any], exported: Exported) -> list[Any]:
    """The results, of which those in another memory than the device's are put there: JAX looks for such operations."""
    spaces = [aval.memory_space for aval in exported.out_avals]
    return [
        result if space == "device" else jax.device_put(result, getattr(jax.memory.Space, space.capitalize()))
        for result, space in zip(results, spaces, strict=True)
    ]


def on_default_device(arrays: Sequence[Any]) -> list[Any]:
    """The arrays on the default device; a CPU takes those of NumPy that begin at a multiple of 64 bytes as they are.

    They are arrays also while JAX traces, where `device_put` alone makes values of the trace.
    """
    with jax.ensure_compile_time_eval():
        return [jax.device_put(array) for array in arrays]
