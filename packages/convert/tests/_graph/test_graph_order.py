"""Sums, products and quotients are computed as they are written, each rounded by itself, whatever Grappler would do."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import assume, given
from hypothesis import strategies as st
from jax import lax
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

from jaxtf.convert import convert
from jaxtf.convert._tf import is_left_by_grappler

from .graph_mode import drawn

# Not compiled: XLA has an order of its own.
MATRIX = np.float32([[1.3, 2.7, -0.4, 1e-30, 1e30, 0, 3e38, 1]] * 2)
ROW = np.float32([1e30, 1, 1e-30, 1e30, 1e8, 1, 1e-30, -1])
LARGE, SMALL, MAGIC = np.float32(1e30), np.float32(1e-30), np.float32(12582912)


def negated_twice(x):
    return lax.neg(lax.neg(x))


def sum_of(terms):
    total = terms[-1]
    for term in terms[:-1]:
        total = term + total
    return total


# So many elements that one operation adds them; the sum is another one in each other order.
SEVERAL = tuple(np.full(1 << 14, x, np.float32) for x in (1e30, 1, -1e30, 3e7, -5))
PROGRAMS = {
    "factors": (lambda x, s, t: (x * s) * t, (MATRIX, LARGE, LARGE)),
    "factors, the other side": (lambda x, s, t: t * (s * x), (MATRIX, LARGE, SMALL)),
    "row and scalar": (lambda x, y, s: (x * y) * s, (MATRIX, ROW, LARGE)),
    "square times a constant": (lambda x: x * x * SMALL, (np.float32([1e20, 3, 1e-20] * 3),)),
    "constant times a square": (lambda x: LARGE * jnp.square(x + 1), (np.float32([1e-25, -1, 1e20]),)),
    "power of 2 by a constant": (lambda x: x**2 / LARGE, (np.float32([1e25, 1e10, -1e20]),)),
    "complex square times a constant": (lambda x: x * x * np.complex64(SMALL), (np.complex64([1e25, 1 + 1j]),)),
    "constant factors": (lambda x: (x * LARGE) * ROW, (MATRIX,)),
    "quotient of a product": (lambda x, y, s: (x * s) / y, (MATRIX, np.float32([2] * 8), SMALL)),
    "terms": (lambda x, s, t: (x + s) + t, (MATRIX, LARGE, -LARGE)),
    "terms, the other side": (lambda x, s, t: t + (s + x), (MATRIX, LARGE, -LARGE)),
    "four terms": (lambda a, b, c, d: a + (b + (c + d)), tuple(np.float32([x]) for x in (1e30, -1e30, 1, 2))),
    "equal terms": (lambda a, b: ((a + a) + a) * b, (np.float32([3e38, 1e38]), np.float32([0, 1]))),
    "several terms": (lambda *terms: sum_of(terms), SEVERAL),
    "several terms, of sums": (lambda a, b, c, d, e: ((a + e) + (c + (b + a))) + d, SEVERAL),
    "several terms, each in two sums": (lambda a, b, c, d, e: (b + a + c) * (c + e + a), SEVERAL),
    "several terms, some made": (lambda a, b, c, d, e: -e + jnp.abs(a) + (c * b) + d, SEVERAL),
    "common factor": (
        lambda x, a, b, c: x * a + x * b + x * c,
        tuple(np.float32([v] * 9) for v in (3, 3e38, -3e38, 1)),
    ),
    "difference from a constant": (lambda x: 1e-8 - (1 - x), (np.float32([1, 0.5, 1e-9]),)),
    "negated twice": (
        lambda a, b, c, d: a + negated_twice(b + negated_twice(c + d)),
        tuple(np.float32([x]) for x in (1e30, -1e30, 1, 2)),
    ),
    "less the negative": (lambda x: LARGE - (-(x - LARGE)), (np.float32([1.5, 2]),)),
    "negative power less one": (lambda x: negated_twice(jnp.exp(x)) - 1, (np.float32([1e-9] * 8),)),
    "by its negated size": (
        lambda x: jnp.arccos(x / negated_twice(jnp.sqrt(x * x))),
        (np.arange(1, 400, dtype=np.float32),),
    ),
    "rounded by adding": (lambda x: MAGIC - (MAGIC - x), (np.float32([0.4, 1.6, -2.5]),)),
    "sum less a constant": (lambda x, y: (x + y) - LARGE, (np.float32([1, 2]), np.float32([1e30, 2]))),
    "reciprocal": (lambda x: 1 / x, (np.float32(2.0 ** np.arange(-60, 60)),)),
    "power of -1": (lambda x: lax.integer_pow(x, -1), (np.float32(2.0 ** np.arange(-60, 60)),)),
    "floating power of -1": (lambda x: x ** np.float32(-1), (np.float32(2.0 ** np.arange(-60, 60)),)),
    "whole quotients": (
        lambda x: jnp.floor(x / np.float32(2.0 ** np.arange(9))),
        (np.float32(6.0 * 2 ** np.arange(9)),),
    ),
    "quotients by what is computed": (
        lambda x: jnp.floor(x / jnp.cumsum(jnp.ones(64, x.dtype))),
        (np.float32(np.arange(1, 65) * 3.0),),
    ),
    "by its size": (lambda x: jnp.arccos(x / jnp.sqrt(x * x)), (np.arange(1, 400, dtype=np.float32),)),
    "reciprocal of a root": (lambda x: 1 / jnp.sqrt(x), (np.float32(4.0 ** np.arange(-30, 30)),)),
    "logarithm of a sum": (lambda x: jnp.log(1 + x), (np.float32([1e-9] * 8),)),
    "logarithm of what a negative is subtracted from": (lambda x: jnp.log(1 - (-x)), (np.float32([1e-9, -1e-10] * 4),)),
    "power less one": (lambda x: jnp.exp(x) - 1, (np.float32([1e-9] * 8),)),
    "logarithm of a softmax": (lambda x: jnp.log(jax.nn.softmax(x)), (np.float32([0, -1000]),)),
    "quotient by a large constant": (lambda x: x / np.float32([3e38] * 8), (np.float32([3e38] * 8),)),
}


# Of those whose results are not what NumPy makes of the same function: each element of the results.
RESULTS = {
    "reciprocal": lambda x: 1 / x,
    "power of -1": lambda x: 1 / x,
    "whole quotients": lambda x: np.full_like(x, 6),
    "quotients by what is computed": lambda x: np.full_like(x, 3),
    "by its size": np.zeros_like,
    "by its negated size": np.zeros_like,
    "reciprocal of a root": lambda x: 1 / np.sqrt(x),
    "logarithm of a sum": np.zeros_like,
    "logarithm of what a negative is subtracted from": np.zeros_like,
    "power less one": np.zeros_like,
    "negative power less one": np.zeros_like,
    "logarithm of a softmax": lambda x: np.float32([0, -np.inf]),
    "quotient by a large constant": np.ones_like,
}
# Their constants have a size, or are computed from one.
HAVE_SIZES = {"constant factors", "whole quotients", "quotients by what is computed", "quotient by a large constant"}
TINY = np.finfo(np.float32).tiny


def assert_gives(expected, function, arguments, shapes, *, mode, enable_xla):
    converted = convert(function, polymorphic_shapes=shapes, native_serialization=False, enable_xla=enable_xla)
    if mode != "eager":
        signature = [tf.TensorSpec([None] * x.ndim if shapes else x.shape, x.dtype) for x in arguments]
        converted = tf.function(converted, signature, autograph=False, jit_compile=mode == "frozen" or None)
    if mode == "frozen":  # traced to be compiled, but not compiled
        frozen = convert_variables_to_constants_v2(converted.get_concrete_function())
        found = frozen(*map(tf.constant, arguments))[0].numpy()
    else:
        found = converted(*arguments).numpy()
    # What is smaller may count as 0.
    np.testing.assert_array_equal(*(np.where(np.abs(x) < TINY, np.float32(0), x) for x in (found, expected)))


@pytest.mark.parametrize("mode", ["eager", "graph", "frozen"])
@pytest.mark.parametrize("enable_xla", [False, True])
@pytest.mark.parametrize("name", PROGRAMS)
def test_each_operation_is_rounded_by_itself(name, enable_xla, mode):
    function, arguments = PROGRAMS[name]
    with np.errstate(all="ignore"):
        expected = np.asarray(RESULTS.get(name, function)(*arguments))
    assert_gives(expected, function, arguments, None, mode=mode, enable_xla=enable_xla)
    if name not in HAVE_SIZES:
        shapes = [f"({', '.join('ab'[2 - x.ndim :])}{',' if x.ndim == 1 else ''})" for x in arguments]
        assert_gives(expected, function, arguments, shapes, mode=mode, enable_xla=enable_xla)


def test_in_functions_of_the_graph_and_what_they_are_called_with():
    """A function of more than a few operations that is called twice is one of the graph, put where it is called."""

    def called(x, y):
        for _ in range(3):
            x = jnp.where(x > 1e35, jnp.sin(x), x)
        return (x + y) - 1e8

    jitted = jax.jit(called)

    def function(x):
        return jitted(x + 1e8, np.float32(1e8)) + jitted(x - 1e8, -np.float32(1e8)), jitted(x, np.float32(3)) + 1e8

    x = np.float32([0.3, 1e-8, 7])
    large = np.float32(1e8)
    first = ((x + large) + large - large) + ((x - large) - large - large)
    second = ((x + np.float32(3)) - large) + large
    found = tf.function(convert(function, native_serialization=False), autograph=False)(x)
    for ours, expected in zip(found, (first, second), strict=True):
        np.testing.assert_array_equal(ours.numpy(), expected)


# How a factor is applied -> the factor, the elements of the kernel and of the operand.
SCALES = {
    "product": (jnp.multiply, 1e30, 1e30, 1e-30),
    "quotient": (jnp.divide, 1e-30, 1e30, 1e-30),
    "small product": (jnp.multiply, 1e-30, 1e-30, 1e30),
    "small quotient": (jnp.divide, 1e30, 1e-30, 1e30),
}


@pytest.mark.sweep(3)
@pytest.mark.parametrize("which", ["before", "after"])
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("features", ["first", "last"])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_a_factor_is_not_taken_into_a_kernel_where_that_overflows(rank, features, scale, which):
    """Nor where one of the two becomes a constant later: in a function around, which gives it."""
    letters, (apply, *numbers) = "HWD"[:rank], SCALES[scale]
    names = ("N{}C", "{}IO", "N{}C") if features == "last" else ("NC{}", "OI{}", "NC{}")
    dimensions = lax.conv_dimension_numbers(*(((1,) * (rank + 2),) * 2), [name.format(letters) for name in names])
    (factor, element, value), places = np.float32(numbers), (3,) * rank
    kernel = np.full((2, 2, *places) if features == "first" else (*places, 2, 2), element)
    x = np.full((1, 2, *places) if features == "first" else (1, *places, 2), value)

    def function(x, factor, kernel):
        x = apply(x, factor) if which == "before" else x
        made = lax.conv_general_dilated(x, kernel, (1,) * rank, "VALID", dimension_numbers=dimensions)
        return made if which == "before" else apply(made, factor)

    by_feature = np.full((2, *(1,) * rank) if features == "first" else 2, factor)
    late = convert(function, native_serialization=False)
    made_constant = [
        tf.function(convert(lambda x, f=f: function(x, f, kernel), native_serialization=False), autograph=False)
        for f in (factor, by_feature)
    ]
    made_late = tf.function(lambda x: late(x, tf.constant(factor), tf.constant(kernel)), autograph=False)
    expected = value * element * 2 * 3**rank
    expected = expected * factor if apply is jnp.multiply else expected / factor
    for made in (*made_constant, made_late):
        found = made(x).numpy()
        np.testing.assert_allclose(found, np.full_like(found, expected), rtol=1e-5)


POWERS_OF_2 = {
    "quotient, twice": (lambda x: x / 255 * 2, True),
    "twice the quotient": (lambda x: 2 * (x / 255), True),
    "power first": (lambda x: 0.25 * x * 3, True),
    "larger and larger": (lambda x: (x * 3) * 4, True),
    "no power of 2": (lambda x: x / 255 * 3, False),
    "larger, then smaller": (lambda x: (x * 4) * 0.3, False),
    "far from 1": (lambda x: (x * 0.3) * 2.0**11, False),
    "three": (lambda x: x * 0.3 * 4 * 4, None),
}


@st.composite
def scaled(draw):
    """A number, an element of a kernel, and the factors of the operand and of the convolution, one after the other."""
    sizes = st.sampled_from([1e30, 1e-30, 1e20, 1e-20, 1e10, 1e-10, 0.5, 1000.0, 2.0, -1.0])
    steps = st.lists(st.tuples(st.sampled_from(["*", "/", "reversed *"]), sizes, st.booleans()), max_size=3)
    return draw(sizes), draw(sizes), draw(steps), draw(steps)


@pytest.mark.slow
@given(scaled())
@drawn(120)
def test_factors_are_not_taken_into_a_kernel_where_they_overflow_together(case):
    value, element, before, after = case
    kernel = np.full((3, 3, 2, 2), element, np.float32)
    x = np.full((1, 4, 4, 2), value, np.float32)

    def scale(y, steps):
        for how, size, by_feature in steps:
            factor = np.full(2 if by_feature and np.ndim(y) else (), size, np.float32)
            y = y / factor if how == "/" else y * factor if how == "*" else factor * y
        return y

    def function(x):
        x = scale(x, before)
        made = lax.conv_general_dilated(x, kernel, (1, 1), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        return scale(made, after)

    with np.errstate(all="ignore"):
        parts = [scale(np.float32(value), before[: i + 1]) for i in range(len(before))] or [np.float32(value)]
        made = parts[-1] * np.float32(element)
        parts += [made, made * np.float32(18), *(scale(made * 18, after[: i + 1]) for i in range(len(after)))]
    assume(all(1e-37 < np.abs(part) < 1e37 for part in parts))
    found = tf.function(convert(function, native_serialization=False), autograph=False)(x).numpy()
    np.testing.assert_allclose(found, np.full_like(found, parts[-1]), rtol=1e-5)


@pytest.mark.parametrize("name", POWERS_OF_2)
def test_two_constants_are_one_where_that_is_exact(name):
    function, is_one = POWERS_OF_2[name]
    rng = np.random.RandomState(0)
    numbers = rng.normal(size=1000) * 10.0 ** rng.randint(-30, 38, 1000)
    x = np.append(numbers, [np.inf, -np.inf, np.nan, 0, -0.0, 3.4e38, -3.4e38]).astype(np.float32)
    converted = tf.function(convert(function, native_serialization=False), autograph=False)
    traced = converted.get_concrete_function(tf.TensorSpec(x.shape, x.dtype))
    kept = [
        op.type for op in traced.graph.get_operations() if is_left_by_grappler(op) and op.type in ("Mul", "RealDiv")
    ]
    assert is_one is None or is_one == (not kept)
    with jax.disable_jit():
        expected = function(jnp.asarray(x))
    np.testing.assert_array_equal(converted(x), expected)


@pytest.mark.parametrize("exponent", [-1, 0, 0.5, -0.5, 1, 2, 3])
@pytest.mark.parametrize("shape", ["static", "symbolic"])
def test_a_power_of_what_is_broadcast_has_its_shape(exponent, shape):
    def function(x):
        return jnp.broadcast_to(jnp.max(x), x.shape) ** jnp.full_like(x, exponent)

    shapes = ["(a, b)"] if shape == "symbolic" else None
    converted = convert(function, polymorphic_shapes=shapes, native_serialization=False)
    x = np.float32([[1, 4, 2]])
    np.testing.assert_array_equal(converted(x).numpy(), np.full((1, 3), 4.0**exponent, np.float32))


@pytest.mark.parametrize("compiled", [None, True], ids=["not compiled", "compiled"])
def test_sums_of_several_are_computed_before_one_of_their_results(compiled):
    converted = convert(lambda *terms: sum_of(terms), native_serialization=False, with_gradient=False)
    both = tf.function(
        lambda *terms: converted(*terms) + converted(*terms[::-1]), autograph=False, jit_compile=compiled
    )
    np.testing.assert_array_equal(both(*SEVERAL), sum_of(SEVERAL) + sum_of(SEVERAL[::-1]))
