"""How the kernel of a convolution moves over its operand."""

from __future__ import annotations

from dataclasses import dataclass

import tensorflow as tf

from jaxtf.convert._graph._support import Size, sizes

__all__ = ["Integers", "Windows", "padded", "spanned"]

Integers = tuple[int, ...]


def spanned(count: Size, step: int) -> Size:
    """How many elements so many of them span that are a step apart, of none too."""
    extent = (count - 1) * step + 1
    return max(extent, 0) if isinstance(extent, int) else tf.maximum(extent, 0)


@dataclass(frozen=True)
class Windows:
    """How the kernel moves, by spatial dimension."""

    stride: Integers
    low: tuple[Size, ...]
    high: tuple[Size, ...]
    dilation: Integers
    kernel_dilation: Integers

    def reach(self, kernel: tf.Tensor) -> list[Size]:
        """How many elements the kernel spans, with its holes."""
        return [(size - 1) * d + 1 for size, d in zip(sizes(kernel), self.kernel_dilation, strict=False)]

    def count(self, axis: int, size: Size, kernel_size: Size) -> Size:
        """How many places the kernel has along a spatial dimension of the operand; None if a size is not known."""
        low, high, dilation, apart = (f[axis] for f in (self.low, self.high, self.dilation, self.kernel_dilation))
        if size is None or kernel_size is None:
            return None
        padded_size, reach = spanned(size, dilation) + low + high, spanned(kernel_size, apart)
        count = (padded_size - reach) // self.stride[axis] + 1
        if all(isinstance(n, int) for n in (padded_size, reach)):
            return count if padded_size >= max(reach, 1) else 0
        return tf.where((padded_size >= reach) & (padded_size >= 1), count, 0)

    def without(self, axis: int) -> Windows:
        """The same without one spatial dimension."""
        kept = [i for i in range(len(self.stride)) if i != axis]
        fields = self.stride, self.low, self.high, self.dilation, self.kernel_dilation
        return Windows(*(tuple(field[i] for i in kept) for field in fields))


def padded(operand: tf.Tensor, windows: Windows, padding: str) -> tf.Tensor:
    """The operand with the zeros that `padding`, VALID or SAME, means."""
    if padding == "VALID":
        return operand
    return tf.pad(operand, [[0, 0], *zip(windows.low, windows.high, strict=True), [0, 0]])
