"""Arithmetic, comparison, bits and conversion, element by element.

Source: StableHLO specification, each operation; integers wrap around, and floats are those of IEEE 754.
"""

import cmath
import math

import numpy as np

from .case import bf16, c64, case, f16, f32, f64, i1, i8, i32, scalar, u8, u32

INF, NAN = math.inf, math.nan
NO_NAN = {"compiled": "TensorFlow has XLA compile for CPU so that NaN is taken for any number"}
REFUSED = dict.fromkeys(("eager", "compiled"), "TensorFlow has no order of complex numbers")
ORDERED = c64(1 + 5j, 2 + 1j), c64(2 - 1j, 2 + 3j)
TRUE_FALSE = i1(True, True, False, False), i1(True, False, True, False)

SUMS = [
    case("stablehlo.add", [i8(127, -128, 5), i8(1, -1, -7)], i8(-128, 127, -2)),
    case("stablehlo.add", [f32(0.5, INF, -0.0), f32(0.25, -INF, -0.0)], f32(0.75, NAN, -0.0)),
    case("stablehlo.add", [c64(1 + 2j, -1j), c64(0.5 - 2j, 1j)], c64(1.5 + 0j, 0j)),
    case("stablehlo.add", TRUE_FALSE, i1(True, True, True, False)),
    case("stablehlo.subtract", [u8(0, 200, 7), u8(1, 100, 7)], u8(255, 100, 0)),
    case("stablehlo.subtract", [f32(1, INF, 0.0), f32(3, INF, 0.0)], f32(-2, NAN, 0.0)),
    case("stablehlo.multiply", [i32(2**30, -3, 65536), i32(4, 5, 65537)], i32(0, -15, 65536)),
    case("stablehlo.multiply", [f32(0.0, -2, INF), f32(-1, 3, 0)], f32(-0.0, -6, NAN)),
    case("stablehlo.multiply", [c64(1 + 2j, 3j), c64(3 - 1j, 2j)], c64(5 + 5j, -6)),
    case("stablehlo.multiply", TRUE_FALSE, i1(True, False, False, False)),
    case("stablehlo.divide", [i32(17, -17, 17, -17), i32(3, 3, -3, -3)], i32(5, -5, -5, 5)),
    case("stablehlo.divide", [u8(200, 7), u8(7, 200)], u8(28, 0)),
    case("stablehlo.divide", [f32(1, -1, 0, 7), f32(0, 0, 0, 2)], f32(INF, -INF, NAN, 3.5)),
    case("stablehlo.divide", [c64(5 + 5j), c64(3 - 1j)], c64(1 + 2j), rtol=1e-6),
    case("stablehlo.remainder", [i32(17, -17, 17, -17), i32(3, 3, -3, -3)], i32(2, -2, 2, -2)),
    case("stablehlo.remainder", [f32(17.5, -17.5, 5, 3), f32(3, 3, INF, 0)], f32(2.5, -2.5, 5, NAN)),
    case("stablehlo.power", [i32(-2, 3, 0, 5), i32(3, 4, 0, 0)], i32(-8, 81, 1, 1)),
    case("stablehlo.power", [f32(2, -2, 0, 4), f32(0.5, 3, 0, -1)], f32(math.sqrt(2), -8, 1, 0.25), rtol=1e-6),
    case("stablehlo.negate", [i8(-128, 5, 0)], i8(-128, -5, 0)),
    case("stablehlo.negate", [u8(1, 0)], u8(255, 0)),
    case("stablehlo.negate", [f32(0.0, -2.5, INF)], f32(-0.0, 2.5, -INF)),
    case("stablehlo.negate", [c64(1 - 2j)], c64(-1 + 2j)),
    case("stablehlo.abs", [i8(-5, 5, -128)], i8(5, 5, -128)),
    case("stablehlo.abs", [f32(-0.0, -2.5, -INF)], f32(0.0, 2.5, INF)),
    case("stablehlo.abs", [c64(3 - 4j, -5j)], f32(5, 5), rtol=1e-6),
    case("stablehlo.sign", [i32(-7, 0, 9)], i32(-1, 0, 1)),
    case("stablehlo.sign", [f32(-7, -0.0, 0.0, INF, NAN)], f32(-1, -0.0, 0.0, 1, NAN)),
    case("stablehlo.sign", [c64(3 - 4j, 0)], c64(0.6 - 0.8j, 0), rtol=1e-6),
    case("stablehlo.maximum", [f32(1, NAN, 2), f32(3, 1, NAN)], f32(3, NAN, NAN), differs=NO_NAN),
    case("stablehlo.maximum", [i8(-1, 100), i8(1, -100)], i8(1, 100)),
    case("stablehlo.maximum", [u8(255, 0), u8(1, 1)], u8(255, 1)),
    case("stablehlo.maximum", TRUE_FALSE, i1(True, True, True, False)),
    case("stablehlo.maximum", ORDERED, c64(2 - 1j, 2 + 3j), differs=REFUSED | {"xla": "compares real parts alone"}),
    case("stablehlo.minimum", [f32(1, NAN, 2), f32(3, 1, NAN)], f32(1, NAN, NAN), differs=NO_NAN),
    case("stablehlo.minimum", [u32(2**32 - 1, 5), u32(1, 7)], u32(1, 5)),
    case("stablehlo.minimum", ORDERED, c64(1 + 5j, 2 + 1j), differs=REFUSED),
    case("stablehlo.clamp", [f32(0, 0, 0), f32(-1, 0.5, 7), f32(1, 1, 1)], f32(0, 0.5, 1)),
    case("stablehlo.clamp", [scalar(i32(-2)), i32(-5, 0, 5), scalar(i32(3))], i32(-2, 0, 3)),
]

