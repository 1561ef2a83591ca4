"""MLIR in a process of its own: its parser crashes or hangs on some modules."""

from __future__ import annotations

import subprocess
import sys

from jaxtf.serialization._errors import ArtifactError

__all__ = ["PARSE", "PRINT", "check_modules", "in_child"]

PARSE = "from jaxtf.serialization._cli.modules import parse_modules; parse_modules()"
PRINT = "from jaxtf.serialization._cli.modules import print_module; print_module()"
_LONGEST_PARSE = 300
"""In seconds, of all modules of an artifact."""


def in_child(program: str, blob: bytes) -> bytes:
    """What a program prints of bytes, in a process of its own: MLIR's parser crashes or hangs on some modules.

    Raises:
      ArtifactError: It died, or did not end; or it raised, with the last line that it printed.
    """
    try:
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", program],
            input=blob,
            capture_output=True,
            timeout=_LONGEST_PARSE,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise ArtifactError(f"a module is not parsed within {_LONGEST_PARSE} s") from error
    if done.returncode < 0:
        raise ArtifactError(f"MLIR's parser crashes on a module, with signal {-done.returncode}")
    if done.returncode:
        raise ArtifactError(done.stderr.decode(errors="replace").strip().rpartition("\n")[2])
    return done.stdout


def check_modules(blob: bytes) -> str | None:
    """Parses the modules, in a process of its own."""
    in_child(PARSE, blob)
    return None
