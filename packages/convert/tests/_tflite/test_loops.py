"""Loops in models of 8 bits: what a body gives back as it came would end the process in TFLite's converter."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

from jaxtf.convert import save_model, to_tflite

ROWS = np.linspace(-2, 2, 32, dtype=np.float32).reshape(4, 8)
DATA = [[ROWS * scale] for scale in np.linspace(0.6, 1, 20, dtype=np.float32)]


def closed_over(x):
    y = jnp.sin(x)
    return jax.lax.fori_loop(0, 3, lambda i, c: jnp.tanh(c + y), x)


def conditioned(x):
    return jax.lax.while_loop(lambda c: (c < x).any(), lambda c: c + 0.3, x - 1)


LOOPS = {
    "scan": lambda x: jax.lax.scan(lambda c, row: (jnp.tanh(c + row), None), jnp.zeros(8), x)[0],
    "stacked": lambda x: jax.lax.scan(lambda c, row: (jnp.tanh(c + row), c), jnp.zeros(8), x)[1],
    "map": lambda x: jax.lax.map(jnp.tanh, x),
    "closed over": closed_over,
    "condition": conditioned,
    "rows": lambda x: jax.lax.fori_loop(0, 3, lambda i, c: c.at[i].set(jnp.tanh(x[i])), jnp.zeros((4, 8))),
    "sum with 0": lambda x: jax.lax.fori_loop(0, 3, lambda i, c: (jnp.tanh(c[0] + c[1]), c[1] + 0.0), (x, x))[0],
    "branch": lambda x: jax.lax.cond(x.sum() > 9, jnp.sin, closed_over, x),
    "nothing": lambda x: jax.lax.fori_loop(0, 3, lambda i, c: jnp.tanh(c * 1.5), x),
}


@pytest.mark.slow(1)
@pytest.mark.parametrize("name", LOOPS)
def test_loops_are_near_in_8_bits(name):
    assert_near(to_tflite(LOOPS[name], input_signature=[tf.TensorSpec([4, 8])], representative_data=DATA), name)


def test_loops_of_a_saved_model_are_too(tmp_path):
    options = {"native_serialization": False, "enable_xla": False}
    signature = [tf.TensorSpec([4, 8], name="x")]
    save_model(lambda params, x: LOOPS["stacked"](x), {}, tmp_path, input_signatures=signature, **options)
    assert_near(to_tflite(tmp_path, representative_data=DATA), "stacked")


def assert_near(model, name):
    with warnings.catch_warnings(action="ignore", category=UserWarning):  # tf.lite.Interpreter moves to ai_edge_litert
        [found] = tf.lite.Interpreter(model_content=model).get_signature_runner()(x=ROWS).values()
    expected = LOOPS[name](jnp.asarray(ROWS))
    np.testing.assert_allclose(found, expected, atol=0.03 * float(np.ptp(expected)))
