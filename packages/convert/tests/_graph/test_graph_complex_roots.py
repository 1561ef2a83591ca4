"""Roots of complex numbers are right up to the largest and the smallest there are; NumPy's wider ones decide."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax import lax

from jaxtf.convert import convert, convert_stablehlo

from .graph_mode import MODES, run_graph_mode, run_module

COMPLEX = ("complex64", "complex128")
TEXTS = {
    f"stablehlo.{name}": """
    func.func @main(%x: tensor<SIZExELEMENT>) -> tensor<SIZExELEMENT> {
      %0 = stablehlo.NAME %x : tensor<SIZExELEMENT>
      return %0 : tensor<SIZExELEMENT>
    }
    """.replace("NAME", name)
    for name in ("sqrt", "rsqrt")
}
FUNCTIONS = {
    "sqrt": (lax.sqrt, 1),
    "rsqrt": (lax.rsqrt, -1),
    "x ** 0.5": (lambda x: x**0.5, 1),
    "x ** -0.5": (lambda x: x**-0.5, -1),
    "exponents": (lambda x: lax.pow(x, jnp.full_like(x, 0.5)), 1),
    "negative exponents": (lambda x: lax.pow(x, jnp.full_like(x, -0.5)), -1),
    "1 / sqrt": (lambda x: 1 / lax.sqrt(x), -1),
}
ROOTS = {"stablehlo.sqrt": 1, "stablehlo.rsqrt": -1} | {name: sign for name, (_, sign) in FUNCTIONS.items()}


@pytest.fixture(autouse=True)
def _with_64_bits():
    with jax.enable_x64(True):
        yield


def text_of(name, numbers):
    element = {"complex64": "complex<f32>", "complex128": "complex<f64>"}[numbers.dtype.name]
    return TEXTS[name].replace("SIZE", str(numbers.size)).replace("ELEMENT", element)


def extremes(dtype):
    """Numbers with one part or both by the greatest or the least, and some between."""
    info = np.finfo(dtype)
    most, least = float(info.max), float(info.tiny)
    parts = [0, 1, -1.5, most, -most, most * 0.6, most * 0.3, -most * 0.2, 64 * least, -128 * least, most**0.5]
    made = [complex(*each) for each in itertools.product(parts, repeat=2) if any(each)]
    return np.array([*made, complex(0, least), complex(-least, 0), complex(least, least)], dtype)


def root_of(numbers, sign):
    with np.errstate(all="ignore"):
        root = np.sqrt(numbers.astype(np.clongdouble))
        return root if sign > 0 else 1 / root


def assert_near(ours, expected, dtype):
    assert ours.dtype == dtype
    wide = ours.astype(np.clongdouble)
    with np.errstate(all="ignore"):
        is_near = np.abs(wide - expected) <= 64 * np.finfo(dtype).eps * np.abs(expected)
    assert is_near.all(), [*zip(ours[~is_near], expected[~is_near], strict=True)]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", COMPLEX)
@pytest.mark.parametrize("name", ROOTS)
def test_roots_of_the_greatest_and_the_least_are_right(name, dtype, mode):
    numbers = extremes(dtype)
    if mode == "compiled" and "sqrt" not in name:  # powers whose base has an infinite modulus are NaN, as JAX's are
        numbers = numbers[np.isfinite(np.abs(numbers))]
    for given in (numbers, numbers.repeat(3)):  # kernels take several numbers at once, and the rest one by one
        if name in TEXTS:
            ours = run_module(text_of(name, given), given, mode=mode)[0]
        else:
            ours = run_graph_mode(FUNCTIONS[name][0], given, mode=mode)[0]
        assert_near(ours, root_of(given, ROOTS[name]), dtype)


@pytest.mark.parametrize("dtype", COMPLEX)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_roots_of_one_number_are_right(name, dtype):
    function, sign = FUNCTIONS[name]
    of_one = tf.function(convert(function, native_serialization=False), autograph=False)
    numbers = extremes(dtype)
    ours = np.array([of_one(number).numpy() for number in numbers])
    assert_near(ours, root_of(numbers, sign), dtype)
    ours = tf.vectorized_map(of_one, numbers).numpy()
    assert_near(ours, root_of(numbers, sign), dtype)


@pytest.mark.parametrize("dtype", COMPLEX)
def test_a_power_whose_exponent_is_known_when_the_function_is_called_is_right(dtype):
    @jax.jit
    def power(x, exponent):
        other = jnp.sin(x.real) + jnp.cos(x.real) * jnp.tanh(x.real)
        return jnp.where(other > 9, 0, lax.pow(x, exponent))

    numbers = extremes(dtype)
    for exponent, sign in ((0.5, 1), (-0.5, -1)):
        ours = run_graph_mode(lambda x, e=exponent: [power(y, jnp.full_like(x, e)) for y in (x, x * 1)], numbers)
        for each in ours:
            assert_near(each, root_of(numbers, sign), dtype)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("dtype", COMPLEX)
@pytest.mark.parametrize("name", TEXTS)
def test_tapes_differentiate_roots_of_the_greatest_and_the_least(name, dtype, compiled):
    numbers = np.array([1, 2j, -3 + 1j, *extremes(dtype)], dtype)
    if name == "stablehlo.rsqrt" or compiled:  # its slope is the cube of the root: a number of most of these
        numbers = numbers[(np.abs(numbers) > 1e-9) & (np.abs(numbers) < 1e9)]
    function = convert_stablehlo(text_of(name, numbers))

    @tf.function(autograph=False, jit_compile=compiled)
    def pulled(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = function(x)
        return tape.gradient(y, x)

    root = root_of(numbers, 1)
    slope = 1 / (2 * root) if name == "stablehlo.sqrt" else -1 / (2 * root * root * root)
    assert_near(pulled(tf.constant(numbers)).numpy(), slope.conj(), dtype)


def beside_cuts(dtype, size):
    """For each number with a zero part, both signs of it, an array of that size of it alone."""
    pairs = [*itertools.product((-4.0, -0.5, 0.5, 4.0), (0.0, -0.0)), *itertools.product((0.0, -0.0), (-4.0, 4.0))]
    made = np.empty([len(pairs), size], dtype)
    made.real, made.imag = np.transpose(pairs)[:, :, None]
    return made


def by_parts(name):
    return {
        "sqrt": lax.sqrt,
        "rsqrt": lax.rsqrt,
        "x ** 0.5": FUNCTIONS["exponents"][0],
        "x ** -0.5": FUNCTIONS["negative exponents"][0],
        "x ** 1.5": lambda x: lax.pow(x, jnp.full_like(x, 1.5)),
        **{each: getattr(lax, each) for each in ("log", "log1p", "asin", "acos", "acosh", "asinh", "atan", "atanh")},
        **{each: getattr(lax, each) for each in ("sign", "tan", "tanh", "exp", "expm1", "sin", "cos")},
    }[name]


ON_CUTS = ("sqrt", "rsqrt", "x ** 0.5", "x ** -0.5", "x ** 1.5", "log", "log1p", "asin", "acos", "acosh", "asinh")
ALL_NAMED = (*ON_CUTS, "atan", "atanh", "sign", "tan", "tanh", "exp", "expm1", "sin", "cos")


@pytest.mark.slow(1)
@pytest.mark.parametrize("mode", ["eager", "graph", "compiled"])
@pytest.mark.parametrize("dtype", COMPLEX)
@pytest.mark.parametrize("name", ALL_NAMED)
def test_equal_elements_beside_a_cut_have_one_result_which_is_that_of_jax(name, dtype, mode):
    """TensorFlow's kernels take several numbers at once by other instructions than the rest, one by one."""
    function = by_parts(name)
    for size in (1, 2, 9, 17):
        rows = beside_cuts(dtype, size)
        text = jax.jit(function).lower(rows[0]).as_text()
        backends = {
            "text": convert_stablehlo(text),
            "with XLA": convert(function, native_serialization=False, with_gradient=False),
            "without": convert(function, native_serialization=False, with_gradient=False, enable_xla=False),
        }
        for backend, made in backends.items():
            run = made if mode == "eager" else tf.function(made, autograph=False, jit_compile=mode == "compiled")
            for row in rows:
                [ours] = tf.nest.flatten(run(tf.constant(row)))
                expected = np.asarray(jax.jit(function)(row))
                limit = 16 * np.finfo(dtype).eps
                message = f"{backend}, {row[0]}, {size}"
                np.testing.assert_allclose(ours.numpy(), expected, rtol=limit, atol=limit, err_msg=message)


