"""Shardings between JAX's form and ours.

JAX's `NamedSharding` names the axes of a mesh of devices; ours the axes of the mesh without the
devices, which an artifact can hold. Imports JAX.
"""

from __future__ import annotations

from typing import Any

import jax
from jax.sharding import AxisType, PartitionSpec

from jaxtf.serialization import _jax
from jaxtf.serialization._errors import SerializationError
from jaxtf.serialization._record.shardings import OWN_MEMORY, AbstractDevice, AbstractMesh, NamedSharding

__all__ = ["explicit_sharding", "from_jax", "has_axes", "to_hlo", "to_jax"]


def from_jax(sharding: Any, rank: int) -> NamedSharding | None:
    """Our form of a sharding of JAX of an array of `rank` axes; None where it says nothing that can be recorded.

    A sharding that leaves an axis to the partitioner says nothing, nor does a single device but where it names a kind
    of memory other than the device's own: then it is a sharding over a mesh without axes, as `jax.export` has it.

    Raises:
      SerializationError: The array is still to be reduced otherwise than by a sum, for which artifacts have no form.
    """
    if isinstance(sharding, jax.sharding.SingleDeviceSharding) and sharding.memory_kind not in OWN_MEMORY:
        return NamedSharding(AbstractMesh((), (), ()), ((),) * rank, memory_kind=sharding.memory_kind)
    if not isinstance(sharding, jax.sharding.NamedSharding):
        return None
    spec = sharding.spec
    entries = spec.partitions if hasattr(spec, "partitions") else tuple(spec)  # JAX 0.10 has no `partitions`
    if any(names is PartitionSpec.UNCONSTRAINED for names in entries):
        return None
    kind = getattr(spec, "unreduced_kind", None)
    if spec.unreduced and getattr(kind, "name", kind) not in (None, "sum"):
        raise SerializationError(f"{spec} is still to be reduced by {kind}, for which artifacts have no form")
    partitions = tuple(_names(names) for names in entries)
    return NamedSharding(
        mesh=_mesh_from_jax(sharding.mesh.abstract_mesh),
        partitions=partitions + ((),) * (rank - len(partitions)),
        reduced=frozenset(spec.reduced),
        unreduced=frozenset(spec.unreduced),
        memory_kind=sharding.memory_kind,
    )


def explicit_sharding(aval: Any) -> Any:
    """JAX's sharding in the type of a value, over a mesh with explicit axes; None if it has none."""
    sharding = getattr(aval, "sharding", None)
    mesh = getattr(sharding, "mesh", None)
    return None if mesh is None or mesh.empty or AxisType.Explicit not in mesh.axis_types else sharding


def _names(names: Any) -> tuple[str, ...]:
    if names is None:
        return ()
    return (names,) if isinstance(names, str) else tuple(names)


def _mesh_from_jax(mesh: Any) -> AbstractMesh:
    device = mesh.abstract_device
    return AbstractMesh(
        axis_sizes=tuple(mesh.axis_sizes),
        axis_names=tuple(mesh.axis_names),
        axis_types=tuple(axis_type.name.lower() for axis_type in mesh.axis_types),
        device=device and AbstractDevice(device.device_kind, device.num_cores, getattr(device, "platform", None)),
    )


def to_jax(sharding: NamedSharding | None, mesh: Any = None) -> Any:
    """JAX's form of a sharding, over a mesh of devices if given, otherwise over one without devices.

    Raises:
      ValueError: The axes of `mesh` are not those of the sharding's mesh.
    """
    if sharding is None:
        return None
    if mesh is None:
        mesh = _mesh_to_jax(sharding.mesh)
    elif not sharding.mesh.axis_names and mesh.size == 1:
        pass  # one device, whatever the names of its axes
    elif not has_axes(sharding, mesh):
        found = ", ".join(f"{name}={size}" for name, size in zip(mesh.axis_names, mesh.axis_sizes, strict=True))
        raise ValueError(
            f"the function was exported over a mesh of other axes\n  exported: {sharding.mesh}\n  given:    {found}"
        )
    spec = PartitionSpec(
        *(_entry(names) for names in sharding.partitions), reduced=sharding.reduced, unreduced=sharding.unreduced
    )
    return jax.sharding.NamedSharding(mesh, spec, memory_kind=sharding.memory_kind)


def has_axes(sharding: NamedSharding, mesh: Any) -> bool:
    """Whether a mesh has the axes of a sharding's mesh, of the same sizes and in the same order."""
    return (tuple(mesh.axis_names), tuple(mesh.axis_sizes)) == (sharding.mesh.axis_names, sharding.mesh.axis_sizes)


def to_hlo(sharding: NamedSharding | None, rank: int) -> Any:
    """XLA's form of a sharding of an array of `rank` axes; None where there is none."""
    return None if sharding is None else _jax.hlo_sharding(to_jax(sharding), rank)


def _entry(names: tuple[str, ...]) -> Any:
    if len(names) == 1:
        return names[0]
    return names or None


def _mesh_to_jax(mesh: AbstractMesh) -> Any:
    types = tuple(getattr(AxisType, axis_type.capitalize()) for axis_type in mesh.axis_types)
    return jax.sharding.AbstractMesh(mesh.axis_sizes, mesh.axis_names, axis_types=types)
