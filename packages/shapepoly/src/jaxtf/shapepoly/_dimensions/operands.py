"""What the operators of dimensions take on their other side, beside dimensions. Knows Python's protocols alone."""

from __future__ import annotations

import operator
from typing import Any

__all__ = ["as_integer", "as_size", "is_array"]


def as_integer(value: object) -> int | None:
    """Returns the value of anything that Python takes for an integer; None for anything else."""
    if not hasattr(value, "__index__"):
        return None
    try:
        return operator.index(value)
    except TypeError:  # arrays, and JAX values that are not known yet
        return None


def as_size(value: Any) -> Any:
    """Returns a size with any integer as one of Python, which does not wrap; what is not an integer as it is."""
    if type(value) is int:
        return value
    integer = as_integer(value)
    return value if integer is None else integer


def is_array(value: object) -> bool:
    """Returns whether a value is an array of NumPy, JAX or their kind, or one of their scalars."""
    return hasattr(value, "dtype") and hasattr(value, "shape")
