"""A path, a file that is open, or bytes, as ranges of bytes that are read on demand.

Of a file on a disk nothing is read but what is asked for, however large it is. What is not on a disk (a pipe, standard
input) is read whole, up to `LARGEST_STREAM`, after its first bytes have been looked at; a device is refused: it may
have no end.
"""

from __future__ import annotations

import contextlib
import io
import mmap
import os
import stat
import struct
from collections.abc import Iterator
from typing import IO, Any, TypeAlias

from jaxtf.serialization._errors import ArtifactError

__all__ = ["LARGEST_STREAM", "Readable", "Source", "opened"]

Readable: TypeAlias = str | os.PathLike[str] | bytes | bytearray | memoryview | IO[bytes]
"""What an artifact is read from."""

LARGEST_STREAM = 2**30
"""What is not on a disk is read up to so many bytes."""

_READ_AT_ONCE = 2**26
"""A range of a file up to so many bytes is read; a longer one is mapped."""

_CHUNK = 2**20


class Source:
    """Bytes, by range.

    Attributes:
      name: For messages: the path; empty for bytes.
      size: How many bytes there are.
    """

    def __init__(self, name: str, size: int, content: memoryview | io.FileIO) -> None:
        self.name = name
        self.size = size
        self._content = content  # the bytes, or a file on a disk
        self._mapped: memoryview | None = None

    def read(self, start: int, end: int) -> memoryview:
        """The bytes from `start` to `end`, which are within the size.

        Raises:
          OSError: The system does not read or map them.
          ArtifactError: The file became shorter meanwhile.
        """
        if isinstance(self._content, memoryview):
            return self._content[start:end]
        if end - start > _READ_AT_ONCE:
            return self.mapped()[start:end]
        content = bytearray(end - start)
        view, done = memoryview(content), 0
        self._content.seek(start)
        while done < len(content):
            count = self._content.readinto(view[done:])
            if not count:
                raise ArtifactError(f"the file ends at byte {start + done:,}; it became shorter while it was read")
            done += count
        return view.toreadonly()

    def mapped(self) -> memoryview:
        """All of the bytes, of which the system reads those that are looked at; nothing is copied.

        The memory is that of the file: what replaces the file by renaming, as `save` does, leaves it as it was; what
        writes into the file changes it.
        """
        if isinstance(self._content, memoryview):
            return self._content
        if self._mapped is None:
            try:
                self._mapped = memoryview(mmap.mmap(self._content.fileno(), self.size, access=mmap.ACCESS_READ))
            except (OSError, ValueError) as error:
                code = getattr(error, "errno", None)
                raise OSError(code, f"cannot map its {self.size:,} bytes: {error}", self.name) from error
        return self._mapped


@contextlib.contextmanager
def opened(readable: Readable) -> Iterator[Source]:
    """Gives the bytes of a path, a file that is open, or bytes; within, errors about them name the file.

    Args:
      readable: A path; a file that is open for reading bytes, which is read from its start if it is on a disk, else
        from where it is; or bytes.

    Raises:
      ArtifactError: Something else, a device, or a stream that is not an artifact or too long.
      OSError: There is no such file, or it cannot be read.
    """
    with contextlib.ExitStack() as stack:
        if isinstance(readable, bytes | bytearray | memoryview):
            source = _of_bytes("", readable)
        elif isinstance(readable, str | os.PathLike):
            name = os.fspath(readable)
            with _naming(str(name)):
                source = _of_file(str(name), stack.enter_context(io.FileIO(name)))
        elif hasattr(readable, "read"):
            name = str(getattr(readable, "name", ""))
            with _naming(name):
                source = _of_file(name, readable)
        else:
            raise ArtifactError(
                f"an artifact is read from a path, a file or bytes, found {type(readable).__name__}: {readable!r:.60}"
            )
        with _naming(source.name):
            yield source


@contextlib.contextmanager
def _naming(name: str) -> Iterator[None]:
    """Errors within, about what is read, begin with its name."""
    try:
        yield
    except (ValueError, MemoryError, NotImplementedError) as error:
        text = str(error) or "there is not enough memory to read it"
        if name and not text.startswith(f"{name}: "):
            error.args = (f"{name}: {text}", *error.args[1:])
        raise


def _of_bytes(name: str, content: bytes | bytearray | memoryview) -> Source:
    view = memoryview(content).toreadonly()
    if not view.c_contiguous:
        raise ArtifactError(
            "an artifact is contiguous bytes; this memoryview is not contiguous\n  remedy: pass bytes(view)"
        )
    if view.ndim != 1 or view.format != "B":
        view = view.cast("B")
    return Source(name, len(view), view)


def _of_file(name: str, file: Any) -> Source:
    try:
        descriptor = file.fileno()
    except (AttributeError, OSError):
        return _of_bytes(name, _stream(file))
    status = os.fstat(descriptor)
    if stat.S_ISREG(status.st_mode):
        own = file if isinstance(file, io.FileIO) else io.FileIO(descriptor, closefd=False)
        return Source(name, status.st_size, own)
    if stat.S_ISCHR(status.st_mode) or stat.S_ISBLK(status.st_mode):
        raise ArtifactError("this is a terminal or a device, which may have no end\n  remedy: give a file or a pipe")
    return _of_bytes(name, _stream(file))


def _stream(file: IO[bytes]) -> bytearray:
    """All that is left of a stream, if it begins as an artifact does."""
    content = bytearray()
    while chunk := file.read(_CHUNK):
        if isinstance(chunk, str):
            raise ArtifactError("the file is open as text\n  remedy: open it with mode 'rb'")
        if len(content) < 4 <= len(content) + len(chunk):
            (root,) = struct.unpack_from("<I", content + chunk[:4])
            if root < 4:
                raise ArtifactError(f"not an artifact, or a damaged one: it begins with the number {root}", 0)
        content += chunk
        if len(content) > LARGEST_STREAM:
            raise ArtifactError(
                f"more than {LARGEST_STREAM:,} bytes came from something other than a file on a disk\n"
                "  remedy: write them to a file, and give its path"
            )
    return content
