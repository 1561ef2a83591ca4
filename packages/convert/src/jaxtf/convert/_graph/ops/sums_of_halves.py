"""In which dtype convolutions of 16-bit floats are computed, so that sums are not rounded at each step.

XLA for CPU computes them in float32. TensorFlow's kernels for CPU do so for some, and not for their gradients.
"""

from __future__ import annotations

import tensorflow as tf

from jaxtf.convert._graph._support import Size, same, sizes
from jaxtf.convert._graph.optimizer import computed_by_xla
from jaxtf.convert._tf import is_compiled_for_cpu, traces_compiled

__all__ = ["stays_bfloat16", "sums_round", "widened"]

# A depthwise kernel of bfloat16 that is no wider may stay bfloat16. For wider ones, from 15 and of at most 16 features,
# TensorFlow's kernel never returns on a CPU with AVX-512 that has bfloat16 (2.19 to 2.21): oneDNN makes code for ever.
_NARROW = 8


def sums_round(dtype: tf.DType, *, is_differentiated: bool) -> bool:
    """Whether it may be that a kernel of TensorFlow's rounds each sum in a dtype, be it in a gradient.

    Compiled, TensorFlow's kernels compute what depends on constants and sizes alone, also in loops, and where the
    cotangent of a gradient is one; XLA would compute in float32 itself.
    """
    if dtype not in (tf.float16, tf.bfloat16):
        return False
    return is_compiled_for_cpu() or (is_differentiated and dtype == tf.float16 and not traces_compiled())


def stays_bfloat16(kernel: tf.Tensor, features: Size) -> bool:
    """Whether TensorFlow's kernel of bfloat16 is right for a depthwise kernel, and returns.

    Of features that have several results each, oneDNN multiplies what fills a last pair of terms, or of a row of the
    kernel on a CPU with AMX, by what comes next, which is zero in the kernel alone (`whole_terms`): NaN where another
    feature is infinite.
    """
    height, width, _, outputs = sizes(kernel)
    if not isinstance(width, int) or width > _NARROW:
        return False
    is_one_by_even = width == 1 and isinstance(height, int) and height % 2 == 0
    return same(outputs, features) or width % 2 == 0 or is_one_by_even


def widened(operand: tf.Tensor, kernel: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Not float16, for TensorFlow's kernels that sum it in float16: those for CPU, not compiled, but for conv2d's."""
    if operand.dtype != tf.float16 or computed_by_xla(operand, kernel):
        return operand, kernel
    return tf.cast(operand, tf.float32), tf.cast(kernel, tf.float32)
