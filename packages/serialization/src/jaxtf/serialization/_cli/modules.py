"""What a child process does: standard input to standard output, or to an error. Imports JAX."""

from __future__ import annotations

import sys
from typing import Any

from jaxtf.serialization._artifact.reader import read_payload
from jaxtf.serialization._artifact.trailer import split_trailer
from jaxtf.serialization._errors import ArtifactError
from jaxtf.serialization._program.portable_artifact import deserialize_module, module_text

__all__ = ["parse_modules", "print_module"]


def parse_modules() -> None:
    """Parses every module of the artifact on standard input."""

    table: Any = read_payload(split_trailer(sys.stdin.buffer.read()).payload)
    while table is not None:
        _read(bytes(table.mlir_module_serialized))
        table = table.vjp


def print_module() -> None:
    """Prints the module on standard input as text."""

    sys.stdout.buffer.write(f"{module_text(_read(sys.stdin.buffer.read()))}\n".encode())


def _read(module: bytes) -> Any:
    """The module; the first line of the error ends the process otherwise."""
    try:
        return deserialize_module(module)
    except ArtifactError as error:
        raise SystemExit(str(error).partition("\n")[0]) from error
