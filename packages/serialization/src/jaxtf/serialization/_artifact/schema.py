"""The artifact format as dataclasses with numbered fields.

An artifact begins with a flatbuffer whose root is an `ExportedTable`. Each class here is one of
its tables; each attribute says the slot (the number of the field) and the type of a field, so
that reading (`reader.py`) and writing (`writer.py`) walk the same description.

An absent field is None, or the default for a scalar without an optional form. Nothing is
interpreted here: shapes are texts, dtypes and kinds are numbers, indices are not followed.

A field once written keeps its slot and meaning forever; new fields get new slots. The comments
say which format brought a field, in the numbering of JAX's serializer.
Source: the flatbuffer schema of jax.export, as written by JAX 0.4.30 to 0.12.0.1.
"""

# ruff: noqa: RUF009 - `_slot` makes a field: it is to these classes what dataclasses.field is to others
from __future__ import annotations

import dataclasses
import struct
from dataclasses import dataclass
from typing import Any

__all__ = [
    "BOOL",
    "BYTES",
    "INT8",
    "INT16",
    "OPTIONAL_UINT32",
    "STRING",
    "STRINGS",
    "UINT16",
    "UINT32",
    "AbstractDeviceTable",
    "AbstractMeshTable",
    "AbstractValueTable",
    "Bytes",
    "DisabledSafetyCheckTable",
    "EffectTable",
    "ExportedTable",
    "FieldType",
    "NamedShardingTable",
    "OneAxisTable",
    "PartitionSpecTable",
    "PyTreeDefTable",
    "Scalar",
    "ShardingTable",
    "String",
    "Strings",
    "Table",
    "TableField",
    "Tables",
    "Vector",
    "fields_of",
    "width_of",
]


@dataclass(frozen=True)
class Scalar:
    """A number in the table itself; `code` is that of the `struct` module, little-endian."""

    code: str
    default: Any = 0


@dataclass(frozen=True)
class String:
    """A string in UTF-8."""


@dataclass(frozen=True)
class Bytes:
    """A vector of bytes."""


@dataclass(frozen=True)
class Vector:
    """A vector of numbers; `code` is that of the `struct` module, little-endian."""

    code: str


@dataclass(frozen=True)
class Strings:
    """A vector of strings."""


@dataclass(frozen=True)
class Table:
    """Another table, of the class of this name."""

    name: str


@dataclass(frozen=True)
class Tables:
    """A vector of tables of the class of this name."""

    name: str


FieldType = Scalar | String | Bytes | Vector | Strings | Table | Tables

BOOL = Scalar("?", default=False)
INT8 = Scalar("b")
INT16 = Scalar("h")
UINT16 = Scalar("H")
UINT32 = Scalar("I")
OPTIONAL_UINT32 = Scalar("I", default=None)
STRING = String()
STRINGS = Strings()
BYTES = Bytes()


def _slot(number: int, type_: FieldType) -> Any:
    """A field of a table."""
    default = type_.default if isinstance(type_, Scalar) else None
    return dataclasses.field(default=default, metadata={"slot": number, "type": type_})


@dataclass(frozen=True, kw_only=True)
class PyTreeDefTable:
    """One node of a pytree, with its children."""

    kind: int = _slot(0, INT8)
    children: tuple[PyTreeDefTable, ...] | None = _slot(1, Tables("PyTreeDefTable"))
    children_names: tuple[str, ...] | None = _slot(2, STRINGS)  # keys of a dictionary
    custom_name: str | None = _slot(3, STRING)
    custom_auxdata: bytes | None = _slot(4, BYTES)


@dataclass(frozen=True, kw_only=True)
class AbstractDeviceTable:
    """What kind of device a mesh consists of. Since format 8."""

    device_kind: str | None = _slot(0, STRING)
    num_cores: int | None = _slot(1, OPTIONAL_UINT32)
    platform: str | None = _slot(2, STRING)  # since format 11


@dataclass(frozen=True, kw_only=True)
class AbstractMeshTable:
    """Axes of a device mesh, without the devices. Since format 6."""

    axis_sizes: tuple[int, ...] | None = _slot(0, Vector("I"))
    axis_names: tuple[str, ...] | None = _slot(1, STRINGS)
    axis_types: bytes | None = _slot(2, BYTES)  # one kind each
    abstract_device: AbstractDeviceTable | None = _slot(3, Table("AbstractDeviceTable"))


@dataclass(frozen=True, kw_only=True)
class OneAxisTable:
    """The mesh axes that one array axis is split over. Since format 6."""

    axes: tuple[str, ...] | None = _slot(0, STRINGS)


@dataclass(frozen=True, kw_only=True)
class PartitionSpecTable:
    """How an array is split over the axes of a mesh. Since format 6."""

    partitions: tuple[OneAxisTable, ...] | None = _slot(0, Tables("OneAxisTable"))
    reduced: tuple[str, ...] | None = _slot(1, STRINGS)
    unreduced: tuple[str, ...] | None = _slot(2, STRINGS)


@dataclass(frozen=True, kw_only=True)
class NamedShardingTable:
    """A mesh and how an array is split over it. Since format 6."""

    mesh: AbstractMeshTable | None = _slot(0, Table("AbstractMeshTable"))  # until format 9
    spec: PartitionSpecTable | None = _slot(1, Table("PartitionSpecTable"))
    memory_kind: str | None = _slot(2, STRING)
    abstract_mesh_idx: int = _slot(3, UINT32)  # since format 10: position in unique_abstract_meshes


