"""The gradients that a tape takes of what `convert_stablehlo` makes: those of JAX."""

import functools
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax import lax

from jaxtf.convert import convert_stablehlo

from .graph_mode import MODES


def gradient(converted, x, mode="eager", upwards=None):
    """Of the sum of the results, or times a cotangent."""

    def take(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            result = converted(x)
        return tape.gradient(result, x, upwards, unconnected_gradients=tf.UnconnectedGradients.ZERO)

    run = take if mode == "eager" else tf.function(take, autograph=False, jit_compile=mode == "compiled")
    return run(tf.constant(x)).numpy()


def of_jax(function, x):
    return jax.grad(lambda x: function(x).sum())(x)


def as_jax(function, x, mode="eager", **given):
    """Compares the gradient of a tape with JAX's."""
    found = gradient(convert_stablehlo(jax.jit(function).lower(x), **given), x, mode)
    np.testing.assert_allclose(found, of_jax(function, x), rtol=1e-5)


def twice(f):
    """The gradient of a gradient."""
    return lambda x: of_jax(lambda x: of_jax(f, x) * x, x)


def cube_root_of_square(x):
    return lax.cbrt(x * x + 1) + x


LOOPS = {
    "cube roots": lambda x: lax.scan(lambda c, _: (cube_root_of_square(c), c), x, None, length=3)[0],
    "cumulative products": lambda x: lax.scan(lambda c, _: (lax.cumprod(c) + c, c), x, None, length=2)[0],
    "roots in a branch": lambda x: lax.cond(x[0] > 0, lambda c: c * lax.cbrt(c), lambda c: c, x),
    "products in a branch": lambda x: lax.cond(x[0] > 0, lambda c: c * lax.cumprod(c), lambda c: c, x),
}
SIMPLE = {
    "cube root": lax.cbrt,
    "cumulative product": lax.cumprod,
    "reduced precision": lambda x: lax.reduce_precision(x, 5, 10) * x,
    "root": lambda x: x ** jnp.float32(0.5),
    "reciprocal root": lambda x: x ** jnp.float32(-0.5),
    "0 - x": lambda x: (jnp.zeros_like(x) - x) ** 2,
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", ["float32", "float16", "complex64"])
def test_the_slope_of_zero_minus_x_at_zero_is_minus_one(dtype, mode):
    x = np.array([0.0, -0.0, 1, -2], dtype)
    module = jax.jit(lambda x: jnp.zeros_like(x) - x).lower(x)
    np.testing.assert_array_equal(gradient(convert_stablehlo(module), x, mode), -np.ones(4))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("exponent", [0.5, -0.5])
@pytest.mark.parametrize("enable_xla", [True, False])
def test_a_root_by_power_is_differentiated_at_zero(enable_xla, exponent, mode):
    for values in ([0, 4, np.inf], [0, -0.0, 4, np.inf, -np.inf, -1]):
        as_jax(lambda x: x ** jnp.float32(exponent), np.float32(values), mode, enable_xla=enable_xla)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("function", [lax.cbrt, jnp.sign, lambda x: lax.round(x, lax.RoundingMethod.AWAY_FROM_ZERO)])
def test_functions_that_are_mended_at_zero_have_their_slopes_there(function, mode):
    as_jax(function, np.float32([0, -0.0, 8, -8, 0.5, np.inf, -np.inf]), mode)


@pytest.mark.parametrize("mode", MODES)
def test_a_number_of_reduced_precision_is_differentiated(mode):
    as_jax(lambda x: lax.reduce_precision(x, 5, 10) + x, np.float32([0, 1.2345678, -3e9]), mode)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("x", [[2, 0, 3, 4], [2, 0, 3, 0], [1, 2, 3, 4]])
def test_a_cumulative_product_is_differentiated_at_zeros(x, reverse, mode):
    as_jax(functools.partial(lax.cumprod, reverse=reverse), np.float32(x), mode)


@pytest.mark.parametrize("enable_xla", [True, False])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ["max", "min"])
def test_an_extreme_at_indices_is_differentiated(kind, mode, enable_xla):
    places = jnp.array([0, 1, 0])

    def function(x):
        return x + getattr(jnp.full(4, 2.5, np.float32).at[places], kind)(x[:3]).sum()

    as_jax(function, np.float32([1, 2, 3, 4]), mode, enable_xla=enable_xla)


@pytest.mark.parametrize("enable_xla", [True, False])
@pytest.mark.parametrize("mode", MODES)
def test_a_product_at_indices_is_differentiated(mode, enable_xla):
    """JAX has a gradient only for indices that differ, which is promised to it here."""
    x = np.float32([1, 2, 0, 4])

    def function(x, **promises):
        return x.at[jnp.array([0, 3])].multiply(3 * x[1:3], **promises)

    found = gradient(convert_stablehlo(jax.jit(function).lower(x), enable_xla=enable_xla), x, mode)
    np.testing.assert_allclose(found, of_jax(functools.partial(function, unique_indices=True), x))


@pytest.mark.parametrize("name", [*SIMPLE, *LOOPS])
@pytest.mark.parametrize("mode", ["eager", "graph", "compiled"])
def test_gradients_are_differentiated_again(name, mode):
    if mode == "compiled" and name in LOOPS and "branch" not in name:
        pytest.skip("XLA needs to know how often a loop runs that is differentiated")
    function = (SIMPLE | LOOPS)[name]
    x = np.float32([0.25, 0.5, 0.75])
    converted = convert_stablehlo(jax.jit(function).lower(x))

    def once(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            result = converted(x)
        return tape.gradient(result, x) * x

    np.testing.assert_allclose(gradient(converted, x, mode), of_jax(function, x), rtol=1e-5)
    np.testing.assert_allclose(gradient(once, x, mode), twice(function)(x), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", SIMPLE)
def test_jacobians_are_those_of_jax(name):
    x = np.float32([0.5, 2, 3])
    converted = convert_stablehlo(jax.jit(SIMPLE[name]).lower(x))
    with tf.GradientTape() as tape:
        tape.watch(given := tf.constant(x))
        result = converted(given)
    np.testing.assert_allclose(tape.jacobian(result, given), jax.jacobian(SIMPLE[name])(x), rtol=1e-5)
    stacked = tf.vectorized_map(lambda x: gradient_in_graph(converted, x), tf.constant([x, x]))
    np.testing.assert_allclose(stacked, [of_jax(SIMPLE[name], x)] * 2, rtol=1e-5)


def gradient_in_graph(converted, x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        result = converted(x)
    return tape.gradient(result, x)


def saved(converted, x, folder, *, with_gradients):
    module = tf.Module()
    module.f = tf.function(converted, input_signature=[tf.TensorSpec(x.shape, x.dtype)])
    options = tf.saved_model.SaveOptions(experimental_custom_gradients=with_gradients)
    tf.saved_model.save(module, folder, options=options)
    return tf.saved_model.load(folder).f


@pytest.mark.parametrize("name", SIMPLE)
def test_a_saved_model_has_the_gradients(name, tmp_path):
    x = np.float32([0, 2, 3])
    loaded = saved(convert_stablehlo(jax.jit(SIMPLE[name]).lower(x)), x, tmp_path, with_gradients=True)
    np.testing.assert_allclose(gradient(loaded, x), of_jax(SIMPLE[name], x), rtol=1e-5)


@pytest.mark.parametrize("name", LOOPS)
def test_a_saved_model_refuses_gradients_of_its_own_in_loops_and_branches(name, tmp_path):
    x = np.float32([0.25, 0.5, 0.75])
    loaded = saved(convert_stablehlo(jax.jit(LOOPS[name]).lower(x)), x, tmp_path, with_gradients=True)
    np.testing.assert_allclose(loaded(x), LOOPS[name](x), rtol=1e-5)
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=r"a SavedModel has no gradient of stablehlo\.(cbrt|reduce_w)"
    ):
        gradient(loaded, x)


def test_a_saved_model_has_gradients_of_zero_minus_x_in_loops(tmp_path):
    def function(x):
        return lax.scan(lambda c, _: (jnp.sin(jnp.zeros_like(c) - c), c), x, None, length=3)[0]

    x = np.float32([0, 0.5, 0.75])
    for with_gradients in (True, False):
        loaded = saved(convert_stablehlo(jax.jit(function).lower(x)), x, tmp_path, with_gradients=with_gradients)
        np.testing.assert_allclose(gradient(loaded, x), of_jax(function, x), rtol=1e-5)


def test_tflite_has_nothing_of_the_gradients():
    x = np.float32([0, 4, 9])

    def function(x):
        return (jnp.zeros_like(x) - x) ** jnp.float32(2) + x ** jnp.float32(0.5)

    converted = convert_stablehlo(jax.jit(function).lower(x), enable_xla=False)
    graph = tf.function(converted, input_signature=[tf.TensorSpec(x.shape, x.dtype)])
    model = tf.lite.TFLiteConverter.from_concrete_functions([graph.get_concrete_function()], graph).convert()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that another package has it too
        interpreter = tf.lite.Interpreter(model_content=model)
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
    interpreter.invoke()
    np.testing.assert_allclose(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]), function(x))
