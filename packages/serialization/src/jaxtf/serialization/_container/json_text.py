"""JSON of unknown origin, whose memory is estimated before it is read.

The estimate counts what begins with each mark: a million empty objects are three bytes of text each and take eighty
times as much.
"""

from __future__ import annotations

import json
import re
from typing import Any

from jaxtf.serialization._errors import ArtifactError, SerializationError

__all__ = ["object_of", "utf_8"]

_MARKS = re.compile(rb'[\[{,]|"(?:[^"\\]|\\.)*+"?', re.DOTALL)
_COSTS = {b"{": 240, b"[": 96, b",": 48, b'"': 56}
"""Memory of the value that begins with each mark, in bytes, in addition to the text itself."""


def object_of(text: bytes, what: str, start: int, memory: int) -> dict[str, Any]:
    """The JSON object of a text.

    Args:
      text: In UTF-8.
      what: What it is, in the plural or not: "the notes of the artifact".
      start: Its position in the artifact.
      memory: How much may be made of it, in bytes.

    Raises:
      ArtifactError: It is not JSON, not an object, has a key twice, or takes more memory.
    """
    # Of all marks at first, also those within texts: most artifacts need no closer look.
    if sum(text.count(begin) * cost for begin, cost in _COSTS.items()) > memory:
        left = memory
        for mark in _MARKS.finditer(text):
            left -= _COSTS[mark[0][:1]]
            if left < 0:
                raise ArtifactError(f"{what} would take more than {memory:,} bytes of memory", start)
    try:
        found = json.loads(text.decode(), object_pairs_hook=_each_once)
    except (ValueError, RecursionError) as error:
        raise ArtifactError(f"{what} cannot be read as JSON: {error}", start) from error
    if not isinstance(found, dict):
        raise ArtifactError(f"{what} must be a JSON object, found {type(found).__name__}", start)
    return found


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("an object has a key twice")
    return found


def utf_8(text: str) -> bytes:
    """A text in UTF-8, in which files have texts.

    Raises:
      SerializationError: It has half of a surrogate pair, which UTF-8 does not have; the message shows where.

    >>> utf_8("ä")
    b'\\xc3\\xa4'
    """
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise SerializationError(
            f"a file cannot hold a text that UTF-8 does not have: ...{text[max(0, error.start - 20) : error.end]!r}\n"
            "  remedy: a name or key without surrogates, such as text.encode('utf-8', 'replace').decode()"
        ) from error
