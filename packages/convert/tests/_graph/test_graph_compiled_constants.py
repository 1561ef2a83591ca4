"""What is compiled and depends on constants alone gives what JAX gives, though TensorFlow's kernels compute it.

TensorFlow does so before XLA compiles the rest, so that what is right of XLA's operations need not be right there.
"""

import math

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st
from jax import lax

from jaxtf.convert import convert

from .graph_mode import drawn

LOWEST = float(np.finfo(np.float32).min)
NUMBERS = (0.0, -0.0, 1.0, -2.5, 1e-7, 3e38, LOWEST, np.inf, -np.inf, np.nan)


def floats(draw, numbers=NUMBERS):
    count = draw(st.integers(1, 9))
    return np.array([draw(st.sampled_from(numbers)) for _ in range(2 * count)], np.float32).reshape(2, count)


def finite_complexes(draw, *, most=3e38):
    parts = st.floats(0.25, 4).flatmap(lambda x: st.sampled_from([x, -x, x * 1e-30, x * most / 4]))
    return np.array([complex(draw(parts), draw(parts)) for _ in range(draw(st.integers(1, 5)))], np.complex64)


def of_places(draw):
    find, least = draw(st.sampled_from(((jnp.argmax, LOWEST), (jnp.argmin, -LOWEST))))
    return lambda x: find(x, axis=1), (floats(draw, (math.copysign(math.inf, least), least)),)


