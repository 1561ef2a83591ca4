"""A file that is written whole or not at all.

It is written next to its path under another name, and renamed when everything is on the disk. Who is killed in between
leaves a file whose name begins with a dot and ends in `.partial`, and the old file as it was.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Iterator
from typing import IO

__all__ = ["written_whole"]


@contextlib.contextmanager
def written_whole(file: str) -> Iterator[IO[bytes]]:
    """Gives a file to write to, which is `file` when all went well and is deleted when not.

    Args:
      file: Its path. What a link leads to is replaced, and not the link; the permissions stay.

    Raises:
      OSError: The disk is full, or the folder cannot be written to.
    """
    place = os.path.realpath(file)
    folder, name = os.path.split(place)
    partial = os.path.join(folder, f".{name[:100]}.{secrets.token_hex(8)}.partial")
    mode = stat.S_IMODE(os.stat(place).st_mode) if os.path.exists(place) else None
    try:
        with open(partial, "xb") as opened:
            yield opened
            opened.flush()
            if mode is not None:
                os.chmod(partial, mode)
            os.fsync(opened.fileno())
        os.replace(partial, place)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(partial)
        raise
