"""Elementwise operations in graph mode give JAX's results, also for NaN, infinities, -0 and the least integers."""

import itertools
import subprocess
import sys

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf
from jax import lax
from jax._src.lax import lax as private_lax

from jaxtf.convert import GraphModeUnsupported, convert

from .graph_mode import MODES, assert_identical, in_mode, run_graph_mode, run_jax, run_module, same_as_jax

FLOATS = ("bfloat16", "float16", "float32", "float64")
SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
INTEGERS = SIGNED + UNSIGNED


@pytest.fixture(autouse=True)
def _with_64_bits():
    with jax.enable_x64(True):
        yield


def special_floats(dtype):
    info = ml_dtypes.finfo(dtype)
    values = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1, -1, 0.5, -0.5, 1.5, 2.5, -2.5, 3.7, -3.7, 1e-3, 1e4, -1e4]
    return np.array([*values, float(info.max), float(info.min), float(info.tiny)], dtype)


def special_integers(dtype):
    info = np.iinfo(dtype)
    found = {0, 1, 2, 3, 7, 8, 15, 16, 31, 63, 100, info.max, info.max - 1, info.max // 2}
    if info.min < 0:
        found |= {-1, -2, -3, -8, -100, info.min, info.min + 1}
    return np.array(sorted(found), dtype)


def all_pairs(values):
    return tuple(np.array(side, values.dtype) for side in zip(*itertools.product(values, values), strict=True))


EXACT_OF_FLOATS = {
    "abs": lax.abs,
    "ceil": lax.ceil,
    "floor": lax.floor,
    "negate": lax.neg,
    "sign": lax.sign,
    "is_finite": lax.is_finite,
    "round_nearest_even": lambda x: lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN),
    "round_nearest_afz": lambda x: lax.round(x, lax.RoundingMethod.AWAY_FROM_ZERO),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", FLOATS)
def test_exact_functions_of_floats_agree_bit_by_bit(dtype, mode):
    same_as_jax(lambda x: [f(x) for f in EXACT_OF_FLOATS.values()], special_floats(dtype), mode=mode)


# Units in the last place by which two good implementations may differ; the arguments are benign.
ROUNDED = {
    "cbrt": (lax.cbrt, 4),
    "cos": (lax.cos, 8),
    "exp": (lax.exp, 8),
    "expm1": (lax.expm1, 8),
    "log": (lax.log, 8),
    "log1p": (lax.log1p, 8),
    "logistic": (lax.logistic, 8),
    "rsqrt": (lax.rsqrt, 4),
    "sin": (lax.sin, 8),
    "sqrt": (lax.sqrt, 2),
    "tan": (lax.tan, 16),
    "tanh": (lax.tanh, 16),
    "erf": (lax.erf, 8),
    "erfc": (lax.erfc, 32),
    "asinh": (lax.asinh, 8),
    "sinh": (lax.sinh, 8),
    "cosh": (lax.cosh, 8),
    "atan": (lax.atan, 8),
}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ROUNDED)
def test_functions_of_floats_agree_but_for_rounding(name, dtype):
    function, max_error_in_eps = ROUNDED[name]
    values = np.array([0.0, 0.03, 0.5, 0.9, 1.0, 1.7, 2.9, 4.0, np.nan], dtype)
    values = np.concatenate([values, -values]) if name not in ("log", "rsqrt", "sqrt", "log1p") else values
    same_as_jax(function, values, max_error_in_eps=max_error_in_eps)


@pytest.mark.parametrize("name", ["exp", "sqrt", "tanh", "logistic", "cbrt", "erf", "log1p"])
def test_functions_at_infinity_agree(name):
    function, _ = ROUNDED[name]
    same_as_jax(function, np.array([np.inf, -np.inf, np.nan, 0.0], np.float32), max_error_in_eps=2)


def test_functions_keep_the_sign_of_zero():
    for name in ("cbrt", "sin", "tan", "tanh", "sqrt", "asinh", "sinh", "atan", "expm1", "log1p"):
        found = run_graph_mode(ROUNDED[name][0], np.array([-0.0, 0.0], np.float32))
        assert_identical(found, [np.array([-0.0, 0.0], np.float32)])


BINARY_OF_INTEGERS = {
    "add": lax.add,
    "subtract": lax.sub,
    "multiply": lax.mul,
    "divide": lax.div,
    "remainder": lax.rem,
    "maximum": lax.max,
    "minimum": lax.min,
    "and": lax.bitwise_and,
    "or": lax.bitwise_or,
    "xor": lax.bitwise_xor,
    "shift_left": lax.shift_left,
    "shift_right_arithmetic": lax.shift_right_arithmetic,
    "shift_right_logical": lax.shift_right_logical,
    "lt": lax.lt,
    "ge": lax.ge,
    "eq": lax.eq,
}


