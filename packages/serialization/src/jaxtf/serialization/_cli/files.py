"""Files that commands read and write, - for the standard streams; progress; errors."""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from jaxtf.serialization._container.source import Source, opened
from jaxtf.serialization._container.whole_file import written_whole

__all__ = [
    "Command",
    "CommandError",
    "about",
    "check_output",
    "each_file",
    "each_once",
    "errors_about",
    "print_json",
    "progress",
    "reading",
    "write",
]

Command = Callable[[argparse.Namespace], int]
_T = TypeVar("_T")

_LONG_WORK = 2**24
"""From how many bytes on a file is long work."""


class CommandError(Exception):
    """What stops a command; the text is all that its user sees."""


def each_once(option: str, named: Iterable[tuple[str, _T]]) -> dict[str, _T]:
    """The values of an option that is given once for each name.

    Raises:
      CommandError: A name is given twice.
    """
    found: dict[str, _T] = {}
    for name, value in named:
        if name in found:
            raise CommandError(f"{option}: {name!r} is given twice; give it once")
        found[name] = value
    return found


@contextlib.contextmanager
def reading(file: str, work: str) -> Iterator[Source]:
    """Gives the bytes of a file, or of standard input for -; says on a terminal that the work is long.

    Raises:
      CommandError: Anything that goes wrong within, about this file.
    """
    with errors_about(file), opened(sys.stdin.buffer if file == "-" else file) as source:
        if source.size >= _LONG_WORK and sys.stderr.isatty():
            progress(f"{work} {file}: {source.size / 2**20:,.0f} MiB ...")
        yield source


@contextlib.contextmanager
def errors_about(file: str) -> Iterator[None]:
    """What goes wrong within is an error that begins with the name of the file."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise CommandError(f"{error.filename or file}: {error.strerror or error}") from error
    except (CommandError, ValueError, NotImplementedError, ImportError, MemoryError, RuntimeError) as error:
        raise about(file, error) from error


def each_file(files: list[str], work: Callable[[str], Any]) -> Iterator[tuple[str, Any, str | None]]:
    """Does the work on each file: the file, the result, and what went wrong."""
    for file in files:
        try:
            yield file, work(file), None
        except CommandError as error:
            yield file, None, str(error)


def about(file: str, error: Exception) -> CommandError:
    """An error that begins with the name of the file, once."""
    text = str(error) or type(error).__name__
    named = (f"{file}: ", "<stdin>: ") if file == "-" else f"{file}: "
    return CommandError(text if text.startswith(named) else f"{file}: {text}")


def check_output(file: str, force: bool, *inputs: str, text: bool = False) -> None:
    """Refuses, before the work, to write where that would do harm; asks at a terminal before a file is replaced.

    Raises:
      CommandError: It is an input, or a file that exists and is not to be replaced, or bytes would go to a terminal.
    """
    if file == "-":
        if sys.stdout.isatty() and not text:
            raise CommandError("-: binary data is not written to a terminal\n  remedy: -o FILE, or a pipe")
        return
    if any(other != "-" and os.path.exists(file) and _is_same(file, other) for other in inputs):
        raise CommandError(f"{file}: this is the input, which is not overwritten\n  remedy: write to another file")
    if force or not os.path.isfile(file):
        return
    if sys.stdin.isatty() and sys.stderr.isatty() and "-" not in inputs:
        print(f"{file} exists. Overwrite it? [y/N] ", end="", file=sys.stderr, flush=True)
        if sys.stdin.readline().strip().lower() in ("y", "yes"):
            return
    raise CommandError(f"{file}: the file exists\n  remedy: --force overwrites it")


def _is_same(left: str, right: str) -> bool:
    try:
        return os.path.samefile(left, right)
    except OSError:
        return False


def write(file: str, content: bytes | bytearray | memoryview) -> None:
    """Writes a file whole, and says so."""
    if file == "-":
        sys.stdout.buffer.write(content)
        return
    if os.path.exists(file) and not os.path.isfile(file):
        with open(file, "wb") as opened_file:  # a pipe, /dev/null; of a folder, an error
            opened_file.write(content)
        return
    with written_whole(file) as opened_file:
        opened_file.write(content)
    progress(f"wrote {file}: {len(content):,} bytes, sha256 {hashlib.sha256(content).hexdigest()}")


def progress(text: str) -> None:
    """Prints a notice for the user; it is not the result."""
    print(text, file=sys.stderr)


def print_json(values: Any) -> None:
    """Prints JSON values."""
    print(json.dumps(values, indent=2, ensure_ascii=False))
