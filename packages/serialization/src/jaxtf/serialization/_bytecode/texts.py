"""The texts of MLIR bytecode: names, values and places of operations, all of them in one section.

MLIR takes any bytes there. What Python reads of a module is UTF-8: a path in Latin-1, or the configuration of a custom
call, is not.
"""

from __future__ import annotations

import re

from jaxtf.serialization._bytecode.portable import Frame

__all__ = ["as_utf8", "in_utf8", "is_utf8"]

_NOT_DECODED = re.compile("[\udc80-\udcff]")


def is_utf8(module: bytes | memoryview) -> bool:
    """Whether all texts of a module are UTF-8.

    Raises:
      ArtifactError: It is not MLIR bytecode, or damaged; the offset is in the module.
      VersionError: Its bytecode is of a later version than this release knows.
    """
    data = bytes(Frame(module).texts().view)
    return as_utf8(data) is data


def in_utf8(module: bytes) -> bytes:
    """The module, with a question mark in the place of each byte of a text that is not UTF-8.

    Raises:
      ArtifactError: It is not MLIR bytecode, or damaged; the offset is in the module.
      VersionError: Its bytecode is of a later version than this release knows.
    """
    texts = Frame(module).texts()
    data = bytes(texts.view)
    text = as_utf8(data)
    return module if text is data else module[: texts.start] + text + module[texts.start + len(data) :]


def as_utf8(data: bytes) -> bytes:
    """The same bytes, with a question mark in the place of each that is not UTF-8.

    >>> as_utf8(b"caf\\xe9.py")
    b'caf?.py'
    """
    try:
        data.decode()
    except UnicodeDecodeError:
        return _NOT_DECODED.sub("?", data.decode(errors="surrogateescape")).encode()
    return data
