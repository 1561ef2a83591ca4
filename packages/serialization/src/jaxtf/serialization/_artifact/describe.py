"""`describe(blob)`: what an artifact says about itself, read without JAX.

Works on every artifact, ours and those of `jax.export` of any format, from its tables, its notes
and the frame of its modules. Tables, trees, shardings and checks are read as `deserialize` reads them. Nothing is
parsed by MLIR and nothing is evaluated: shapes and constraints stay texts. Notes may lack what later or earlier
releases do not write.

A cold process that describes an artifact takes about 0.1 s; JAX, NumPy or islpy would each take as much again, and are
not imported: so dtypes and symbolic sizes are texts here, and not those that `deserialize` makes.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from jaxtf.serialization._artifact.description import (
    ArrayDescription,
    CustomCallDescription,
    Description,
    FunctionDescription,
    WeightDescription,
    WeightsDescription,
)
from jaxtf.serialization._artifact.fields import (
    check_count,
    device_count,
    disabled_check,
    dtype_name,
    memory_space,
    read_tables,
    required,
    selected,
)
from jaxtf.serialization._artifact.schema import AbstractValueTable, ExportedTable, PyTreeDefTable, ShardingTable
from jaxtf.serialization._artifact.shardings import ShardingReader
from jaxtf.serialization._artifact.trailer import Split, writer_of
from jaxtf.serialization._artifact.trees import tree
from jaxtf.serialization._bytecode.portable import custom_call_targets, stablehlo_facts
from jaxtf.serialization._container.manifest import Manifest
from jaxtf.serialization._container.parts import parts_of
from jaxtf.serialization._container.source import Readable, Source, opened
from jaxtf.serialization._errors import ArtifactError
from jaxtf.serialization._record.checks import STABLE_CUSTOM_CALLS
from jaxtf.serialization._record.kinds import PyTreeDefKind
from jaxtf.serialization._record.shardings import NamedSharding

__all__ = ["describe", "describe_bytes", "describe_source"]


_ARRAY_COST = 320
_MOST_DIGITS = 19
_MEMORY_RATIO, _MEMORY_FLOOR = 6, 2**20


def describe(blob: Readable) -> Description:
    """The description of an artifact, or of a program with its weights, without JAX.

    Of weights only the header is read, not the arrays: `load` and `jaxtf-artifact check` verify those.

    Args:
      blob: The bytes of the whole artifact, of `Exported.serialize` or of `jax.export`, of any format; or a path, or
        an open file, to read them from; or one that `save` wrote.

    Returns:
      The signature, constraints, versions, custom calls, effects, checks and sizes;
      `str` of it is for people, `to_json()` for programs.

    Raises:
      ArtifactError: Not an artifact, or a damaged one.
      VersionError: Its format, or that of its trailer or module, is later than this release knows.
      OSError: The file cannot be read.
    """
    with opened(blob) as source:
        return describe_source(source)


def describe_source(source: Source) -> Description:
    """What a source that is open says about itself."""
    parts = parts_of(source)
    description = describe_bytes(parts.artifact)
    if parts.manifest is None:
        return description
    return replace(description, size=source.size, weights=_weights(parts.manifest))


def describe_bytes(artifact: bytes | bytearray | memoryview) -> Description:
    """What the bytes of an artifact say about it, without weights."""
    split, table = read_tables(artifact)
    return Description(
        functions=tuple(_functions(table, split)),
        constraints=_texts((split.notes or {}).get("constraints")),
        stored_format=table.serialization_version,
        formats=_formats(table),
        size=memoryview(artifact).nbytes,
        payload_size=len(split.payload),
        trailer_format=split.trailer_format,
        digest="none" if split.digest is None else "verified",
        sha256=split.digest,
        producer=_producer(table, split.notes or {}),
    )


def _weights(manifest: Manifest) -> WeightsDescription:
    return WeightsDescription(
        arrays=tuple(
            WeightDescription(name, stored.dtype, stored.shape, stored.entry.end - stored.entry.start, stored.sha256)
            for name, stored in manifest.arrays.items()
        ),
        arguments=manifest.arguments,
        sha256=manifest.sha256,
        metadata=dict(manifest.metadata),
        producer=dict(manifest.producer),
    )


def _producer(table: ExportedTable, notes: Mapping[str, Any]) -> dict[str, str]:
    jax_release, our_release = writer_of(table)
    releases = {"jaxtf-serialization": our_release, "jax": jax_release}
    noted = notes.get("producer")
    if isinstance(noted, dict):
        releases.update({str(name): str(release)[:100] for name, release in noted.items()})
    return {name: release for name, release in releases.items() if release is not None}


# Functions


def _functions(table: ExportedTable, split: Split) -> Iterator[FunctionDescription]:
    noted = (split.notes or {}).get("functions")
    budget = _Budget(_MEMORY_RATIO * len(split.payload) + _MEMORY_FLOOR)
    order, next_table = 0, table
    while True:
        notes = noted[order] if isinstance(noted, list) and order < len(noted) else {}
        yield _Function(next_table, notes if isinstance(notes, dict) else {}, budget).description()
        if next_table.vjp is None:
            return
        order, next_table = order + 1, next_table.vjp


class _Budget:
    """How much memory arguments and results may take, whose paths may be many times what is in the artifact."""

    def __init__(self, left: int) -> None:
        self._left = left

    def charge(self, path: str) -> str:
        """Returns the path of one more."""
        self._left -= _ARRAY_COST + len(path)
        if self._left < 0:
            raise ArtifactError("the arguments and results of the artifact expand to many times its size")
        return path


class _Function:
    """The description of one table."""

    def __init__(self, table: ExportedTable, notes: Mapping[str, Any], budget: _Budget) -> None:
        self._table = table
        self._notes = notes
        self._budget = budget
        self._devices = device_count(table)
        # Once for each of the distinct ones, which many arrays may share.
        self._sharding_text = functools.cache(lambda sharding: budget.charge(_sharding_text(sharding)))

    def description(self) -> FunctionDescription:
        """The record."""
        table = self._table
        module = memoryview(required(table.mlir_module_serialized, "the module"))
        facts = stablehlo_facts(module)
        stored = [str(disabled_check(check)) for check in table.disabled_checks or ()]
        disabled = (*stored, *_texts(self._notes.get("disabled_checks")))
        return FunctionDescription(
            name=required(table.function_name, "the name of the function"),
            arguments=self._arguments(),
            results=self._results(),
            platforms=table.platforms or (),
            calling_convention_version=table.calling_convention_version,
            stablehlo_version=facts.stablehlo_version,
            module_size=len(module),
            device_count=self._devices,
            custom_calls=tuple(_custom_call(target, disabled) for target in custom_call_targets(module)),
            ordered_effects=tuple(effect.type_name or "unknown" for effect in table.ordered_effects or ()),
            unordered_effects=tuple(effect.type_name or "unknown" for effect in table.unordered_effects or ()),
            disabled_checks=disabled,
            uses_shardy=facts.uses_shardy,
            uses_global_constants=table.uses_global_constants,
        )

    def _arguments(self) -> tuple[ArrayDescription, ...]:
        table = self._table
        kept = frozenset(table.module_kept_var_idx or ())
        paths = self._paths("arguments", required(table.in_tree, "the structure of its arguments"))
        avals = selected(_dtype_shape_space, table.in_avals_idxs, table.unique_avals, table.in_avals, "avals")
        shardings = self._shardings(table.in_shardings_idxs, table.in_shardings)
        return self._arrays("arguments", avals, paths, shardings, kept)

    def _results(self) -> tuple[ArrayDescription, ...]:
        table = self._table
        paths = self._paths("results", required(table.out_tree, "the structure of its results"))
        avals = selected(_dtype_shape_space, table.out_avals_idxs, table.unique_avals, table.out_avals, "avals")
        shardings = self._shardings(table.out_shardings_idxs, table.out_shardings)
        return self._arrays("results", avals, paths, shardings, None)

    def _arrays(
        self,
        what: str,
        avals: Sequence[tuple[str, tuple[int | str, ...], str]],
        paths: Sequence[str],
        shardings: Sequence[str | None],
        kept: frozenset[int] | None,
    ) -> tuple[ArrayDescription, ...]:
        check_count(what, len(paths), len(avals))
        if shardings:
            check_count(f"shardings of {what}", len(avals), len(shardings))
        weak = self._notes.get(f"weak_{what}")
        weak_positions = {item for item in weak if isinstance(item, int)} if isinstance(weak, list) else set()
        return tuple(
            ArrayDescription(
                path=path,
                dtype=dtype,
                shape=shape,
                kept=kept is None or position in kept,
                weak_type=position in weak_positions,
                memory_space=space,
                sharding=shardings[position] if shardings else None,
            )
            for position, (path, (dtype, shape, space)) in enumerate(zip(paths, avals, strict=True))
        )

    def _paths(self, what: str, table: PyTreeDefTable) -> list[str]:
        """The paths noted, which know the names of fields, or those of the structure."""
        roots = ("args", "kwargs") if what == "arguments" else ()
        paths = [self._budget.charge(path) for path in tree(table).each_path(*roots)]
        noted = _texts(self._notes.get(what))
        return list(noted) if len(noted) == len(paths) else paths

    def _shardings(self, positions: tuple[int, ...] | None, each: tuple[ShardingTable, ...] | None) -> list[str | None]:
        shardings = ShardingReader(self._table, self._devices).shardings(positions, each)
        return [None if sharding is None else self._sharding_text(sharding) for sharding in shardings]


def _dtype_shape_space(aval: AbstractValueTable) -> tuple[str, tuple[int | str, ...], str]:
    return dtype_name(aval.dtype), tuple(map(_size, aval.shape or ())), memory_space(aval.memory_space)


def _size(text: str) -> int | str:
    """A size as a number where it is one; a dimension expression as it was written."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS else text


