"""The numbers that a function is verified with: the same for the same shapes and dtypes, in every process."""

from __future__ import annotations

from typing import Any

import numpy as np

from jaxtf.convert._errors import ConversionOptionError
from jaxtf.convert._values.dtypes import is_float0

__all__ = ["NUMBERS", "argument", "cotangent", "is_inexact"]

NUMBERS = ("regular", "ties", "special")
"""Kinds of numbers: without ties, with many, and with NaN, infinities and signed zeros among them."""

_TIES = (0.5, 1.0, 1.5)
_SPECIAL = (1.0, -0.0, np.nan, 0.0, np.inf, -1.0, 2.5, -np.inf, 0.5)


def argument(shape: tuple[int, ...], dtype: Any, position: int, numbers: str = "regular") -> np.ndarray[Any, Any]:
    """Numbers of a kind for the argument at this position.

    `regular`: between 0.5 and 2.5, without ties; integers from 0 to 10. `ties`: 0.5, 1 and 1.5, in no order; integers
    from 0 to 2, so that indices repeat. `special`: NaN, infinities and signed zeros among others; integers as `ties`.

    Raises:
      ConversionOptionError: A dtype that has no such numbers, as of random keys.
    """
    count = int(np.prod(shape))
    index = np.arange(count)
    if is_float0(dtype):
        return np.zeros(shape, np.bool_)
    if not isinstance(dtype, np.dtype):
        raise ConversionOptionError(f"verify generates no values of dtype {dtype}: take its raw data as the argument")
    if dtype == np.bool_:
        return np.asarray((index * 7 % 3 == position % 3).reshape(shape))
    if numbers != "regular":
        # Squares modulo a prime: each column and row of a matrix is another.
        drawn = (index * index + index // 3 + 5 * position) % 10007 // 7
        if not is_inexact(dtype):
            return np.asarray((drawn % 3).reshape(shape), dtype)
        choices = np.array(_TIES if numbers == "ties" else _SPECIAL)
        return np.asarray(choices[drawn % len(choices)].reshape(shape)).astype(dtype)
    if not is_inexact(dtype):
        return np.asarray(((index * 7 + 3 * position) % 11).reshape(shape), dtype)
    real = np.cos(index * 0.7 + position) + 1.5
    values = real + 1j * np.sin(index * 0.9) if dtype.kind == "c" else real
    return np.asarray(values.reshape(shape), dtype)


def cotangent(shape: tuple[int, ...], dtype: Any, position: int) -> np.ndarray[Any, Any]:
    """What a result is weighted with for a gradient; for the result at this position."""
    return argument(shape, dtype, position + 5)


def is_inexact(dtype: np.dtype[Any]) -> bool:
    """Whether it rounds: floating and complex ones.

    NumPy's kind of those of ml_dtypes is V, as is that of its integers, such as int4, and of float0, which has a field.
    """
    is_narrow_integer = dtype.name.startswith(("int", "uint"))
    return dtype.kind in "fc" or (dtype.kind == "V" and dtype.names is None and not is_narrow_integer)