@pytest.mark.slow(4)
@pytest.mark.sweep(2)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", INTEGERS)
def test_integer_arithmetic_agrees_also_where_tensorflow_raises(dtype, mode):
    left, right = all_pairs(special_integers(dtype))

    def every(x, y):
        return [function(x, y) for function in BINARY_OF_INTEGERS.values()]

    same_as_jax(every, left, right, mode=mode)


@pytest.mark.parametrize("dtype", ["int8", "int32", "uint32"])
def test_integer_arithmetic_by_a_constant_agrees(dtype):
    functions = (lax.div, lax.rem, lax.shift_left, lax.shift_right_logical, lax.shift_right_arithmetic)

    def every(x):
        return [f(x, jnp.full_like(x, c)) for f in functions for c in (0, 1, 5, np.iinfo(dtype).max)]

    same_as_jax(every, special_integers(dtype))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", INTEGERS)
def test_functions_of_integers_agree(dtype, mode):
    def every(x):
        return [jnp.abs(x), lax.neg(x), lax.sign(x), ~x, lax.clz(x), lax.population_count(x), lax.integer_pow(x, 3)]

    same_as_jax(every, special_integers(dtype), mode=mode)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integer_power_is_modulo_and_negative_exponents_give_zero(dtype):
    base, exponent = all_pairs(np.array([0, 1, 2, 3, 5, 11] + ([-1, -2, -3] if dtype in SIGNED else []), dtype))
    text = "func.func @main(%x: T, %y: T) -> T { %z = stablehlo.power %x, %y : T return %z : T }"
    letter = ("i" if dtype in SIGNED else "ui") + str(np.dtype(dtype).itemsize * 8)
    (found,) = run_module(text.replace("T", f"tensor<{base.size}x{letter}>"), base, exponent)
    bits = np.dtype(dtype).itemsize * 8

    def power(b, e):
        if e < 0:
            return {1: 1, -1: -1 if e % 2 else 1}.get(b, 0)
        return pow(b, e)

    expected = [power(int(b), int(e)) % 2**bits for b, e in zip(base, exponent, strict=True)]
    assert [int(x) % 2**bits for x in found] == expected


@pytest.mark.parametrize("mode", ["eager", "graph"])  # compiled, XLA's CPU backend drops NaN in min and max
@pytest.mark.parametrize("dtype", FLOATS)
def test_comparison_and_choice_agree_for_special_values(dtype, mode):
    left, right = all_pairs(special_floats(dtype))

    def every(x, y):
        compared = [f(x, y) for f in (lax.eq, lax.ne, lax.lt, lax.le, lax.gt, lax.ge)]
        compared += [p.bind(x, y) for p in (private_lax.eq_to_p, private_lax.lt_to_p, private_lax.le_to_p)]
        return [*compared, lax.select(x < y, x, y), lax.nextafter(x, y)]

    same_as_jax(every, left, right, mode=mode)
    for choose in (lax.max, lax.min):  # of -0 and 0 either may be given
        found, expected = (run(choose, left, right)[0] for run in (run_graph_mode, run_jax))
        np.testing.assert_array_equal(found.astype(np.float64), expected.astype(np.float64))


@pytest.mark.parametrize("dtype", FLOATS)
def test_clamp_agrees_also_for_nan_and_crossed_bounds(dtype):
    values = special_floats(dtype)
    one, two = np.ones((), dtype), np.full((), 2, dtype)
    same_as_jax(lax.clamp, one, values, two)
    same_as_jax(lax.clamp, two, values, one)


@pytest.mark.parametrize("dtype", FLOATS)
def test_division_remainder_power_and_atan2_agree(dtype):
    left, right = all_pairs(special_floats(dtype))
    ordinary = np.abs(left.astype(np.float64)) < 1e3
    same_as_jax(lax.div, left, right, max_error_in_eps=1)
    same_as_jax(lax.rem, left[ordinary], right[ordinary], max_error_in_eps=1)
    same_as_jax(lax.atan2, left, right, max_error_in_eps=8)
    same_as_jax(lax.pow, left[ordinary], right[ordinary], max_error_in_eps=64)


CONVERTED = ("bool", *INTEGERS, *FLOATS, "complex64")


@pytest.mark.slow(4)
@pytest.mark.sweep(2)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("source", ["bool", "int8", "int64", "uint64", *FLOATS])
def test_conversion_saturates_and_truncates_as_in_jax(source, mode):
    if source == "bool":
        values = np.array([True, False])
    else:
        values = special_floats(source) if source in FLOATS else special_integers(source)

    def every(x):
        return [lax.convert_element_type(x, dtype) for dtype in CONVERTED if dtype != "complex64"]

    same_as_jax(every, values, mode=mode)


UNDER_RULES_OF_NUMPY = """
import numpy as np, tensorflow as tf
from jaxtf.convert import convert
tf.experimental.numpy.experimental_enable_numpy_behavior(dtype_conversion_mode="all")
print(convert(lambda x: x.astype("int32"), native_serialization=False)(np.float32([3e9, -3e9, 1.5])).numpy())
"""


