"""How the kernel of a convolution moves over its operand."""

from __future__ import annotations

from dataclasses import dataclass

import tensorflow as tf

from jaxtf.convert._graph._support import Size, pad

__all__ = ["Integers", "Windows", "padded", "with_holes"]

Integers = tuple[int, ...]


@dataclass(frozen=True)
class Windows:
    """How the kernel moves, by spatial dimension."""

    stride: Integers
    low: tuple[Size, ...]
    high: tuple[Size, ...]
    dilation: Integers
    kernel_dilation: Integers

    def reach(self, kernel: tf.Tensor) -> list[int]:
        """How many elements the kernel spans, with its holes."""
        return [(kernel.shape[i] - 1) * d + 1 for i, d in enumerate(self.kernel_dilation)]


def padded(operand: tf.Tensor, windows: Windows, padding: str) -> tf.Tensor:
    """The operand with the zeros that `padding`, VALID or SAME, stands for."""
    if padding == "VALID":
        return operand
    return tf.pad(operand, [[0, 0], *zip(windows.low, windows.high, strict=True), [0, 0]])


def with_holes(kernel: tf.Tensor, dilation: Integers) -> tf.Tensor:
    """The kernel with zeros between its elements, for kernels that know no dilation on CPU."""
    nothing = [0] * kernel.shape.rank
    return pad(kernel, tf.zeros([], kernel.dtype), nothing, nothing, [*(d - 1 for d in dilation), 0, 0])
