"""Source locations of a module, as a person reads them: the operation and one line of the user's program.

A location prints as the whole stack of calls, ours and JAX's included. Which frames of a stack are the user's, also of
one that TensorFlow prints, is decided here for all packages.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from enum import Enum
from functools import lru_cache

__all__ = ["source_line", "user_line", "users_files", "users_line"]

_FRAME = re.compile(r'"([^"]+)":(\d+)')
_NAME = re.compile(r'loc\("([^"]+)"')

_NEVER_THE_USERS = ("jax", "jaxlib", "jaxtf", "tensorflow")
_STANDARD_LIBRARY = re.compile(r"^<frozen |/lib/python3\.\d+/(?!site-packages/|dist-packages/)")
_INSTALLED = re.compile(r"/(?:site|dist)-packages/")


def user_line(location: object) -> str:
    """The name of the operation and the innermost line of the user's program in a location of MLIR.

    >>> user_line('loc("jit(f)/sin"(callsite("eval"("<frozen runpy>":3:1) at "f"("/home/model.py":41:4))))')
    'jit(f)/sin, /home/model.py:41'
    """
    name = _NAME.match(str(location))
    return ", ".join(filter(None, (name[1] if name else "", source_line(location)))) or str(location)


def source_line(location: object) -> str:
    """`file:line` of the innermost frame of the user's program in a location of MLIR; empty if there is none."""
    return users_line(_FRAME.findall(str(location)))


def users_line(frames: Iterable[tuple[str, object]]) -> str:
    """`file:line` of the innermost frame of the user's program; empty if there is none.

    Args:
      frames: File and line of each, the innermost first; read as far as needed.

    >>> users_line([("<frozen runpy>", 3), ("/v/site-packages/flax/linen.py", 7), ("/home/jax/model.py", 41)])
    '/home/jax/model.py:41'
    """
    libraries, installed = _folders_never_the_users(), ""
    for path, line in frames:
        origin = _origin(path, libraries)
        if origin is _Origin.USER:
            return f"{path}:{line}"
        if origin is _Origin.INSTALLED and not installed:
            installed = f"{path}:{line}"
    return installed


def users_files(paths: Iterable[str]) -> frozenset[str]:
    """Those files of a stack that are of the user's program; of an installed package if none is the user's own."""
    libraries = _folders_never_the_users()
    origins = {path: _origin(path, libraries) for path in paths}
    least = _Origin.USER if _Origin.USER in origins.values() else _Origin.INSTALLED
    return frozenset(path for path, origin in origins.items() if origin is least)


class _Origin(Enum):
    """Whose a file is: the user's, of an installed package, or of Python, JAX, TensorFlow or ours."""

    USER = 0
    INSTALLED = 1
    LIBRARY = 2


@lru_cache(4096)
def _origin(path: str, libraries: tuple[str, ...]) -> _Origin:
    if path == "-" or path.startswith(libraries) or _STANDARD_LIBRARY.search(path):
        return _Origin.LIBRARY
    return _Origin.INSTALLED if _INSTALLED.search(path) else _Origin.USER


def _folders_never_the_users() -> tuple[str, ...]:
    """The folders of JAX, jaxlib, TensorFlow and our own packages, as far as they are imported."""
    paths = (getattr(sys.modules.get(name), "__path__", ()) for name in _NEVER_THE_USERS)
    return tuple(f"{path}/" for of_one in paths for path in of_one)
