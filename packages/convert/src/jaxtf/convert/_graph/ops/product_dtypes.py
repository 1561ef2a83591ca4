"""In which dtype products are summed whose result has another dtype than the operands."""

from __future__ import annotations

from functools import reduce
from typing import Any

import ml_dtypes
import tensorflow as tf

from jaxtf.convert._graph.ops.conversion import width

__all__ = ["dtype_of_products"]


def dtype_of_products(result: tf.DType, *operands: tf.DType) -> tf.DType:
    """That of the operands or of the result, the one that XLA sums in: sums are rounded to it, and then converted.

    Complex numbers come before floats, floats before integers, whatever their widths, and those before truth values. Of
    floats the one of more exponents is taken, of as many exponents the one of more digits; of integers the wider one.

    >>> dtype_of_products(tf.bfloat16, tf.float32, tf.float32)
    tf.float32
    >>> dtype_of_products(tf.float16, tf.int64, tf.int64)
    tf.float16
    """
    return reduce(lambda kept, other: other if _precision(other) > _precision(kept) else kept, operands, result)


def _precision(dtype: tf.DType) -> tuple[int, int, int]:
    if dtype.is_complex:
        return 3, width(dtype), 0
    if dtype.is_floating:
        limits: Any = ml_dtypes.finfo(dtype.as_numpy_dtype)  # type: ignore[no-untyped-call]
        return 2, int(limits.maxexp), int(limits.nmant)
    return (0, 0, 0) if dtype == tf.bool else (1, width(dtype), 0)
