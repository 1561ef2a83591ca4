"""`describe(blob)`: what an artifact says about itself, read without JAX.

Works on every artifact, ours and those of `jax.export` of any format, from its tables, its notes
and the frame of its modules. Nothing is parsed by MLIR and nothing is evaluated: shapes and
constraints stay texts. Notes may lack what later or earlier releases do not write.

Imports only the reading of bytes: a cold process that describes an artifact takes about 0.1 s,
and JAX, NumPy or islpy would each take as much again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from jaxtf.serialization._artifact.description import (
    ArrayDescription,
    CustomCallDescription,
    Description,
    FunctionDescription,
)
from jaxtf.serialization._artifact.fields import at, required
from jaxtf.serialization._artifact.formats import CURRENT_FORMAT, OLDEST_FORMAT
from jaxtf.serialization._artifact.reader import read_payload
from jaxtf.serialization._artifact.schema import (
    AbstractValueTable,
    DisabledSafetyCheckTable,
    ExportedTable,
    NamedShardingTable,
    PyTreeDefTable,
    ShardingTable,
)
from jaxtf.serialization._artifact.trailer import Split, check_end, split_trailer, writer_of
from jaxtf.serialization._bytecode.portable import custom_call_targets, stablehlo_facts
from jaxtf.serialization._errors import ArtifactError, VersionError
from jaxtf.serialization._record.checks import STABLE_CUSTOM_CALLS
from jaxtf.serialization._record.kinds import DTYPES, DisabledSafetyCheckKind, MemorySpace, PyTreeDefKind

__all__ = ["describe"]


_ARRAY_COST = 320
_MEMORY_RATIO, _MEMORY_FLOOR = 6, 2**20


def describe(blob: bytes | bytearray | memoryview) -> Description:
    """What an artifact says about itself, without JAX.

    Args:
      blob: The whole artifact, of `Exported.serialize` or of `jax.export`, of any format.

    Returns:
      The signature, constraints, versions, custom calls, effects, checks and sizes;
      `str` of it is for people, `to_json()` for programs.

    Raises:
      ArtifactError: Not an artifact, or a damaged one.
      VersionError: Its format, or that of its trailer or module, is later than this release knows.
    """
    split = split_trailer(blob)
    table = read_payload(split.payload)
    check_end(table, split.notes)
    return Description(
        functions=tuple(_functions(table, split)),
        constraints=_texts((split.notes or {}).get("constraints")),
        stored_format=table.serialization_version,
        formats=_formats(table),
        size=memoryview(blob).nbytes,
        payload_size=len(split.payload),
        trailer_format=split.trailer_format,
        digest="none" if split.digest is None else "verified",
        sha256=split.digest,
        producer=_producer(table, split.notes or {}),
    )


def _producer(table: ExportedTable, notes: Mapping[str, Any]) -> dict[str, str]:
    jax_release, our_release = writer_of(table)
    said = {"jaxtf-serialization": our_release, "jax": jax_release}
    noted = notes.get("producer")
    if isinstance(noted, dict):
        said.update({str(name): str(release)[:100] for name, release in noted.items()})
    return {name: release for name, release in said.items() if release is not None}


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
    """How much memory arguments and results may take, whose paths may be many times what stands in the artifact."""

    def __init__(self, left: int) -> None:
        self._left = left

    def charge(self, path: str) -> str:
        """Returns the path of one more."""
        self._left -= _ARRAY_COST + len(path)
        if self._left < 0:
            raise ArtifactError("the arguments and results of the artifact stand for many times its size")
        return path


class _Function:
    """The description of one table."""

    def __init__(self, table: ExportedTable, notes: Mapping[str, Any], budget: _Budget) -> None:
        self._table = table
        self._notes = notes
        self._budget = budget

    def description(self) -> FunctionDescription:
        """The record."""
        table = self._table
        module = memoryview(required(table.mlir_module_serialized, "the module"))
        facts = stablehlo_facts(module)
        disabled = (*map(_check, table.disabled_checks or ()), *_texts(self._notes.get("disabled_checks")))
        return FunctionDescription(
            name=required(table.function_name, "the name of the function"),
            arguments=self._arguments(),
            results=self._results(),
            platforms=table.platforms or (),
            calling_convention_version=table.calling_convention_version,
            stablehlo_version=facts.stablehlo_version,
            module_size=len(module),
            device_count=table.nr_devices or table.nr_devices_short,
            custom_calls=tuple(_custom_call(target, disabled) for target in custom_call_targets(module)),
            ordered_effects=tuple(effect.type_name or "unknown" for effect in table.ordered_effects or ()),
            unordered_effects=tuple(effect.type_name or "unknown" for effect in table.unordered_effects or ()),
            disabled_checks=disabled,
            uses_shardy=facts.uses_shardy,
            uses_global_constants=table.uses_global_constants,
        )

    def _arguments(self) -> tuple[ArrayDescription, ...]:
        table = self._table
        return self._arrays(
            "arguments",
            avals=_avals(table, table.in_avals_idxs, table.in_avals),
            shardings=self._shardings(table.in_shardings_idxs, table.in_shardings),
            tree=required(table.in_tree, "the structure of its arguments"),
            kept=frozenset(table.module_kept_var_idx or ()),
        )

    def _results(self) -> tuple[ArrayDescription, ...]:
        table = self._table
        return self._arrays(
            "results",
            avals=_avals(table, table.out_avals_idxs, table.out_avals),
            shardings=self._shardings(table.out_shardings_idxs, table.out_shardings),
            tree=required(table.out_tree, "the structure of its results"),
            kept=None,
        )

    def _arrays(
        self,
        what: str,
        avals: Sequence[AbstractValueTable],
        shardings: Sequence[str | None],
        tree: PyTreeDefTable,
        kept: frozenset[int] | None,
    ) -> tuple[ArrayDescription, ...]:
        paths = self._paths(what, tree)
        if len(paths) != len(avals) or (shardings and len(shardings) != len(avals)):
            raise ArtifactError(
                f"the artifact has {len(avals)} types and {len(shardings)} shardings for {len(paths)} {what}"
            )
        weak = self._notes.get(f"weak_{what}")
        weak_positions = {item for item in weak if isinstance(item, int)} if isinstance(weak, list) else set()
        return tuple(
            ArrayDescription(
                path=path,
                dtype=at(DTYPES, aval.dtype, "dtypes"),
                shape=aval.shape or (),
                kept=kept is None or position in kept,
                weak_type=position in weak_positions,
                memory_space=_memory_space(aval.memory_space),
                sharding=shardings[position] if shardings else None,
            )
            for position, (path, aval) in enumerate(zip(paths, avals, strict=True))
        )

    def _paths(self, what: str, tree: PyTreeDefTable) -> list[str]:
        """The paths noted, which know the names of fields, or those that the structure tells."""
        structure = [self._budget.charge(path) for path in _structure_paths(what, tree)]
        noted = _texts(self._notes.get(what))
        return list(noted) if len(noted) == len(structure) else structure

    def _shardings(
        self, positions: tuple[int, ...] | None, each: tuple[ShardingTable, ...] | None
    ) -> tuple[str | None, ...]:
        if positions:
            distinct = [self._named_sharding(table) for table in self._table.unique_named_shardings or ()]
            return tuple(at(distinct, position - 1, "shardings") if position else None for position in positions)
        return tuple(map(self._sharding, each or ()))

    def _sharding(self, table: ShardingTable) -> str | None:
        if table.named_sharding is not None:
            return self._named_sharding(table.named_sharding)
        return None if table.hlo_sharding_proto is None else "sharded, in XLA's form"

    def _named_sharding(self, table: NamedShardingTable) -> str:
        meshes = self._table.unique_abstract_meshes
        mesh = at(meshes, table.abstract_mesh_idx, "meshes") if meshes else required(table.mesh, "a mesh")
        axes = ", ".join(map("{}={}".format, mesh.axis_names or (), mesh.axis_sizes or ()))
        spec = table.spec
        partitions = () if spec is None or spec.partitions is None else spec.partitions
        parts = ["+".join(partition.axes or ()) or "-" for partition in partitions]
        return self._budget.charge(f"split ({', '.join(parts)}) over mesh ({axes})")


def _avals(
    table: ExportedTable, positions: tuple[int, ...] | None, each: tuple[AbstractValueTable, ...] | None
) -> Sequence[AbstractValueTable]:
    if positions:
        distinct = table.unique_avals or ()
        return [at(distinct, position, "types") for position in positions]
    return each or ()


def _structure_paths(what: str, tree: PyTreeDefTable) -> Iterator[str]:
    children = tree.children or ()
    if what == "arguments" and tree.kind == PyTreeDefKind.TUPLE and len(children) == 2:
        yield from _leaves(children[0], "args")
        yield from _leaves(children[1], "kwargs")
    else:
        yield from _leaves(tree, "result" if what == "results" else "args")


def _leaves(tree: PyTreeDefTable, path: str) -> Iterator[str]:
    """The path of each leaf."""
    children = tree.children or ()
    if tree.kind == PyTreeDefKind.LEAF:
        yield path
    names = tree.children_names
    if names is not None and len(names) != len(children):
        raise ArtifactError(f"the artifact has a dictionary of {len(children)} values with {len(names)} keys")
    for position, child in enumerate(children):
        if names is not None:
            step = repr(names[position])
        else:
            step = f"<flat index {position}>" if tree.kind == PyTreeDefKind.CUSTOM else str(position)
        yield from _leaves(child, f"{path}[{step}]")


# Small parts


def _custom_call(target: str, disabled: Sequence[str]) -> CustomCallDescription:
    allowed = f"custom_call:{target}" in disabled or "custom_call:ALL" in disabled
    return CustomCallDescription(target, target in STABLE_CUSTOM_CALLS, allowed)


def _check(table: DisabledSafetyCheckTable) -> str:
    match table.kind:
        case DisabledSafetyCheckKind.PLATFORM:
            return "platform"
        case DisabledSafetyCheckKind.CUSTOM_CALL:
            return f"custom_call:{table.custom_call_target}"
        case DisabledSafetyCheckKind.SHAPE_ASSERTIONS:
            return "shape_assertions"
    return f"unknown, number {table.kind}"


def _memory_space(number: int) -> str:
    spaces = {MemorySpace.MISSING: "device", **{space: space.name.lower() for space in MemorySpace if space}}
    if number not in spaces:
        raise ArtifactError(f"the artifact has an array in memory space {number}; there are {len(spaces)}")
    return spaces[MemorySpace(number)]


def _formats(table: ExportedTable) -> tuple[int, int]:
    """The formats that an artifact may be of, judged by its fields; see `_formats.py`."""
    stored = table.serialization_version
    if not OLDEST_FORMAT <= stored <= CURRENT_FORMAT:
        jax_release, our_release = writer_of(table)
        raise VersionError(
            f"the artifact is of format {stored}, written by jaxtf-serialization {our_release} and JAX {jax_release}; "
            f"this release reads formats {OLDEST_FORMAT} to {CURRENT_FORMAT}\n"
            "  remedy: install a newer jaxtf-serialization"
        )
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
    if any(at(DTYPES, aval.dtype, "dtypes").startswith("key<") for aval in _each(table)):
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
