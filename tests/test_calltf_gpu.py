"""On a GPU that JAX and TensorFlow share, nothing is copied between them (`tests_cuda` in noxfile.py)."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

from jaxtf.calltf import call_tf

pytestmark = pytest.mark.skipif(
    jax.default_backend() != "gpu" or not tf.config.list_physical_devices("GPU"),
    reason="needs a GPU of JAX and of TensorFlow",
)


def address(tensor):
    """Where the elements of a tensor are on its device."""
    return jax.dlpack.from_dlpack(tensor).unsafe_buffer_pointer()


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int32", "bool", "complex64"])
def test_a_call_copies_neither_argument_nor_result(dtype):
    x = jnp.ones(1 << 10, dtype)
    seen = []
    result = call_tf(lambda x: (seen.append((address(x), x.backing_device)), tf.identity(x))[1])(x)
    assert [place for place, _ in seen] == [x.unsafe_buffer_pointer()]
    assert seen[0][1].endswith("GPU:0")
    assert result.unsafe_buffer_pointer() == x.unsafe_buffer_pointer()
    assert result.devices() == x.devices()


def test_a_result_is_right_when_neither_has_waited_for_the_other():
    x = jnp.ones((2048, 2048)) / 2048
    for _ in range(20):
        y = call_tf(lambda x: tf.matmul(x, x))(x @ x)
        np.testing.assert_allclose(y @ x, np.full((2048, 2048), 1 / 2048), rtol=1e-4)


@pytest.mark.filterwarnings("ignore::jaxtf.calltf.CaptureWarning")
def test_gradients_and_jit_stay_on_the_gpu():
    scale = tf.Variable(3.0)
    x = jnp.arange(16.0)
    f = call_tf(lambda x: scale * tf.sin(x))
    for run in (f, jax.jit(f)):
        np.testing.assert_allclose(run(x), 3 * np.sin(np.arange(16)), rtol=1e-5, atol=1e-5)
        gradient = jax.grad(lambda x, run=run: run(x).sum())(x)
        np.testing.assert_allclose(gradient, 3 * np.cos(np.arange(16)), rtol=1e-5, atol=1e-5)
        assert gradient.devices() == x.devices()


def test_what_tensorflow_keeps_on_the_host_comes_from_there():
    with tf.device("CPU:0"):
        kept = tf.range(5)
    np.testing.assert_array_equal(call_tf(lambda x: x + kept)(jnp.arange(5)), 2 * np.arange(5))
    with jax.default_device(jax.devices("cpu")[0]):
        np.testing.assert_array_equal(call_tf(lambda x: x + 1)(jnp.arange(5)), np.arange(1, 6))
