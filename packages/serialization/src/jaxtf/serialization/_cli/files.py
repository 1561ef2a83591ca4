"""Files that commands read and write, - for the standard streams; progress; errors."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import secrets
import stat
import sys
from collections.abc import Callable
from typing import Any

__all__ = ["Command", "CommandError", "about", "print_json", "progress", "read", "write"]

Command = Callable[[argparse.Namespace], int]

_LONG_WORK = 2**24
"""From how many bytes on a file is long work."""


class CommandError(Exception):
    """What stops a command; the text is all that its user sees."""


def read(file: str) -> bytes:
    if file == "-":
        return sys.stdin.buffer.read()
    with open(file, "rb") as opened:
        return opened.read()


def write(file: str, content: bytes | bytearray | memoryview) -> None:
    if file == "-":
        sys.stdout.buffer.write(content)
        return
    place = os.path.realpath(file)  # what a link leads to changes, and not the link
    if os.path.exists(place) and not os.path.isfile(place):
        with open(place, "wb") as opened:  # a pipe, /dev/null; of a folder, an error
            opened.write(content)
        return
    _write_whole(place, content)


def _write_whole(file: str, content: bytes | bytearray | memoryview) -> None:
    """Writes beside the file and renames, so that the file has its old content or all of the new."""
    folder, name = os.path.split(file)
    partial = os.path.join(folder, f".{name[:100]}.{secrets.token_hex(8)}.partial")
    mode = stat.S_IMODE(os.stat(file).st_mode) if os.path.exists(file) else None
    try:
        with open(partial, "xb") as opened:
            opened.write(content)
            opened.flush()
            if mode is not None:
                os.chmod(partial, mode)
            os.fsync(opened.fileno())
        os.replace(partial, file)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(partial)
        raise


def progress(blob: bytes, work: str) -> None:
    """Tells a person at a terminal about long work."""
    if len(blob) >= _LONG_WORK and sys.stderr.isatty():
        print(f"{work} {len(blob) / 2**20:,.0f} MiB ...", file=sys.stderr)


def about(file: str, error: Exception) -> CommandError:
    return CommandError(f"{file}: {error}")


def print_json(values: Any) -> None:
    print(json.dumps(values, indent=2, ensure_ascii=False))
