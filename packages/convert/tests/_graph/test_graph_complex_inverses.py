"""Inverses of complex functions have JAX's values on their branch cuts, and so do those for an older TensorFlow."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax import lax

from jaxtf.convert._graph.ops import complex_inverses

from .graph_mode import MODES, run_graph_mode

PARTS = [-2.0, -1.0, -0.5, -1e-3, -0.0, 0.0, 1e-3, 0.5, 1.0, 2.0]
NEAR = [side * (1 + distance) for side in (1, -1) for distance in (1e-6, -1e-6, 1e-3, -1e-3)]
LARGE = [side * 10.0**exponent for side in (1, -1) for exponent in (5, 18, 20, 30)]
INVERSES = ("acos", "acosh", "asin", "asinh", "atan", "atanh")
FUNCTIONS = {name: getattr(lax, name) for name in (*INVERSES, "rsqrt", "sqrt")}
OLDER = {name: getattr(complex_inverses, name) for name in ("acos", "acosh", "atanh")}


def numbers(dtype):
    return of_parts(
        [
            *itertools.product(PARTS, PARTS),
            *itertools.product(NEAR, PARTS),
            *itertools.product(LARGE, [0.0, *LARGE]),
        ],
        dtype,
    )


def extremes(dtype):
    limits = np.finfo(dtype)
    least, rounded, largest = map(float, (limits.tiny, limits.eps / 3, limits.max))
    sizes = [0.0, least, 1e-30, rounded, 0.5, 1.0, 3.0, 100.0, 1e18, largest, np.inf]
    parts = [*sizes, *(-size for size in sizes), np.nan]
    return of_parts(list(itertools.product(parts, parts)), dtype)


def of_parts(pairs, dtype):
    made = np.empty(len(pairs), dtype)
    made.real, made.imag = zip(*pairs, strict=True)
    return made


def assert_near(found, expected):
    eps = np.finfo(expected.dtype).eps
    for part in ("real", "imag"):
        ours, theirs = getattr(found, part), getattr(expected, part)
        np.testing.assert_allclose(ours, theirs, rtol=64 * eps, atol=64 * eps)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_has_the_values_of_jax_on_its_branch_cut(name, dtype, mode):
    with jax.enable_x64(dtype == "complex128"):
        z = numbers(dtype)
        z = z[z != 0] if name == "rsqrt" else z
        (found,) = run_graph_mode(lambda z: [FUNCTIONS[name](z)], z, mode=mode)
        assert_near(found, np.asarray(jax.jit(FUNCTIONS[name])(jnp.asarray(z))))


@pytest.mark.parametrize("compiled", [None, True], ids=["not compiled", "compiled"])
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("name", OLDER)
def test_so_have_those_for_an_older_tensorflow(name, dtype, compiled):
    with jax.enable_x64(dtype == "complex128"):
        z = numbers(dtype)
        found = tf.function(OLDER[name], autograph=False, jit_compile=compiled)(z).numpy()
        assert_near(found, np.asarray(jax.jit(FUNCTIONS[name])(jnp.asarray(z))))


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("name", INVERSES)
def test_of_infinities_and_the_least_and_largest_numbers_compiled_ones_have_the_values_of_jax(name, dtype):
    with jax.enable_x64(dtype == "complex128"):
        z = extremes(dtype)
        if name == "asinh":  # TensorFlow before 2.21 has another sign for what is real in asinh(nan + inf * 1j)
            z = z[~np.isnan(z)]
        expected = np.asarray(jax.jit(FUNCTIONS[name])(jnp.asarray(z)))
        (found,) = run_graph_mode(lambda z: [FUNCTIONS[name](z)], z, mode="compiled")
        assert_near(found, expected)
        if name in OLDER:
            assert_near(tf.function(OLDER[name], autograph=False, jit_compile=True)(z).numpy(), expected)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("name", OLDER)
def test_those_for_an_older_tensorflow_are_right_of_what_is_not_nan_when_not_compiled(name, dtype):
    with jax.enable_x64(dtype == "complex128"):
        z = extremes(dtype)
        z = z[~np.isnan(z) & ~(np.signbit(z.imag) & (z.imag == 0))]  # -0 is the other side of the cut
        found = tf.function(OLDER[name], autograph=False)(z).numpy()
        expected = np.asarray(jax.jit(FUNCTIONS[name])(jnp.asarray(z)))
        finite = np.isfinite(expected.real)  # near 1 TensorFlow's atan is exact where XLA's overflows
        assert_near(found[finite], expected[finite])
