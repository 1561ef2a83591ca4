"""Tapes differentiate the module of a lifted function as that of the function: both have the forms that are known."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax import lax

from jaxtf.convert import convert_stablehlo
from jaxtf.serialization import export

MODES = {
    "eager": lambda function: function,
    "graph": tf.function,
    "compiled": lambda function: tf.function(function, jit_compile=True),
}
# Off the cuts of inverse functions, and where JAX's derivative of acosh has the right sign.
Z = np.array([1 + 1j, 2 - 2j, 1.5 + 0.3j, 0.5, 0.3, 0.5 + 0.5j, 1 - 1j], np.complex64)
FUNCTIONS = {name: getattr(lax, name) for name in ("square", "sqrt", "exp", "sin", "atan", "asin", "asinh")}
X, P = np.array([0.0, 1.0, 4.0, -1.0, 2.0], np.float32), np.array([0, 1, 1, 0, 0], bool)


def of_tape(converted, x, *args):
    x = tf.constant(x)
    with tf.GradientTape() as tape:
        tape.watch(x)
        loss = tf.reduce_sum(tf.math.real(converted(*args, x)))
    return tape.gradient(loss, x).numpy()


@pytest.mark.slow(3)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("platforms", [None, ("cpu", "cuda")], ids=["one platform", "platforms"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_complex_numbers_have_their_gradients(name, platforms, mode):
    function = FUNCTIONS[name]
    again = export(jax.jit(export(jax.jit(function))(Z).lift()), platforms=platforms)(Z)
    found = of_tape(MODES[mode](convert_stablehlo(again.mlir_module())), Z, *([tf.constant(0)] if platforms else []))
    expected = jax.grad(lambda z: function(z).real.sum())(Z)
    np.testing.assert_allclose(found, np.conj(expected), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("mode", MODES)
def test_choices_have_their_gradients(mode):
    function = jax.vmap(lambda p, x: lax.cond(p, jnp.sqrt, lambda x: 2 * x, x))
    again = export(jax.jit(export(jax.jit(function))(P, X).lift()))(P, X)
    found = of_tape(MODES[mode](convert_stablehlo(again.mlir_module())), X, tf.constant(P))
    np.testing.assert_allclose(found, jax.grad(lambda x: function(P, x).sum())(X), rtol=1e-6)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["square", "exp", "sqrt"])
def test_functions_of_parts_that_are_turned_have_the_gradients_of_the_module(name, mode):
    z = np.array([[1 + 2j, 2 - 0.75j], [0.5 + 1j, 1.5 - 1j]], np.complex64)
    text = export(jax.jit(FUNCTIONS[name]))(z).mlir_module()
    real = re.search(r"(%\w+) = stablehlo\.real .*\n", text)
    assert real is not None
    turned = f"%turned = stablehlo.broadcast_in_dim {real[1]}, dims = [1, 0] : (tensor<2x2xf32>) -> tensor<2x2xf32>\n"
    text = text[: real.end()] + turned + re.sub(rf"{real[1]}\b", "%turned", text[real.end() :])

    def function(z):
        return FUNCTIONS[name](lax.complex(z.real.T, z.imag)).real

    weights = np.array([[1, 2], [3, 4]], np.float32)
    converted = MODES[mode](convert_stablehlo(text))
    found = of_tape(lambda z: tf.math.real(converted(z)) * weights, z)
    expected = jax.grad(lambda z: (function(z) * weights).sum())(z)
    np.testing.assert_allclose(found, np.conj(expected), rtol=1e-4, atol=1e-5)
