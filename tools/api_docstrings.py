"""For the API pages: what griffe would misread in our docstrings (an extension of griffe).

The `>>>` lines at the end become a section of examples, and a colon in the first line of what a function returns
stays a colon: griffe takes the words before it for a type.
"""

from __future__ import annotations

import re
import textwrap
from typing import Any

import griffe

__all__ = ["Docstrings"]

_RETURNS_WITH_COLON = re.compile(r"(\nReturns:\n[^:\n]*):")


class Docstrings(griffe.Extension):
    """Rewrites docstrings before they are parsed."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Does it for one object."""
        if obj.docstring is None:
            return
        text = _RETURNS_WITH_COLON.sub(r"\1&#58;", obj.docstring.value)
        before, prompt, examples = text.partition("\n>>> ")
        if prompt:
            indented = textwrap.indent(f">>> {examples}", "    ")
            text = f"{before.rstrip()}\n\nExamples:\n{indented}"
        obj.docstring.value = text
