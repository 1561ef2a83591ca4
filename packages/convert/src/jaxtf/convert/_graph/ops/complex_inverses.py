"""Inverse cosines and tangents of complex numbers for TensorFlow before 2.21, whose XLA has some of them wrong.

There acos(2) has the other sign, acosh(-2) is the conjugate of what it should be, and atanh(1) is 0.35.
"""

from __future__ import annotations

import tensorflow as tf

from jaxtf.convert._graph._support import where

__all__ = ["COMPILES_INVERSES", "acos", "acosh", "atanh"]

COMPILES_INVERSES = tuple(int(part) for part in tf.__version__.split(".")[:2]) >= (2, 21)
"""Whether TensorFlow compiles its own for complex numbers to what they are."""


def acos(operand: tf.Tensor) -> tf.Tensor:
    """The inverse cosine; on the branch cut, that of a positive imaginary part.

    Source: W. Kahan, Branch Cuts for Complex Elementary Functions, 1987.
    """
    real, imaginary = tf.math.real(operand), tf.math.imag(operand)
    below, above = _roots(1 - real, 1 + real, imaginary)
    angle = 2 * tf.atan2(tf.abs(tf.math.real(below)), tf.abs(tf.math.real(above)))
    size = tf.asinh(tf.abs(tf.math.imag(tf.math.conj(above) * tf.math.conj(below))))
    return tf.complex(angle, where(imaginary < 0, size, -size))


def acosh(operand: tf.Tensor) -> tf.Tensor:
    """The inverse hyperbolic cosine, as `acos`."""
    real, imaginary = tf.math.real(operand), tf.math.imag(operand)
    below, above = _roots(real - 1, real + 1, imaginary)
    angle = 2 * tf.atan2(tf.abs(tf.math.imag(below)), tf.abs(tf.math.real(above)))
    size = tf.asinh(tf.abs(tf.math.real(tf.math.conj(below) * above)))
    return tf.complex(size, where(imaginary < 0, -angle, angle))


def _roots(below: tf.Tensor, above: tf.Tensor, imaginary: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """The roots of two numbers of these real parts, with the size of the imaginary part."""
    size = tf.abs(imaginary)
    return tf.sqrt(tf.complex(below, size)), tf.sqrt(tf.complex(above, size))


def atanh(operand: tf.Tensor) -> tf.Tensor:
    """The inverse hyperbolic tangent: TensorFlow's, infinite at 1 and -1."""
    real, imaginary = tf.math.real(operand), tf.math.imag(operand)
    is_pole = tf.logical_and(tf.equal(tf.abs(real), 1), tf.equal(imaginary, 0))
    return where(is_pole, tf.complex(real * float("inf"), imaginary), tf.atanh(operand))
