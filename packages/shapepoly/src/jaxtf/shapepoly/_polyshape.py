"""A shape specification in pieces, as older programs write it. Knows nothing but its text."""

from types import EllipsisType
from typing import Any, Self


class PolyShape(tuple[Any, ...]):
    """A shape specification in pieces: `PolyShape("b", None, ...)` is the text `"(b, _, ...)"`.

    Kept for programs that use it; a text says the same in fewer characters.

    >>> from jaxtf.shapepoly import PolyShape
    >>> str(PolyShape("b", 4, ...))
    '(b, 4, ...)'
    """

    def __new__(cls, *dim_specs: str | int | EllipsisType | None) -> Self:
        """Makes a specification of one piece for each dimension; `...` may stand last."""
        return super().__new__(cls, dim_specs)

    def __str__(self) -> str:
        return "(" + ", ".join(map(_piece_text, self)) + ("," if len(self) == 1 else "") + ")"


def _piece_text(piece: object) -> str:
    return "..." if piece is ... else "_" if piece is None else str(piece)
