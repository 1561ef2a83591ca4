"""What a function shows of itself: its line, and its table in a notebook."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from typing import Any, TypeVar

T = TypeVar("T")

__all__ = ["html_table", "signature_line"]

_IN_LINE = 16
"""How many arguments or results the line of a function shows."""

_IN_TABLE = 40
"""How many rows its table shows."""


def signature_line(name: str, arguments: Sequence[Any], results: Sequence[Any], platforms: Sequence[str]) -> str:
    """The function in one line: of many arguments or results the first and the last few.

    >>> signature_line("f", ["float32[b]", "int32[]"], ["float32[b]"], ["cpu", "tpu"])
    'f: (float32[b], int32[]) -> (float32[b]) for cpu, tpu'
    """
    return f"{name}: ({_listed(arguments)}) -> ({_listed(results)}) for {', '.join(platforms)}"


def _listed(avals: Sequence[Any]) -> str:
    return ", ".join(_first_and_last(list(map(str, avals)), _IN_LINE, lambda left: f"... {left} more ..."))


def _first_and_last(entries: list[T], most: int, instead: Callable[[int], T]) -> list[T]:
    """The entries; if they are more than `most`, the first and last half of that, and between them one for the rest."""
    left = len(entries) - most
    return entries if left <= 0 else [*entries[: most // 2], instead(left), *entries[-most // 2 :]]


def html_table(title: str, rows: Sequence[tuple[str, str]], **facts: str) -> str:
    """A table with a title, a row for each pair, and one for each fact that is not empty.

    >>> html_table("f", [("args[0]", "float32[b]")], platforms="cpu")
    '<table><caption>f</caption><tr><th>args[0]</th><td>float32[b]</td></tr><tr><th>platforms</th><td>cpu</td></tr></table>'
    """
    shown = _first_and_last(list(rows), _IN_TABLE, lambda left: ("...", f"{left} more"))
    shown += [(name, text) for name, text in facts.items() if text]
    cells = "".join(f"<tr><th>{escape(name)}</th><td>{escape(text)}</td></tr>" for name, text in shown)
    return f"<table><caption>{escape(title)}</caption>{cells}</table>"
