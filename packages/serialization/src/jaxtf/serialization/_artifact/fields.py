"""Fields of an artifact, as both readers take them (`describe` and `deserialize`).

A field that must be there is there, its number is known, positions and counts fit together. Nothing here imports NumPy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import IntEnum
from functools import cache
from typing import TypeVar

from jaxtf.serialization._artifact import schema
from jaxtf.serialization._artifact.formats import CURRENT_FORMAT, OLDEST_FORMAT
from jaxtf.serialization._artifact.reader import read_payload
from jaxtf.serialization._artifact.trailer import Split, check_end, split_trailer, writer_of
from jaxtf.serialization._errors import ArtifactError, VersionError
from jaxtf.serialization._record.checks import DisabledSafetyCheck
from jaxtf.serialization._record.kinds import DTYPES, DisabledSafetyCheckKind, MemorySpace

__all__ = [
    "at",
    "check_count",
    "device_count",
    "disabled_check",
    "dtype_name",
    "kind_of",
    "memory_space",
    "read_tables",
    "required",
    "selected",
    "writer_text",
]

T = TypeVar("T")
Result = TypeVar("Result")
Kind = TypeVar("Kind", bound=IntEnum)


def read_tables(blob: bytes | bytearray | memoryview) -> tuple[Split, schema.ExportedTable]:
    """An artifact in parts, and the tables of its flatbuffer.

    Raises:
      ArtifactError: Not an artifact, or a damaged one.
      VersionError: A format outside the range that is read.
    """
    split = split_trailer(blob)
    table = read_payload(split.payload)
    check_end(table, split.notes)
    stored = table.serialization_version
    if not OLDEST_FORMAT <= stored <= CURRENT_FORMAT:
        raise VersionError(
            f"the artifact is of format {stored}, written by {writer_text(table)}; this release reads formats "
            f"{OLDEST_FORMAT} to {CURRENT_FORMAT}\n  remedy: install a newer jaxtf-serialization"
        )
    return split, table


def writer_text(table: schema.ExportedTable) -> str:
    """Who wrote an artifact, for a message."""
    jax_release, our_release = writer_of(table)
    by_jax = f"JAX {jax_release or 'of before July 2026'}"
    return by_jax if our_release is None else f"jaxtf-serialization {our_release}, with {by_jax}"


def required(value: T | None, what: str) -> T:
    """The value of a field that no artifact is without.

    Raises:
      ArtifactError: The artifact lacks it.
    """
    if value is None:
        raise ArtifactError(f"the artifact lacks {what}")
    return value


def check_count(what: str, expected: int, found: int) -> None:
    """Refuses a number of `what` that the other fields do not expect.

    Raises:
      ArtifactError: The two numbers differ.
    """
    if expected != found:
        raise ArtifactError(f"the artifact is inconsistent: {expected} {what} expected, {found} found")


def at(values: Sequence[T], position: int, what: str) -> T:
    """The value that a field refers to by its position.

    Raises:
      ArtifactError: There are not so many.
    """
    if not 0 <= position < len(values):
        raise ArtifactError(f"the artifact refers to number {position} of {len(values)} {what}")
    return values[position]


def kind_of(kinds: type[Kind], number: int, what: str) -> Kind:
    """The member of an enumeration that a field gives by its number.

    Raises:
      VersionError: A number of a later format.
    """
    kind: Kind | None = _members(kinds).get(number)
    if kind is None:
        raise VersionError(
            f"the artifact has {what} of kind {number}; this release knows {', '.join(str(int(k)) for k in kinds)}\n"
            "  remedy: install a newer jaxtf-serialization"
        )
    return kind


@cache
def _members(kinds: type[Kind]) -> dict[int, Kind]:
    """The members by their numbers: a call of an enumeration takes several times as long as a look-up."""
    return {int(kind): kind for kind in kinds}


def selected(
    read: Callable[[T], Result],
    positions: tuple[int, ...] | None,
    distinct: tuple[T, ...] | None,
    each: tuple[T, ...] | None,
    what: str,
) -> tuple[Result, ...]:
    """The values of the arguments or results, from their tables.

    Args:
      read: From a table to its value.
      positions: Where each is among the distinct ones; None or empty in formats without these.
      distinct: The distinct ones.
      each: Each of them, in those formats.
      what: What they are, in the plural.

    Raises:
      ArtifactError: A position out of range.
    """
    if not positions:
        return tuple(map(read, each or ()))
    values = tuple(map(read, distinct or ()))
    return tuple(at(values, position, what) for position in positions)


def dtype_name(number: int) -> str:
    """The name of a dtype.

    Raises:
      VersionError: A number of a later format.
    """
    if not 0 <= number < len(DTYPES):
        raise VersionError(
            f"the artifact has an argument or result of dtype number {number}; this release knows 0 to "
            f"{len(DTYPES) - 1}\n  remedy: install a newer jaxtf-serialization"
        )
    return DTYPES[number]


def memory_space(number: int) -> str:
    """The name of a memory space.

    Raises:
      VersionError: A number of a later format.
    """
    space = kind_of(MemorySpace, number, "a memory space")
    return "device" if space is MemorySpace.MISSING else space.name.lower()


def device_count(table: schema.ExportedTable) -> int:
    """How many devices a function runs on.

    Raises:
      ArtifactError: Less than one.
    """
    count = table.nr_devices or table.nr_devices_short
    if count < 1:
        raise ArtifactError(f"the artifact is for {count} devices")
    return count


def disabled_check(table: schema.DisabledSafetyCheckTable) -> DisabledSafetyCheck:
    """A safety check that the exporter disabled.

    Raises:
      VersionError: A kind of a later format.
    """
    match kind_of(DisabledSafetyCheckKind, table.kind, "a disabled safety check"):
        case DisabledSafetyCheckKind.PLATFORM:
            return DisabledSafetyCheck.platform()
        case DisabledSafetyCheckKind.SHAPE_ASSERTIONS:
            return DisabledSafetyCheck.shape_assertions()
        case DisabledSafetyCheckKind.CUSTOM_CALL:
            return DisabledSafetyCheck.custom_call(required(table.custom_call_target, "a custom-call target"))
