"""The numbers that a function is verified with: the same for the same shapes and dtypes, in every process."""

from __future__ import annotations

from typing import Any

import numpy as np

from jaxtf.convert._dtypes import is_float0
from jaxtf.convert._errors import ConversionOptionError

__all__ = ["argument", "cotangent", "is_inexact"]


def argument(shape: tuple[int, ...], dtype: Any, position: int) -> np.ndarray[Any, Any]:
    """Numbers between 0.5 and 2.5, without ties; integers from 0 to 10; for the argument at this position.

    Raises:
      ConversionOptionError: A dtype that has no such numbers, as of random keys.
    """
    count = int(np.prod(shape))
    index = np.arange(count)
    if is_float0(dtype):
        return np.zeros(shape, np.bool_)
    if not isinstance(dtype, np.dtype):
        raise ConversionOptionError(f"verify makes no numbers of dtype {dtype}: take its raw data as the argument")
    if dtype == np.bool_:
        return np.asarray((index * 7 % 3 == position % 3).reshape(shape))
    if not is_inexact(dtype):
        return np.asarray(((index * 7 + 3 * position) % 11).reshape(shape), dtype)
    real = np.cos(index * 0.7 + position) + 1.5
    values = real + 1j * np.sin(index * 0.9) if dtype.kind == "c" else real
    return np.asarray(values.reshape(shape), dtype)


def cotangent(shape: tuple[int, ...], dtype: Any, position: int) -> np.ndarray[Any, Any]:
    """What a result is weighted with for a gradient; for the result at this position."""
    return argument(shape, dtype, position + 5)


def is_inexact(dtype: np.dtype[Any]) -> bool:
    """Whether it rounds: floating and complex ones, those of ml_dtypes too (NumPy calls their kind V)."""
    return dtype.kind in "fcV"
