"""Gradients of converted functions in `tf.vectorized_map`, Jacobians and functions of TensorFlow, of several orders."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

from jaxtf.convert import convert

X = np.float32([[1, 2], [3, -4], [0.5, 0]])
W = np.float32([[1, 2], [-1, 0.5]])


@jax.custom_vjp
def clipped(x):
    return jnp.sin(x)


clipped.defvjp(lambda x: (jnp.sin(x), None), lambda _, cotangent: (jnp.clip(cotangent, -0.1, 0.1),))

# By TensorFlow's gradients of their operations they would have others.
FUNCTIONS = {
    "stopped": lambda x: jax.lax.stop_gradient(x) * x,
    "clipped": clipped,
    "ties": lambda x: jnp.maximum(x, jnp.abs(x)) * x.max(),
    "cubed": lambda x: x**3,
}
MODES = pytest.mark.parametrize("native", [False, True], ids=["graph mode", "native"])
NAMES = pytest.mark.parametrize("name", FUNCTIONS)


def tape_gradient(function, *arrays, **options):
    tensors = [tf.convert_to_tensor(array) for array in arrays]
    with tf.GradientTape() as tape:
        tape.watch(tensors)
        y = function(*tensors)
    return tape.gradient(y, tensors, **options)


def both_ways(function):
    return function, tf.function(function, autograph=False)


def assert_close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.slow(1)
@MODES
@NAMES
def test_a_gradient_through_vectorized_map(name, native):
    converted = convert(FUNCTIONS[name], native_serialization=native)
    expected = jax.vmap(jax.grad(lambda x: FUNCTIONS[name](x).sum()))(X)
    traced = tf.function(converted, autograph=False)
    for called in (converted, traced):
        for run in both_ways(lambda x, called=called: tf.vectorized_map(called, x)):
            [found] = tape_gradient(run, X)
            assert_close(found, expected)


@MODES
@NAMES
def test_a_persistent_tape_through_vectorized_map(name, native):
    """TensorFlow makes the gradient of the gradient ahead, of all that it is computed from."""
    converted = convert(FUNCTIONS[name], native_serialization=native)
    x = tf.constant(X)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = tf.reduce_sum(tf.vectorized_map(converted, x), 0)
    rows = tape.jacobian(y, x, experimental_use_pfor=False)
    assert_close(rows, jax.jacrev(lambda x: jax.vmap(FUNCTIONS[name])(x).sum(0))(X))


@MODES
def test_what_is_the_same_for_all_elements_gets_the_sum(native):
    def function(x, w, i):
        return clipped(x @ w), x.sum() * w[i], i + 1, jnp.cos(w)

    def in_jax(x, w):
        return sum(y.sum() for y in jax.vmap(lambda row: function(row, w, 1))(x) if y.dtype == x.dtype)

    converted = convert(function, native_serialization=native)

    def total(x, w):
        results = tf.vectorized_map(lambda row: converted(row, w, tf.constant(1)), x)
        return sum(tf.reduce_sum(y) for y in results if y.dtype == x.dtype)

    for run in both_ways(total):
        for found, expected in zip(tape_gradient(run, X, W), jax.grad(in_jax, (0, 1))(X, W), strict=True):
            assert_close(found, expected)


@pytest.mark.slow(1)
@pytest.mark.parametrize("shapes", [None, ["(b,)"]], ids=["static", "polymorphic"])
@MODES
def test_what_is_the_same_for_all_elements_has_a_gradient_or_is_refused(native, shapes):
    """Also after assertions; of what is stateful TensorFlow makes another operation, of which a tape knows nothing."""

    def function(x):
        return FUNCTIONS["stopped"](x) * x.size

    converted = convert(function, polymorphic_shapes=shapes, native_serialization=native)

    @tf.function(autograph=False)
    def stateful(x):
        with tf.control_dependencies([tf.debugging.Assert(tf.reduce_all(x < 9), [x])]):
            return tf.identity(x)

    def total(x, before):
        return tf.reduce_sum(tf.vectorized_map(lambda row: converted(row) * converted(before(x)), tf.stack([x, 2 * x])))

    def slope(x, before):
        return tape_gradient(lambda x: total(x, before), x)[0]

    sizes = [tf.TensorSpec([None] if shapes else [2])]
    expected = jax.grad(lambda x: sum((function(k * x) * function(x)).sum() for k in (1, 2)))(X[1])
    for before in (tf.identity, stateful):
        graph = tf.function(lambda x, before=before: slope(x, before), sizes, autograph=False)
        assert_close(slope(tf.constant(X[1]), before), expected)
        if before is stateful and not native:
            with pytest.raises(LookupError, match="has lost the gradient"):
                graph(X[1])
        else:
            assert_close(graph(X[1]), expected)


@MODES
def test_a_gradient_through_two_of_them(native):
    converted = convert(FUNCTIONS["stopped"], native_serialization=native)
    pairs = np.stack([X, 2 * X])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of loops that TensorFlow makes
        [found] = tape_gradient(lambda x: tf.vectorized_map(lambda rows: tf.vectorized_map(converted, rows), x), pairs)
    assert_close(found, pairs)


@MODES
def test_elements_and_gradients_of_complex_numbers(native):
    converted = convert(lambda z: jax.lax.stop_gradient(z) * z, native_serialization=native)
    z = np.complex64([[1 + 2j, 3], [-1j, 2 - 1j]])
    [found] = tape_gradient(lambda z: tf.vectorized_map(converted, z), z)
    [one_by_one] = tape_gradient(lambda z: tf.stack([converted(row) for row in tf.unstack(z)]), z)
    assert_close(found, one_by_one)


@pytest.mark.slow(1)
@MODES
@NAMES
def test_the_gradient_of_a_jacobian(name, native):
    """Of a penalty, for one."""
    converted = convert(FUNCTIONS[name], native_serialization=native)
    expected = jax.grad(lambda x: (jax.jacrev(FUNCTIONS[name])(x) ** 2).sum())(X[0])

    def penalty(x, by_pfor):
        with tf.GradientTape(persistent=not by_pfor) as tape:
            tape.watch(x)
            y = converted(x)
        return tf.reduce_sum(tape.jacobian(y, x, experimental_use_pfor=by_pfor) ** 2)

    for by_pfor in (True, False):
        for run in both_ways(lambda x, by_pfor=by_pfor: penalty(x, by_pfor)):
            [found] = tape_gradient(run, X[0], unconnected_gradients="zero")
            assert_close(found, expected)


@pytest.mark.slow
def test_jacobians_of_jacobians():
    """Each is a `tf.vectorized_map` of what the one within it made, in native mode a loop."""

    def plus_jacobian(function):
        def summed(x, w):
            with tf.GradientTape() as tape:
                tape.watch(w)
                y = function(x, w)
            return y + tf.reduce_sum(tape.jacobian(y, w, unconnected_gradients="zero"), [-2, -1])

        return summed

    def in_jax(function):
        return lambda x, w: function(x, w) + jax.jacobian(function, 1)(x, w).sum((-2, -1))

    def function(x, w):
        return jnp.tanh(x @ w)

    of_tensors = plus_jacobian(plus_jacobian(convert(function)))
    of_arrays = in_jax(in_jax(function))

    def mixed(x, w):
        with tf.GradientTape() as tape:
            tape.watch(w)
            [slope, _] = tape_gradient(lambda x, w: tf.reduce_sum(of_tensors(x, w) ** 2), x, w)
        return tape.jacobian(slope, w)

    x = X[0] / 8
    expected = jax.jacobian(jax.grad(lambda x, w: (of_arrays(x, w) ** 2).sum()), 1)(x, W)
    for run in both_ways(mixed):
        assert_close(run(tf.constant(x), tf.constant(W)), expected)


@MODES
@NAMES
def test_gradients_of_gradients_of_a_function_of_tensorflow(name, native):
    traced = tf.function(convert(FUNCTIONS[name], native_serialization=native), autograph=False)
    expected = jax.grad(lambda x: jnp.sin(jax.grad(lambda x: FUNCTIONS[name](x).sum())(x)).sum())(X)

    def slope(x):
        [found] = tape_gradient(traced, x)
        return tf.sin(found)

    for run in both_ways(slope):
        [found] = tape_gradient(run, X, unconnected_gradients="zero")
        assert_close(found, expected)


@MODES
def test_forward_mode_of_a_function_of_tensorflow(native):
    traced = tf.function(convert(FUNCTIONS["stopped"], native_serialization=native), autograph=False)
    x = tf.constant(X)
    with tf.autodiff.ForwardAccumulator(x, 2 * x) as accumulator:
        y = traced(x)
    assert_close(accumulator.jvp(y), 2 * X * X)


@MODES
def test_a_function_without_gradient_has_none_in_vectorized_map_either(native):
    converted = convert(FUNCTIONS["stopped"], native_serialization=native, with_gradient=False)
    for run in both_ways(lambda x: tf.vectorized_map(converted, x)):
        with pytest.raises((LookupError, TypeError), match="does not support gradients"):
            tape_gradient(run, X)


@MODES
def test_a_saved_model_has_the_gradient_through_vectorized_map(native, tmp_path):
    converted = convert(FUNCTIONS["stopped"], native_serialization=native)
    module = tf.Module()
    module.f = tf.function(lambda x: tf.vectorized_map(converted, x), [tf.TensorSpec([3, 2])], autograph=False)
    tf.saved_model.save(module, tmp_path, options=tf.saved_model.SaveOptions(experimental_custom_gradients=True))
    loaded = tf.saved_model.load(tmp_path)
    assert_close(loaded.f(X), X * X)
    [found] = tape_gradient(loaded.f, X)
    assert_close(found, X)
