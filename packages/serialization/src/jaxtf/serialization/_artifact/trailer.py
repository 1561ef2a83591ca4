r"""The trailer of an artifact: what follows the flatbuffer that `jax.export` reads.

From its start to the end of the file, numbers little-endian:

| bytes | what |
| --- | --- |
| n | notes: a JSON object in UTF-8, keys sorted, no spaces |
| 4 | n |
| 2 | format of the trailer, now 1 |
| 2 | zero |
| 32 | SHA-256 of everything before it |
| 8 | magic, `\x89JTF\r\n\x1a\n` |

It is found from the end, by its magic. The magic holds a byte above 127, both line ends and the
end-of-file character of DOS, so that a copy in text mode shows, as in PNG. The format and the
magic keep their places in every later format; the digest comes last before the magic, so that
it covers the numbers too.

Bytes without a trailer are somebody else's artifact, or one of ours that lost its end: ours say in
the flatbuffer who wrote them (`writer_of`), so that these are distinguished.

Source: docs/artifact_format.md; Portable Network Graphics (RFC 2083), 12.11, for the magic.
Knows nothing of what the notes mean.
"""

from __future__ import annotations

import hashlib
import json
import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jaxtf.serialization._artifact.schema import ExportedTable
from jaxtf.serialization._container.json_text import object_of, utf_8
from jaxtf.serialization._errors import ArtifactError, VersionError

__all__ = ["MAGIC", "TRAILER_FORMAT", "Split", "append_trailer", "check_end", "split_trailer", "writer_of"]

MAGIC = b"\x89JTF\r\n\x1a\n"
TRAILER_FORMAT = 1

_NUMBERS = struct.Struct("<IHH")
_DIGEST_SIZE = 32
_END_SIZE = _NUMBERS.size + _DIGEST_SIZE + len(MAGIC)

_WRITER = re.compile(r"(?P<jax>.*) jaxtf-serialization (?P<ours>[0-9]\S*)", re.DOTALL)
_MEMORY_RATIO, _MEMORY_FLOOR = 6, 2**20
"""What the notes may take, as a multiple of the size of the artifact; and what they may take however short it is."""


@dataclass(frozen=True)
class Split:
    """An artifact taken apart.

    Attributes:
      payload: The bytes before the trailer, which begin with the flatbuffer; a view, not a copy.
      notes: The notes; None where there is no trailer.
      trailer_format: The format of the trailer; None where there is none.
      digest: The SHA-256 that the bytes were found to have, in hexadecimal; None where there is no trailer.
    """

    payload: memoryview
    notes: dict[str, Any] | None = None
    trailer_format: int | None = None
    digest: str | None = None


def append_trailer(payload: bytearray, notes: Mapping[str, Any]) -> None:
    """Appends the trailer to a payload, in place.

    Args:
      payload: The flatbuffer.
      notes: JSON values; equal notes give equal bytes.
    """
    encoded = utf_8(json.dumps(notes, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False))
    payload += encoded
    payload += _NUMBERS.pack(len(encoded), TRAILER_FORMAT, 0)
    payload += hashlib.sha256(payload).digest()
    payload += MAGIC


def split_trailer(blob: bytes | bytearray | memoryview) -> Split:
    """Takes an artifact apart, and checks its digest before anything is parsed.

    Raises:
      ArtifactError: Not bytes, or not contiguous ones; the digest is not that of the bytes, or the notes are not what
        it says.
      VersionError: The trailer is of a later format.
    """
    if not isinstance(blob, bytes | bytearray | memoryview):
        raise ArtifactError(f"an artifact is bytes, found {type(blob).__name__}: {blob!r:.60}")
    view = memoryview(blob).toreadonly()
    if not view.c_contiguous:
        raise ArtifactError(
            "an artifact is contiguous bytes; this memoryview is not contiguous\n  remedy: pass bytes(view)"
        )
    if view.ndim != 1 or view.format != "B":
        view = view.cast("B")
    size = len(view)
    if size < _END_SIZE or view[-len(MAGIC) :] != MAGIC:
        return Split(view)
    end = size - _END_SIZE
    length, trailer_format, reserved = _NUMBERS.unpack_from(view, end)
    digested = size - len(MAGIC) - _DIGEST_SIZE
    if trailer_format > TRAILER_FORMAT:
        raise VersionError(
            f"the artifact has a trailer of format {trailer_format}, written by a later jaxtf-serialization; this "
            f"release reads format {TRAILER_FORMAT}\n  remedy: install a newer jaxtf-serialization"
        )
    digest = hashlib.sha256(view[:digested])
    if view[digested : digested + _DIGEST_SIZE] != digest.digest():
        raise ArtifactError(
            "the artifact is damaged: its bytes do not have the SHA-256 that it was written with\n"
            "  remedy: copy it again, in binary mode, from where it was written",
            digested,
        )
    if trailer_format != TRAILER_FORMAT or reserved or length > end:
        raise ArtifactError(
            f"the trailer has format {trailer_format}, notes of {length} bytes, and {reserved} in place of zero", end
        )
    notes = _parse_notes(view[end - length : end], end - length, size)
    return Split(view[: end - length], notes, trailer_format, digest.hexdigest())


def _parse_notes(encoded: memoryview, start: int, size: int) -> dict[str, Any]:
    text = bytes(encoded)
    memory = max(_MEMORY_RATIO * size - 4 * len(text), _MEMORY_FLOOR)
    return object_of(text, "the notes of the artifact", start, memory)


def writer_of(table: ExportedTable) -> tuple[str | None, str | None]:
    """The releases of JAX and of jaxtf-serialization that wrote an artifact; None for what it does not say.

    >>> writer_of(ExportedTable(jax_version="0.12.0 jaxtf-serialization 0.1.0"))
    ('0.12.0', '0.1.0')
    """
    text = table.jax_version
    found = None if text is None else _WRITER.fullmatch(text)
    if found is None:
        return text, None
    return (None if found["jax"] == "unknown" else found["jax"]), found["ours"]


def check_end(table: ExportedTable, notes: Mapping[str, Any] | None) -> None:
    """Refuses an artifact of ours without its trailer.

    Raises:
      ArtifactError: It says that jaxtf-serialization wrote it, and has no trailer.
    """
    ours = writer_of(table)[1]
    if ours is not None and notes is None:
        raise ArtifactError(
            f"the end of the artifact is missing: jaxtf-serialization {ours} wrote it with a trailer, which holds "
            "the constraints of its symbolic shapes\n  remedy: copy it again, whole and in binary mode"
        )
