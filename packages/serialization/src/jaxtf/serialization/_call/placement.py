"""A call over several devices: where its arguments and results are.

The main function of a module says by attributes how its arguments and results are split. Called
from another module it is a function like any other, whose attributes partitioners do not read, so
that each becomes an operation at the call: `sdy.sharding_constraint` for Shardy, the custom call
`Sharding` for the partitioner before it. Imports JAX.

Source: Shardy, "Sharding representation"; OpenXLA, custom calls of the SPMD partitioner.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
from jax.extend.mlir import ir
from jax.sharding import AxisType

from jaxtf.serialization._call.module_shardings import OF_SHARDY, OF_XLA, change_attributes
from jaxtf.serialization._jax_values.shardings import has_axes, to_jax
from jaxtf.serialization._record.exported import Exported
from jaxtf.serialization._record.shardings import NamedSharding

__all__ = [
    "constrained",
    "in_memory_spaces",
    "on_default_device",
    "spell_out_meshes",
    "typed_shardings",
]

_NAMED = "#sdy.sharding<"


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
        head, comma, rest = str(of_one.get(OF_SHARDY, "")).removeprefix(_NAMED).partition(",")
        if head not in meshes:
            return of_one
        return of_one | {OF_SHARDY: ir.Attribute.parse(f"{_NAMED}{meshes[head]}{comma}{rest}")}

    with module.context:
        for function in operations if meshes else ():
            change_attributes(function, spelled_out)


def constrained(values: Sequence[Any], function: Any, attributes: str) -> list[Any]:
    """The values, placed as a function's `arg_attrs` or `res_attrs` say."""
    if attributes not in function.attributes:
        return list(values)
    each = map(ir.DictAttr, function.attributes[attributes])
    return [_constrained(value, of_one) for value, of_one in zip(values, each, strict=True)]


def _constrained(value: Any, attributes: Any) -> Any:
    if OF_SHARDY in attributes:
        return ir.Operation.create(
            "sdy.sharding_constraint",
            results=[value.type],
            operands=[value],
            attributes={"sharding": attributes[OF_SHARDY]},
        ).result
    if OF_XLA in attributes:
        return ir.Operation.create(
            "stablehlo.custom_call",
            results=[value.type],
            operands=[value],
            attributes={
                "call_target_name": ir.StringAttr.get("Sharding"),
                "backend_config": ir.StringAttr.get(""),
                OF_XLA: attributes[OF_XLA],
            },
        ).result
    return value


def typed_shardings(
    results: Sequence[Any], shardings: Sequence[NamedSharding | None], arguments: Sequence[Any]
) -> tuple[Any, ...]:
    """The avals of the results, with the shardings that the function gives them in their types.

    They are over the caller's mesh where that has the same axes, and these are explicit; else over the function's own,
    by which JAX then names them. Inside of `jax.shard_map` they are what a device, or a row of devices, has.
    """
    meshes = [aval.sharding.mesh for aval in arguments if not aval.sharding.mesh.empty]
    mesh = meshes[0] if meshes else jax.sharding.get_abstract_mesh()
    if AxisType.Manual in jax.sharding.get_abstract_mesh().axis_types:
        return tuple(results)
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
