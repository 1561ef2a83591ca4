"""Inverse cosines and tangents of complex numbers for TensorFlow before 2.21, which compiles them wrongly.

There acos(2) has the other sign, acosh(-2) is the conjugate of what it should be, also off the branch cut, and atanh of
1 and of infinities is NaN. Its asin and atan are right for all numbers; so the others are written with these, as JAX
has them.

Knows graphs of TensorFlow; nothing of what else is written otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf

__all__ = ["FORMULAS", "OLDER"]


def _acos(operand: Any) -> Any:
    """On the branch cut, that of a positive imaginary part."""
    angle, size = _angle_and_size(operand)
    return tf.complex(angle, tf.where(tf.math.imag(operand) < 0, size, -size))


def _acosh(operand: Any) -> Any:
    """As `_acos`."""
    angle, size = _angle_and_size(operand)
    return tf.complex(size, tf.where(tf.math.imag(operand) < 0, -angle, angle))


def _atanh(operand: Any) -> Any:
    """The inverse tangent, turned."""
    turned = tf.atan(tf.complex(tf.math.imag(operand), -tf.math.real(operand)))
    return tf.complex(-tf.math.imag(turned), tf.math.real(turned))


def _angle_and_size(operand: Any) -> tuple[Any, Any]:
    """The real part of the inverse cosine, and the size of its imaginary part.

    Source: W. Kahan, Branch Cuts for Complex Elementary Functions, 1987.
    """
    real, imaginary, sine = tf.math.real(operand), tf.abs(tf.math.imag(operand)), tf.asin(operand)
    below, above = (tf.math.real(tf.sqrt(tf.complex(part, imaginary))) for part in (1 - real, 1 + real))
    has_roots = tf.maximum(tf.abs(real), imaginary) < real.dtype.max / 4
    angle = tf.where(has_roots, 2 * tf.atan2(below, above), math.pi / 2 - tf.math.real(sine))
    return angle, tf.abs(tf.math.imag(sine))


def _written(formula: Callable[[Any], Any]) -> Callable[[Any, list[Any]], Sequence[Any]]:
    return lambda op, operands: [formula(*operands)]


FORMULAS: Mapping[str, Callable[[Any], Any]] = {"Acos": _acos, "Acosh": _acosh, "Atanh": _atanh}
"""By the type of operation."""

_DTYPES = frozenset(dtype.as_datatype_enum for dtype in (tf.complex64, tf.complex128))
_IS_OLDER = tuple(int(part) for part in tf.__version__.split(".")[:2]) < (2, 21)

OLDER: Mapping[str, tuple[frozenset[int], Callable[[Any, list[Any]], Sequence[Any]]]] = {
    op_type: (_DTYPES, _written(formula)) for op_type, formula in FORMULAS.items() if _IS_OLDER
}
"""What is written otherwise for this TensorFlow, by the type of operation; none if it compiles them rightly."""
