"""Convolutions of which TensorFlow's XLA for CPU (2.21) reads other memory, unless they are written otherwise."""

import jax
import numpy as np
import pytest
import tensorflow as tf
from jax import lax

from jaxtf.convert import convert

# Sizes of an operand, features last, and of a kernel, strides, padding: it takes elements away before, and adds after.
CASES = {
    "one dimension": ((2, 7, 3), (3, 3, 2), (1,), ((-1, 1),)),
    "strides": ((2, 5, 7, 2), (3, 3, 2, 2), (2, 2), ((-1, 1), (-1, -1))),
}
LAYOUTS = {1: ("NWC", "WIO", "NWC"), 2: ("NHWC", "HWIO", "NHWC")}


def integers(shape, seed):
    return np.random.RandomState(seed).randint(-4, 5, shape).astype(np.float32)


def called(function, mode):
    return function if mode == "eager" else tf.function(function, autograph=False, jit_compile=mode == "compiled")


@pytest.mark.parametrize("mode", ["eager", "graph", "compiled"])
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("native", [True, False])
def test_what_padding_takes_away_is_not_read(native, name, mode):
    *shapes, strides, padding = CASES[name]
    x, k = (integers(shape, seed) for seed, shape in enumerate(shapes))
    names = LAYOUTS[len(strides)]

    def function(x, k):
        return lax.conv_general_dilated(x, k, strides, padding, dimension_numbers=names)

    def padded_before(x, k):
        config = [(0, 0, 0), *((low, high, 0) for low, high in padding), (0, 0, 0)]
        return lax.conv_general_dilated(lax.pad(x, 0.0, config), k, strides, "VALID", dimension_numbers=names)

    expected = jax.jit(padded_before)(x, k)
    shapes = [f"(n, {'h+4, w+4'[: 5 * x.ndim - 12]}, _)", "..."]
    for polymorphic_shapes in (None, shapes):
        converted = convert(function, polymorphic_shapes=polymorphic_shapes, native_serialization=native)
        np.testing.assert_array_equal(called(converted, mode)(x, k), expected)


@pytest.mark.parametrize("mode", ["eager", "graph", "compiled"])
@pytest.mark.parametrize("native", [True, False])
def test_a_gradient_for_the_operand_reads_what_it_is_given(native, mode):
    """Its padding takes 3 elements away before and adds 1, where that of the convolution is 5 and 1."""
    x, k, weights = integers((2, 6, 3), 0), integers((3, 3, 2), 1), integers((2, 10, 2), 2)

    def loss(x, k, padding=((5, 1),)):
        return (lax.conv_general_dilated(x, k, (1,), padding, dimension_numbers=LAYOUTS[1]) * weights).sum()

    def loss_of_padded(x, k):
        return loss(lax.pad(x, 0.0, [(0, 0, 0), (5, 1, 0), (0, 0, 0)]), k, "VALID")

    converted = convert(loss, native_serialization=native)

    def gradient(x, k):
        with tf.GradientTape() as tape:
            tape.watch(x)
            result = converted(x, k)
        return tape.gradient(result, x)

    found = called(gradient, mode)(tf.constant(x), tf.constant(k))
    np.testing.assert_array_equal(found, jax.jit(jax.grad(loss_of_padded))(x, k))
