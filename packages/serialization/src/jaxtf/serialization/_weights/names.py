"""Names of arrays in a file, from their paths in a pytree: `encoder.0.kernel` for `args[0]['encoder'][0]['kernel']`."""

from __future__ import annotations

import re
from collections.abc import Sequence

__all__ = ["array_names", "names_of_weights"]

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


def names_of_weights(paths: Sequence[str], argnum: int | None) -> tuple[str, ...]:
    """The names of the arrays of weights.

    Args:
      paths: Where each is, as `args[0]['encoder'][0]['kernel']`.
      argnum: The position of the argument, if the weights are for one.

    >>> names_of_weights(["args[1]['a']"], 1), names_of_weights(["args[0]", "args[2]['a']"], None)
    (('a',), ('0', '2.a'))
    """
    root = "args" if argnum is None else f"args[{argnum}]"
    return array_names([path.removeprefix(root) for path in paths])


def _name(path: str) -> str:
    steps, end = [], 0
    while found := _STEP.match(path, end):
        steps.append(found["key"] or found["index"] or found["field"])
        end = found.end()
    name = ".".join(steps) if end == len(path) else path.encode("utf-8", "backslashreplace").decode()
    return "array" if not name else f"_{name}" if name.startswith(_RESERVED) else name
