"""From an `Exported` to the bytes of an artifact.

The record becomes the tables of the flatbuffer (`_artifact/schema.py`), and what these have no
field for becomes the notes of the trailer. An older format leaves out the fields that came later,
and is refused where the record needs one of them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from jaxtf.serialization._artifact import schema
from jaxtf.serialization._artifact.formats import CURRENT_FORMAT, check_format_version, stored_number
from jaxtf.serialization._artifact.notes import FunctionNotes, Notes
from jaxtf.serialization._artifact.static_fields import static_fields
from jaxtf.serialization._artifact.trailer import append_trailer
from jaxtf.serialization._artifact.writer import write_payload
from jaxtf.serialization._errors import DictionaryKeyError, SerializationError, VjpUnavailable
from jaxtf.serialization._record.avals import Aval, dtype_name
from jaxtf.serialization._record.checks import DisabledSafetyCheck
from jaxtf.serialization._record.effects import Effect
from jaxtf.serialization._record.exported import Exported
from jaxtf.serialization._record.kinds import (
    DICT_NAME,
    DTYPE_NUMBERS,
    AxisType,
    DisabledSafetyCheckKind,
    MemorySpace,
    PyTreeDefKind,
    ShardingKind,
)
from jaxtf.serialization._record.shardings import AbstractMesh, NamedSharding
from jaxtf.serialization._record.tree import Tree
from jaxtf.serialization._record.versions import RELEASE

__all__ = ["serialize"]

T = TypeVar("T")

_MOST_KEPT = 2**16
"""The flatbuffer holds the positions of kept arguments in 16 bits."""


def serialize(exported: Exported, vjp_order: int = 0, format_version: int | None = None) -> bytearray:
    """The artifact of an exported function; see `Exported.serialize`."""
    if isinstance(vjp_order, bool) or not isinstance(vjp_order, int) or vjp_order < 0:
        raise SerializationError(f"vjp_order must be an integer, at least 0; found {vjp_order!r}")
    format_version = CURRENT_FORMAT if format_version is None else check_format_version(format_version)
    functions = _with_vjps(exported, vjp_order)
    if names := [called.name for function in functions for called in function.called_functions]:
        raise SerializationError(
            f"'{exported.fun_name}' calls {', '.join(names)} by name, functions of this process that an artifact "
            "cannot hold\n  remedy: save it as a SavedModel, by jaxtf.convert; or do without call_tf_graph=True"
        )
    table = None
    for function in reversed(functions):
        table = _Writer(function, format_version).table(vjp=table)
    assert table is not None, "there is at least the function itself"
    payload = write_payload(table)
    append_trailer(payload, _notes(functions).to_json())
    return payload


def _with_vjps(exported: Exported, vjp_order: int) -> list[Exported]:
    """The function and its VJPs up to an order."""
    functions = [exported]
    for order in range(1, vjp_order + 1):
        if not functions[-1].has_vjp():
            raise VjpUnavailable(
                f"'{exported.fun_name}' cannot be written with VJPs up to order {vjp_order}: it has none of order "
                f"{order}, because it was read from an artifact written with vjp_order={order - 1}\n"
                "  remedy: export it again where the JAX function is available"
            )
        functions.append(functions[-1].vjp())
    return functions


def _notes(functions: Sequence[Exported]) -> Notes:
    scope = functions[0].scope
    producer = functions[0].producer
    releases = {"jaxtf-serialization": RELEASE, "jax": producer.jax, "jaxlib": producer.jaxlib}
    return Notes(
        constraints=() if scope is None else tuple(constraint.text for constraint in scope.constraints),
        producer={name: release for name, release in releases.items() if release is not None},
        functions=tuple(
            FunctionNotes(
                stablehlo_version=function.stablehlo_version,
                uses_shardy=function.uses_shardy,
                arguments=function.in_names,
                results=function.out_names,
                weak_arguments=_weak(function.in_avals),
                weak_results=_weak(function.out_avals),
                disabled_checks=tuple(str(check) for check in function.disabled_safety_checks if not _has_kind(check)),
                static_fields=static_fields(function.in_structure, function.out_structure),
            )
            for function in functions
        ),
    )


def _weak(avals: Iterable[Aval]) -> tuple[int, ...]:
    return tuple(position for position, aval in enumerate(avals) if aval.weak_type)


def _has_kind(check: DisabledSafetyCheck) -> bool:
    """Whether every reader of the flatbuffer knows the check; JAX's refuses one about shape assertions."""
    return check == DisabledSafetyCheck.platform() or check.is_custom_call() is not None


