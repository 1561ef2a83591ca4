"""What the operators of dimensions take on their other side, beside dimensions. Knows Python's protocols alone."""

from __future__ import annotations

import operator

__all__ = ["as_integer", "is_array"]


def as_integer(value: object) -> int | None:
    """Returns the value of anything that Python takes for an integer; None for anything else."""
    if not hasattr(value, "__index__"):
        return None
    try:
        return operator.index(value)
    except TypeError:  # arrays, and JAX values that are not known yet
        return None


def is_array(value: object) -> bool:
    """Returns whether a value is an array of NumPy, JAX or their kind, or one of their scalars."""
    return hasattr(value, "dtype") and hasattr(value, "shape")
