"""Derivatives that TensorFlow takes of converted functions are those of JAX, however they are nested in loops and maps.

The functions are differentiated by rules of their own, so that TensorFlow's derivatives of their operations would
differ. A fixed few are tried always; JAXTF_FULL=1 tries `RANDOM_PROGRAMS` of them, others each time (the session
`random_programs`).
"""

import functools
import warnings
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import assume, given
from hypothesis import strategies as st
from jax import lax

from jaxtf.convert import convert

from .drawing import drawn

# --- functions of a vector to a vector of its size ---

WEIGHTS = np.float32([[0.5, -1, 0], [2, 0.25, 1], [-0.5, 0, 1]])


@jax.custom_vjp
def clipped(x):
    return jnp.sin(x)


clipped.defvjp(lambda x: (jnp.sin(x), x), lambda x, cotangent: (jnp.clip(cotangent, -0.3, 0.3) * x,))


@jax.custom_jvp
def turned(x):
    return x * x


turned.defjvp(lambda primals, tangents: (turned(*primals), 3 * jnp.cos(primals[0]) * tangents[0]))


def safe_root(x):
    return jnp.where(x > 0, jnp.sqrt(jnp.where(x > 0, x, 1.0)), 0.0) + jax.nn.relu(x - x)


def scanned(x):
    return lax.scan(lambda carry, row: (jnp.tanh(carry + row * x), None), x, WEIGHTS)[0]


def chosen(x):
    return lax.cond(x[0] > 0, lambda y: y * lax.stop_gradient(y), clipped, x)


FUNCTIONS = {
    "stopped": lambda x: lax.stop_gradient(x) * jnp.sin(x),
    "clipped": clipped,
    "turned": turned,
    "safe root": safe_root,
    "scanned": scanned,
    "chosen": chosen,
    "matrix product": lambda x: jnp.tanh(x @ WEIGHTS),
    "ties": lambda x: jnp.maximum(x, jnp.abs(x)) * jnp.max(jnp.abs(x)),
}


# --- ways: of a converted function and of a function of JAX, to ones of a vector too ---


class Way(NamedTuple):
    of_tensors: Callable
    of_arrays: Callable
    orders: int = 0


def gradient(function):
    def of_tensor(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(tf.sin(function(x)))
        return tape.gradient(y, x, unconnected_gradients="zero")

    return of_tensor


def jacobian(function, by_pfor):
    def of_tensor(x):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = function(x)
        rows = tape.jacobian(y, x, unconnected_gradients="zero", experimental_use_pfor=by_pfor)
        return tf.reduce_sum(rows * tf.constant([[1.0], [2.0], [3.0]]), 0)

    return of_tensor


def weighted_rows(function):
    return lambda x: (jax.jacrev(function)(x) * np.float32([[1], [2], [3]])).sum(0)


def of_rows(function, over):
    return lambda x: tf.reduce_sum(over(function, tf.stack([x, 2 * x, -x])), 0)


def with_what_is_the_same(function):
    """The same vector for all elements, and one of their own."""
    return lambda x: tf.reduce_sum(tf.vectorized_map(lambda row: function(row) * function(x), tf.stack([x, 2 * x])), 0)


WAYS = {
    "gradient": Way(gradient, lambda f: jax.grad(lambda x: jnp.sin(f(x)).sum()), 1),
    "jacobian": Way(functools.partial(jacobian, by_pfor=False), weighted_rows, 1),
    "vectorized jacobian": Way(functools.partial(jacobian, by_pfor=True), weighted_rows, 1),
    "graph": Way(lambda f: tf.function(f, autograph=False), lambda f: f),
    "compiled": Way(lambda f: tf.function(f, autograph=False, jit_compile=True), lambda f: f),
    "vectorized": Way(
        lambda f: of_rows(f, tf.vectorized_map), lambda f: lambda x: jax.vmap(f)(jnp.stack([x, 2 * x, -x])).sum(0)
    ),
    "the same": Way(
        with_what_is_the_same,
        lambda f: lambda x: jax.vmap(lambda row: f(row) * f(x))(jnp.stack([x, 2 * x])).sum(0),
    ),
    "mapped": Way(lambda f: of_rows(f, tf.map_fn), lambda f: lambda x: sum(f(row) for row in (x, 2 * x, -x))),
    "loop": Way(
        lambda f: lambda x: tf.while_loop(lambda i, _: i < 2, lambda i, y: (i + 1, f(y)), (0, x))[1],
        lambda f: lambda x: f(f(x)),
    ),
    "branch": Way(
        lambda f: lambda x: tf.cond(tf.reduce_sum(x) > 0, lambda: f(x), lambda: 2 * f(-x)),
        lambda f: lambda x: jnp.where(x.sum() > 0, f(x), 2 * f(-x)),
    ),
    "computed again": Way(tf.recompute_grad, lambda f: f),  # only of what has no tape inside: TensorFlow stops it
}

VECTORIZES = {"vectorized", "the same", "vectorized jacobian"}
LOOPS = {"loop", "mapped", "branch", "jacobian", "scanned", "chosen"}

X = np.float32([0.5, -0.75, 1.25])


def is_computed_by_tensorflow(name, ways, native):
    """Whether TensorFlow can: it vectorizes few loops of loops, and compiles few loops of its own."""
    parts, count = {name, *ways}, sum(way in VECTORIZES for way in ways)
    if "compiled" in parts and parts & {"loop", "mapped", "branch", "jacobian"}:
        return False
    if count and ("branch" in parts or (parts & {"loop", "mapped"} and any(WAYS[way].orders for way in ways))):
        return False
    return count < 2 or (count == 2 and not native and not parts & LOOPS)


@pytest.mark.slow(1)
@pytest.mark.parametrize("native", [False, True], ids=["graph mode", "native"])
def test_derivatives_of_tensorflow_are_those_of_jax(native):
    @given(st.sampled_from(sorted(FUNCTIONS)), st.lists(st.sampled_from(sorted(WAYS)), min_size=1, max_size=3))
    @drawn(15, 50, 2)
    def runs(name, ways):
        used, orders = [], 0
        for way in ways:
            if orders + WAYS[way].orders <= (0 if way == "computed again" else 2):
                used, orders = [*used, way], orders + WAYS[way].orders
        assume(is_computed_by_tensorflow(name, used, native))
        ours, theirs = convert(FUNCTIONS[name], native_serialization=native), FUNCTIONS[name]
        for way in used:
            ours, theirs = WAYS[way].of_tensors(ours), WAYS[way].of_arrays(theirs)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = ours(tf.constant(X)).numpy()
        expected = jax.jit(theirs)(X)
        np.testing.assert_allclose(found, expected, rtol=2e-4, atol=2e-4)

    runs()