@pytest.mark.slow(2)
@pytest.mark.parametrize("mode", ["eager", "graph", "compiled"])
@pytest.mark.parametrize("dtype", COMPLEX)
@pytest.mark.parametrize("name", ON_CUTS)
def test_tapes_take_the_side_of_the_result_beside_a_cut(name, dtype, mode):
    function = by_parts(name)
    for size in (1, 9):
        rows = beside_cuts(dtype, size)
        made = convert_stablehlo(jax.jit(function).lower(rows[0]).as_text())

        def pulled(x, made=made):
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = made(x)
            return tape.gradient(y, x)

        run = pulled if mode == "eager" else tf.function(pulled, autograph=False, jit_compile=mode == "compiled")
        for row in rows:
            slope = slope_of(name, row, np.asarray(jax.jit(function)(row)))
            limit = 64 * np.finfo(dtype).eps
            message = f"{row[0]}, {size}"
            ours = run(tf.constant(row)).numpy()
            np.testing.assert_allclose(ours, slope.conj(), rtol=limit, atol=limit, err_msg=message)


def slope_of(name, x, y):
    """The derivative at x of the function of that name, which is y there, by the side that y is on."""
    return {
        "sqrt": lambda: 0.5 / y,
        "rsqrt": lambda: -0.5 * y / x,
        "x ** 0.5": lambda: 0.5 / y,
        "x ** -0.5": lambda: -0.5 * y / x,
        "x ** 1.5": lambda: 1.5 * y / x,
        "log": lambda: 1 / x,
        "log1p": lambda: 1 / (1 + x),
        "asin": lambda: 1 / np.cos(y),
        "acos": lambda: -1 / np.sin(y),
        "acosh": lambda: 1 / np.sinh(y),
        "asinh": lambda: 1 / np.cosh(y),
    }[name]()
