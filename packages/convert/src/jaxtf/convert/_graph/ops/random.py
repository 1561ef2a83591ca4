"""Random bits. Threefry arrives as integer operations; XLA's generators are XLA's."""

from __future__ import annotations

import tensorflow as tf

from jaxtf.convert import _tf
from jaxtf.convert._graph._support import refuse
from jaxtf.convert._graph.registry import Bound, refuses, translates

refuses("custom_call.stablehlo.dynamic_rng_bit_generator", reason="XlaRngBitGenerator takes a shape that is known")
refuses("stablehlo.rng", reason="its numbers depend on the state of the device; use jax.random")

# Numbers of tf.random.Algorithm.
ALGORITHMS = {"DEFAULT": 3, "THREE_FRY": 2, "PHILOX": 1}
UNSIGNED_OF_SIZE = {1: tf.uint8, 2: tf.uint16, 4: tf.uint32, 8: tf.uint64}


@translates("stablehlo.rng_bit_generator", needs_xla="always: TensorFlow's own generators give other bits")
def rng_bit_generator(bound: Bound, state: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """The next state, and random bits in a shape.

    Source: StableHLO specification, `rng_bit_generator`.
    """
    if not bound.allows_xla:
        refuse(bound, "TensorFlow has no plain operation with these bits; allow XLA operations, or use threefry keys")
    _, result = bound.result_types
    if not result.is_static:
        refuse(bound, "a shape that is known only at run time")
    shape = [size for size in result.shape if size is not None]
    generated = UNSIGNED_OF_SIZE[max(result.dtype.size, 4)]
    next_state, bits = _tf.rng_bit_generator(ALGORITHMS[bound["rng_algorithm"]], state, shape, generated)
    if result.dtype.size < 4:
        bits = tf.cast(bits, UNSIGNED_OF_SIZE[result.dtype.size])
    return next_state, bits if bits.dtype == result.dtype else tf.bitcast(bits, result.dtype)
