"""Operations that TensorFlow's compiler computes otherwise at NaN, infinities, or outside of their domain.

Each is written with others, so that it is there what it is where TensorFlow does not compile. Sizes of operands stay
what they are, also where XLA keeps them beside the array: so selections, no conjunctions.

Source: what TensorFlow 2.21 computes where it does not compile.
Knows TensorFlow; nothing of JAX.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from jaxtf.calltf._walk import constant_array, emitted

__all__ = [
    "activation_slopes",
    "at_infinity",
    "beyond_all",
    "clipped",
    "in_top_k",
    "incomplete_gamma",
    "mean_of_integers",
    "sign",
    "slopes_of_zero",
]


def in_top_k(op: Any, operands: list[Any]) -> Sequence[Any]:
    """False where a prediction is not finite, or the target is none of them; else larger ones are counted."""
    predictions, targets, *k = operands
    limit = k[0] if k else tf.constant(op.get_attr("k"), targets.dtype)
    count = predictions.shape[1]
    classes = tf.range(tf.shape(predictions, targets.dtype)[1] if count is None else tf.constant(count, targets.dtype))
    is_target = tf.equal(classes, targets[:, None])
    own = tf.reduce_max(tf.where(is_target, predictions, float("-inf")), axis=1, keepdims=True)
    larger = tf.reduce_sum(tf.cast(predictions > own, targets.dtype), axis=1)
    is_row = tf.reduce_all(tf.math.is_finite(predictions), axis=1) & tf.reduce_any(is_target, axis=1)
    return [is_row & (larger < limit)]


def incomplete_gamma(op: Any, operands: list[Any]) -> Sequence[Any]:
    """The regularized functions P and Q, and the derivative of P, at the edges of their domain and beyond."""
    a, x = operands
    [found] = emitted(op, operands)
    infinity, nan, zero, one = (tf.constant(value, found.dtype) for value in (float("inf"), float("nan"), 0, 1))
    if op.type == "Igammac":
        found = tf.where(tf.equal(a, infinity), tf.where(tf.equal(x, infinity), zero, one), found)
        return [tf.where(a > 0, tf.where(x >= 0, found, nan), nan)]
    found = tf.where(tf.equal(a, infinity), tf.where(x > 0, zero, found), found)
    if op.type == "IgammaGradA":
        found = tf.where(tf.equal(x, infinity), tf.where(a > 0, zero, found), found)
    return [tf.where(tf.equal(x, zero), zero, found)]


def at_infinity(op: Any, operands: list[Any]) -> Sequence[Any]:
    """The zeta function of Hurwitz vanishes at infinity, and with it polygamma, a factorial times it."""
    order, x = operands
    [found] = emitted(op, operands)
    infinity, one, zero = (tf.constant(value, found.dtype) for value in (float("inf"), 1, 0))
    last = tf.where(order > one, zero, found)
    if op.type == "Polygamma":
        last = tf.where(order >= one, zero * tf.exp(tf.math.lgamma(order + one)), found)
        last = tf.where(tf.equal(order, tf.floor(order)), last, found)
    return [tf.where(tf.equal(x, infinity), last, found)]


def beyond_all(op: Any, operands: list[Any]) -> Sequence[Any]:
    """NaN is where infinity is, beyond all that is sorted."""
    *ordered, values = operands
    infinity = tf.constant(float("inf"), values.dtype)
    return emitted(op, [*ordered, tf.where(tf.equal(values, values), values, infinity)])


def clipped(op: Any, operands: list[Any]) -> Sequence[Any]:
    """From above, then from below; a limit that is NaN is none."""
    values, lower, upper = operands
    found = tf.where(values > upper, upper, values)
    return [tf.where(found < lower, lower, found)]


def sign(op: Any, operands: list[Any]) -> Sequence[Any]:
    """That of `-0.` is `0.`."""
    [values] = operands
    [found] = emitted(op, operands)
    return [tf.where(tf.equal(values, 0), tf.zeros([], found.dtype), found)]


def activation_slopes(op: Any, operands: list[Any]) -> Sequence[Any]:
    """At 0 and at NaN the slope is that of positive numbers."""
    slopes, outputs = operands
    return emitted(op, [slopes, tf.where(outputs < 0, outputs, tf.ones([], outputs.dtype))])


def slopes_of_zero(op: Any, operands: list[Any]) -> Sequence[Any]:
    """A cotangent of 0 stays 0, also where the slope is infinite."""
    _, cotangents = operands
    [found] = emitted(op, operands)
    zero = tf.zeros([], found.dtype)
    return [tf.where(tf.equal(cotangents, zero), zero, found)]


def mean_of_integers(op: Any, operands: list[Any]) -> Sequence[Any]:
    """Summed in 64 bits; that of no elements is 0."""
    values, axes = operands
    is_short = values.dtype in (tf.int32, tf.uint32)
    summed = tf.cast(values, tf.int64) if is_short else values
    mean = tf.raw_ops.Mean(input=summed, axis=axes, keep_dims=op.get_attr("keep_dims"))
    if _may_be_of_none(op):
        mean = tf.where(tf.equal(tf.size(values), 0), tf.zeros([], mean.dtype), mean)
    return [tf.cast(mean, values.dtype)]


def _may_be_of_none(reduction: Any) -> bool:
    """Whether the axes that are reduced may have no elements."""
    values, axes = reduction.inputs
    if values.shape.rank is None or axes.op.type != "Const":
        return True
    return any(values.shape[int(axis)] in (None, 0) for axis in constant_array(axes.op).flat)