@pytest.mark.slow
def test_conversion_saturates_whatever_rules_tensorflow_promotes_by():
    done = subprocess.run([sys.executable, "-c", UNDER_RULES_OF_NUMPY], capture_output=True, text=True, check=False)
    assert done.stdout == "[ 2147483647 -2147483648           1]\n", done.stderr


@pytest.mark.parametrize("dtype", ["float8_e5m2", "float8_e4m3fn"])
def test_small_floats_are_converted_and_computed_with(dtype):
    values = np.array([0.0, -0.0, 1, -1.5, 0.25, 3, np.nan], dtype)
    same_as_jax(lambda x: [x.astype(np.float32), lax.neg(x), x < x[::-1], x.reshape(7, 1)], values)
    same_as_jax(lambda x: x.astype(dtype), np.array([0.1, -1.7, 3.3, 200.0], np.float32))


@pytest.mark.parametrize("dtype", ["float8_e4m3fnuz", "float8_e5m2fnuz"])
def test_small_floats_without_constants_are_refused(dtype):
    before_2_22 = f"constant: TensorFlow's graphs have no constants of {dtype}"
    later = f"multiply: TensorFlow does not take it: Value for attr 'T' of {dtype}"
    refused = "does not translate stablehlo." + (later if tf.__version__ >= "2.22" else before_2_22)
    with pytest.raises(GraphModeUnsupported, match=refused):
        convert(lambda x: x * 2, native_serialization=False)(np.array([1.5], dtype))


@pytest.mark.parametrize("dtype", ["int4", "uint4"])
def test_integers_of_four_bits_are_computed_with(dtype):
    values = np.array([0, 1, 3, 7], dtype)
    same_as_jax(lambda x: [x.astype(np.int32), x + x, x.reshape(2, 2), x < x[::-1]], values)


@pytest.mark.parametrize(
    ("source", "target", "shape"),
    [("float32", "int32", (3,)), ("float64", "uint8", (2,)), ("uint8", "uint32", (2, 4)), ("int16", "float16", (3,))],
)
def test_bits_are_reinterpreted_lowest_part_first(source, target, shape):
    values = np.arange(1, 1 + np.prod(shape)).reshape(shape).astype(source)
    same_as_jax(lambda x: lax.bitcast_convert_type(x, target), values)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", FLOATS)
def test_reduced_precision_rounds_to_even_and_saturates(dtype, mode):
    values = np.concatenate([special_floats(dtype), np.linspace(-3, 3, 41).astype(dtype)])
    for exponent, mantissa in ((5, 2), (4, 3), (8, 4)):
        same_as_jax(lambda x, e=exponent, m=mantissa: lax.reduce_precision(x, e, m), values, mode=mode)


@pytest.mark.slow(1)
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_functions_of_complex_numbers_agree(dtype):
    values = np.array([0.3 + 0.4j, -1.2 + 0.1j, 2 - 3j, 1e-3 + 1e-3j, -0.5 - 0.5j], dtype)
    for function in (lax.abs, lax.exp, lax.expm1, lax.log, lax.sqrt, lax.tanh, lax.sin, lax.sign, lax.conj, lax.rsqrt):
        same_as_jax(function, values, max_error_in_eps=64)
    same_as_jax(lambda x: [lax.real(x), lax.imag(x), lax.complex(lax.real(x), lax.imag(x)), x == x[::-1]], values)
    same_as_jax(lax.pow, values, values[::-1].copy(), max_error_in_eps=128)


def test_reference_for_the_test_itself_is_jax():
    (expected,) = run_jax(lax.rem, np.array([7, -7], np.int32), np.array([0, 4], np.int32))
    np.testing.assert_array_equal(expected, [7, -3])


@pytest.mark.parametrize("mode", MODES)
def test_float64_becomes_float16_by_one_rounding(mode):
    """Beside the middle between two numbers it was rounded twice: 65519.9 was infinite, for 65504."""
    numbers = np.arange(2**16, dtype=np.uint16).view(np.float16)[::7]
    with np.errstate(all="ignore"):
        middles = (numbers.astype(np.float64) + np.nextafter(numbers, np.float16(np.inf)).astype(np.float64)) / 2
        beside = [np.nextafter(middles, towards) for towards in (-np.inf, np.inf)]
        special = [65519.9999999, 65520.0, 1e300, -1e300, 5e-324, -0.0, np.nan]
        x = np.concatenate([numbers.astype(np.float64), middles, *beside, middles * (1 + 1e-12), special])
        expected = x.astype(np.float16)
    function = in_mode(convert(lambda x: x.astype(jnp.float16), native_serialization=False), mode)
    assert_identical(function(x).numpy(), expected)
