"""Inverse cosines and tangents of complex numbers for TensorFlow before 2.21, whose XLA has some of them wrong.

There acos(2) has the other sign, acosh(-2) is the conjugate of what it should be, atanh(1) is 0.35 and atanh of an
infinity NaN. Its asin and atan are right for all numbers, infinities and NaN among them; so the others are written with
these.
"""

from __future__ import annotations

import math

import tensorflow as tf

from jaxtf.convert._graph._support import where

__all__ = ["COMPILES_INVERSES", "acos", "acosh", "atanh"]

COMPILES_INVERSES = tuple(int(part) for part in tf.__version__.split(".")[:2]) >= (2, 21)
"""Whether TensorFlow compiles its own for complex numbers to what they are."""


def acos(operand: tf.Tensor) -> tf.Tensor:
    """The inverse cosine; on the branch cut, that of a positive imaginary part."""
    angle, size = _angle_and_size(operand)
    return tf.complex(angle, where(tf.math.imag(operand) < 0, size, -size))


def acosh(operand: tf.Tensor) -> tf.Tensor:
    """The inverse hyperbolic cosine, as `acos`."""
    angle, size = _angle_and_size(operand)
    return tf.complex(size, where(tf.math.imag(operand) < 0, -angle, angle))


def atanh(operand: tf.Tensor) -> tf.Tensor:
    """The inverse hyperbolic tangent: the inverse tangent, turned."""
    turned = tf.atan(tf.complex(tf.math.imag(operand), -tf.math.real(operand)))
    return tf.complex(-tf.math.imag(turned), tf.math.real(turned))


def _angle_and_size(operand: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """The real part of the inverse cosine, and the size of its imaginary part.

    Source: W. Kahan, Branch Cuts for Complex Elementary Functions, 1987.
    """
    real, imaginary, sine = tf.math.real(operand), tf.abs(tf.math.imag(operand)), tf.asin(operand)
    below, above = (tf.math.real(tf.sqrt(tf.complex(part, imaginary))) for part in (1 - real, 1 + real))
    has_roots = tf.maximum(tf.abs(real), imaginary) < real.dtype.max / 4
    angle = where(has_roots, 2 * tf.atan2(below, above), math.pi / 2 - tf.math.real(sine))
    return angle, tf.abs(tf.math.imag(sine))