ROUNDED = [
    case("stablehlo.ceil", [f32(-1.5, -0.5, 0.25, 2)], f32(-1, -0.0, 1, 2)),
    case("stablehlo.floor", [f32(-1.5, -0.0, 0.75, 2)], f32(-2, -0.0, 0, 2)),
    case("stablehlo.round_nearest_afz", [f32(-2.5, -0.4, 0.5, 1.5, 2.5)], f32(-3, -0.0, 1, 2, 3)),
    case("stablehlo.round_nearest_even", [f32(-2.5, -0.4, 0.5, 1.5, 2.5)], f32(-2, -0.0, 0, 2, 2)),
    case(
        "stablehlo.reduce_precision",
        [f32(1 + 2**-11, 1 + 2**-10, 70000, 2**-26, NAN)],
        f32(1, 1 + 2**-10, INF, 0, NAN),
        attributes="exponent_bits = 5 : i32, mantissa_bits = 10 : i32",
    ),
    case("stablehlo.is_finite", [f32(0, -1.5, INF, -INF, NAN)], i1(True, True, False, False, False)),
]

COMPLEX = [
    case("stablehlo.complex", [f32(1, -0.0), f32(-2, 3)], c64(1 - 2j, complex(-0.0, 3))),
    case("stablehlo.real", [c64(1 - 2j, 3j)], f32(1, 0)),
    case("stablehlo.real", [f32(1.5)], f32(1.5)),
    case("stablehlo.imag", [c64(1 - 2j, 3j)], f32(-2, 3)),
    case("stablehlo.imag", [f32(1.5)], f32(0)),
    case("chlo.conj", [c64(1 - 2j, 3j)], c64(1 + 2j, complex(0, -3))),
]

