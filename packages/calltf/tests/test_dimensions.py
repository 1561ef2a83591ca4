"""call_tf does what it does where TensorFlow's shapes give `Dimension`s, not integers or None.

The behavior is a setting of the process (`tf.compat.v1.disable_v2_tensorshape`): the cases run in a process of its own.
"""

import os
import subprocess
import sys

import pytest

PROGRAM = """
import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf
from jaxtf.calltf import DeclarationError, call_tf
from jaxtf.serialization import export
from jaxtf.shapepoly import symbolic_args_specs

tf.compat.v1.disable_v2_tensorshape()
few = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
images = np.linspace(-1, 1, 3 * 6 * 4 * 2, dtype=np.float32).reshape(3, 6, 4, 2)
kernel = np.cos(np.arange(3 * 3 * 2 * 2, dtype=np.float32)).reshape(3, 3, 2, 2)
held = np.arange(1, 9, dtype=np.float32)


def doubled(x):
    return tf.while_loop(lambda i, c: i < 3, lambda i, c: (i + 1, c * 2), (0, x), maximum_iterations=3)[1]


def differentiated(call):
    return lambda x: jax.grad(lambda x: jnp.sum(jnp.sin(call(x))))(x)


PROGRAMS = {
    "elementwise": (lambda x: tf.sin(x) * 2, few),
    "product": (lambda x: tf.matmul(x, few, transpose_b=True), few),
    "slices": (lambda x: tf.concat([x[:, 1:], x[:, ::2]], 1), few),
    "steps along the first dimension": (lambda x: x[::2], few),
    "convolution": (lambda x: tf.nn.conv2d(x, kernel, 1, "SAME"), images),
    "normalization": (
        lambda x: tf.compat.v1.nn.fused_batch_norm(x, *held.reshape(4, 2), is_training=False)[0], images
    ),
    "mean": (lambda x: x - tf.reduce_mean(x, 0), few),
    "reshape": (lambda x: tf.reshape(x, [-1, 2]), few),
    "ensured": (lambda x: tf.ensure_shape(x, [None, 4]) + 1, few),
    "loop": (doubled, few),
    "variable": (lambda x, held=tf.Variable(held[:4]): x * held, few),
}
failed = []
for name, (function, x) in PROGRAMS.items():
    call = call_tf(function)
    wanted = function(tf.constant(x)).numpy()
    with tf.GradientTape() as tape:
        tape.watch(given := tf.constant(x))
        total = tf.reduce_sum(tf.sin(function(given)))
    slope = tape.gradient(total, given).numpy()
    symbolic = symbolic_args_specs([x], ["(b, ...)"])
    for way, run in {
        "eager": lambda: (call(x), differentiated(call)(x)),
        "jit": lambda: (jax.jit(call)(x), jax.jit(differentiated(call))(x)),
        "vmap": lambda: jax.tree.map(lambda a: a[1], jax.vmap(lambda x: (call(x), differentiated(call)(x)))(
            np.stack([x + 1, x]))),
        "export": lambda: (export(jax.jit(call))(*symbolic).call(x), export(jax.jit(differentiated(call)))(
            *symbolic).call(x)),
    }.items():
        try:
            for result, one in zip(run(), (wanted, slope), strict=True):
                assert result.shape == one.shape, (result.shape, one.shape)
                np.testing.assert_allclose(result, one, rtol=1e-5, atol=1e-5)
        except Exception as error:
            failed.append((name, way, type(error).__name__, str(error)[:300]))
for declared, found in [
    (tf.TensorSpec([2, 4], tf.float32), "Result[0] is float32[3, 4] vs. expected float32[2, 4]"),
    (tf.TensorSpec([None, 4], tf.float32), "whose sizes are not all known"),
]:
    try:
        jax.jit(call_tf(tf.sin, output_shape_dtype=declared))(few)
        failed.append((declared, "not refused"))
    except DeclarationError as error:
        if found not in str(error):
            failed.append((declared, str(error)))
print(*failed, sep="\\n")
print("right" if not failed else "wrong")
"""


@pytest.mark.slow
def test_values_and_gradients_are_tensorflows_where_sizes_are_dimensions():
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, capture_output=True, text=True, timeout=500, env=environment, check=False)
    assert done.stdout.endswith("right\n"), done.stdout + done.stderr