def of_greatest(draw):
    return lambda x: lax.top_k(x, 1 + x.shape[1] // 2), (floats(draw),)


def of_pool(draw):
    size = draw(st.integers(1, 3))
    window = (1, size, 2, 1), (1, 1, 1, 1), "SAME"
    return lambda x: lax.reduce_window(x[None, ..., None], -jnp.inf, lax.max, *window), (floats(draw),)


def of_complex_quotient(draw):
    x = finite_complexes(draw, most=1e18)
    zeros = draw(st.lists(st.sampled_from((0, np.inf, 1)), min_size=x.size, max_size=x.size))
    return lambda x, y: x / y, (x, np.array(zeros, np.complex64))


def of_real_quotient(draw):
    """XLA multiplies with the reciprocal of a constant, which may be so small that it counts as 0."""
    large = draw(st.lists(st.sampled_from((8e37, 1e38, -2e38, 3e38, 1.0)), min_size=1, max_size=4))
    dtype = draw(st.sampled_from((np.float32, ml_dtypes.bfloat16)))
    x = np.array([draw(st.sampled_from((3e38, -1e38, 1e38, 0.0, np.inf, np.nan))) for _ in large], dtype)
    return lambda x, y: x / y, (x, np.array(large, dtype))


def of_complex_root(draw):
    function = draw(st.sampled_from((lax.sqrt, lax.rsqrt, lambda x: x**0.5, lambda x: x**-0.5)))
    return function, (finite_complexes(draw),)


def of_half_sums(draw):
    """A kernel of TensorFlow for CPU adds float16 in float16, so that 2048 ones do not grow."""
    size = draw(st.integers(50, 60))
    x, kernel = (np.ones(shape, np.float16) for shape in ((1, size, size, 4), (size, size, 1, 4)))
    layout = {"dimension_numbers": ("NHWC", "HWIO", "NHWC"), "feature_group_count": 4}
    return lambda x, kernel: lax.conv_general_dilated(x, kernel, (1, 1), "VALID", **layout), (x, kernel)


def inside(function, arrays):
    return lambda x: (x, function(*map(jnp.asarray, arrays)))


def in_loop(function, arrays):
    """Computed at each turn, of constants that the loop, and one within it, hand on as they are."""

    def turn(i, state):
        _, held = state
        results = lax.fori_loop(0, 2, lambda j, inner: (function(*inner[1]), inner[1]), (function(*held), held))[0]
        return results, held

    def looped(x):
        constants = tuple(map(jnp.asarray, arrays))
        shapes = jax.eval_shape(function, *constants)
        start = jax.tree.map(lambda each: jnp.zeros(each.shape, each.dtype), shapes)
        return x, lax.fori_loop(0, x.astype(int) + 1, turn, (start, constants))[0]

    return looped


def in_function(function, arrays):
    """By a function that is called from two places, and is so large that it is not put there."""

    @jax.jit
    def called(x, *constants):
        for number in range(20):
            x = lax.sin(x) * number
        return function(*constants), x

    def twice(x):
        constants = tuple(map(jnp.asarray, arrays))
        results, y = called(x, *constants)
        return called(y, *constants), results

    return twice


def assert_same(found, expected, where):
    """Equal but for rounding; of complex numbers, that of the modulus."""
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    is_bfloat16 = found.dtype == ml_dtypes.bfloat16
    rounding = 0.01 if is_bfloat16 else 2e-3 if found.dtype == np.float16 else 2e-6
    if is_bfloat16:
        found, expected = found.astype(np.float32), expected.astype(np.float32)
    if found.dtype.kind != "c":
        np.testing.assert_allclose(found, expected, rtol=rounding, err_msg=where)
        return
    size = np.abs(expected.astype(np.complex128))
    for of, part in ((found.real, expected.real), (found.imag, expected.imag)):
        is_finite = np.isfinite(part)
        np.testing.assert_array_equal(of[~is_finite], part[~is_finite], err_msg=where)
        assert np.all(np.abs(of[is_finite] - part[is_finite]) <= rounding * size[is_finite]), where


WITHOUT_XLA = (of_places, of_greatest, of_real_quotient, of_complex_quotient, of_complex_root, of_half_sums)
PROGRAMS = (*WITHOUT_XLA, of_pool)


# With enable_xla=False a pool drops NaN wherever TensorFlow's kernel computes it.
@pytest.mark.slow
@pytest.mark.parametrize(
    ("enable_xla", "program"), [*((True, p) for p in PROGRAMS), *((False, p) for p in WITHOUT_XLA)]
)
def test_what_depends_on_constants_alone_is_compiled_to_the_numbers_of_jax(enable_xla, program):
    @given(st.data())
    @drawn(12)
    def runs(data):
        function, arrays = program(data.draw)
        expected = jax.tree.leaves(jax.jit(function)(*arrays))
        options = {"native_serialization": False, "with_gradient": False, "enable_xla": enable_xla}
        given_constants = convert(function, **options)
        way = data.draw(st.sampled_from((inside, in_loop, in_function)))
        has_constants = convert(way(function, arrays), **options)
        found = {
            "as arguments": tf.function(lambda: given_constants(*map(tf.constant, arrays)), jit_compile=True)(),
            way.__name__: tf.function(has_constants, jit_compile=True)(tf.constant(1.0))[1],
        }
        for where, results in found.items():
            for result, each in zip(tf.nest.flatten(results), expected, strict=True):
                assert_same(result, each, where)

    runs()


def test_what_depends_on_sizes_alone_is_compiled_to_the_numbers_of_jax():
    layout = {"dimension_numbers": ("NHWC", "HWIO", "NHWC"), "feature_group_count": 4}

    def function(x):
        size = x.shape[0]
        places = jnp.arange(size)
        shapes = (1, size, size, 4), (size, size, 1, 4)
        convolved = [
            lax.conv_general_dilated(*(jnp.ones(shape, dtype) for shape in shapes), (1, 1), "VALID", **layout)
            for dtype in (jnp.float16, jnp.bfloat16)
        ]
        return *convolved, jnp.argmax(jnp.where(places == 0, -jnp.inf, LOWEST)), lax.rsqrt(places * 1e36 + 3e38j)

    x = np.zeros(60, np.float32)
    converted = convert(function, native_serialization=False, polymorphic_shapes=["(b,)"])
    signature = [tf.TensorSpec([None])]
    results = tf.function(converted, signature, autograph=False, jit_compile=True)(x)
    for result, expected in zip(results, jax.jit(function)(x), strict=True):
        assert_same(result, expected, "of sizes")


def mixed(draw, dtype, count):
    """Numbers of every magnitude, so that one that is the greatest is beside one that is the least."""
    info = ml_dtypes.finfo(dtype)
    sizes = [float(info.max) * share for share in (1, 0.5, 0.3, 0.2)] + [float(info.tiny) * n for n in (1, 1.5, 2, 64)]
    numbers = st.sampled_from([*sizes, 1e-5, 1.0, 3.0]).flatmap(lambda size: st.sampled_from([size, -size]))
    return np.array(draw(st.lists(numbers, min_size=count, max_size=count)), dtype)


MIXED = {
    "quotient": (lambda x, c: x / c, np.divide),
    "quotient of broadcast": (lambda x, c: x[:, None] / c, lambda x, c: x[:, None] / c),
    "product": (lambda x, c: x * c, np.multiply),
    "product of quotients": (lambda x, c: (x / c) * jnp.abs(c / c), np.divide),
}


@pytest.mark.slow(1)
@pytest.mark.parametrize("enable_xla", [True, False])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, ml_dtypes.bfloat16])
@pytest.mark.parametrize("name", MIXED)
def test_each_element_of_a_constant_counts_for_itself(name, dtype, enable_xla):
    """NumPy's wider numbers decide: XLA multiplies with reciprocals of constants, of which some count as 0."""
    function, decides = MIXED[name]
    info = ml_dtypes.finfo(dtype)
    least, most = float(info.tiny), float(info.max)

    @given(st.data())
    @drawn(20)
    def runs(data):
        count = data.draw(st.integers(1, 9))
        x, c = (mixed(data.draw, dtype, count) for _ in range(2))
        with jax.enable_x64(dtype == np.float64), np.errstate(all="ignore"):
            made = convert(lambda x: function(x, c), native_serialization=False, enable_xla=enable_xla)
            specs = [tf.TensorSpec([count], x.dtype)]
            signed = tf.function(made, jit_compile=True, autograph=False, input_signature=specs)
            both = {
                "compiled": tf.function(made, jit_compile=True, autograph=False)(tf.constant(x)),
                "with a signature": signed(tf.constant(x)),
            }
            expected = decides(*(y.astype(np.longdouble) for y in (x, c)))
        sizes = np.abs(expected)
        is_normal = (sizes > 2 * least) & (sizes < most / 2)
        is_less = sizes < least / 2
        for where, result in both.items():
            wide = result.numpy().astype(np.longdouble)
            error = np.abs(wide[is_normal] / expected[is_normal] - 1)
            assert np.all(error <= 4 * float(info.eps)), (where, x, c, wide, expected)
            assert np.all(np.abs(wide[is_less]) <= least), (where, x, c, wide, expected)

    runs()