@dataclass(frozen=True, kw_only=True)
class AbstractValueTable:
    """Shape and dtype of an argument or result."""

    kind: int = _slot(0, INT8)
    shape: tuple[str, ...] | None = _slot(1, STRINGS)  # a dimension expression for each axis
    dtype: int = _slot(2, INT8)
    memory_space: int = _slot(3, INT8)  # since format 5


@dataclass(frozen=True, kw_only=True)
class ShardingTable:
    """The sharding of one argument or result, in one of two forms."""

    kind: int = _slot(0, INT8)
    hlo_sharding_proto: bytes | None = _slot(1, BYTES)  # an OpSharding proto; until format 8
    named_sharding: NamedShardingTable | None = _slot(2, Table("NamedShardingTable"))  # since format 6


@dataclass(frozen=True, kw_only=True)
class EffectTable:
    """An effect, by the name of its class."""

    type_name: str | None = _slot(0, STRING)


@dataclass(frozen=True, kw_only=True)
class DisabledSafetyCheckTable:
    """A safety check that the exporter disabled."""

    kind: int = _slot(0, INT8)
    custom_call_target: str | None = _slot(1, STRING)


@dataclass(frozen=True, kw_only=True)
class ExportedTable:
    """An exported function; the root of the flatbuffer."""

    serialization_version: int = _slot(0, UINT16)  # unreliable: 2 for formats 2 to 4, 3 for 5 to 11, then true
    function_name: str | None = _slot(1, STRING)
    in_tree: PyTreeDefTable | None = _slot(2, Table("PyTreeDefTable"))
    in_avals: tuple[AbstractValueTable, ...] | None = _slot(3, Tables("AbstractValueTable"))
    out_tree: PyTreeDefTable | None = _slot(4, Table("PyTreeDefTable"))
    out_avals: tuple[AbstractValueTable, ...] | None = _slot(5, Tables("AbstractValueTable"))
    nr_devices_short: int = _slot(6, INT16)  # until format 4
    in_shardings: tuple[ShardingTable, ...] | None = _slot(7, Tables("ShardingTable"))
    out_shardings: tuple[ShardingTable, ...] | None = _slot(8, Tables("ShardingTable"))
    platforms: tuple[str, ...] | None = _slot(9, STRINGS)
    ordered_effects: tuple[EffectTable, ...] | None = _slot(10, Tables("EffectTable"))
    unordered_effects: tuple[EffectTable, ...] | None = _slot(11, Tables("EffectTable"))
    disabled_checks: tuple[DisabledSafetyCheckTable, ...] | None = _slot(12, Tables("DisabledSafetyCheckTable"))
    mlir_module_serialized: bytes | None = _slot(13, BYTES)
    calling_convention_version: int = _slot(14, UINT16)
    module_kept_var_idx: tuple[int, ...] | None = _slot(15, Vector("H"))
    uses_global_constants: bool = _slot(16, BOOL)
    vjp: ExportedTable | None = _slot(17, Table("ExportedTable"))
    nr_devices: int = _slot(18, UINT32)  # since format 5
    # Since format 10: each aval, mesh and sharding once, the arguments and results by position.
    unique_avals: tuple[AbstractValueTable, ...] | None = _slot(19, Tables("AbstractValueTable"))
    unique_abstract_meshes: tuple[AbstractMeshTable, ...] | None = _slot(20, Tables("AbstractMeshTable"))
    unique_named_shardings: tuple[NamedShardingTable, ...] | None = _slot(21, Tables("NamedShardingTable"))
    in_avals_idxs: tuple[int, ...] | None = _slot(22, Vector("I"))
    out_avals_idxs: tuple[int, ...] | None = _slot(23, Vector("I"))
    in_shardings_idxs: tuple[int, ...] | None = _slot(24, Vector("I"))  # 0: none; else 1 + position
    out_shardings_idxs: tuple[int, ...] | None = _slot(25, Vector("I"))
    jax_version: str | None = _slot(26, STRING)  # since format 12


def width_of(holds: FieldType) -> int:
    """How many bytes a field takes in its table: those of a number, or of a reference."""
    return struct.calcsize("<" + holds.code) if isinstance(holds, Scalar) else 4


_TABLES = {
    table.__name__: table
    for table in (
        PyTreeDefTable,
        AbstractDeviceTable,
        AbstractMeshTable,
        OneAxisTable,
        PartitionSpecTable,
        NamedShardingTable,
        AbstractValueTable,
        ShardingTable,
        EffectTable,
        DisabledSafetyCheckTable,
        ExportedTable,
    )
}


@dataclass(frozen=True)
class TableField:
    """A field of a table: the attribute that holds it, its slot and what it holds."""

    name: str
    slot: int
    holds: FieldType

    @property
    def table(self) -> type[Any]:
        """The class of the table, or of the tables, that the field refers to."""
        assert isinstance(self.holds, Table | Tables), "only fields of tables refer to one"
        return _TABLES[self.holds.name]


def fields_of(table: type[Any]) -> tuple[TableField, ...]:
    """The fields of a table class, in the order of their slots."""
    found = _FIELDS.get(table.__name__)
    assert found is not None, f"{table.__name__} is not a table of the format"
    return found


_FIELDS = {
    name: tuple(
        TableField(field.name, field.metadata["slot"], field.metadata["type"]) for field in dataclasses.fields(table)
    )
    for name, table in _TABLES.items()
}
