"""Source locations of a module, as a person reads them: the operation and one line of the user's program.

A location prints as the whole stack of calls, ours and JAX's included. `users_files` decides for all packages which
frames of a stack are the user's, also of one that TensorFlow prints.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable

__all__ = ["source_line", "user_line", "users_files"]

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
    frames = _FRAME.findall(str(location))
    files = users_files(path for path, _ in frames)
    return next((f"{path}:{line}" for path, line in frames if path in files), "")


def users_files(paths: Iterable[str]) -> frozenset[str]:
    """Those files of a stack that are of the user's program.

    They are of an installed package if all are, but never of JAX, TensorFlow, Python or ours.

    >>> sorted(users_files(["/home/jax/model.py", "/v/lib/python3.12/site-packages/flax/linen.py", "<frozen runpy>"]))
    ['/home/jax/model.py']
    """
    libraries = _folders_never_the_users()
    files = frozenset(
        path for path in paths if path != "-" and not path.startswith(libraries) and not _STANDARD_LIBRARY.search(path)
    )
    return frozenset(path for path in files if not _INSTALLED.search(path)) or files


def _folders_never_the_users() -> tuple[str, ...]:
    """The folders of JAX, jaxlib, TensorFlow and our own packages, as far as they are imported."""
    paths = (getattr(sys.modules.get(name), "__path__", ()) for name in _NEVER_THE_USERS)
    return tuple(f"{path}/" for of_one in paths for path in of_one)
