"""Convolutions as sums of products, where a convolution of TensorFlow's takes longer.

Operands are `[batch, height, width, features]`, the features of one group next to each other; kernels `[height, width,
features of one group, outputs]`. Those of 16-bit floats are summed in float32. What they bring is measured by
`benchmarks/bench_graph.py windows`.
"""

from __future__ import annotations

from itertools import product

import tensorflow as tf

from jaxtf.convert._graph._support import widening
from jaxtf.convert._graph.ops.kernel_windows import Windows, padded
from jaxtf.convert._tf import is_compiled_for_cpu

__all__ = ["by_elements", "by_places"]

# Measured with XLA for CPU: kernels of 1 to 147 elements for each output feature, 1 to 128 features, strides 1 and 2.
_FEW_ELEMENTS = 64
_FEW_FEATURES = 4
_FEW_PLACES = 64

# As convolutions sum, those of TensorFlow and of XLA.
_SUMMED_IN = widening(float32=("bfloat16", "float16"))


def by_elements(operand: tf.Tensor, kernel: tf.Tensor, windows: Windows, groups: int, padding: str) -> tf.Tensor | None:
    """The sum, over the elements of the kernel, of the part of the operand that each meets, times the element.

    XLA makes one loop of it for CPU, faster than what it has for a depthwise convolution, or one of few features. None
    where that is not so, or not known: a larger kernel, or not compiled.
    """
    features = operand.shape.as_list()[-1]
    height, width, inputs, outputs = kernel.shape.as_list()
    if not kernel.shape.is_fully_defined() or not is_compiled_for_cpu():
        return None
    is_depthwise = groups == features and inputs == 1
    fits = is_depthwise or (groups == 1 and inputs <= _FEW_FEATURES and height * width > 1)
    if not fits or not 0 < height * width * inputs <= _FEW_ELEMENTS:
        return None
    dtype = operand.dtype
    operand, kernel = (_widened(x) for x in (padded(operand, windows, padding), kernel))
    if is_depthwise:
        operand = tf.repeat(operand, outputs // features, -1)
    rows, columns = (
        [slice(i * d, i * d - (reach - 1) or None, stride) for i in range(size)]
        for size, d, reach, stride in zip(
            (height, width), windows.kernel_dilation, windows.reach(kernel), windows.stride, strict=True
        )
    )
    whole = slice(None)
    terms = [
        operand[:, row, column, whole if is_depthwise else slice(n, n + 1)] * kernel[i, j, n]
        for (i, row), (j, column), n in product(enumerate(rows), enumerate(columns), range(inputs))
    ]
    return tf.cast(sum(terms[1:], terms[0]), dtype)


def _widened(operand: tf.Tensor) -> tf.Tensor:
    """In the dtype that sums are made in."""
    return tf.cast(operand, _SUMMED_IN.get(operand.dtype, operand.dtype))


def by_places(operand: tf.Tensor, kernel: tf.Tensor, windows: Windows, groups: int, padding: str) -> tf.Tensor | None:
    """A convolution with groups of which the result has few places, each a sum of products; None for another one.

    Such is the gradient for the kernel of a depthwise convolution: the kernel is as large as the operand.
    """
    batch, *extent, _ = operand.shape.as_list()
    height, width, _, outputs = kernel.shape.as_list()
    if batch != 1 or None in (*extent, height, width, outputs):
        return None
    if padding == "SAME":
        extent = [low + size + high for low, size, high in zip(windows.low, extent, windows.high, strict=True)]
    reach = windows.reach(kernel)
    places = [(size - span) // stride + 1 for size, span, stride in zip(extent, reach, windows.stride, strict=True)]
    if places[0] * places[1] > min(_FEW_PLACES, 4 * groups, height * width):
        return None
    dtype = operand.dtype
    operand, kernel = (_widened(x) for x in (padded(operand, windows, padding), kernel))
    operand = tf.transpose(tf.reshape(operand, [*extent, groups, -1, 1]), [0, 1, 3, 2, 4])
    kernel = tf.reshape(kernel, [height, width, -1, groups, outputs // groups])
    rows, columns = (
        [slice(i * stride, i * stride + span, d) for i in range(count)]
        for count, span, stride, d in zip(places, reach, windows.stride, windows.kernel_dilation, strict=True)
    )
    sums = [tf.reduce_sum(operand[row, column] * kernel, [0, 1, 2]) for row, column in product(rows, columns)]
    return tf.cast(tf.reshape(tf.stack(sums), [1, *places, outputs]), dtype)
