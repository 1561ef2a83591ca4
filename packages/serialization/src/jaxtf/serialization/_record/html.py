"""A table for notebooks: names and texts, escaped."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

__all__ = ["html_table"]

_SHOWN = 40


def html_table(title: str, rows: Sequence[tuple[str, str]], **facts: str) -> str:
    """A table with a title, a row for each pair, and one for each fact that is not empty.

    >>> html_table("f", [("args[0]", "float32[b]")], platforms="cpu")
    '<table><caption>f</caption><tr><th>args[0]</th><td>float32[b]</td></tr><tr><th>platforms</th><td>cpu</td></tr></table>'
    """
    shown = list(rows)
    if len(shown) > _SHOWN:
        shown[_SHOWN // 2 : -_SHOWN // 2] = [("...", f"{len(shown) - _SHOWN} more")]
    shown += [(name, text) for name, text in facts.items() if text]
    cells = "".join(f"<tr><th>{escape(name)}</th><td>{escape(text)}</td></tr>" for name, text in shown)
    return f"<table><caption>{escape(title)}</caption>{cells}</table>"
