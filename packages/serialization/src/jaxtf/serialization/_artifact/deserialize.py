"""From the bytes of an artifact to an `Exported`.

Reading is by the fields that are present, for every format that `jax.export` and this package
wrote since JAX 0.4.30; nothing is believed that was not checked. Nothing is compiled, and JAX is
not needed: what only JAX can make (treedefs, effects, shardings on devices) is made when it is
asked for.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from jaxtf.serialization._artifact import schema
from jaxtf.serialization._artifact.avals import AvalReader, scope
from jaxtf.serialization._artifact.fields import (
    check_count,
    device_count,
    disabled_check,
    read_tables,
    required,
    writer_text,
)
from jaxtf.serialization._artifact.notes import FunctionNotes, Notes
from jaxtf.serialization._artifact.shardings import ShardingReader
from jaxtf.serialization._artifact.static_fields import with_static_fields
from jaxtf.serialization._artifact.steps import with_steps
from jaxtf.serialization._artifact.trailer import writer_of
from jaxtf.serialization._artifact.trees import tree
from jaxtf.serialization._bytecode.portable import stablehlo_facts
from jaxtf.serialization._container.parts import parts_of
from jaxtf.serialization._container.source import Readable, opened
from jaxtf.serialization._errors import ArtifactError, VersionError
from jaxtf.serialization._record.avals import Aval, ExtendedDtype, in_memory
from jaxtf.serialization._record.checks import DisabledSafetyCheck
from jaxtf.serialization._record.effects import Effect
from jaxtf.serialization._record.exported import Exported
from jaxtf.serialization._record.producer import Producer
from jaxtf.serialization._record.shardings import NamedSharding
from jaxtf.serialization._record.tree import Tree
from jaxtf.serialization._record.versions import (
    maximum_supported_calling_convention_version,
    minimum_supported_calling_convention_version,
)
from jaxtf.shapepoly import SymbolicScope, is_symbolic_dim

__all__ = ["deserialize", "deserialize_bytes"]


def deserialize(blob: Readable) -> Exported:
    """Reads an exported function from an artifact: its bytes, a path, or an open file.

    Artifacts of `Exported.serialize` and of `jax.export`, of every format since JAX 0.4.30. Flat
    arguments come back in the order of `jax.tree.leaves((args, kwargs))`. A shape such as
    `(batch, 3*n)` comes back in a new scope, with the constraints it was exported under;
    `jax.export` does not write these. JAX is not needed to read an artifact, only to call it.

    Args:
      blob: The bytes of the whole artifact, or where to read them, from a source you trust: running the result runs
        any custom call registered in this process. Its digest, where it has one, is checked first. Of a file with
        weights, the function that takes them; `load` binds them.

    Returns:
      An `Exported` equal to the one written. It has as many orders of VJP as were written.

    Raises:
      ArtifactError: Not an artifact, or a damaged one; the message gives the byte offset where
        there is one.
      VersionError: A format or a calling convention outside the range that is read; the message
        gives the range, the version found and the writer.
      OSError: The file cannot be read.

    Source: docs/artifact_format.md.
    """
    with opened(blob) as source:
        return deserialize_bytes(parts_of(source).artifact)


def deserialize_bytes(artifact: bytes | bytearray | memoryview) -> Exported:
    """The exported function of the bytes of an artifact, without weights."""
    split, table = read_tables(artifact)
    _check_calling_convention(table)
    notes = None if split.notes is None else Notes.parse(split.notes)
    jax_release, our_release = writer_of(table)
    source = _Source(
        scope=scope(() if notes is None else notes.constraints),
        notes=() if notes is None else notes.functions,
        producer=Producer(our_release, jax_release, None if notes is None else notes.producer.get("jaxlib")),
    )
    return source.function(table, 0)


def _check_calling_convention(table: schema.ExportedTable) -> None:
    low, high = minimum_supported_calling_convention_version, maximum_supported_calling_convention_version
    convention = table.calling_convention_version
    if not low <= convention <= high:
        raise VersionError(
            f"the artifact is of calling convention version {convention}, written by {writer_text(table)}; this "
            f"release reads {low} to {high}\n"
            f"  remedy: {'install a newer' if convention > high else 'export again with this'} jaxtf-serialization"
        )


@dataclass(frozen=True)
class _Source:
    """What the function of an artifact and its VJPs have in common.

    Attributes:
      scope: The scope of their shapes.
      notes: Of the function and of each order of its VJP; empty in artifacts that are not ours.
      producer: Who wrote it.
    """

    scope: SymbolicScope
    notes: tuple[FunctionNotes, ...]
    producer: Producer

    def function(self, table: schema.ExportedTable, order: int) -> Exported:
        """The function, for order 0, or its VJP of an order."""
        return _Function(self, table, order).exported()


class _Function:
    """One function of an artifact."""

    def __init__(self, source: _Source, table: schema.ExportedTable, order: int) -> None:
        self._source = source
        self._table = table
        self._order = order
        if source.notes and order >= len(source.notes):
            raise ArtifactError(f"the artifact has a VJP of order {order}, which its notes do not mention")
        self._notes = source.notes[order] if source.notes else None

    def exported(self) -> Exported:
        """The record."""
        table, notes = self._table, self._notes
        module = bytes(required(table.mlir_module_serialized, "the module"))
        facts = stablehlo_facts(module) if notes is None else notes
        in_structure = tree(required(table.in_tree, "the structure of its arguments"))
        out_structure = tree(required(table.out_tree, "the structure of its results"))
        devices = device_count(table)
        shardings = ShardingReader(table, devices).shardings
        given_in = shardings(table.in_shardings_idxs, table.in_shardings)
        given_out = shardings(table.out_shardings_idxs, table.out_shardings)
        avals = AvalReader(table, self._source.scope).avals
        in_avals = avals(table.in_avals_idxs, table.in_avals, () if notes is None else notes.weak_arguments)
        out_avals = avals(table.out_avals_idxs, table.out_avals, () if notes is None else notes.weak_results)
        check_count("arguments", in_structure.leaf_count, len(in_avals))
        check_count("results", out_structure.leaf_count, len(out_avals))
        in_shardings = self._for_each(given_in, in_avals, "arguments")
        out_shardings = self._for_each(given_out, out_avals, "results")
        in_names = self._names(in_structure, None if notes is None else notes.arguments, "args", "kwargs")
        out_names = self._names(out_structure, None if notes is None else notes.results)
        if notes is not None:
            in_structure = with_steps(in_structure, in_names, has_roots=True)
            out_structure = with_steps(out_structure, out_names, has_roots=False)
            in_structure, out_structure = with_static_fields((in_structure, out_structure), notes.static_fields)
        _check_variables(in_avals, out_names, out_avals)
        return Exported(
            fun_name=required(table.function_name, "the name of the function"),
            in_structure=in_structure,
            in_avals=in_memory(in_avals, in_shardings),
            in_names=in_names,
            in_shardings=in_shardings,
            out_structure=out_structure,
            out_avals=in_memory(out_avals, out_shardings),
            out_names=out_names,
            out_shardings=out_shardings,
            platforms=self._platforms(),
            ordered_effects=tuple(map(self._effect, table.ordered_effects or ())),
            unordered_effects=tuple(map(self._effect, table.unordered_effects or ())),
            disabled_safety_checks=self._checks(),
            nr_devices=devices,
            mlir_module_serialized=module,
            stablehlo_version=facts.stablehlo_version,
            calling_convention_version=table.calling_convention_version,
            module_kept_var_idx=self._kept(len(in_avals)),
            uses_global_constants=table.uses_global_constants,
            uses_shardy=facts.uses_shardy,
            producer=self._source.producer,
            _make_vjp=self._vjp(),
            _is_read=True,
        )

    def _vjp(self) -> Callable[[], Exported] | None:
        if self._table.vjp is None:
            return None
        return functools.cache(functools.partial(self._source.function, self._table.vjp, self._order + 1))

    def _names(self, structure: Tree, noted: tuple[str, ...] | None, *roots: str) -> tuple[str, ...]:
        """Paths of the leaves: those noted, which know the fields of custom types, or those of the structure."""
        if noted is not None:
            check_count("paths in its notes", structure.leaf_count, len(noted))
            return noted
        return structure.paths(*roots)

    def _for_each(
        self, shardings: tuple[NamedSharding | None, ...], avals: Sequence[Aval], what: str
    ) -> tuple[NamedSharding | None, ...]:
        if not shardings:
            return (None,) * len(avals)
        check_count(f"shardings of {what}", len(avals), len(shardings))
        for sharding, aval in zip(shardings, avals, strict=True):
            if (
                sharding is not None
                and len(sharding.partitions) > aval.ndim
                and not isinstance(aval.dtype, ExtendedDtype)
            ):
                raise ArtifactError(f"among the {what}, {aval} has a sharding of {len(sharding.partitions)} axes")
        return shardings

    def _platforms(self) -> tuple[str, ...]:
        platforms = self._table.platforms
        if not platforms:
            raise ArtifactError("the artifact names no platform")
        return platforms

    def _kept(self, argument_count: int) -> tuple[int, ...]:
        kept = self._table.module_kept_var_idx or ()
        if any(left >= right for left, right in pairwise(kept)) or kept[-1:] >= (argument_count,):
            raise ArtifactError(
                f"the positions of the arguments that the module takes must ascend and be less than {argument_count}; "
                f"found {kept[:20]}"
            )
        return kept

    def _effect(self, effect: schema.EffectTable) -> Effect:
        return Effect(required(effect.type_name, "the name of an effect"))

    def _checks(self) -> tuple[DisabledSafetyCheck, ...]:
        stored = tuple(map(disabled_check, self._table.disabled_checks or ()))
        noted = () if self._notes is None else self._notes.disabled_checks
        if any(name != "shape_assertions" for name in noted):
            raise ArtifactError(f"the notes of the artifact disable safety checks that do not exist: {noted[:20]}")
        return (*stored, *(DisabledSafetyCheck.shape_assertions() for _ in noted))


def _check_variables(in_avals: Sequence[Aval], out_names: Sequence[str], out_avals: Sequence[Aval]) -> None:
    """Refuses results whose sizes no call could compute."""
    known = frozenset[str]().union(*(size.expression.variables() for size in _distinct(in_avals).values()))
    lacking = {key: size.expression.variables() - known for key, size in _distinct(out_avals).items()}
    for name, aval in zip(out_names, out_avals, strict=True):
        for size in aval.shape:
            if unknown := lacking.get(id(size)):
                raise ArtifactError(
                    f"{name} has the size {size!s:.200}, and no size of an argument has "
                    f"{', '.join(sorted(unknown)):.200}"
                )


def _distinct(avals: Sequence[Aval]) -> dict[int, Any]:
    """Symbolic sizes, each once."""
    return {id(size): size for aval in avals for size in aval.shape if is_symbolic_dim(size)}