BITS = [
    case("stablehlo.and", [i8(12, -1), i8(10, 7)], i8(8, 7)),
    case("stablehlo.and", TRUE_FALSE, i1(True, False, False, False)),
    case("stablehlo.or", [u8(12, 0), u8(10, 7)], u8(14, 7)),
    case("stablehlo.or", TRUE_FALSE, i1(True, True, True, False)),
    case("stablehlo.xor", [i32(12, -1), i32(10, 7)], i32(6, -8)),
    case("stablehlo.xor", TRUE_FALSE, i1(False, True, True, False)),
    case("stablehlo.not", [i8(0, 5, -1)], i8(-1, -6, 0)),
    case("stablehlo.not", [u8(0, 5)], u8(255, 250)),
    case("stablehlo.not", [i1(True, False)], i1(False, True)),
    case("stablehlo.popcnt", [i8(0, 1, 127, -1)], i8(0, 1, 7, 8)),
    case("stablehlo.popcnt", [u32(0, 2**32 - 1, 2**31 + 1)], u32(0, 32, 2)),
    case("stablehlo.count_leading_zeros", [i8(0, 1, 127, -1)], i8(8, 7, 1, 0)),
    case("stablehlo.count_leading_zeros", [u32(0, 1, 2**16)], u32(32, 31, 15)),
    case("stablehlo.shift_left", [i8(1, 1, 127, -1), i8(7, 8, 1, 3)], i8(-128, 0, -2, -8)),
    case("stablehlo.shift_right_arithmetic", [i8(-128, -128, 127), i8(7, 100, 1)], i8(-1, -1, 63)),
    case("stablehlo.shift_right_logical", [i8(-128, -1, 127), i8(7, 8, 1)], i8(1, 0, 63)),
]


def compared(direction, kind, left, right, *expected):
    stated = f"#stablehlo<comparison_direction {direction}>"
    attributes = f"comparison_direction = {stated}, compare_type = #stablehlo<comparison_type {kind}>"
    return case("stablehlo.compare", [left, right], i1(*expected), attributes=attributes)


COMPARED = [
    compared("EQ", "FLOAT", f32(1, NAN, -0.0), f32(1, NAN, 0.0), True, False, True),
    compared("NE", "FLOAT", f32(1, NAN, -0.0), f32(1, NAN, 0.0), False, True, False),
    compared("LT", "FLOAT", f32(1, NAN, -0.0), f32(2, 1, 0.0), True, False, False),
    compared("LT", "TOTALORDER", f32(1, NAN, -0.0, -INF), f32(2, 1, 0.0, -1), True, False, True, True),
    compared("GE", "TOTALORDER", f32(NAN, -0.0), f32(INF, 0.0), True, False),
    compared("GT", "SIGNED", i8(-1, 100), i8(1, -100), False, True),
    compared("LE", "UNSIGNED", u8(255, 3), u8(1, 3), False, True),
    compared("EQ", "UNSIGNED", *TRUE_FALSE, True, False, False, True),
    compared("EQ", "FLOAT", c64(1 + 2j, 1 + 2j), c64(1 + 2j, 1 - 2j), True, False),
]

CONVERTED = [
    case("stablehlo.convert", [f32(1.9, -1.9, 0.5)], i32(1, -1, 0)),
    case("stablehlo.convert", [f32(0.25, 0, -0.0, NAN)], i1(True, False, False, True)),
    case("stablehlo.convert", [i32(300, -1, 7)], i8(44, -1, 7)),
    case("stablehlo.convert", [i8(-1, 5)], u32(2**32 - 1, 5)),
    case("stablehlo.convert", [i1(True, False)], f32(1, 0)),
    case("stablehlo.convert", [i32(2**24 + 1, 2**24 + 3)], f32(2**24, 2**24 + 4)),
    case("stablehlo.convert", [f32(1 + 2**-11, 1 + 3 * 2**-11, 70000)], f16(1, 1 + 2**-9, INF)),
    case("stablehlo.convert", [f32(1 + 2**-8, 1 + 3 * 2**-8)], bf16(1, 1 + 2**-6)),
    case("stablehlo.convert", [f64(1 + 2**-24, 0.1)], f32(1, 0.1)),
    case("stablehlo.convert", [f32(1.5, -2)], c64(1.5, -2)),
    case("stablehlo.bitcast_convert", [f32(1, -0.0)], u32(0x3F800000, 0x80000000)),
    case("stablehlo.bitcast_convert", [u32(0x04030201, 0xFFFEFDFC)], u8([[1, 2, 3, 4], [0xFC, 0xFD, 0xFE, 0xFF]])),
    case("stablehlo.bitcast_convert", [u8([[0, 0, 128, 63], [0, 0, 0, 192]])], f32(1, -2)),
    case("stablehlo.select", [i1(True, False, True), i32(1, 2, 3), i32(4, 5, 6)], i32(1, 5, 3)),
    case("stablehlo.select", [scalar(i1(False)), f32(1, NAN), f32(3, 4)], f32(3, 4)),
]


