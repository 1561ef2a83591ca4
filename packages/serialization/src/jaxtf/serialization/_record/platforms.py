"""Lowering platforms: which names exist, and which one an export takes by default.

`cpu`, `cuda`, `rocm` and `tpu` are JAX's own; a plugin registers others (see `_jax_values/settings.py`). A
module lowered for several platforms takes the platform index, a position in the tuple of its
platforms, as its first argument.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Sequence

from jaxtf.serialization._errors import PlatformError

__all__ = ["BUILT_IN_PLATFORMS", "PLATFORMS_OF_GRAPHS", "check_platforms"]

BUILT_IN_PLATFORMS = ("cpu", "cuda", "rocm", "tpu")
PLATFORMS_OF_GRAPHS = ("tf",)
"""What is lowered for where a module is translated to TensorFlow's operations."""

_WANTED = "platforms must be a sequence of names such as ('cpu', 'cuda')"

_ALIASES = {"gpu": "'cuda' (NVIDIA) or 'rocm' (AMD)", "nvidia": "'cuda'", "amd": "'rocm'", "host": "'cpu'"}


def check_platforms(platforms: Sequence[str], *, registered: Collection[str]) -> tuple[str, ...]:
    """Returns the lowering platforms as a tuple of distinct, existing names.

    Args:
      platforms: What the caller asked for, in the order of the platform index.
      registered: Names of platforms that plugins added to this process.

    Raises:
      PlatformError: Not a sequence of names, empty, a name twice, or a name that does not exist.
    """
    if isinstance(platforms, str):
        raise PlatformError(f"{_WANTED}; found {platforms!r}\n  remedy: write platforms=({platforms!r},)")
    if not isinstance(platforms, Sequence) or not all(isinstance(name, str) for name in platforms):
        raise PlatformError(f"{_WANTED}; found {platforms!r}")
    names = tuple(platforms)
    if not names:
        raise PlatformError("platforms is empty: name at least one of 'cpu', 'cuda', 'rocm', 'tpu', or pass None")
    if len(set(names)) != len(names):
        raise PlatformError(f"platforms names a platform twice: {names}")
    known = (*BUILT_IN_PLATFORMS, *sorted(set(registered) - set(BUILT_IN_PLATFORMS)))
    for name in names:
        if name not in known:
            raise PlatformError(_unknown_platform(name, names, known))
    return names


def _unknown_platform(name: str, names: tuple[str, ...], known: tuple[str, ...]) -> str:
    guess = _ALIASES.get(name.lower()) or ", ".join(map(repr, difflib.get_close_matches(name.lower(), known, n=1)))
    lines = [f"there is no lowering platform {name!r}", f"  asked:    platforms={names}"]
    lines.append(f"  platforms known here: {', '.join(map(repr, known))}")
    if guess:
        lines.append(f"  did you mean {guess}?")
    return "\n".join(lines)
