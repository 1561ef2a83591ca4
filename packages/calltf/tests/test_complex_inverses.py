"""Compiled inverses of complex functions are those of TensorFlow, and so are those for an older TensorFlow."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

from jaxtf.calltf import call_tf
from jaxtf.calltf._complex_inverses import FORMULAS
from jaxtf.serialization import export

PARTS = [-100.0, -2.0, -1.0, -0.5, -1e-3, 0.0, 1e-3, 0.5, 1.0, 2.0, 100.0]
JAXS = {"Acos": jnp.arccos, "Acosh": jnp.arccosh, "Atanh": jnp.arctanh}


def numbers(dtype, parts=PARTS):
    pairs = list(itertools.product(parts, parts))
    made = np.empty(len(pairs), dtype)
    made.real, made.imag = zip(*pairs, strict=True)
    return made


def extremes(dtype):
    limits = np.finfo(dtype)
    least, rounded, largest = map(float, (limits.tiny, limits.eps / 3, limits.max))
    sizes = [0.0, least, 1e-30, rounded, 0.5, 1.0, 3.0, 100.0, 1e18, largest, np.inf]
    return numbers(dtype, [*sizes, *(-size for size in sizes), np.nan])


def assert_near(found, expected):
    assert found.dtype == expected.dtype
    eps = np.finfo(expected.dtype).eps
    for part in ("real", "imag"):
        ours, theirs = (getattr(np.asarray(each), part) for each in (found, expected))
        np.testing.assert_allclose(ours, theirs, rtol=64 * eps, atol=64 * eps)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("name", ["acos", "acosh", "asin", "asinh", "atan", "atanh"])
def test_values_are_those_of_eager_calls(name, dtype):
    with jax.enable_x64(dtype == "complex128"):
        function, z = getattr(tf.math, name), numbers(dtype)
        call = call_tf(function)
        assert_near(jax.jit(call)(z), call(z))
        assert_near(jax.jit(jax.vmap(call))(z), call(z))
        assert_near(jax.vmap(call)(z), call(z))


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("name", ["acos", "acosh", "asin", "asinh", "atan", "atanh"])
def test_slopes_are_those_of_eager_calls(name, dtype):
    with jax.enable_x64(dtype == "complex128"):
        z, call = numbers(dtype), call_tf(getattr(tf.math, name))
        away = z[(z.real != 0) & (z.imag != 0) & (abs(z) < 10)]  # a cut has slopes of two sides

        def slopes(function):
            return jax.vjp(function, away)[1](away)[0]

        assert_near(jax.jit(lambda: slopes(call))(), slopes(call))
        assert_near(jax.jit(lambda: jax.jvp(call, (away,), (away,)))()[1], jax.jvp(call, (away,), (away,))[1])


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("name", FORMULAS)
@pytest.mark.parametrize("of", [numbers, extremes])
@pytest.mark.parametrize("older", [True, False], ids=["those for an older TensorFlow", "those of this one"])
def test_values_are_those_of_jax(name, dtype, of, older):
    with jax.enable_x64(dtype == "complex128"):
        function = FORMULAS[name] if older else getattr(tf.math, name.lower())
        z = of(dtype)
        assert_near(jax.jit(call_tf(function))(z), jax.jit(JAXS[name])(z))


def test_real_numbers_and_functions_that_are_called_keep_theirs():
    x = np.float32([0.25, 0.5])
    within = tf.function(lambda z: tf.acos(z) + tf.cond(tf.math.real(z[0]) > 0, lambda: tf.atanh(z), lambda: z))
    for call, argument in ((call_tf(tf.acos), x), (call_tf(within), (3 * x).astype(np.complex64))):
        assert_near(jax.jit(call)(argument), call(argument))


@pytest.mark.parametrize("name", FORMULAS)
def test_so_for_all_sizes(name):
    z, call = numbers("complex64"), call_tf(getattr(tf.math, name.lower()))
    shape = jax.ShapeDtypeStruct(jax.export.symbolic_shape("n"), z.dtype)
    assert_near(export(jax.jit(call))(shape).call(z), call(z))
