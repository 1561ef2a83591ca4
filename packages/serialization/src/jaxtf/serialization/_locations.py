"""Source locations of a module, as a person reads them: the operation and one line of the user's program.

A location prints as the whole stack of calls, ours and JAX's included.
"""

from __future__ import annotations

import re
from pathlib import Path

__all__ = ["user_line"]

_FRAME = re.compile(r'"([^"]+)":(\d+)')
_NAME = re.compile(r'loc\("([^"]+)"')
_HERE = str(Path(__file__).parent)


def user_line(location: object) -> str:
    """The name of the operation and the innermost line of the user's program in a location of MLIR.

    >>> user_line('loc("jit(f)/sin"(callsite("lower"("/lib/jax/_src/mlir.py":3:1) at "f"("/home/model.py":41:4))))')
    'jit(f)/sin, /home/model.py:41'
    """
    text = str(location)
    name = _NAME.match(text)
    frames = [(path, line) for path, line in _FRAME.findall(text) if not _is_internal(path)]
    parts = [name[1] if name else "", ":".join(frames[0]) if frames else ""]
    return ", ".join(filter(None, parts)) or text


def _is_internal(path: str) -> bool:
    return path.startswith(_HERE) or re.search(r"/jax(lib)?/|/jaxtf/", path) is not None
