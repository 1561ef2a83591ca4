"""Comparisons, and the choices made by them: compare, select, clamp, and the tests of CHLO.

NaN is unordered, and -0 equal to 0, but in the total order; what is chosen is chosen as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

from jaxtf.convert._graph import nodes
from jaxtf.convert._graph._support import BINARY, BITS, MOST_DIMENSIONS, MOVED, as_shape, sizes, typed, where
from jaxtf.convert._graph.derivatives import differentiated
from jaxtf.convert._graph.nodes import elementwise
from jaxtf.convert._graph.ops.shapes import in_one_shape
from jaxtf.convert._graph.plan.choices import OF_ITSELF
from jaxtf.convert._graph.registry import Bound, translates

DIRECTIONS: dict[str, Callable[[tf.Tensor, tf.Tensor], tf.Tensor]] = {
    "EQ": elementwise("Equal", tf.equal),
    "NE": elementwise("NotEqual", tf.not_equal),
    "LT": elementwise("Less", tf.less),
    "LE": elementwise("LessEqual", tf.less_equal),
    "GT": elementwise("Greater", tf.greater),
    "GE": elementwise("GreaterEqual", tf.greater_equal),
}


def total_order(operand: tf.Tensor) -> tf.Tensor:
    """Signed integers in the order -NaN < -inf < ... < -0 < 0 < ... < inf < NaN of the floating-point operand.

    Source: IEEE 754-2019, 5.10: the bits of magnitudes are ordered as integers; those of negative ones, backwards.
    """
    if operand.shape.rank > MOST_DIMENSIONS:
        return tf.reshape(total_order(tf.reshape(operand, [-1])), as_shape(sizes(operand)))
    return _backwards_below_zero(tf.bitcast(operand, BITS[operand.dtype]))


def of_total_order(integers: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
    """The floating-point numbers that have these integers in the `total_order`."""
    return tf.bitcast(_backwards_below_zero(integers), dtype)


def _backwards_below_zero(bits: tf.Tensor) -> tf.Tensor:
    return where(bits < 0, tf.bitwise.bitwise_xor(bits, typed(bits.dtype.max, bits.dtype)), bits)


@translates("stablehlo.compare", "chlo.broadcast_compare", computed_in=MOVED)
def compare(bound: Bound, left: tf.Tensor, right: tf.Tensor) -> tf.Tensor:
    """Whether left and right are so related; NaN is unordered unless the total order is requested.

    Differs: in the total order all NaN of float8_e5m2 of one sign are equal, whose bits no operation of TensorFlow
    gives.
    Source: StableHLO specification, `compare`.
    """
    return compared(bound.operation.attributes, left, right)


def compared(attributes: Mapping[str, Any], left: tf.Tensor, right: tf.Tensor) -> tf.Tensor:
    """As `compare`, by its attributes."""
    direction = attributes["comparison_direction"]
    if left.dtype == tf.bool and direction not in ("EQ", "NE"):
        left, right = tf.cast(left, tf.int32), tf.cast(right, tf.int32)
    if attributes.get("compare_type") == "TOTALORDER" and left.dtype.is_floating:
        left, right = total_order(left), total_order(right)
    return DIRECTIONS[direction](left, right)


@translates("stablehlo.select", "chlo.broadcast_select", computed_in=MOVED)
def select(bound: Bound, condition: tf.Tensor, on_true: tf.Tensor, on_false: tf.Tensor) -> tf.Tensor:
    """Elements of one or the other; a scalar condition chooses all.

    Of an array or itself, as JAX writes before a branch of `jax.vmap(jax.lax.cond)`, a tape takes NaN in the cotangent
    for 0 where the condition does not hold: there JAX has none.

    Source: StableHLO specification, `select`.
    """
    result = _chosen(bound, condition, on_true, on_false)
    if not bound.get(OF_ITSELF) or not (result.dtype.is_floating or result.dtype.is_complex):
        return result

    def gradient(upwards: tf.Tensor, condition: tf.Tensor, _: tf.Tensor) -> tuple[None, tf.Tensor]:
        is_kept = tf.logical_or(condition, tf.equal(upwards, upwards))
        return None, _chosen(bound, is_kept, upwards, tf.zeros_like(upwards))

    return differentiated(bound, result, gradient, condition, on_true)


def _chosen(bound: Bound, *operands: tf.Tensor) -> tf.Tensor:
    if max(x.shape.rank for x in operands) > MOST_DIMENSIONS and operands[0].shape.rank != 0:
        return where(*in_one_shape(operands, bound.constant))
    return nodes.select(*operands)


@translates("stablehlo.clamp", computed_in=MOVED)
def clamp(bound: Bound, low: tf.Tensor, operand: tf.Tensor, high: tf.Tensor) -> tf.Tensor:
    """The operand between low and high, which may be scalars; high where they cross.

    Differs: of 0 and -0 either may be given; compiled for CPU, NaN is taken for any number.
    Source: StableHLO specification, `clamp`.
    """
    return BINARY["minimum"](BINARY["maximum"](operand, low), high)


@translates("chlo.is_inf")
def is_infinite(bound: Bound, operand: tf.Tensor) -> tf.Tensor:
    """Whether infinite, of either sign.

    Source: CHLO, `is_inf`.
    """
    return tf.math.is_inf(operand)


@translates("chlo.is_pos_inf")
def is_positive_infinity(bound: Bound, operand: tf.Tensor) -> tf.Tensor:
    """Whether plus infinity.

    Source: CHLO, `is_pos_inf`.
    """
    return tf.equal(operand, typed(float("inf"), operand.dtype))


@translates("chlo.is_neg_inf")
def is_negative_infinity(bound: Bound, operand: tf.Tensor) -> tf.Tensor:
    """Whether minus infinity.

    Source: CHLO, `is_neg_inf`.
    """
    return tf.equal(operand, typed(float("-inf"), operand.dtype))


@translates("chlo.next_after", "chlo.broadcast_next_after")
def next_after(bound: Bound, start: tf.Tensor, towards: tf.Tensor) -> tf.Tensor:
    """The neighbour of start in the direction of the other, by its bits (NextAfter has no 16-bit kernels).

    Source: CHLO, `next_after`.
    """
    bits, other = (tf.bitcast(x, BITS[start.dtype]) for x in (start, towards))
    one, sign_bit = tf.ones([], bits.dtype), typed(bits.dtype.min, bits.dtype)
    from_zero = tf.bitwise.bitwise_or(tf.bitwise.bitwise_and(other, sign_bit), one)
    magnitude, other_magnitude = (tf.bitwise.bitwise_and(x, ~sign_bit) for x in (bits, other))
    inwards = tf.logical_or(magnitude > other_magnitude, (bits < 0) != (other < 0))
    moved = where(tf.equal(magnitude, 0), from_zero, where(inwards, bits - one, bits + one))
    unordered = tf.logical_or(tf.math.is_nan(start), tf.math.is_nan(towards))
    result = tf.bitcast(where(tf.equal(start, towards), other, moved), start.dtype)
    return where(unordered, typed(float("nan"), start.dtype), result)
