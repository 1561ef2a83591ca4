"""How arguments and results are split over devices: records that need no JAX, nor NumPy.

A sharding of an exported function refers to a mesh by the names and sizes of its axes, never of
particular devices. Artifacts from before 2026 have it in XLA's own form instead, which becomes this one
when they are read (`_artifact/hlo_sharding.py`).
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["MEMORY_KINDS", "OWN_MEMORY", "AbstractDevice", "AbstractMesh", "NamedSharding"]

# Kinds of memory that a device has its arrays in by default; the second is that of CPUs in JAX 0.10.
OWN_MEMORY = (None, "device", "unpinned_host")

MEMORY_KINDS = (*OWN_MEMORY, "pinned_host")
"""Kinds of memory in which an array may be."""


@dataclass(frozen=True)
class AbstractDevice:
    """What kind of device a mesh consists of."""

    device_kind: str
    num_cores: int | None = None
    platform: str | None = None


@dataclass(frozen=True)
class AbstractMesh:
    """The axes of a device mesh, without the devices.

    Attributes:
      axis_sizes: Number of devices along each axis.
      axis_names: Name of each axis.
      axis_types: `auto`, `explicit` or `manual` for each axis.
      device: What kind of device it consists of, where that is known.
    """

    axis_sizes: tuple[int, ...]
    axis_names: tuple[str, ...]
    axis_types: tuple[str, ...]
    device: AbstractDevice | None = None

    def __str__(self) -> str:
        return ", ".join(f"{name}={size}" for name, size in zip(self.axis_names, self.axis_sizes, strict=True))


@dataclass(frozen=True)
class NamedSharding:
    """How an array is split over the named axes of a mesh.

    Attributes:
      mesh: The mesh.
      partitions: For each array axis, from the first, the mesh axes that it is split over; () for none.
      reduced: Mesh axes over which the array is reduced.
      unreduced: Mesh axes over which the array is still to be reduced.
      memory_kind: The kind of memory it lives in, where that is recorded.
    """

    mesh: AbstractMesh
    partitions: tuple[tuple[str, ...], ...]
    reduced: frozenset[str] = frozenset()
    unreduced: frozenset[str] = frozenset()
    memory_kind: str | None = None

    def __str__(self) -> str:
        axes = ", ".join("+".join(names) if names else "-" for names in self.partitions)
        return f"({axes}) over {self.mesh}"
