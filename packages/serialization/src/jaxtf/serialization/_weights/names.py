"""Names of arrays in a file, from their paths in a pytree: `encoder.0.kernel` for `args[0]['encoder'][0]['kernel']`."""

from __future__ import annotations

import re
from collections.abc import Sequence

__all__ = ["array_names"]

_STEP = re.compile(
    r"""\[(?P<quote>['"])(?P<key>[\w\-/ ]+)(?P=quote)\]"""
    r"""|\[(?:<flat index )?(?P<index>\d+)>?\]"""
    r"""|\.(?P<field>\w+)"""
)
_RESERVED = ("jaxtf.", "__metadata__")


def array_names(paths: Sequence[str]) -> tuple[str, ...]:
    """A name for each array, all different.

    Args:
      paths: Where each is, as its caller would write it, without the argument itself: `['encoder'][0]['kernel']`.

    >>> array_names(["['encoder'][0]['kernel']", ".bias", "['a.b']", ""])
    ('encoder.0.kernel', 'bias', "['a.b']", 'array')
    """
    names: dict[str, None] = {}
    for path in paths:
        name = _name(path)
        for candidate in (name, path, *(f"{name}~{number}" for number in range(2, len(paths) + 2))):
            if candidate and candidate not in names:
                names[candidate] = None
                break
    return tuple(names)


def _name(path: str) -> str:
    steps, end = [], 0
    while found := _STEP.match(path, end):
        steps.append(found["key"] or found["index"] or found["field"])
        end = found.end()
    name = ".".join(steps) if end == len(path) else path.encode("utf-8", "backslashreplace").decode()
    return "array" if not name else f"_{name}" if name.startswith(_RESERVED) else name
