r"""Modules whose texts are UTF-8, as MLIR's bindings take for granted: at some others they end the process.

MLIR takes any bytes in the name of an operation's place, in its file, in the name or value of an attribute, and writes
them `\E9`. `in_utf8` gives a module to read, where each such byte is a question mark; `check_names` is for a module
that is kept as it is, where values and places are not read, but names are.
"""

from __future__ import annotations

import re
from typing import Any

from jaxtf.serialization._bytecode.texts import as_utf8
from jaxtf.serialization._bytecode.texts import in_utf8 as in_utf8_bytecode
from jaxtf.serialization._errors import ArtifactError

__all__ = ["check_names", "in_utf8", "is_bytecode"]

_BYTECODE = b"ML\xefR"
_NAMED_BY_VALUE = ("sym_name = ", "call_target_name = ")
_LARGEST = 16  # elements of constants, of which nothing is asked

# Bytes above 127 as MLIR writes them; a backslash is written twice.
_WRITTEN_BYTE = re.compile(r"\\[89A-Fa-f][0-9A-Fa-f]")
_WRITTEN_BYTES = re.compile(r"\\\\|(?:\\[89A-Fa-f][0-9A-Fa-f])+")
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[][{}]')


def in_utf8(module: bytes | str) -> bytes | str:
    """A module in bytecode or as text, with a question mark in the place of each byte of a text that is not UTF-8.

    Raises:
      ArtifactError: It is damaged bytecode; the offset is in the module.
      VersionError: Its bytecode is of a later version than this release knows.
    """
    if isinstance(module, bytes):
        if is_bytecode(module):
            return in_utf8_bytecode(module)
        module = as_utf8(module).decode()
    return _WRITTEN_BYTES.sub(_as_utf8_written, module) if _WRITTEN_BYTE.search(module) else module


def is_bytecode(module: bytes) -> bool:
    """Whether a module is in MLIR's bytecode, and not a text."""
    return module.startswith(_BYTECODE)


def _as_utf8_written(found: re.Match[str]) -> str:
    if found[0] == r"\\":
        return found[0]
    data = bytes.fromhex(found[0].replace("\\", ""))
    text = as_utf8(data)
    return found[0] if text is data else "".join(f"\\{byte:02X}" for byte in text)


def check_names(module: Any) -> None:
    """Refuses a module with names of attributes, functions or targets that are not UTF-8; other texts are left alone.

    Raises:
      ArtifactError: Quotes the name.
    """
    text = module.operation.get_asm(
        print_generic_op_form=True, large_elements_limit=_LARGEST, large_resource_limit=_LARGEST
    )
    open_: list[str] = []
    for token in _TOKEN.finditer(text):
        if token[0] in ("[", "{"):
            open_.append(token[0])
        elif token[0] in ("]", "}"):
            open_.pop()
        elif _is_name(text, token, open_) and in_utf8(token[0]) != token[0]:
            raise ArtifactError(
                f"the module has a name that is not UTF-8: {token[0]:.100}\n  remedy: export the function again"
            )


def _is_name(text: str, token: re.Match[str], open_: list[str]) -> bool:
    """Whether a text in quotes is a name, and not a value of an attribute, or in an array of such."""
    start, end = token.span()
    if text.startswith(" =", end) or text.endswith(("@", *_NAMED_BY_VALUE), 0, start):
        return True
    return not (text.endswith("= ", 0, start) or open_[-1:] == ["["])
