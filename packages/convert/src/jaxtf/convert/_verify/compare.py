"""Errors of results, relative to eps * max abs value."""

from __future__ import annotations

from numbers import Real
from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxtf.convert._errors import ConversionOptionError
from jaxtf.convert._values.dtypes import is_float0
from jaxtf.convert._verify.numbers import is_inexact

__all__ = ["TOLERANCE", "allowed", "check_tolerance", "difference"]

# Sums of up to 64 terms, a few of them in sequence; a function that magnifies rounding needs more.
TOLERANCE = 256.0

# Of floats with few bits that would be more than the values themselves.
_LARGEST_PART = 1 / 8


def check_tolerance(tolerance: float | None) -> None:
    """Refuses what no error can be compared with, or any is less than.

    Raises:
      ConversionOptionError: It is not a finite number of at least 0.
    """
    if tolerance is not None and not (isinstance(tolerance, Real) and 0 <= tolerance < float("inf")):
        raise ConversionOptionError(
            f"tolerance must be a number of at least 0, in units of eps * max abs value. Got: {tolerance!r:.60}"
        )


def allowed(expected: Any, tolerance: float | None) -> float:
    """The largest `difference` at which an array counts as the same.

    Args:
      expected: The array.
      tolerance: What the user says; None for `TOLERANCE`, but no more than an eighth of its largest value, or
        one unit where eps is more than that.
    """
    dtype = np.asarray(expected).dtype
    if tolerance is not None:
        return tolerance
    return min(TOLERANCE, max(1.0, _LARGEST_PART / _epsilon(dtype))) if is_inexact(dtype) else TOLERANCE


def difference(found: Any, expected: Any) -> float:
    """The largest difference of two arrays, relative to eps * max abs value of the expected one.

    It is infinite if they do not match: where shapes or dtypes differ, where one has a NaN or an infinity and the other
    does not, in the same part of a complex number, and where integers differ at all. Zeros of either sign are the same.
    JAX's zeros of dtype float0 are False in TensorFlow.
    """
    left, right = (
        np.zeros(array.shape, np.bool_) if is_float0(array.dtype) else array
        for array in (np.asarray(found), np.asarray(expected))
    )
    if left.shape != right.shape or left.dtype != right.dtype:
        return float("inf")
    if not is_inexact(right.dtype):
        return 0.0 if np.array_equal(left, right) else float("inf")
    epsilon = _epsilon(right.dtype)
    wide = np.complex128 if right.dtype.kind == "c" else np.float64
    left, right = left.astype(wide).ravel(), right.astype(wide).ravel()
    parts = left.view(np.float64), right.view(np.float64)
    finite = np.isfinite(parts[1])
    if not np.array_equal(finite, np.isfinite(parts[0])):
        return float("inf")
    if not np.array_equal(parts[0][~finite], parts[1][~finite], equal_nan=True):
        return float("inf")
    whole = np.isfinite(right)
    beside = finite & ~np.repeat(whole, finite.size // max(whole.size, 1))  # NaN or infinity in the other part
    error, scale = _error(left[whole], right[whole], 0.0)
    return max(error, _error(parts[0][beside], parts[1][beside], scale)[0]) / epsilon


def _error(left: np.ndarray, right: np.ndarray, scale: float) -> tuple[float, float]:
    """The largest difference of finite numbers, relative to the largest expected one and a scale; and that number."""
    scale = max(scale, float(np.abs(right).max(initial=0.0)))
    apart = float(np.abs(left - right).max(initial=0.0))
    return (apart / scale if scale else float("inf")) if apart else 0.0, scale


def _epsilon(dtype: np.dtype[Any]) -> float:
    return float(jnp.finfo(dtype).eps)  # type: ignore[no-untyped-call, unused-ignore]
