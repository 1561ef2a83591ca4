"""What holds for every field of an artifact: it is there, its number is known, positions and counts fit together."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import TypeVar

from jaxtf.serialization._errors import ArtifactError, VersionError

__all__ = ["at", "check_count", "kind_of", "required"]

T = TypeVar("T")
Kind = TypeVar("Kind", bound=IntEnum)


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
        raise ArtifactError(f"the artifact does not fit together: {expected} {what} expected, {found} found")


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
    try:
        return kinds(number)
    except ValueError as error:
        raise VersionError(
            f"the artifact has {what} of kind {number}; this release knows {', '.join(str(int(k)) for k in kinds)}\n"
            "  remedy: install a newer jaxtf-serialization"
        ) from error
