"""Cumulative sums, products and log-sum-exps.

TensorFlow compiles them to windows as long as the axis, so that along a symbolic one they are written otherwise: each
element is combined with the one 1, 2, 4, ... places before it, until the axis is covered.

Source: W. D. Hillis and G. L. Steele, "Data parallel algorithms" (1986).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from jaxtf.calltf._interpreter import Interpreter
from jaxtf.calltf._jax import is_symbolic
from jaxtf.calltf._operations.table import rule
from jaxtf.calltf._symbolic_values import Value


def _log_of_sum(x: Any, y: Any) -> Any:
    """The logarithm of the sum of exponentials."""
    most = tf.maximum(x, y)
    return tf.where(tf.math.is_inf(most), most, most + tf.math.log1p(tf.exp(-tf.abs(x - y))))


# How two elements are combined, and with what nothing is changed.
_COMBINED: dict[str, tuple[Callable[[Any, Any], Any], float]] = {
    "Cumsum": (tf.add, 0),
    "Cumprod": (tf.multiply, 1),
    "CumulativeLogsumexp": (_log_of_sum, float("-inf")),
}


@rule(*_COMBINED)
def cumulative(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """The shape stays; along a symbolic axis the order of summation is another one than along a constant one."""
    x = inputs[0]
    [axis] = i.integers(op, inputs, 1)
    axis %= len(x.shape)
    if not is_symbolic(x.shape[axis]):
        [tensor] = i.compiled(op, inputs, (1,))
        return [i.value(tensor, x.shape)]
    tensor = tf.reverse(x.tensor, [axis]) if op.get_attr("reverse") else x.tensor
    tensor = _scanned(i, op, tensor, x.shape, axis)
    return [i.value(tf.reverse(tensor, [axis]) if op.get_attr("reverse") else tensor, x.shape)]


def _scanned(i: Interpreter, op: Any, tensor: Any, shape: Any, axis: int) -> Any:
    combine, neutral = _COMBINED[op.type]
    places = i.counted(shape[axis])
    size = i.size(shape[axis])
    i.remember([2 * shape[axis]])  # of a roll

    def before(tensor: Any, distance: Any) -> tuple[Any, Any]:
        """Where there is an element so far before, and it."""
        exists = tf.reshape(places >= distance, [-1] + [1] * (len(shape) - axis - 1))
        return exists, tf.roll(tensor, distance, axis)

    def turn(distance: Any, tensor: Any) -> tuple[Any, Any]:
        exists, earlier = before(tensor, distance)
        return 2 * distance, tf.where(exists, combine(earlier, tensor), tensor)

    def goes_on(distance: Any, _: Any) -> Any:
        return tf.logical_and(distance < size, distance > 0)  # the double of 2**30 is negative

    _, tensor = tf.while_loop(goes_on, turn, (tf.constant(1), tensor))
    if not op.get_attr("exclusive"):
        return tensor
    exists, earlier = before(tensor, 1)
    return tf.where(exists, earlier, tf.cast(neutral, tensor.dtype))
