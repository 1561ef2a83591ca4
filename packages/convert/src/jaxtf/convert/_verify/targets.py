"""Targets of `jaxtf-verify` that are neither `MODULE:FUNCTION` nor a file with an artifact: what was meant."""

from __future__ import annotations

import ast
import errno
import importlib.util
import os
from collections.abc import Sequence
from pathlib import Path

from jaxtf.convert._errors import ConversionOptionError

__all__ = ["functions_of", "listed", "refuse_without_function"]


def refuse_without_function(name: str) -> None:
    """Refuses a target that names a Python file, or no function.

    Raises:
      ConversionOptionError: There is such a module; with the functions in it.
      FileNotFoundError: There is neither a file nor a module of that name.
    """
    path, _, attribute = name.partition(":")
    module = ".".join(Path(path).with_suffix("").parts) if path.endswith(".py") else path
    functions = functions_of(module)
    if not functions and not Path(path).exists():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
    what = "is a Python file" if path.endswith(".py") else "is a module, or a folder"
    example = attribute or (functions[0] if functions else "FUNCTION")
    raise ConversionOptionError(
        f"{path} {what}, not an artifact; a function is given as MODULE:FUNCTION{listed(functions)}\n"
        f'  remedy: jaxtf-verify {module}:{example} "f32[b, 8]" ..., with a shape for each argument'
    )


def functions_of(module: str) -> list[str]:
    """The functions that a module defines, from its source in the current folder or on the path; none if not known."""
    source = Path(*module.split(".")).with_suffix(".py") if module.replace(".", "").isidentifier() else None
    if source is None:
        return []
    if not source.is_file():
        source = _on_the_path(module)
    if source is None:
        return []
    try:
        tree = ast.parse(source.read_text(encoding="utf-8"))
    except (SyntaxError, UnicodeDecodeError, OSError):
        return []
    return [node.name for node in tree.body if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")]


def _on_the_path(module: str) -> Path | None:
    try:
        found = importlib.util.find_spec(module)
    except (ImportError, ValueError):
        return None
    return Path(found.origin) if found is not None and found.origin and found.origin.endswith(".py") else None


def listed(functions: Sequence[str]) -> str:
    """The functions of a module, as the end of a sentence."""
    if not functions:
        return ""
    more = ", ..." if len(functions) > 8 else ""
    return f"; there {'is' if len(functions) == 1 else 'are'} {', '.join(functions[:8])}{more}"
