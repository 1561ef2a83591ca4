"""Whether a module is one for the devices of the program that calls it: how many, and whether they compute together.

Inside of `jax.shard_map` or `jax.pmap` each device, or each row of devices, computes for itself. A module for several
devices, which compute one thing together, is there only if it computes along the other axes of the same mesh; what
merely says where its values are is taken out, as it changes none. Imports JAX.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from jax.extend.mlir import ir
from jax.extend.mlir.dialects import sdy

from jaxtf.serialization._call.module_shardings import (
    GROUPED,
    MANUAL,
    NUMBERS,
    OF_XLA,
    all_operations,
    computes_by_device,
    named_axes,
    sharding_texts,
    splits,
    take_out_shardings,
)
from jaxtf.serialization._errors import ArtifactError, DeviceCountError, PartitionerError
from jaxtf.serialization._jax import Devices
from jaxtf.serialization._jax_values.settings import uses_shardy
from jaxtf.serialization._record.exported import Exported

__all__ = ["fit_to_devices"]

# What `jax.lax.axis_index` consists of where some axes of a mesh are left to the partitioner.
_OF_AN_INDEX = (
    *NUMBERS,
    *(f"stablehlo.{name}" for name in ("constant", "convert", "divide", "remainder")),
    "sdy.return",
)


def fit_to_devices(exported: Exported, module: ir.Module, devices: Devices) -> None:
    """Makes the module one for a program over `devices`, or refuses the call.

    A module for one device runs in any program: over a mesh of one device its shardings say nothing, and they are taken
    out where the program has more. So they are of any module where each device computes for itself.

    Raises:
      DeviceCountError: It is for another number of devices, or for one, by whose number it computes; or its devices
        compute together, and those of the program each for itself.
      PartitionerError: It is split by Shardy, which is switched off.
      ArtifactError: It says another number of devices than the record.
    """
    operations = all_operations(module)
    _check_count(exported, module, operations)
    if devices.manual:
        if not _runs_beside(exported, operations, devices) and (found := take_out_shardings(module)):
            raise _across(exported, found, devices)
    elif devices.count != exported.nr_devices and (exported.nr_devices != 1 or take_out_shardings(module)):
        raise DeviceCountError(
            f"Function '{exported.fun_name}' was exported for {exported.nr_devices} devices and is called in a context "
            f"with {devices.count} devices, which is not allowed.\n"
            f"  remedy: place the arguments over {exported.nr_devices} devices (jax.device_put with "
            "`Exported.in_shardings_jax(mesh)`, or jax.jit with in_shardings), or call it under jax.set_mesh(mesh)"
        )
    if exported.uses_shardy and not uses_shardy() and splits(all_operations(module)):
        raise PartitionerError(
            f"Function '{exported.fun_name}' was exported with Shardy enabled and is called with Shardy disabled: its "
            "shardings would be ignored\n"
            "  remedy: jax.config.update('jax_use_shardy_partitioner', True), or export it with Shardy disabled"
        )


def _check_count(exported: Exported, module: ir.Module, operations: Sequence[Any]) -> None:
    """Refuses a module that says that it is for several devices, and for another number of them than the record."""
    attributes = module.operation.attributes
    said = [
        (f"{name.removeprefix('mhlo.')}={count}", count)
        for name in ("mhlo.num_partitions", "mhlo.num_replicas")
        if name in attributes and (count := ir.IntegerAttr(attributes[name]).value) > 1
    ]
    for operation in operations:
        if operation.name == "sdy.mesh":
            axes = [sdy.MeshAxisAttr(axis) for axis in sdy.MeshAttr(operation.attributes["mesh"]).axes]
            sizes = _of_sizes((axis.name, axis.size) for axis in axes)
            said += [(f"a mesh {sizes}", math.prod(axis.size for axis in axes))] * bool(axes)
    for what, count in said:
        if count != exported.nr_devices:
            raise ArtifactError(
                f"the module of '{exported.fun_name}' is not the one that its record describes: it says {what}, and "
                f"nr_devices of the record is {exported.nr_devices}\n"
                f"  remedy: give the record nr_devices={count}"
            )


def _across(exported: Exported, found: Sequence[str], devices: Devices) -> DeviceCountError:
    axes = ", ".join(f"'{name}'" for name, _ in devices.axes if name in devices.manual)
    return DeviceCountError(
        f"Function '{exported.fun_name}' was exported for {exported.nr_devices} devices, which compute it together, "
        f"and is called inside of jax.shard_map, or jax.pmap, over {axes} of the mesh {_of_sizes(devices.axes)}, where "
        "each device computes for itself\n"
        f"  found:  {', '.join(found)}\n"
        "  remedy: call it outside of jax.shard_map; or export what each device is to compute as a function of its "
        "own, without a mesh"
    )


def _of_sizes(axes: Any) -> str:
    return ", ".join(f"{name}={size}" for name, size in axes)


def _runs_beside(exported: Exported, operations: Sequence[Any], devices: Devices) -> bool:
    """Whether each row of devices that computes for itself can compute it as it is: along the other axes of the mesh.

    A program over one device can too, where it gives the axes of its mesh other names.
    """
    if exported.nr_devices != devices.count or any(sharding_texts(operation, OF_XLA) for operation in operations):
        return False
    axes = ", ".join(f'"{name}"={size}' for name, size in devices.axes)
    mesh = f"mesh<[{axes}]>"
    named: set[str] = set()
    indices: list[Any] = []  # operations inside of computations of an index
    for operation in operations:
        texts = sharding_texts(operation)
        if operation.name == "sdy.mesh":
            texts.append(str(operation.attributes["mesh"]))
        if devices.count > 1 and any(text.count("mesh<[") != text.count(mesh) for text in texts):
            return False
        named.update(*map(named_axes, texts))
        if operation.name == MANUAL:
            index = _axis_of_index(operation, devices)
            named.update(named_axes(str(operation.attributes["manual_axes"])) if index is None else index)
            indices += [] if index is None else _inside(operation)
    others = [op for op in operations if computes_by_device(op) and op.name != MANUAL and op not in indices]
    return named.isdisjoint(devices.manual) and all(_stays_in_rows(operation, devices) for operation in others)


def _inside(computation: Any) -> list[Any]:
    return [operation.operation for operation in computation.regions[0].blocks[0].operations]


def _axis_of_index(computation: Any, devices: Devices) -> set[str] | None:
    """The axis whose index a manual computation computes, if it is over more than one device; None if it does not."""
    inside = _inside(computation)
    if computation.operands or any(operation.name not in _OF_AN_INDEX for operation in inside):
        return None
    by_name = {operation.name: operation for operation in inside}
    stride, size = (_constant(by_name.get(f"stablehlo.{name}")) for name in ("divide", "remainder"))
    names = [name for name, _ in devices.axes]
    sizes = [size for _, size in devices.axes]
    for place, name in enumerate(names):
        if (math.prod(sizes[place + 1 :]), sizes[place]) == (stride, size):
            return {name}
    return None


def _constant(operation: Any) -> int | None:
    """The constant that an operation divides by; None if it does by something else."""
    divisor = None if operation is None else operation.operands[1].owner
    if divisor is None or isinstance(divisor, ir.Block) or divisor.name != "stablehlo.constant":
        return None
    return int(ir.DenseIntElementsAttr(divisor.attributes["value"])[0])


def _stays_in_rows(operation: Any, devices: Devices) -> bool:
    """Whether a collective moves data only between devices of a row that computes for itself."""
    if operation.name not in GROUPED:
        return False
    name = "replica_groups" if "replica_groups" in operation.attributes else "source_target_pairs"
    attribute = operation.attributes[name]
    if not isinstance(attribute, ir.DenseIntElementsAttr) or (name == "replica_groups" and not len(attribute)):
        return False  # no groups: all devices are one
    width = ir.RankedTensorType(attribute.type).shape[-1]
    rows = [_row(int(attribute[index]), devices) for index in range(len(attribute))]
    return all(rows[index] == rows[index - index % width] for index in range(len(rows)))


def _row(device: int, devices: Devices) -> tuple[int, ...]:
    """The indices of a device along the axes over which each computes for itself."""
    found = []
    for name, size in reversed(devices.axes):
        device, index = divmod(device, size)
        if name in devices.manual:
            found.append(index)
    return tuple(found)
