"""Converted functions inside of TensorFlow functions that JAX calls: TensorFlow runs there, JAX traces nothing."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

from jaxtf.calltf import call_tf
from jaxtf.convert import ConversionStateError, convert, convert_exported
from jaxtf.serialization import export

SINE = np.sin(np.float32(1))
EXPORTED = convert_exported(export(jnp.sin)(jax.ShapeDtypeStruct((), jnp.float32)))
FUNCTIONS = {
    "a number": lambda t: convert(jnp.sin)(1.0) * t,
    "an array": lambda t: convert(jnp.sin)(np.float32(1)) * t,
    "a tensor": lambda t: convert(jnp.sin)(tf.constant(1.0)) * t,
    "a graph": tf.function(lambda t: convert(jnp.sin)(1.0) * t, autograph=False),
    "graph mode": lambda t: convert(jnp.sin, native_serialization=False)(1.0) * t,
    "an artifact": lambda t: EXPORTED(1.0) * t,
}
TRANSFORMED = {
    "eager": (lambda f: f(2.0), 2 * SINE),
    "grad": (lambda f: jax.grad(f)(2.0), SINE),
    "value_and_grad": (lambda f: jax.value_and_grad(f)(2.0)[1], SINE),
    "grad of grad": (lambda f: jax.grad(jax.grad(lambda x: f(x) * x))(2.0), 2 * SINE),
    "jvp": (lambda f: jax.jvp(f, (2.0,), (1.0,))[1], SINE),
    "jacfwd": (lambda f: jax.jacfwd(f)(2.0), SINE),
    "jit": (lambda f: jax.jit(f)(2.0), 2 * SINE),
    "jit of grad": (lambda f: jax.jit(jax.grad(f))(2.0), SINE),
    "vmap": (lambda f: jax.vmap(f)(jnp.full(3, 2.0))[0], 2 * SINE),
    "beside grad": (lambda f: jax.grad(lambda x: x * f(2.0))(3.0), 2 * SINE),
    "vmap of grad": (lambda f: jax.vmap(jax.grad(f))(jnp.full(3, 2.0))[0], SINE),
}


@pytest.mark.parametrize("transformed", TRANSFORMED)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_converted_function_is_called_with_values_of_its_own(function, transformed):
    transform, expected = TRANSFORMED[transformed]
    np.testing.assert_allclose(transform(call_tf(FUNCTIONS[function])), expected, rtol=1e-6)


def test_its_gradient_is_taken_with_others_too():
    called = call_tf(lambda t: convert(lambda x, y: jnp.sin(x) * y)(t, 2.0) + convert(jnp.sin)(1.0))
    np.testing.assert_allclose(jax.grad(called)(0.5), 2 * np.cos(0.5), rtol=1e-6)
    np.testing.assert_allclose(jax.grad(jax.grad(called))(0.5), -2 * np.sin(0.5), rtol=1e-6)


@pytest.mark.slow(1)
@pytest.mark.parametrize("transform", [jax.jit, jax.vmap, lambda f: jax.grad(lambda x: f(x).sum())])
def test_it_draws_the_random_numbers_that_jax_draws_as_configured(transform):
    def function(x):
        return x * jax.random.uniform(jax.random.key(0), (3,))

    x, called = np.ones((2, 3), np.float32), call_tf(convert(function))
    for partitionable in (True, False):
        with jax.threefry_partitionable(partitionable):
            np.testing.assert_array_equal(transform(called)(x), transform(function)(x))


@pytest.mark.parametrize("transform", [jax.jit, jax.grad, lambda f: lambda x: jax.vmap(f)(jnp.full(2, x))])
def test_outside_of_them_a_call_while_jax_traces_is_refused(transform):
    with pytest.raises(ConversionStateError, match="must be used outside all JAX transformations"):
        transform(lambda x: x * convert(jnp.sin)(1.0).numpy())(2.0)
    with pytest.raises(ConversionStateError, match="must be used outside all JAX transformations"):
        transform(lambda x: call_tf(tf.sin)(x) * convert(jnp.sin)(1.0).numpy())(2.0)


@pytest.mark.parametrize("has_effects", [False, True])
def test_a_module_with_effects_runs_as_often_as_tensorflow_says(has_effects):
    def shifted(x):
        return x + (tf.random.uniform([3]) if has_effects else 1.0)

    converted = convert(lambda x: jnp.sin(call_tf(shifted)(x)))
    mapped = tf.function(lambda x: tf.vectorized_map(converted, x), autograph=False)
    graph = mapped.get_concrete_function(tf.TensorSpec([4, 3], tf.float32)).graph
    kept = [each.name for each in graph.control_outputs if "/pfor/" not in each.name]
    assert kept == ["loop_body/XlaCallModule"] * has_effects
