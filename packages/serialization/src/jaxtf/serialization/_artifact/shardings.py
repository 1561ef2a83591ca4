"""Shardings from the tables of an artifact, in each of the forms that formats had for them."""

from __future__ import annotations

from itertools import chain

from jaxtf.serialization._artifact import schema
from jaxtf.serialization._artifact.fields import at, kind_of, required
from jaxtf.serialization._artifact.hlo_sharding import named_sharding
from jaxtf.serialization._errors import ArtifactError
from jaxtf.serialization._record.kinds import AxisType
from jaxtf.serialization._record.shardings import MEMORY_KINDS, AbstractDevice, AbstractMesh, NamedSharding

__all__ = ["ShardingReader"]


class ShardingReader:
    """Reads the shardings of one function of an artifact."""

    def __init__(self, table: schema.ExportedTable, device_count: int) -> None:
        self._table = table
        self._device_count = device_count

    def shardings(
        self, positions: tuple[int, ...] | None, each: tuple[schema.ShardingTable, ...] | None
    ) -> tuple[NamedSharding | None, ...]:
        """The shardings of the arguments or of the results; empty if none was written.

        Args:
          positions: Where each is among the distinct ones, counted from 1, 0 being none; None or empty in formats
            without these.
          each: Each of them, in those formats.

        Raises:
          ArtifactError: The fields do not fit together, or lack something.
          VersionError: A type of axis of a later format.
        """
        if positions:
            distinct = (None, *map(self._named_sharding, self._table.unique_named_shardings or ()))
            return tuple(at(distinct, position, "shardings") for position in positions)
        return tuple(map(self._sharding, each or ()))

    def _sharding(self, table: schema.ShardingTable) -> NamedSharding | None:
        # The kind says nothing that the fields do not say: some writers left it out.
        if table.named_sharding is not None:
            return self._named_sharding(table.named_sharding)
        if table.hlo_sharding_proto is None:
            return None
        return named_sharding(bytes(table.hlo_sharding_proto), self._device_count)

    def _named_sharding(self, table: schema.NamedShardingTable) -> NamedSharding:
        meshes = self._table.unique_abstract_meshes
        mesh = at(meshes, table.abstract_mesh_idx, "meshes") if meshes else required(table.mesh, "a mesh")
        spec = required(table.spec, "a partition spec")
        found = NamedSharding(
            mesh=self._mesh(mesh),
            partitions=tuple(axis.axes or () for axis in spec.partitions or ()),
            reduced=frozenset(spec.reduced or ()),
            unreduced=frozenset(spec.unreduced or ()),
            memory_kind=table.memory_kind,
        )
        _check(found)
        return found

    def _mesh(self, table: schema.AbstractMeshTable) -> AbstractMesh:
        sizes, names, types = table.axis_sizes or (), table.axis_names or (), table.axis_types or b""
        if not len(sizes) == len(names) == len(types):
            raise ArtifactError(f"a mesh has {len(sizes)} sizes, {len(names)} names and {len(types)} types of axes")
        if len(set(names)) < len(names) or min(sizes, default=1) < 1:
            raise ArtifactError(f"a mesh has the axes {names} of the sizes {sizes}")
        device = table.abstract_device
        return AbstractMesh(
            axis_sizes=sizes,
            axis_names=names,
            axis_types=tuple(kind_of(AxisType, number, "an axis of a mesh").name.lower() for number in types),
            device=None
            if device is None
            else AbstractDevice(required(device.device_kind, "a kind of device"), device.num_cores, device.platform),
        )


def _check(sharding: NamedSharding) -> None:
    """Refuses what no sharding of JAX is."""
    used = [*chain(*sharding.partitions), *sharding.reduced, *sharding.unreduced]
    if len(set(used)) < len(used) or not set(used) <= set(sharding.mesh.axis_names):
        raise ArtifactError(
            f"a sharding refers to the axes {', '.join(sorted(used)):.200}, each of which must be one of its mesh "
            f"({sharding.mesh!s:.200}), and once"
        )
    if sharding.memory_kind not in MEMORY_KINDS:
        raise ArtifactError(
            f"a sharding is in memory of the kind {sharding.memory_kind!r:.100}; there are "
            f"{', '.join(filter(None, MEMORY_KINDS))}"
        )
