"""In which dtype products are summed whose result has another dtype than the operands."""

from __future__ import annotations

from functools import reduce
from typing import Any

import ml_dtypes
import numpy as np

__all__ = ["dtype_of_products"]


def dtype_of_products(result: np.dtype[Any], *operands: np.dtype[Any]) -> np.dtype[Any]:
    """That of the operands or of the result, the one that XLA sums in: sums are rounded to it, and then converted.

    Complex numbers come before floats, floats before integers, whatever their widths, and those before truth values. Of
    floats the one of more exponents is taken, of as many exponents the one of more digits; of integers the wider one.

    >>> dtype_of_products(np.dtype("float16"), np.dtype("float32"), np.dtype("float32"))
    dtype('float32')
    >>> dtype_of_products(np.dtype("float16"), np.dtype("int64"), np.dtype("int64"))
    dtype('float16')
    """
    return reduce(lambda kept, other: other if _precision(other) > _precision(kept) else kept, operands, result)


def _precision(dtype: np.dtype[Any]) -> tuple[int, int, int]:
    if dtype == np.bool_:
        return 0, 0, 0
    if dtype.kind == "c":
        return 3, dtype.itemsize, 0
    try:
        return 1, int(ml_dtypes.iinfo(dtype).bits), 0  # type: ignore[no-untyped-call]
    except ValueError:
        limits: Any = ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]
        return 2, int(limits.maxexp), int(limits.nmant)
