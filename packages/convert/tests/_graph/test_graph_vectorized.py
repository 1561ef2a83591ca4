"""What `tf.vectorized_map` and `tape.jacobian` make of graph mode: the numbers of a loop, as of native mode."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax import lax

from jaxtf.convert import convert

ROWS = np.float32([[-3, 1, 2, 2], [0, -1, 5, -7], [4, 4, -2, 0]])
IMAGES = np.float32(np.random.default_rng(0).integers(-9, 9, (3, 1, 4, 5, 2)))


def maximum_of_two(x):
    y = jnp.minimum(x, 2 * x)
    return jnp.maximum(y, 3 * y)


def padded_max_pool(x):
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), [(0, 0), (1, 1), (1, 1), (0, 0)])


def pads_with_what_is_computed(x):
    return lax.pad(x, x[0] + 7, [(1, 2, 1)])


PROGRAMS = {
    "pad": (lambda x: jnp.pad(x, 1, constant_values=5), ROWS),
    "pad between elements": (lambda x: lax.pad(x, np.float32(5), [(1, -1, 2)]), ROWS),
    "pad with what is computed": (pads_with_what_is_computed, ROWS),
    "cummax": (lax.cummax, ROWS),
    "cumprod of integers": (jnp.cumprod, ROWS.astype(np.int32)),
    "max pool": (padded_max_pool, IMAGES),
    "windows": (lambda x: lax.reduce_window(x, 1.0, lax.mul, (3,), (1,), [(1, 1)]), ROWS),
    "what Grappler takes for a leaky relu": (maximum_of_two, ROWS),
    "logarithm of a sum": (lambda x: jnp.log(1 + 1e-30 * jnp.abs(x)), ROWS),
    "scatter": (lambda x: x.at[jnp.argsort(x)[:2]].set(9), ROWS),
    "unique": (lambda x: jnp.unique(x, size=4, fill_value=8), ROWS),
    "sort": (jnp.sort, ROWS),
    "scan": (
        lambda x: lax.scan(
            lambda carry, e: (jnp.maximum(carry, e), jnp.pad(e[None], 1, constant_values=carry)), x[0], x
        ),
        ROWS,
    ),
}


@pytest.mark.parametrize("native", [False, True], ids=["graph mode", "native"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_vectorized_function_gives_what_each_element_gives(name, native):
    function, elements = PROGRAMS[name]
    converted = convert(function, native_serialization=native, with_gradient=False)
    expected = jax.tree.map(lambda *rows: np.stack(rows), *(jax.jit(function)(x) for x in elements))
    traced = tf.function(converted, autograph=False).get_concrete_function(
        tf.TensorSpec(elements.shape[1:], elements.dtype)
    )
    for called in (converted, traced):
        vectorized = lambda x, called=called: tf.vectorized_map(called, x)  # noqa: E731
        for run in (vectorized, tf.function(vectorized, autograph=False)):
            jax.tree.map(np.testing.assert_array_equal, jax.tree.map(np.asarray, run(elements)), expected)


@pytest.mark.parametrize("name", ["pad", "max pool", "cummax"])
def test_a_compiled_vectorized_function_too(name):
    function, elements = PROGRAMS[name]
    converted = convert(function, native_serialization=False, with_gradient=False)
    run = tf.function(lambda x: tf.vectorized_map(converted, x), autograph=False, jit_compile=True)
    np.testing.assert_array_equal(run(elements), jax.jit(jax.vmap(function))(elements))


@pytest.mark.parametrize("least", [100, 0, -100])
def test_a_slice_in_a_branch_that_no_element_takes(least):
    def function(x):
        starts = jnp.abs(x[:2]).astype(int)
        table = jnp.outer(x, x)
        return lax.cond(x[0] > least, lambda: lax.dynamic_slice(table, starts, (2, 3)).sum(), x.sum)

    converted = convert(function, native_serialization=False)
    np.testing.assert_array_equal(tf.vectorized_map(converted, ROWS), jax.vmap(function)(ROWS))


def test_a_function_that_is_vectorized_twice():
    converted = convert(PROGRAMS["pad"][0], native_serialization=False, with_gradient=False)
    pairs = np.stack([ROWS, -ROWS])
    found = tf.vectorized_map(lambda rows: tf.vectorized_map(converted, rows), pairs)
    np.testing.assert_array_equal(found, np.pad(pairs, [(0, 0), (0, 0), (1, 1)], constant_values=5))


def test_symbolic_sizes_and_indices_of_64_bits():
    with jax.enable_x64(True):
        unique = convert(
            lambda x: jnp.unique(x, size=3, fill_value=8), polymorphic_shapes=["(a,)"], native_serialization=False
        )
        found = tf.vectorized_map(unique, np.int64([[1, 2, 1], [3, 3, 3]]))
    np.testing.assert_array_equal(found, [[1, 2, 8], [3, 8, 8]])


@pytest.mark.slow(1)
@pytest.mark.parametrize("native", [False, True], ids=["graph mode", "native"])
@pytest.mark.parametrize("name", ["max pool", "cummax", "pad with what is computed"])
def test_a_jacobian_is_that_of_jax(name, native):
    function, elements = PROGRAMS[name]
    x = tf.constant(np.random.default_rng(1).permutation(elements[0].size).reshape(elements[0].shape), tf.float32)
    converted = convert(function, native_serialization=native)

    def jacobian(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = converted(x)
        return tape.jacobian(y, x)

    expected = jax.jacrev(function)(jnp.asarray(x))
    for run in (jacobian, tf.function(jacobian, autograph=False)):
        np.testing.assert_allclose(run(x), expected, rtol=1e-6)
