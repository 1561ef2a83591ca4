"""A folder that is written whole or not at all.

It is written next to its path under another name, and renamed when everything is on the disk. Where there is a folder
already, the two change places in one step (Linux: `renameat2` with `RENAME_EXCHANGE`), and the old one is deleted. On
systems without that step there is a moment between two renames in which no folder is there. Who is killed in between
leaves a folder whose name begins with a dot and ends in `.partial`, and the old one as it was.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import secrets
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

__all__ = ["written_whole"]

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2
_EXCHANGES = sys.platform == "linux"
_IN_USE = (errno.ENOTEMPTY, errno.EEXIST)


@contextlib.contextmanager
def written_whole(folder: Path) -> Iterator[Path]:
    """Gives a new folder to write to, which is `folder` when all went well and is deleted when not.

    Args:
      folder: Where it is to be. What an existing folder of the name holds is deleted.

    Raises:
      OSError: The disk is full, the folder above cannot be written to, the place is not a folder, or a mount point.
    """
    place = Path(os.path.realpath(folder))  # what a link leads to changes, and not the link
    place.parent.mkdir(parents=True, exist_ok=True)
    partial = _next_to(place)
    partial.mkdir()
    try:
        yield partial
        if place.exists():
            partial.chmod(place.stat().st_mode & 0o7777)
        _flush(partial)
        _put(partial, place)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _next_to(place: Path) -> Path:
    return place.with_name(f".{place.name[:100]}.{secrets.token_hex(8)}.partial")


def _flush(folder: Path) -> None:
    """Waits until all files are on the disk: after a loss of power a rename is there before what it names."""
    for parent, _, files in os.walk(folder):
        for file in files:
            with open(os.path.join(parent, file), "rb") as opened:
                os.fsync(opened.fileno())


def _put(new: Path, place: Path) -> None:
    """Renames a folder; afterwards the old one, if there was one, has the name of the new one, or is gone."""
    while True:
        try:
            os.rename(new, place)  # also where an empty folder is
        except OSError as error:
            if error.errno not in _IN_USE:
                raise
        else:
            return
        with contextlib.suppress(FileNotFoundError):  # another process has just removed it
            _exchange(new, place)
            return


def _exchange(new: Path, place: Path) -> None:
    """Two folders change places."""
    if _EXCHANGES:
        libc = ctypes.CDLL(None, use_errno=True)
        if hasattr(libc, "renameat2"):
            paths = _AT_FDCWD, os.fsencode(new), _AT_FDCWD, os.fsencode(place)
            if libc.renameat2(*paths, _RENAME_EXCHANGE) == 0:
                return
            number = ctypes.get_errno()
            if number not in (errno.EINVAL, errno.ENOSYS):  # those say that the file system has no such step
                raise OSError(number, os.strerror(number), str(place))
    old = _next_to(place)
    os.rename(place, old)
    try:
        os.rename(new, place)
    except BaseException:
        os.rename(old, place)
        raise
    os.rename(old, new)