FIRST = {
    "extreme": lambda c: jnp.maximum(c * 2, c * 5),
    "power": lambda c: jnp.exp(c) - 1,
    "relu": lambda c: jnp.maximum(c + c[::-1], 0.0),
    "quotient": lambda c: c / jnp.sqrt(c * c),
    "product": lambda c: (c * 3.0) * 5.0,
    "difference": lambda c: 1e-8 - (1 - c),
}
THEN = {
    "top": lambda y: lax.top_k(y, 1)[0],
    "place": lambda y: jnp.argmax(y).astype(jnp.float32),
    "pool": lambda y: lax.reduce_window(y[None, :, None], -jnp.inf, lax.max, (1, 2, 1), (1, 1, 1), "VALID").ravel(),
    "sorted": jnp.sort,
}


@pytest.mark.slow(1)
@pytest.mark.parametrize("then", THEN)
def test_what_is_kept_from_an_optimizer_is_a_constant_for_xla_still(then):
    """TensorFlow computes it by its own kernels, as it does any constant before XLA compiles the rest."""
    c = np.float32([1.0, np.nan, 3.0, 2.0])
    for name, first in FIRST.items():
        converted = convert(lambda x, c, f=first: x + THEN[then](f(c)), native_serialization=False)
        compiled = tf.function(lambda x, f=converted: f(x, tf.constant(c)), autograph=False, jit_compile=True)
        expected = THEN[then](first(jnp.asarray(c)))
        np.testing.assert_allclose(compiled(tf.constant(0.0)), expected, rtol=1e-6, err_msg=name)
