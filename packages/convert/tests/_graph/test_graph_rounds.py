"""Extremes of random numbers: in one loop with the 20 rounds of threefry LLVM, compiling for CPU, never ends."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax import lax

from jaxtf.convert import convert
from jaxtf.convert._graph.parse import parse
from jaxtf.convert._graph.plan.plan import plan
from jaxtf.convert._graph.plan.rounds import APART
from jaxtf.serialization.interop import export_for_graph, operations_of
from jaxtf.shapepoly import symbolic_shape

from .graph_mode import MODES, run_graph_mode, run_with_open_sizes

KEY = np.uint32([1, 2])


def numbers(key, *shape):
    return jax.random.normal(key, shape or (4, 8))


def tilted(x):
    """Of more than a few operations, so that it stays a function."""
    return jax.nn.log_softmax(jnp.where(x > 0, 2 * x, x / 3)[::-1] * 3 - 1, -1)


def by_a_function_called_twice(key):
    made = jax.jit(numbers)
    return jnp.argmax(made(key), -1), jnp.argmin(made(key + 1), -1)


def in_a_function_called_twice(key):
    search = jax.jit(tilted)
    return search(numbers(key)), search(numbers(key + 1))


def in_a_loop_of_one_turn(key):
    return lax.scan(lambda x, k: (numbers(k), jnp.max(x, -1)), numbers(key), key[None])


def of_carried_numbers(key):
    return lax.scan(lambda x, k: (numbers(k), jnp.argmax(x, -1)), numbers(key), jax.random.split(key, 3))


def by_a_branch(key):
    return jnp.argmax(lax.cond(key[0] > 0, numbers, lambda k: -numbers(k), key), -1)


def for_several_keys(key):
    return jax.vmap(lambda k: jnp.argmax(jnp.tanh(numbers(k)), -1))(jax.random.split(key, 3))


PLACES = (
    by_a_function_called_twice,
    in_a_function_called_twice,
    in_a_loop_of_one_turn,
    of_carried_numbers,
    by_a_branch,
    for_several_keys,
)


@pytest.mark.slow(1)
@pytest.mark.parametrize("shape", [(32,), (8, 4), (3, 64), ("n", 2)], ids=str)
@pytest.mark.parametrize("search", [jnp.argmax, jnp.argmin, jnp.max, jax.nn.log_softmax])
def test_extremes_of_random_numbers_are_compiled(search, shape):
    def extreme(key, x):
        return search(jax.random.normal(key, x.shape) + x)

    arrays = [KEY, np.ones([16 if size == "n" else size for size in shape], np.float32)]
    (found,) = run_with_open_sizes(extreme, arrays, [(2,), shape], mode="compiled")
    np.testing.assert_allclose(found, jax.jit(extreme)(*arrays), rtol=1e-5)


@pytest.mark.slow(1)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("function", PLACES, ids=lambda function: function.__name__)
def test_wherever_the_numbers_are_made_and_searched(function, mode):
    for found, expected in zip(
        run_graph_mode(function, KEY, mode=mode), jax.tree.leaves(jax.jit(function)(KEY)), strict=True
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.slow(1)
@pytest.mark.parametrize("enable_xla", [False, True])
@pytest.mark.parametrize("function", PLACES[:2], ids=lambda function: function.__name__)
def test_also_where_a_saved_model_is_compiled_later(function, enable_xla, tmp_path):
    module = tf.Module()
    converted = convert(function, native_serialization=False, enable_xla=enable_xla)
    module.f = tf.function(converted, [tf.TensorSpec([2], tf.uint32)], autograph=False)
    tf.saved_model.save(module, tmp_path)
    compiled = tf.function(tf.saved_model.load(tmp_path).f, autograph=False, jit_compile=True)
    found, expected = tf.nest.flatten(compiled(tf.constant(KEY))), jax.tree.leaves(jax.jit(function)(KEY))
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5)


def kept_apart(function, *arguments):
    """How many arrays of a program are."""
    program = plan(parse(export_for_graph(jax.jit(function))(*arguments).mlir_module_serialized))
    names = [op.name for body in program.functions.values() for op in operations_of(body.body)]
    return names.count(APART)


ONE = {
    "searched once": lambda key: jnp.max(numbers(key), -1),
    "searched twice": lambda key: (x := numbers(key), jnp.min(x, -1), jnp.max(x, -1)),
    "a number of elements that is not known": lambda key, x: jnp.max(jax.random.normal(key, x.shape), 0),
}
NONE = {
    "other arrays": lambda key: jnp.argmax(jnp.sin(key.astype(float) * jnp.arange(64.0).reshape(32, 2)), 0),
    "a number of elements that is no multiple of 8": lambda key: jnp.argmax(numbers(key, 8, 12), -1),
    "a product of random numbers": lambda key: jnp.argmax(numbers(key) @ numbers(key, 8, 16), -1),
    "random numbers, sorted": lambda key: jnp.max(jnp.sort(numbers(key), -1), -1),
    "a sum": lambda key: jnp.sum(numbers(key), -1),
    "few exclusive ors": lambda key: jnp.max((key[:, None] ^ jnp.arange(8, dtype=jnp.uint32)) ^ 77, -1),
}


@pytest.mark.parametrize("function", PLACES, ids=lambda function: function.__name__)
def test_numbers_are_followed_through_functions_loops_and_branches(function):
    assert kept_apart(function, KEY) == (2 if function is by_a_function_called_twice else 1)


@pytest.mark.parametrize("name", ONE)
def test_an_array_of_random_numbers_that_is_searched_is_kept_apart_once(name):
    arguments = [KEY]
    if "not known" in name:
        arguments.append(jax.ShapeDtypeStruct(symbolic_shape("n, 2"), np.float32))
    assert kept_apart(ONE[name], *arguments) == 1


@pytest.mark.parametrize("name", NONE)
def test_others_are_not_kept_apart(name):
    assert kept_apart(NONE[name], KEY) == 0
