"""The door to TensorFlow for graph mode: its XLA operations, most of which `tf.raw_ops` does not have.

Each private name stands once, with why it is needed and the versions it was seen in:

- `tensorflow.compiler.tf2xla.ops.gen_xla_ops` (2.21): `xla_variadic_sort`, `xla_rng_bit_generator`. They have CPU
  kernels and run eagerly, in graphs and compiled; a SavedModel that has them loads with TensorFlow alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import tensorflow as tf
from tensorflow.compiler.tf2xla.ops import gen_xla_ops

__all__ = ["rng_bit_generator", "variadic_sort"]


def variadic_sort(
    operands: Sequence[tf.Tensor], axis: int, comparator: Callable[..., Sequence[tf.Tensor]]
) -> list[tf.Tensor]:
    """Arrays sorted together by a comparator of scalars, equal elements in order."""
    scalars = [tf.TensorSpec([], x.dtype) for x in operands for _ in range(2)]

    def compared(*arguments: tf.Tensor) -> tf.Tensor:
        return comparator(*arguments)[0]

    function = tf.function(compared, autograph=False, input_signature=scalars).get_concrete_function()
    return list(gen_xla_ops.xla_variadic_sort(operands, tf.constant(axis), comparator=function, is_stable=True))


def rng_bit_generator(
    algorithm: int, state: tf.Tensor, shape: Sequence[int], dtype: tf.DType
) -> tuple[tf.Tensor, tf.Tensor]:
    """The next state and random bits, those of XLA."""
    key, bits = gen_xla_ops.xla_rng_bit_generator(algorithm, state, list(shape), dtype=dtype)
    return key, bits
