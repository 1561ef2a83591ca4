"""A call over several devices: how many there must be, and where its arguments and results are.

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

from jaxtf.serialization._errors import DeviceCountError
from jaxtf.serialization._jax_values.shardings import to_jax
from jaxtf.serialization._record.exported import Exported
from jaxtf.serialization._record.shardings import NamedSharding

__all__ = ["check_device_count", "constrained", "typed_shardings"]

_SHARDY, _BEFORE = "sdy.sharding", "mhlo.sharding"


def check_device_count(exported: Exported, module: ir.Module, found: int) -> None:
    """Refuses a call in a program for another number of devices than the module is lowered for.

    A module for one device that splits nothing runs in any program.

    Raises:
      DeviceCountError: The number differs.
    """
    if found == exported.nr_devices or (exported.nr_devices == 1 and not _splits(module)):
        return
    raise DeviceCountError(
        f"Function '{exported.fun_name}' was exported for {exported.nr_devices} devices and is called in a context "
        f"with {found} devices, which is not allowed.\n"
        f"  remedy: place the arguments over {exported.nr_devices} devices (jax.device_put with "
        "`Exported.in_shardings_jax(mesh)`, or jax.jit with in_shardings), or call it under jax.set_mesh(mesh)"
    )


def _splits(module: ir.Module) -> bool:
    """Whether anything in the module is split over devices."""
    found = False

    def visit(operation: Any) -> Any:
        nonlocal found
        attributes = operation.operation.attributes
        texts = [
            str(attributes[name]) for name in (_SHARDY, "sharding", "in_shardings", "arg_attrs") if name in attributes
        ]
        found = found or any('{"' in text and "sharding" in text for text in texts)
        return ir.WalkResult.INTERRUPT if found else ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return found


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
    """The avals of the results, with shardings in their types where the caller's mesh has explicit axes."""
    meshes = [aval.sharding.mesh for aval in arguments if not aval.sharding.mesh.empty]
    mesh = meshes[0] if meshes else jax.sharding.get_abstract_mesh()
    if mesh.empty or not mesh.are_all_axes_explicit:
        return tuple(results)
    return tuple(
        aval
        if not isinstance(sharding, NamedSharding)
        else aval.update(sharding=jax.sharding.NamedSharding(mesh, to_jax(sharding, mesh).spec))
        for aval, sharding in zip(results, shardings, strict=True)
    )
