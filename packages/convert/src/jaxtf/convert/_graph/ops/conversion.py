"""Between dtypes: convert, bitcast_convert, reduce_precision.

Floating point is rounded to the nearest, ties to even, and keeps NaN, infinities and signed zeros; integers are cut to
their lowest bits. A float beyond the integers of a dtype becomes the nearest of them, NaN 0.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import tensorflow as tf

from jaxtf.convert._graph import nodes
from jaxtf.convert._graph._support import BITS, MOVED, UNCAST, refuse, typed, where
from jaxtf.convert._graph.derivatives import differentiated
from jaxtf.convert._graph.optimizer import computed_by_xla
from jaxtf.convert._graph.registry import Bound, refuses, translates
from jaxtf.serialization.interop import dtype_of_products

refuses(
    "stablehlo.uniform_quantize",
    "stablehlo.uniform_dequantize",
    reason="quantized types have no TensorFlow dtype",
)


@translates("stablehlo.convert")
def convert(bound: Bound, operand: tf.Tensor) -> tf.Tensor:
    """The value in another type: towards zero into integers, within their bounds, NaN to 0; truth is being nonzero.

    Source: StableHLO specification, `convert`; XLA for values that do not fit.
    """
    dtype = bound.result_type.dtype
    for uncast in (operand.dtype, dtype):
        if uncast in UNCAST and operand.dtype != dtype:
            refuse(bound, f"TensorFlow does not convert to or from {uncast.name}")
    if dtype == tf.float16 and operand.dtype in (tf.float64, tf.complex128) and not computed_by_xla(operand):
        real = tf.math.real(operand) if operand.dtype.is_complex else operand
        return differentiated(bound, _rounded_once(real), lambda upwards, _: (cast(upwards, operand.dtype),), operand)
    return cast(operand, dtype)


def _rounded_once(operand: tf.Tensor) -> tf.Tensor:
    """float64 as float16, which TensorFlow's kernel rounds to float32 first.

    A float32 rounded towards zero, and to an odd number where that is inexact, is beside the same number of float16.
    """
    near = tf.cast(operand, tf.float32)
    back = tf.cast(near, tf.float64)
    bits = tf.bitcast(near, tf.int32) - tf.cast(tf.abs(back) > tf.abs(operand), tf.int32)
    odd = tf.bitwise.bitwise_or(bits, tf.cast(tf.not_equal(back, operand), tf.int32))
    return tf.cast(tf.bitcast(odd, tf.float32), tf.float16)


def cast(operand: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
    """As `convert`."""
    source = operand.dtype
    if source == dtype:
        return operand
    if source.is_complex and not dtype.is_complex:
        operand, source = tf.math.real(operand), source.real_dtype
    if source in MOVED:
        operand, source = tf.cast(operand, MOVED[source]), MOVED[source]
    if dtype == tf.bool:
        return tf.not_equal(operand, tf.zeros([], source))
    if source.is_floating and dtype.is_integer:
        return _saturating(operand, dtype)
    if dtype in MOVED and not source.is_floating:
        operand = tf.cast(operand, MOVED[dtype])
    return operand if operand.dtype == dtype else nodes.cast(operand, dtype)


def _saturating(operand: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
    """Bounds are compared in the floating-point type, where the first value beyond `max` is a power of two."""
    if operand.dtype.size < 4:
        operand = tf.cast(operand, tf.float32)
    low, high = _bounds(dtype)
    carrier = dtype if _has_bytes(dtype) else tf.int8 if low else tf.uint8
    info: Any = ml_dtypes.finfo(operand.dtype.as_numpy_dtype)  # type: ignore[no-untyped-call]
    if high.bit_length() <= info.nmant:  # it has the bounds themselves
        held = tf.maximum(tf.minimum(operand, typed(high, operand.dtype)), typed(low, operand.dtype))
        held = where(tf.math.is_nan(operand), typed(0, operand.dtype), held)
        value = tf.cast(held, carrier)
        return value if carrier == dtype else tf.cast(value, dtype)
    too_low = operand <= typed(float(low), operand.dtype)
    too_high = operand >= typed(float(high + 1), operand.dtype)
    inside = tf.logical_not(tf.logical_or(tf.logical_or(too_low, too_high), tf.math.is_nan(operand)))
    value = tf.cast(where(inside, operand, tf.zeros_like(operand)), carrier)
    value = where(too_low, typed(low, carrier), value)
    value = where(too_high, typed(high, carrier), value)
    return value if carrier == dtype else tf.cast(value, dtype)


def _has_bytes(dtype: tf.DType) -> bool:
    """Whether an integer of at most a byte is one, and not of 4 bits or fewer."""
    return dtype.size > 1 or dtype in (tf.int8, tf.uint8)


def _bounds(dtype: tf.DType) -> tuple[int, int]:
    info: Any = ml_dtypes.iinfo(dtype.as_numpy_dtype)  # type: ignore[no-untyped-call]
    return int(info.min), int(info.max)


@translates("stablehlo.bitcast_convert")
def bitcast(bound: Bound, operand: tf.Tensor) -> tf.Tensor:
    """The same bits in another type; where widths differ, the last dimension holds the parts, lowest first.

    Source: StableHLO specification, `bitcast_convert`.
    """
    source, dtype = operand.dtype, bound.result_type.dtype
    if source == dtype:
        return operand
    widths = {width(source), width(dtype)}
    if tf.bool in (source, dtype) or min(widths) < 8:
        if widths in ({4}, {2}):
            return tf.cast(tf.cast(operand, tf.int8 if not source.is_unsigned else tf.uint8), dtype)
        refuse(bound, f"the bits of {source.name} as {dtype.name}")
    return tf.bitcast(operand, dtype)


def width(dtype: tf.DType) -> int:
    """How many bits an element has."""
    if dtype.is_integer:
        return 8 * int(dtype.size) if _has_bytes(dtype) else (_bounds(dtype)[1] - _bounds(dtype)[0]).bit_length()
    return int(dtype.size) * 8


def summed_in(result: tf.DType, *operands: tf.DType) -> tf.DType:
    """In which dtype products are summed, by the dtypes of the result and the operands."""
    dtypes = (np.dtype(dtype.as_numpy_dtype) for dtype in (result, *operands))
    return tf.as_dtype(dtype_of_products(*dtypes))


@translates("stablehlo.reduce_precision", computed_in=MOVED)
def reduce_precision(bound: Bound, operand: tf.Tensor) -> tf.Tensor:
    """Rounds to a format with fewer exponent and mantissa bits, to nearest, ties to even, and back.

    Source: StableHLO specification, `reduce_precision`; what overflows becomes infinite, what underflows zero.
    """
    dtype = operand.dtype
    mantissa, exponent = bound["mantissa_bits"], bound["exponent_bits"]
    info: Any = ml_dtypes.finfo(dtype.as_numpy_dtype)  # type: ignore[no-untyped-call]
    own_mantissa, own_exponent = int(info.nmant), int(info.bits) - int(info.nmant) - 1
    carrier = BITS[dtype]
    bits = tf.bitcast(operand, carrier)

    def constant(value: int) -> tf.Tensor:
        return typed(np.array(value % 2**info.bits, f"uint{info.bits}").view(f"int{info.bits}"), carrier)

    sign = tf.bitwise.bitwise_and(bits, constant(1 << (info.bits - 1)))
    magnitude = tf.bitwise.bitwise_and(bits, constant((1 << (info.bits - 1)) - 1))
    if mantissa < own_mantissa:
        dropped = own_mantissa - mantissa
        last_kept = tf.bitwise.bitwise_and(tf.bitwise.right_shift(magnitude, constant(dropped)), constant(1))
        magnitude = magnitude + constant((1 << (dropped - 1)) - 1) + last_kept
        magnitude = tf.bitwise.bitwise_and(magnitude, constant(-(1 << dropped)))
    if exponent < own_exponent:
        bias, own_bias = (1 << (exponent - 1)) - 1, (1 << (own_exponent - 1)) - 1
        infinity = constant(((1 << own_exponent) - 1) << own_mantissa)
        # Largest finite value of the format, least normal one, as bits of our own.
        greatest = constant(((own_bias + bias) << own_mantissa) | ((1 << own_mantissa) - 1))
        least = constant((own_bias - bias + 1) << own_mantissa)
        magnitude = where(magnitude > greatest, infinity, magnitude)
        magnitude = where(magnitude < least, constant(0), magnitude)
    rounded = tf.bitcast(tf.bitwise.bitwise_or(sign, magnitude), dtype)
    result = where(tf.math.is_nan(operand), operand, rounded)
    return differentiated(bound, result, lambda upwards, _: (reduce_precision(bound, upwards),), operand)