def elementwise(operation, function, values, rtol=2e-6):
    results = [function(complex(x) if values.dtype.kind == "c" else float(x)) for x in values]
    with np.errstate(over="ignore"):  # what is too large for the dtype is infinity
        expected = np.array(results, values.dtype)
    return case(operation, [values], expected, rtol=rtol)


REAL = f32(-3, -0.75, 0.0, 0.5, 2, 9)
POSITIVE = f32(0.001, 0.5, 1, 7, INF)
PLANE = c64(0.5 + 1j, -2 + 0.25j, 1.5 - 3j)

ELEMENTARY = [
    elementwise("stablehlo.cosine", math.cos, REAL),
    elementwise("stablehlo.cosine", cmath.cos, PLANE),
    elementwise("stablehlo.sine", math.sin, REAL),
    elementwise("stablehlo.sine", cmath.sin, PLANE),
    elementwise("stablehlo.tan", math.tan, REAL, rtol=1e-5),
    elementwise("stablehlo.tan", cmath.tan, PLANE, rtol=1e-5),
    elementwise("stablehlo.tanh", math.tanh, f32(-INF, -20, -0.5, 0.0, 1e-6, 0.5, INF)),
    elementwise("stablehlo.tanh", cmath.tanh, PLANE, rtol=1e-5),
    elementwise("stablehlo.exponential", math.exp, f32(-INF, -1, 0, 1, 10, 89, INF)),
    elementwise("stablehlo.exponential", cmath.exp, PLANE),
    elementwise("stablehlo.exponential_minus_one", math.expm1, f32(-INF, -1, -1e-6, 0.0, 1e-6, 3)),
    elementwise("stablehlo.exponential_minus_one", lambda z: cmath.exp(z) - 1, PLANE, rtol=1e-5),
    elementwise("stablehlo.log", math.log, POSITIVE),
    elementwise("stablehlo.log", cmath.log, PLANE),
    case("stablehlo.log", [f32(0, -1)], f32(-INF, NAN)),
    elementwise("stablehlo.log_plus_one", math.log1p, f32(-0.5, -1e-6, 0.0, 1e-6, 3, INF)),
    elementwise("stablehlo.log_plus_one", lambda z: cmath.log(1 + z), PLANE, rtol=1e-5),
    elementwise("stablehlo.logistic", lambda x: 1 / (1 + math.exp(-x)), f32(-20, -1, 0, 1, 20)),
    elementwise("stablehlo.logistic", lambda z: 1 / (1 + cmath.exp(-z)), PLANE, rtol=1e-5),
    elementwise("stablehlo.sqrt", math.sqrt, f32(0, 0.25, 2, INF)),
    elementwise("stablehlo.sqrt", cmath.sqrt, PLANE),
    case("stablehlo.sqrt", [f32(-1, -0.0)], f32(NAN, -0.0)),
    elementwise("stablehlo.rsqrt", lambda x: 1 / math.sqrt(x), POSITIVE),
    elementwise("stablehlo.rsqrt", lambda z: 1 / cmath.sqrt(z), PLANE),
    case("stablehlo.rsqrt", [f32(0, -1)], f32(INF, NAN)),
    case("stablehlo.cbrt", [f32(-8, 0, 27, INF, 1e-3)], f32(-2, 0, 3, INF, 0.1), rtol=2e-6),
    case(
        "stablehlo.atan2",
        [f32(0, -0.0, 1, -1, 1), f32(-1, -1, 0, 0, -1)],
        f32(math.pi, -math.pi, math.pi / 2, -math.pi / 2, 3 * math.pi / 4),
        rtol=1e-6,
    ),
]

CASES = [*SUMS, *ROUNDED, *COMPLEX, *BITS, *COMPARED, *CONVERTED, *ELEMENTARY]
