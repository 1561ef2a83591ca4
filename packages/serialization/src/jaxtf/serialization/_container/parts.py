"""The parts of what is read: the artifact, and the weights where there are some."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from jaxtf.serialization._container.header import begins_as_header, read_header
from jaxtf.serialization._container.manifest import Manifest, manifest_of
from jaxtf.serialization._container.source import Source
from jaxtf.serialization._errors import ArtifactError

__all__ = ["Parts", "parts_of"]

_LARGEST_ARTIFACT = 2**32
"""A flatbuffer has less than 2 GiB; what follows it in an artifact is short."""


@dataclass(frozen=True)
class Parts:
    """What a file, a path or bytes hold.

    Attributes:
      artifact: The program, without weights.
      manifest: Of a file with weights; None for an artifact alone.
      data_start: Where the first array begins.
    """

    artifact: memoryview
    manifest: Manifest | None = None
    data_start: int = 0


def parts_of(source: Source) -> Parts:
    """The parts of a source; of the weights nothing is read but what the header says.

    Raises:
      ArtifactError: It is longer than an artifact can be; or a file with weights that is damaged, in its header or its
        program.
      VersionError: A file with weights of a later format.
    """
    if not begins_as_header(source.read(0, min(9, source.size)), source.size):
        if source.size > _LARGEST_ARTIFACT:
            raise ArtifactError(f"not an artifact: it has {source.size:,} bytes, more than any artifact can have")
        return Parts(source.read(0, source.size))
    header = read_header(source)
    manifest = manifest_of(header)
    entry, digest = manifest.program
    artifact = source.read(header.data_start + entry.start, header.data_start + entry.end)
    if hashlib.sha256(artifact).hexdigest() != digest:
        raise ArtifactError(
            "the file is damaged: its program does not have the SHA-256 that it was written with\n"
            "  remedy: copy it again, in binary mode, from where it was written",
            header.data_start + entry.start,
        )
    return Parts(artifact, manifest, header.data_start)