class _Distinct:
    """Each value once, in the order they came, with the position of each."""

    def __init__(self) -> None:
        self._positions: dict[Any, int] = {}

    def position(self, value: Any) -> int:
        """The position of a value, which takes the next one where it is new."""
        return self._positions.setdefault(value, len(self._positions))

    def map(self, make: Callable[[Any], T]) -> tuple[T, ...]:
        """What `make` makes of each value."""
        return tuple(map(make, self._positions))


class _Writer:
    """One function as tables, in one format."""

    def __init__(self, exported: Exported, format_version: int) -> None:
        self._exported = exported
        self._format = format_version
        self._meshes = _Distinct()

    def table(self, vjp: schema.ExportedTable | None) -> schema.ExportedTable:
        """The table of the function."""
        exported = self._exported
        return schema.ExportedTable(
            serialization_version=stored_number(self._format),
            function_name=exported.fun_name,
            in_tree=self._tree(exported.in_structure),
            out_tree=self._tree(exported.out_structure),
            platforms=exported.platforms,
            ordered_effects=tuple(map(_effect, exported.ordered_effects)),
            unordered_effects=tuple(map(_effect, exported.unordered_effects)),
            disabled_checks=tuple(_check(check) for check in exported.disabled_safety_checks if _has_kind(check)),
            mlir_module_serialized=exported.mlir_module_serialized,
            calling_convention_version=exported.calling_convention_version,
            module_kept_var_idx=self._kept(),
            uses_global_constants=exported.uses_global_constants,
            vjp=vjp,
            jax_version=_writer_mark(exported),
            **self._devices(),
            **(self._avals_once() if self._format >= 10 else self._avals_each()),
        )

    def _kept(self) -> tuple[int, ...]:
        kept = self._exported.module_kept_var_idx
        if kept and kept[-1] >= _MOST_KEPT:
            raise SerializationError(
                f"'{self._exported.fun_name}' uses its flat argument number {kept[-1]} "
                f"({self._exported.in_names[kept[-1]]}); an artifact numbers the arguments that a module takes up to "
                f"{_MOST_KEPT - 1}\n  remedy: stack arguments into fewer, larger arrays"
            )
        return kept

    def _devices(self) -> dict[str, Any]:
        count = self._exported.nr_devices
        if self._format >= 5:
            return {"nr_devices": count}
        if count >= 2**15:
            raise self._refusal(f"is for {count} devices", 5)
        return {"nr_devices_short": count}

    def _avals_each(self) -> dict[str, Any]:
        """Avals and shardings, each where it is used."""
        exported = self._exported
        return {
            "in_avals": tuple(map(self._aval, exported.in_avals)),
            "out_avals": tuple(map(self._aval, exported.out_avals)),
            "in_shardings": tuple(map(self._sharding, exported.in_shardings)),
            "out_shardings": tuple(map(self._sharding, exported.out_shardings)),
        }

    def _avals_once(self) -> dict[str, Any]:
        """Avals, meshes and shardings once each, and which of them the arguments and results have."""
        exported = self._exported
        avals, shardings = _Distinct(), _Distinct()

        def aval_position(aval: Aval) -> int:
            return avals.position((tuple(map(str, aval.shape)), dtype_name(aval.dtype), aval.memory_space))

        def sharding_position(sharding: NamedSharding | None) -> int:
            return 0 if sharding is None else 1 + shardings.position(sharding)

        fields = {
            "in_avals_idxs": tuple(map(aval_position, exported.in_avals)),
            "out_avals_idxs": tuple(map(aval_position, exported.out_avals)),
            "in_shardings_idxs": tuple(map(sharding_position, exported.in_shardings)),
            "out_shardings_idxs": tuple(map(sharding_position, exported.out_shardings)),
            "unique_avals": avals.map(lambda aval: self._aval_table(*aval)),
            "unique_named_shardings": shardings.map(self._named_sharding),
        }
        return {**fields, "unique_abstract_meshes": self._meshes.map(self._mesh)}

    def _aval(self, aval: Aval) -> schema.AbstractValueTable:
        return self._aval_table(tuple(map(str, aval.shape)), dtype_name(aval.dtype), aval.memory_space)

    def _aval_table(self, shape: tuple[str, ...], dtype: str, memory_space: str) -> schema.AbstractValueTable:
        number = DTYPE_NUMBERS.get(dtype)
        if number is None:
            raise SerializationError(
                f"'{self._exported.fun_name}' has an argument or result of dtype {dtype}, which the artifact format "
                f"has no number for; it has them for {', '.join(DTYPE_NUMBERS)}"
            )
        if self._format < 4 and dtype.startswith("key<"):
            raise self._refusal(f"has an argument or result of dtype {dtype}", 4)
        if self._format < 5 and memory_space != "device":
            raise self._refusal(f"has an argument or result in {memory_space} memory", 5)
        space = MemorySpace[memory_space.upper()] if self._format >= 5 else MemorySpace.MISSING
        return schema.AbstractValueTable(shape=shape, dtype=number, memory_space=space)

    def _sharding(self, sharding: NamedSharding | None) -> schema.ShardingTable:
        if sharding is None:
            return schema.ShardingTable()
        if self._format < 6:
            raise self._refusal("has shardings by names of mesh axes", 6)
        return schema.ShardingTable(kind=ShardingKind.NAMED_SHARDING, named_sharding=self._named_sharding(sharding))

    def _named_sharding(self, sharding: NamedSharding) -> schema.NamedShardingTable:
        by_position = self._format >= 10
        return schema.NamedShardingTable(
            mesh=None if by_position else self._mesh(sharding.mesh),
            abstract_mesh_idx=self._meshes.position(sharding.mesh) if by_position else 0,
            spec=_partition_spec(sharding),
            memory_kind=sharding.memory_kind,
        )

    def _mesh(self, mesh: AbstractMesh) -> schema.AbstractMeshTable:
        device = None
        if mesh.device is not None and self._format >= 8:
            device = schema.AbstractDeviceTable(
                device_kind=mesh.device.device_kind,
                num_cores=mesh.device.num_cores,
                platform=mesh.device.platform if self._format >= 11 else None,
            )
        return schema.AbstractMeshTable(
            axis_sizes=mesh.axis_sizes,
            axis_names=mesh.axis_names,
            axis_types=bytes(AxisType[name.upper()] for name in mesh.axis_types),
            abstract_device=device,
        )

    def _tree(self, tree: Tree) -> schema.PyTreeDefTable:
        children = tuple(map(self._tree, tree.children)) or None
        if tree.kind is PyTreeDefKind.DICT and not all(isinstance(key, str) for key in tree.keys):
            return self._custom(DICT_NAME, _keys(tree.keys), children)
        if tree.custom is not None:
            return self._custom(*tree.custom.for_artifact(), children)
        names = tree.keys if tree.kind is PyTreeDefKind.DICT and tree.keys else None
        return schema.PyTreeDefTable(kind=tree.kind, children=children, children_names=names)

    def _custom(
        self, name: str, auxdata: bytes, children: tuple[schema.PyTreeDefTable, ...] | None
    ) -> schema.PyTreeDefTable:
        if self._format < 3:
            raise self._refusal(f"has a pytree node of type {name!r}", 3)
        return schema.PyTreeDefTable(
            kind=PyTreeDefKind.CUSTOM, children=children, custom_name=name, custom_auxdata=auxdata
        )

    def _refusal(self, what: str, needed: int) -> SerializationError:
        return SerializationError(
            f"'{self._exported.fun_name}' cannot be written in format {self._format}: it {what}, which came with "
            f"format {needed}\n  remedy: leave format_version out, or give {needed} or more"
        )


