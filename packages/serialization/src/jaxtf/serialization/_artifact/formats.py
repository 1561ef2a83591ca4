"""The formats of an artifact's flatbuffer: what each brought, and which one a consumer reads.

The format is one of three numbers that must not be mixed up; the others are the calling convention
version (`_record/versions.py`) and the StableHLO version of the module (`_record/stablehlo.py`). It counts the
changes to the flatbuffer, whose schema only ever grows: a reader takes the fields that are there.

| format | JAX from | what it brought |
| --- | --- | --- |
| 2 | 0.4.30 and before | the base |
| 3 | 0.4.36 | namedtuples and registered custom types in pytrees |
| 4 | 0.6.0 | dtypes of random keys |
| 5 | 0.8.2 | memory spaces; more than 32,767 devices |
| 6 | 0.9.0 | shardings by names of mesh axes, in addition to XLA's form |
| 8 | 0.9.2 | the kind of device of a mesh |
| 9 | 0.9.2 | shardings in XLA's form are no longer written |
| 10 | 0.10.0 | equal avals, meshes and shardings once |
| 11 | 0.10.1 | the platform of a mesh's devices |
| 12 | 0.12.0 | the JAX release that wrote it |

Format 7 was withdrawn. The stored number is 2 for formats 2 to 4, 3 for 5 to 11, and the format
itself from 12 on.
"""

from __future__ import annotations

from jaxtf.serialization._errors import VersionError

__all__ = ["CURRENT_FORMAT", "OLDEST_FORMAT", "check_format_version", "stored_number"]

OLDEST_FORMAT = 2
CURRENT_FORMAT = 12


def check_format_version(format_version: int) -> int:
    """Returns `format_version` if it can be written.

    Raises:
      VersionError: It is outside the range, or no integer; the message gives the range.
    """
    if (
        isinstance(format_version, bool)
        or not isinstance(format_version, int)
        or not OLDEST_FORMAT <= format_version <= CURRENT_FORMAT
    ):
        raise VersionError(
            f"artifacts are written in formats {OLDEST_FORMAT} to {CURRENT_FORMAT}; asked for {format_version!r}\n"
            "  remedy: leave format_version out, or give that of the oldest consumer"
        )
    return format_version


def stored_number(format_version: int) -> int:
    """The number that an artifact of a format has in its first field."""
    if format_version >= 12:
        return format_version
    return 3 if format_version >= 5 else 2
