"""Discrete Fourier transforms.

As accurate as XLA's for CPU, rounded in another order; a NaN or an infinity is in each sum that it enters. Transforms
of no elements are empty, or zeros.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import tensorflow as tf

from jaxtf.convert._graph._support import Size, as_shape, is_empty, sizes
from jaxtf.convert._graph.registry import Bound, translates

COMPLEX: Mapping[tuple[str, int], Callable[[tf.Tensor], tf.Tensor]] = {
    ("FFT", 1): tf.signal.fft,
    ("FFT", 2): tf.signal.fft2d,
    ("FFT", 3): tf.signal.fft3d,
    ("IFFT", 1): tf.signal.ifft,
    ("IFFT", 2): tf.signal.ifft2d,
    ("IFFT", 3): tf.signal.ifft3d,
}
REAL: Mapping[tuple[str, int], Callable[..., tf.Tensor]] = {
    ("RFFT", 1): tf.signal.rfft,
    ("RFFT", 2): tf.signal.rfft2d,
    ("RFFT", 3): tf.signal.rfft3d,
    ("IRFFT", 1): tf.signal.irfft,
    ("IRFFT", 2): tf.signal.irfft2d,
    ("IRFFT", 3): tf.signal.irfft3d,
}


@translates("stablehlo.fft")
def fourier_transform(bound: Bound, operand: tf.Tensor) -> tf.Tensor:
    """The transform over the last one to three dimensions; inverse ones are divided by the number of elements.

    Of a length of 0 nothing is transformed: a kernel of TensorFlow's ends the process for it. A real one whose last
    length is 1 is a complex one: that of TFLite is wrong.

    Source: StableHLO specification, `fft`.
    """
    length = [int(n) for n in bound["fft_length"]]
    kind = (bound["fft_type"], len(length))
    if is_empty(bound.result_type.shape) or is_empty(operand.shape.as_list()) or 0 in length:
        return tf.zeros(as_shape(_result_sizes(bound, operand)), bound.result_type.dtype)
    if kind[0] == "RFFT" and length[-1] == 1:
        operand, kind = tf.complex(operand, tf.zeros_like(operand)), ("FFT", len(length))
        if len(length) == 1:
            return operand
    if kind in COMPLEX:
        return COMPLEX[kind](operand)
    return REAL[kind](operand, fft_length=length)


def _result_sizes(bound: Bound, operand: tf.Tensor) -> list[Size]:
    """The sizes of the result, where its type does not know them those of the operand."""
    pairs = zip(bound.result_type.shape, sizes(operand), strict=True)
    return [own if known is None else known for known, own in pairs]