def _writer_mark(exported: Exported) -> str:
    """The JAX release that exported the function, and ours, by which a reader knows that a trailer belongs to it."""
    return f"{exported.producer.jax or 'unknown'} jaxtf-serialization {RELEASE}"


def _keys(keys: Sequence[Any]) -> bytes:
    """The keys of a dictionary that are not all strings, in JSON."""
    for key in keys:
        if type(key) not in (int, str):
            raise DictionaryKeyError(
                f"Serialization is supported only for dictionaries whose keys are strings or integers; found the key "
                f"{key!r} of type {type(key).__name__}"
            )
    return json.dumps(list(keys)).encode()


def _partition_spec(sharding: NamedSharding) -> schema.PartitionSpecTable:
    return schema.PartitionSpecTable(
        partitions=tuple(schema.OneAxisTable(axes=names) for names in sharding.partitions),
        reduced=tuple(sorted(sharding.reduced)),
        unreduced=tuple(sorted(sharding.unreduced)),
    )


def _effect(effect: Effect) -> schema.EffectTable:
    """The table of an effect, which must be made again from its class alone."""
    if effect.value is not None:
        try:
            again = type(effect.value)()
        except Exception as error:
            raise SerializationError(
                f"Effect {effect} must have a nullary constructor to be serializable; calling it raised {error!r}"
            ) from error
        if again != effect.value or hash(again) != hash(effect.value):
            raise SerializationError(
                f"Effect {effect} must have a nullary class constructor that produces an equal effect object"
            )
    return schema.EffectTable(type_name=effect.name)


def _check(check: DisabledSafetyCheck) -> schema.DisabledSafetyCheckTable:
    target = check.is_custom_call()
    kind = DisabledSafetyCheckKind.PLATFORM if target is None else DisabledSafetyCheckKind.CUSTOM_CALL
    return schema.DisabledSafetyCheckTable(kind=kind, custom_call_target=target)
