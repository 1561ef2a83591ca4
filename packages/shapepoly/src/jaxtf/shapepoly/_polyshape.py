"""A shape specification in pieces, as older programs write it, and other shapes that are not text.

Knows nothing but texts.
"""

from types import EllipsisType
from typing import Any, Self


class PolyShape(tuple[Any, ...]):
    """A shape specification in pieces: `PolyShape("b", None, ...)` is the text `"(b, _, ...)"`.

    Kept for programs that use it; a text is the shorter form.

    >>> from jaxtf.shapepoly import PolyShape
    >>> str(PolyShape("b", 4, ...))
    '(b, 4, ...)'
    """

    def __new__(cls, *dim_specs: str | int | EllipsisType | None) -> Self:
        """Makes a specification of one piece for each dimension; `...` may come last."""
        return super().__new__(cls, dim_specs)

    def __str__(self) -> str:
        return "(" + ", ".join(map(_piece_text, self)) + ("," if len(self) == 1 else "") + ")"


def _piece_text(piece: object) -> str:
    return "..." if piece is ... else "_" if piece is None else str(piece)


def text_of_sizes(value: object) -> str | None:
    """Returns the text to write for sizes that are not text, such as a tuple or a TensorShape; None for anything else.

    An unknown size, None, becomes a dimension variable.

    >>> text_of_sizes((None, 4))
    '(b, 4)'
    """
    if isinstance(value, str | dict) or hasattr(value, "dtype"):
        return None
    try:
        pieces: tuple[Any, ...] = (value,) if _is_size(value) else tuple(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):  # no sequence, or a TensorShape of unknown rank
        return None
    if not all(map(_is_piece, pieces)) or any(piece is ... for piece in pieces[:-1]):
        return None
    return str(PolyShape(*(_variable_for(axis) if piece is None else piece for axis, piece in enumerate(pieces))))


def _is_piece(piece: object) -> bool:
    """Returns whether an object says the size of one axis; a text of several is none."""
    if isinstance(piece, str):
        return "," not in piece
    return piece is None or piece is ... or _is_size(piece)


def _is_size(piece: object) -> bool:
    """Returns whether an object is an integer or a dimension, also one of JAX; no boolean and no array is."""
    is_number = hasattr(piece, "__index__") or hasattr(piece, "dimension_as_value")
    return is_number and not isinstance(piece, bool) and not getattr(piece, "shape", ())


def _variable_for(axis: int) -> str:
    return f"d{axis}" if axis else "b"
