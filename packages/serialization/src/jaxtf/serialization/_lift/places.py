"""Operations with the names and source lines that a module has for them: in jaxprs, profiles and messages of JAX.

A line of the user's program becomes the innermost frame outside of JAX: the call goes through a function whose code
object has the file and the line that the module names.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from types import FunctionType
from typing import Any

import jax

from jaxtf.serialization import _jax
from jaxtf.serialization._program.program import Operation

__all__ = ["at_place_of"]

_jax.leave_out_of_source_lines(str(Path(__file__).parent))


def at_place_of(operation: Operation, call: Callable[..., Any], *args: Any) -> Any:
    """What a call gives, made under the name and at the line of an operation."""
    scope = operation.location.rpartition("/")[0]  # JAX adds the name of the primitive
    if operation.source:
        call, args = _at_line(operation.source), (call, *args)
    if not scope:
        return call(*args)
    with jax.named_scope(scope):
        return call(*args)


def _call(call: Callable[..., Any], *args: Any) -> Any:
    return call(*args)


@lru_cache(maxsize=4096)
def _at_line(source: str) -> Callable[..., Any]:
    """A function that calls another one, and seems to be at `file:line`."""
    file, _, line = source.rpartition(":")
    first = int(line) - 1 if line.isdigit() and int(line) > 1 else 1  # the body is on the line after
    code = _call.__code__.replace(co_filename=file, co_firstlineno=first, co_name="lifted", co_qualname="lifted")
    return FunctionType(code, {}, "lifted")
