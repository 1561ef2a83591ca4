"""Graph mode traced with `jit_compile=True` is right where TensorFlow's graph optimizer sees that graph all the same.

A session that loads a SavedModel optimizes the functions that it compiles; `tf.vectorized_map` and freezing write the
operations anew, and compile nothing.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

from jaxtf.convert import convert

LEAST = -(2**31)
PROGRAMS = {
    "maximum with a multiple": (lambda x: jnp.maximum(jnp.sin(x), 5 * jnp.sin(x)), [1.0, -1.0, 4.0, 2.0]),
    "greatest of negations": (lambda x: jnp.max(-x), np.int32([LEAST, 5])),
    "least of negations": (lambda x: jnp.min(-x, initial=0), np.int32([LEAST, 3])),
    "square of bytes": (lambda x: (x - 3) * (x - 3), np.uint8([1, 2, 250])),
    "logarithm of a sum": (lambda x: jnp.log(1 + x), [1e-9, 1.0]),
    "power less one": (lambda x: jnp.exp(x) - 1, [1e-9, 1.0]),
    "relu of a product": (lambda x: jnp.maximum(x @ jnp.ones((2, 2)) + 1, 0), [[1.0, np.nan], [-3.0, 1.0]]),
    "not less": (lambda x: ~(x < 1), [np.nan, 1.0]),
    "product in order": (lambda x: x * 1e30 * x, [1e-31, 1e15]),
}


def in_session(module, x, folder):
    tf.saved_model.save(module, folder, signatures=module.f.get_concrete_function())
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        loaded = tf.compat.v1.saved_model.load(session, ["serve"], str(folder)).signature_def["serving_default"]
        (given,), (result,) = loaded.inputs.values(), loaded.outputs.values()
        return session.run(result.name, {given.name: x})


PLACES = {
    "compiled": lambda module, x, _: module.f(x),
    "session": in_session,
    "vectorized": lambda module, x, _: tf.vectorized_map(module.f, tf.stack([x, x]))[0],
    "frozen": lambda module, x, _: convert_variables_to_constants_v2(module.f.get_concrete_function())(tf.constant(x))[
        0
    ],
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_numbers_are_those_of_jax(name, place, tmp_path):
    if (name, place) == ("square of bytes", "vectorized"):
        pytest.skip("tf.vectorized_map has no squares of bytes")
    function, given = PROGRAMS[name]
    x = np.asarray(given, getattr(given, "dtype", np.float32))
    module = tf.Module()
    converted = convert(function, native_serialization=False)
    module.f = tf.function(converted, [tf.TensorSpec(x.shape, x.dtype)], jit_compile=True, autograph=False)
    found = PLACES[place](module, x, tmp_path / "model")
    np.testing.assert_allclose(found, jax.jit(function)(x), rtol=1e-6, atol=0)