# Small parts


def _custom_call(target: str, disabled: Sequence[str]) -> CustomCallDescription:
    allowed = f"custom_call:{target}" in disabled or "custom_call:ALL" in disabled
    return CustomCallDescription(target, target in STABLE_CUSTOM_CALLS, allowed)


def _sharding_text(sharding: NamedSharding) -> str:
    parts = ", ".join("+".join(axes) or "-" for axes in sharding.partitions)
    return f"split ({parts}) over mesh ({sharding.mesh})"


def _formats(table: ExportedTable) -> tuple[int, int]:
    """The formats that an artifact may be of, judged by its fields; see `formats.py`."""
    stored = table.serialization_version
    if stored >= 12:
        return stored, stored
    if stored == 2:
        return _low_formats(table), 4
    if table.unique_avals is not None or table.in_avals_idxs or table.out_avals_idxs:
        platforms = (mesh.abstract_device and mesh.abstract_device.platform for mesh in _meshes(table))
        return (11 if any(platform is not None for platform in platforms) else 10), 11
    shardings = (*(table.in_shardings or ()), *(table.out_shardings or ()))
    low = 6 if any(sharding.named_sharding is not None for sharding in shardings) else 5
    if any(mesh.abstract_device is not None for mesh in _meshes(table)):
        low = 8
    return low, 8 if any(sharding.hlo_sharding_proto is not None for sharding in shardings) else 9


def _low_formats(table: ExportedTable) -> int:
    """The lowest format that holds what an artifact of formats 2 to 4 holds."""
    if any(dtype_name(aval.dtype).startswith("key<") for aval in _each(table)):
        return 4
    trees = (table.in_tree, table.out_tree)
    return 3 if any(tree is not None and _has_custom(tree) for tree in trees) else 2


def _each(table: ExportedTable) -> tuple[AbstractValueTable, ...]:
    return (*(table.in_avals or ()), *(table.out_avals or ()))


def _has_custom(tree: PyTreeDefTable) -> bool:
    return tree.kind == PyTreeDefKind.CUSTOM or any(map(_has_custom, tree.children or ()))


def _meshes(table: ExportedTable) -> Iterator[Any]:
    yield from table.unique_abstract_meshes or ()
    for sharding in (*(table.in_shardings or ()), *(table.out_shardings or ())):
        if sharding.named_sharding is not None and sharding.named_sharding.mesh is not None:
            yield sharding.named_sharding.mesh


def _texts(values: Any) -> tuple[str, ...]:
    """The texts of a list of notes; other values are passed over."""
    return tuple(value for value in values if isinstance(value, str)) if isinstance(values, list) else ()
