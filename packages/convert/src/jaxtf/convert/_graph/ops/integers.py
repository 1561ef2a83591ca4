"""Division, powers, shifts and bit counts: where XLA gives a result and TensorFlow's kernels raise or say nothing.

Integers of every width are exact modulo 2**bits. By zero, a quotient has all bits set and a remainder is the dividend;
a shift by as many bits as there are, or more, leaves zeros, or copies of the sign.
Guards are left out where the second operand is known to need none.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import tensorflow as tf

from jaxtf.convert._graph._support import BITS, MOVED, SIGNED, UNSIGNED, backwards, typed, where, widening
from jaxtf.convert._graph.derivatives import differentiated
from jaxtf.convert._graph.grappler import difference, divided, hidden, multiplied, negated
from jaxtf.convert._graph.known import known_value
from jaxtf.convert._graph.nodes import elementwise
from jaxtf.convert._graph.ops.complex_quotients import complex_quotient
from jaxtf.convert._graph.ops.complex_roots import complex_reciprocal_root, complex_root
from jaxtf.convert._graph.ops.complex_slopes import with_slope
from jaxtf.convert._graph.optimizer import computed_by_xla, may_be_constant, uniform_of
from jaxtf.convert._graph.registry import Bound, translates
from jaxtf.convert._tf import traces_compiled, traces_saved_gradient

POW = elementwise("Pow", tf.pow)

# Of a remainder of floats; it is exact in a wider type.
REMAINDER_IN = MOVED | widening(float32=("bfloat16", "float16"))


def _is_known(operand: tf.Tensor, condition: Callable[[np.ndarray], np.ndarray]) -> bool:
    """Whether the value is known while the graph is made, or the integer that all are, and each meets the condition."""
    value = known_value(operand)
    if value is None and operand.dtype.is_integer and (uniform := uniform_of(operand)) is not None:
        value = np.asarray(uniform.real)  # of 64 bits rounded, which is no other small integer
    return value is not None and bool(np.all(condition(np.asarray(value))))


def _one_where(unsafe: tf.Tensor, divisor: tf.Tensor) -> tf.Tensor:
    return where(unsafe, tf.ones([], divisor.dtype), divisor)


def _overflows(dividend: tf.Tensor, divisor: tf.Tensor) -> tf.Tensor:
    """The least integer by -1: it does not fit, and traps in some kernels."""
    least = typed(dividend.dtype.min, dividend.dtype)
    return tf.logical_and(tf.equal(dividend, least), tf.equal(divisor, typed(-1, divisor.dtype)))


@translates("stablehlo.divide", "chlo.broadcast_divide", computed_in=MOVED)
def divide(bound: Bound, dividend: tf.Tensor, divisor: tf.Tensor) -> tf.Tensor:
    """The quotient; of integers, towards zero, with x / 0 = -1 (all bits set) and the least by -1 itself, as in XLA.

    Differs: complex, not compiled: by the largest numbers, a number where XLA has 0 or NaN; 0 may have another sign.
    Source: StableHLO specification, `divide`.
    """
    if dividend.dtype.is_complex:
        return complex_quotient(bound, dividend, divisor)
    if not dividend.dtype.is_integer:
        return divided(dividend, divisor)
    if _is_known(divisor, lambda d: (d != 0) & (d.astype(object) != -1)):
        return tf.truncatediv(dividend, divisor)
    by_zero = tf.equal(divisor, tf.zeros([], divisor.dtype))
    unsafe = by_zero if dividend.dtype.is_unsigned else tf.logical_or(by_zero, _overflows(dividend, divisor))
    quotient = tf.truncatediv(dividend, _one_where(unsafe, divisor))
    all_bits = dividend.dtype.max if dividend.dtype.is_unsigned else -1
    return where(by_zero, typed(all_bits, dividend.dtype), quotient)


@translates("stablehlo.remainder", "chlo.broadcast_remainder", computed_in=REMAINDER_IN)
def remainder(bound: Bound, dividend: tf.Tensor, divisor: tf.Tensor) -> tf.Tensor:
    """The remainder with the sign of the dividend; of integers, x by 0 is x, as in XLA.

    Source: StableHLO specification, `remainder`.
    """
    if dividend.dtype.is_integer:
        return difference(dividend, divide(bound, dividend, divisor) * divisor)
    # TFLite and TF.js have no TruncateMod; of positive numbers FloorMod is the same, and exact.
    magnitude = tf.math.floormod(tf.abs(dividend), tf.abs(divisor))
    signed = where(dividend < 0, -magnitude, magnitude)
    return where(tf.equal(signed, dividend), dividend, signed)  # keeps -0


@translates("stablehlo.power", "chlo.broadcast_power", computed_in=MOVED)
def power(bound: Bound, base: tf.Tensor, exponent: tf.Tensor) -> tf.Tensor:
    """The power; of integers, modulo 2**bits by squaring; 0 for a negative exponent unless the base is 1 or -1.

    Differs: complex: of infinite and NaN parts, or of such results, numbers, NaN or infinity where XLA has another of
    these; the sign of a zero part; 0 to the power of -1 is infinite in XLA where the exponent is a constant when it
    compiles, else NaN, and so it is here where it is one in a graph.
    Source: StableHLO specification, `power`.
    """
    if base.dtype.is_complex:
        result = _complex_power(bound, base, exponent)
        return differentiated(bound, result, partial(_gradient_of_complex_power, bound), base, exponent)
    if not base.dtype.is_integer:
        if uniform_of(exponent) == -1:  # of which Grappler makes Reciprocal
            whole = _in_shape_of_both(base, exponent)
            return divided(tf.ones([], base.dtype), whole)
        half = _known_half(exponent)
        if half is not None:
            return _root(bound, _in_shape_of_both(base, exponent), half)
        return POW(_in_shape_of_both(base, exponent) if may_be_constant(exponent) else base, exponent)
    one, zero = tf.ones([], base.dtype), tf.zeros([], base.dtype)
    result, factor = one, base
    width = base.dtype.size * 8 - (0 if base.dtype.is_unsigned else 1)
    for bit in range(width):
        is_set = tf.not_equal(tf.bitwise.bitwise_and(exponent, typed(1 << bit, base.dtype)), zero)
        result = where(is_set, result * factor, result)
        factor = multiplied(factor, factor)
    if base.dtype.is_unsigned:
        return result
    is_odd = tf.not_equal(tf.bitwise.bitwise_and(exponent, one), zero)
    of_negative = where(tf.equal(base, one), one, where(tf.equal(base, -one), where(is_odd, -one, one), zero))
    return where(exponent < zero, of_negative, result)


def _gradient_of_complex_power(
    bound: Bound, upwards: tf.Tensor, base: tf.Tensor, exponent: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """That of `jax.lax.pow`."""
    # A SavedModel has no gradients of our own of what its gradients compute.
    power_of = partial(_complex_power if traces_saved_gradient() else power, bound)
    zero, one = tf.zeros([], base.dtype), tf.ones([], base.dtype)
    is_constant = tf.equal(exponent, zero)
    less = power_of(base, where(is_constant, one, exponent - one))
    of_base = where(is_constant, zero, exponent * less)
    safe = where(tf.equal(base, zero), one, base)
    of_exponent = with_slope(bound, "log", tf.math.log(safe), safe) * power_of(base, exponent)
    return upwards * tf.math.conj(of_base), upwards * tf.math.conj(of_exponent)


def _in_shape_of_both(base: tf.Tensor, exponent: tf.Tensor) -> tf.Tensor:
    """The base in the shape of the power, as large as an exponent that it may be broadcast by.

    Of a power by a constant Grappler (2.21) makes a square, a cube, a root or a reciprocal of the base, in its shape.
    """
    if not exponent.shape.rank or (base.shape.is_fully_defined() and base.shape == exponent.shape):
        return base
    return tf.broadcast_to(base, tf.broadcast_dynamic_shape(tf.shape(base), tf.shape(exponent)))


def _is_minus_one(exponent: tf.Tensor) -> bool:
    """Whether an exponent is a constant of the graph and -1 everywhere."""
    if uniform_of(exponent) == -1:
        return True
    return tf.is_symbolic_tensor(exponent) and _is_known(exponent, lambda number: number == -1)


def _known_half(exponent: tf.Tensor) -> float | None:
    """0.5 or -0.5, where an exponent is known to be that everywhere."""
    uniform = uniform_of(exponent)
    if uniform is not None:
        return uniform.real if uniform in (0.5, -0.5) else None
    known = known_value(exponent)
    if known is None or not known.size or not (known == known.flat[0]).all():
        return None
    return float(known.flat[0].real) if known.flat[0] in (0.5, -0.5) else None


def _root(bound: Bound, base: tf.Tensor, exponent: float) -> tf.Tensor:
    """The power of 0.5 or -0.5, by a root, which is another of -inf and -0.

    Grappler (2.21) makes a root of such a power and does not look at these. Where nothing is fused, looking for a sign
    takes less time than mending every element.
    """
    of_infinity = typed(0.0 if exponent < 0 else float("inf"), base.dtype)
    root = tf.math.rsqrt(base) if exponent < 0 else tf.sqrt(base)

    def mended() -> tf.Tensor:
        return where(tf.equal(base, typed(-float("inf"), base.dtype)), of_infinity, tf.abs(root))

    def gradient(upwards: tf.Tensor, base: tf.Tensor) -> tuple[tf.Tensor]:
        reciprocal = _root(bound, base, -0.5)
        slope = reciprocal if exponent > 0 else -reciprocal * reciprocal * reciprocal
        return (upwards * typed(0.5, base.dtype) * slope,)

    if traces_compiled() or not bound.allows_xla:
        return differentiated(bound, mended(), gradient, base)
    has_sign = tf.reduce_min(tf.bitcast(tf.reshape(base, [-1]), BITS[base.dtype])) < 0
    result = tf.cond(has_sign, mended, lambda: tf.identity(root))
    return differentiated(bound, result, gradient, base)


def _complex_power(bound: Bound, base: tf.Tensor, exponent: tf.Tensor) -> tf.Tensor:
    """By logarithm; 0 ** 0 is 1, 0 ** x is 0 for a positive real x, and NaN for any other.

    Of a power of a constant of -1 XLA makes a reciprocal, which is infinite for 0. Of a power of 0.5 or -0.5 Grappler
    (2.21) makes a root.
    """
    if _is_minus_one(exponent):
        return complex_quotient(bound, tf.ones([], base.dtype), _in_shape_of_both(base, exponent))
    zero, one = tf.zeros([], base.dtype), tf.ones([], base.dtype)
    is_zero = tf.equal(base, zero)
    is_positive = tf.logical_and(tf.math.real(exponent) > 0, tf.equal(tf.math.imag(exponent), 0))
    undefined = typed(complex(float("nan"), float("nan")), base.dtype)
    of_zero = where(tf.equal(exponent, zero), one, where(is_positive, zero, undefined))
    base = where(is_zero, one, base)
    # A root has a branch, of which XLA does not compile a gradient that was loaded.
    takes_roots = not computed_by_xla(base) and not traces_saved_gradient()
    half = _known_half(exponent) if takes_roots else None
    if half is None:
        is_found = takes_roots and known_value(exponent) is not None
        if may_be_constant(exponent) and not is_found:
            exponent = hidden(exponent)  # or it may be found to be 0.5
        return where(is_zero, of_zero, tf.pow(base, exponent))
    base = _in_shape_of_both(base, exponent)
    root = complex_root(bound, base, by_sign=True) if half > 0 else complex_reciprocal_root(bound, base)
    return where(is_zero, of_zero, root)


def _as_unsigned(operand: tf.Tensor) -> tf.Tensor:
    return tf.bitcast(operand, UNSIGNED[operand.dtype]) if operand.dtype in UNSIGNED else operand


def _back(operand: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
    return operand if operand.dtype == dtype else tf.bitcast(operand, dtype)


def _shift(
    operand: tf.Tensor,
    amount: tf.Tensor,
    shift: Callable[[tf.Tensor, tf.Tensor], tf.Tensor],
    beyond: Callable[[tf.Tensor], tf.Tensor],
    given: tf.Tensor,
) -> tf.Tensor:
    """`shift(operand, amount)`, `beyond(operand)` where the amount, read as unsigned, is not less than the width.

    The amount is of the dtype of the operand, and has the bits of the one that is given.
    """
    width = operand.dtype.size * 8
    if _is_known(given, lambda a: (a >= 0) & (a < width)):
        return shift(operand, amount)
    fits = tf.less(_as_unsigned(amount), typed(width, _as_unsigned(amount).dtype))
    shifted = shift(operand, where(fits, amount, tf.zeros([], amount.dtype)))
    return where(fits, shifted, beyond(operand))


def _no_bits(operand: tf.Tensor) -> tf.Tensor:
    return tf.zeros([], operand.dtype)


def _four_bits(operand: tf.Tensor) -> tf.Tensor:
    """The bits of integers of 4 bits, as uint8."""
    return tf.bitwise.bitwise_and(tf.cast(tf.cast(operand, MOVED[operand.dtype]), tf.uint8), typed(15, tf.uint8))


# A shift in a wider type would keep bits that the narrow one loses; types of 4 bits lose them when cast back.
@translates("stablehlo.shift_left", "chlo.broadcast_shift_left", computed_in=MOVED)
def shift_left(bound: Bound, operand: tf.Tensor, amount: tf.Tensor) -> tf.Tensor:
    """Shifts bits up; nothing is left of them when the amount is the width or more.

    Source: StableHLO specification, `shift_left`.
    """
    return _shift(operand, amount, tf.bitwise.left_shift, _no_bits, amount)


@translates("stablehlo.shift_right_arithmetic", "chlo.broadcast_shift_right_arithmetic")
def shift_right_arithmetic(bound: Bound, operand: tf.Tensor, amount: tf.Tensor) -> tf.Tensor:
    """Shifts bits down and repeats the highest one, also for unsigned integers.

    Source: StableHLO specification, `shift_right_arithmetic`.
    """
    dtype = operand.dtype
    if dtype in MOVED:
        top = typed(8, tf.int8)
        signed = tf.bitwise.bitwise_xor(tf.cast(_four_bits(operand), tf.int8), top) - top
        steps = tf.minimum(tf.cast(_four_bits(amount), tf.int8), typed(3, tf.int8))
        shifted = tf.bitwise.right_shift(signed, steps)
        return tf.cast(_as_unsigned(shifted) if dtype.is_unsigned else shifted, dtype)
    operand, signed_amount = (_back(x, SIGNED.get(dtype, dtype)) for x in (operand, amount))
    top = typed(dtype.size * 8 - 1, operand.dtype)
    shifted = _shift(operand, signed_amount, tf.bitwise.right_shift, lambda x: tf.bitwise.right_shift(x, top), amount)
    return _back(shifted, dtype)


@translates("stablehlo.shift_right_logical", "chlo.broadcast_shift_right_logical")
def shift_right_logical(bound: Bound, operand: tf.Tensor, amount: tf.Tensor) -> tf.Tensor:
    """Shifts bits down and fills with zeros, also for signed integers.

    Source: StableHLO specification, `shift_right_logical`.
    """
    dtype = operand.dtype
    if dtype in MOVED:
        operand, amount = _four_bits(operand), _four_bits(amount)
        return tf.cast(_shift(operand, amount, tf.bitwise.right_shift, _no_bits, amount), dtype)
    unsigned, unsigned_amount = _as_unsigned(operand), _as_unsigned(amount)
    return _back(_shift(unsigned, unsigned_amount, tf.bitwise.right_shift, _no_bits, amount), dtype)


@translates("stablehlo.not", computed_in=MOVED)
def complement(bound: Bound, operand: tf.Tensor) -> tf.Tensor:
    """Every bit, or the truth value, inverted.

    Source: StableHLO specification, `not`.
    """
    if operand.dtype == tf.bool:
        return negated(operand, allows_xla=bound.allows_xla)
    return tf.bitwise.invert(operand) if operand.dtype.is_unsigned else backwards(operand)


@translates("stablehlo.popcnt")
def count_bits(bound: Bound, operand: tf.Tensor) -> tf.Tensor:
    """How many bits are set.

    Source: StableHLO specification, `popcnt`.
    """
    dtype = operand.dtype
    if dtype in MOVED:
        operand = _four_bits(operand)
    return tf.cast(tf.raw_ops.PopulationCount(x=operand), dtype)


@translates("stablehlo.count_leading_zeros")
def count_leading_zeros(bound: Bound, operand: tf.Tensor) -> tf.Tensor:
    """How many bits are zero above the highest set one: those left when it is copied to all below it.

    Source: StableHLO specification, `count_leading_zeros`.
    """
    is_small = operand.dtype in MOVED
    bits = _four_bits(operand) if is_small else _as_unsigned(operand)
    shift = 1
    while shift < bits.dtype.size * 8:
        bits = tf.bitwise.bitwise_or(bits, tf.bitwise.right_shift(bits, typed(shift, bits.dtype)))
        shift *= 2
    count = tf.raw_ops.PopulationCount(x=tf.bitwise.invert(bits))
    return tf.cast(count - typed(4, tf.uint8) if is_small else count, operand.dtype)


@translates("chlo.mulhi")
def high_product(bound: Bound, left: tf.Tensor, right: tf.Tensor) -> tf.Tensor:
    """The upper half of the bits of the product, computed in the type of twice the width.

    Source: CHLO, `mulhi`.
    """
    dtype = left.dtype
    wide = {1: tf.int16, 2: tf.int32, 4: tf.int64}.get(dtype.size)
    if wide is None:
        return _high_product_of_64_bits(left, right)
    if dtype.is_unsigned:
        wide = UNSIGNED[wide]
    product = tf.cast(left, wide) * tf.cast(right, wide)
    return tf.cast(tf.bitwise.right_shift(product, typed(dtype.size * 8, wide)), dtype)


def _high_product_of_64_bits(left: tf.Tensor, right: tf.Tensor) -> tf.Tensor:
    """By halves of 32 bits; a negative factor counts 2**64 too much as unsigned, which is taken off."""
    dtype = left.dtype
    mask, half = typed(0xFFFFFFFF, tf.uint64), typed(32, tf.uint64)
    a, b = _as_unsigned(left), _as_unsigned(right)
    low_a, low_b = tf.bitwise.bitwise_and(a, mask), tf.bitwise.bitwise_and(b, mask)
    high_a, high_b = tf.bitwise.right_shift(a, half), tf.bitwise.right_shift(b, half)
    cross = high_a * low_b + tf.bitwise.right_shift(low_a * low_b, half)
    other = low_a * high_b + tf.bitwise.bitwise_and(cross, mask)
    high = high_a * high_b + tf.bitwise.right_shift(cross, half) + tf.bitwise.right_shift(other, half)
    if not dtype.is_unsigned:
        zero = tf.zeros([], tf.uint64)
        high -= where(left < 0, b, zero) + where(right < 0, a, zero)
    return _back(high, dtype)
