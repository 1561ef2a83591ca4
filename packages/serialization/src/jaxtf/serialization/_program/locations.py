"""Where an operation comes from: the name that JAX gave it, and a line of the user's program.

`jit(loss)/transpose(jvp(dense))/mul` becomes `dense/mul`: names of transformations are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from jaxtf.serialization._jaxlib import ir
from jaxtf.serialization._record.locations import users_line

__all__ = ["scope_of", "source_of"]

_WRAPPED = re.compile(r"(\w+)\(((?:[^()]|\([^()]*\))*)\)")
_JIT = re.compile(r"^p?jit\(")
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_.\-]+")


def scope_of(location: Any) -> str:
    """The name of a location as a name scope, parts between slashes; empty if it has none.

    >>> scope_of("jit(loss)/transpose(jvp(dense))/mul")
    'dense/mul'
    """
    return _scope(
        location if isinstance(location, str) else location.name_str if isinstance(location, ir.NameLoc) else ""
    )


@lru_cache(maxsize=4096)
def _scope(name: str) -> str:
    parts = [_unwrapped(part) for part in _split(name) if not _JIT.match(part)]
    return "/".join(filter(None, parts))


def _split(name: str) -> list[str]:
    """The parts of a name between slashes that are in no parentheses."""
    parts, depth = [""], 0
    for character in name:
        depth += (character == "(") - (character == ")")
        if character == "/" and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return parts


def _unwrapped(part: str) -> str:
    """`transpose(jvp(dense))` is `dense`, and `jvp()` is nothing."""
    while (found := _WRAPPED.fullmatch(part)) is not None:
        part = found[2]
    words = [_NOT_IN_NAMES.sub("_", word).strip("_.-") for word in part.split("/")]
    return "/".join(filter(None, words))


def source_of(location: Any) -> str:
    """`file:line` of the innermost frame of the user's program; empty if there is none."""
    return users_line(_frames(location))


def _frames(location: Any) -> Iterator[tuple[str, int]]:
    """File and line of the frames of a location, the innermost first."""
    while True:
        if isinstance(location, ir.FileLineColLoc):
            yield location.filename, location.start_line
            return
        if isinstance(location, ir.CallSiteLoc):
            yield from _frames(location.callee)
            location = location.caller
        elif isinstance(location, ir.FusedLoc):
            for part in location.locations:
                yield from _frames(part)
            return
        elif isinstance(location, ir.NameLoc):
            location = location.child_loc
        else:
            return
