"""Extremes of random numbers, compiled for CPU: what LLVM would never be done with.

In a loop of 8, 16, 24, ... turns LLVM (of TensorFlow 2.21) looks for a checksum, and follows each path from what the
loop carries back through what it computes. Through the 20 rounds of threefry, JAX's random bits, there are too many: in
`jnp.argmax(jax.random.normal(key, (32,)))`. So the array is kept from being computed in the loop that reduces it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from math import prod

import tensorflow as tf

from jaxtf.convert._tf import is_compiled_for_cpu

__all__ = ["apart_from_rounds"]

_TURNS = 8  # and multiples
_MANY_ROUNDS = 16
_NEAR = 600  # operations


def apart_from_rounds(operand: tf.Tensor, axes: Sequence[int]) -> tf.Tensor:
    """An array that is to be reduced: itself, or the same from a loop of its own."""
    reduced = [operand.shape[axis] for axis in axes]
    may_be_looked_at = None in reduced or prod(reduced) % _TURNS == 0
    if not (may_be_looked_at and is_compiled_for_cpu() and _has_rounds(operand)):
        return operand

    def step(i: tf.Tensor, x: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        return i + 1, tf.where(i > 1, tf.zeros([], x.dtype), x)  # XLA does not see that it is never so

    _, made = tf.while_loop(lambda i, _: i < 2, step, (tf.constant(0), operand))
    return made


def _has_rounds(tensor: tf.Tensor) -> bool:
    """Whether many rounds of exclusive or are among the operations, not far away, that it is computed by."""
    met, waiting, rounds = set[str](), deque([tensor.op]), 0
    while waiting and len(met) < _NEAR:
        op = waiting.popleft()
        if op.name in met:
            continue
        met.add(op.name)
        is_call = op.type in ("PartitionedCall", "StatefulPartitionedCall")
        rounds += _MANY_ROUNDS if is_call and "threefry" in op.get_attr("f").name else op.type == "BitwiseXor"
        if rounds >= _MANY_ROUNDS:
            return True
        waiting.extend(x.op for x in op.inputs)
    return False
