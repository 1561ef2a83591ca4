"""Graph mode gives JAX's values where TensorFlow's shapes give `Dimension`s, not integers or None.

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
from jax import lax
from jaxtf.convert import convert

tf.compat.v1.disable_v2_tensorshape()
few = np.linspace(-1, 1, 24, dtype=np.float32).reshape(6, 4)
images = np.linspace(-1, 1, 2 * 6 * 5 * 4, dtype=np.float32).reshape(2, 6, 5, 4)
matrices = few.reshape(6, 2, 2) + 3 * np.eye(2, dtype=np.float32)
places = np.array([[3], [0], [9]], np.int32)


def kernel(*shape):
    return np.cos(np.arange(np.prod(shape), dtype=np.float32)).reshape(shape)


def conv(*shape, of="NHWC", by="HWIO", stride=(1, 1), padding="SAME", **attributes):
    return lambda x: lax.conv_general_dilated(
        x, kernel(*shape), stride, padding, dimension_numbers=(of, by, of), **attributes
    )


def scattered(x):
    zeros = jnp.zeros((x.shape[0], 4), x.dtype)
    return zeros.at[::-1].add(x), zeros.at[::-1].max(x), zeros.at[0].set(x[0]), zeros.at[places[:, 0]].add(1)


def pooled(x, functions=((-np.inf, lax.max), (0.0, lax.add), (1.0, lax.mul))):
    window, stride = (1, 2, 2, 1), (1, 2, 1, 1)
    return [
        lax.reduce_window(x, init, of, window, stride, padding)
        for init, of in functions
        for padding in ("SAME", "VALID")
    ]


def slope(x):
    return jax.grad(lambda x: sum(jnp.sin(y).sum() for y in pooled(x, [(-np.inf, lax.max), (0.0, lax.add)])))(x)


def logarithm(x):
    return lax.reduce(x, np.float32(1), lambda a, b: a * b + a, (1,)), lax.reduce_precision(x, 5, 10)


PROGRAMS = {
    "dot": (lambda x: (x @ x.T, jnp.einsum("bi,bj->bij", x, x), x @ kernel(4, 3), x @ kernel(4, 0)), few),
    "convolution": (conv(3, 3, 4, 2), images),
    "convolution, valid": (conv(3, 2, 4, 2, padding="VALID", stride=(2, 1)), images),
    "convolution, padded": (conv(2, 2, 4, 2, padding=((1, 2), (0, 3))), images),
    "convolution, depthwise": (conv(3, 3, 1, 8, feature_group_count=4), images),
    "convolution, grouped": (conv(3, 3, 2, 4, feature_group_count=2), images),
    "convolution, dilated": (conv(2, 2, 4, 2, rhs_dilation=(2, 2), lhs_dilation=(2, 1), padding=[(0, 1)] * 2), images),
    "convolution, first features": (conv(2, 6, 3, 3, of="NCHW", by="OIHW"), images),
    "convolution, one column": (conv(3, 5, 4, 2, padding="VALID", stride=(1, 2)), images),
    "convolution, wide": (conv(9, 9, 4, 2), images),
    "convolution, empty": (conv(3, 3, 4, 0), images),
    "convolution of integers": (lambda x: conv(3, 3, 4, 2)(x.astype(jnp.float32) * 0 + 1), images),
    "gather": (lambda x: (x[places[:, 0]], x[:, 1], jnp.take(x, places, 0, mode="clip"), x[1:, ::2]), few),
    "scatter": (scattered, few),
    "slices": (lambda x: (lax.dynamic_slice(x, (1, 2), (2, 2)), lax.dynamic_update_slice(x, x[:2, :2], (3, 1))), few),
    "pad": (lambda x: (lax.pad(x, np.float32(2), ((1, 2, 1), (-1, 0, 2))), jnp.pad(x, 1, mode="edge")), few),
    "layout": (lambda x: (x.T, x.reshape(-1), x[None] + x[:, None], x[::-1], jnp.tile(x, (2, 1)), jnp.roll(x, 1)), few),
    "concatenation": (lambda x: (jnp.concatenate([x, x[:1]]), jnp.stack([x, x], 1), jnp.split(x, 2, 1)), few),
    "reductions": (lambda x: (x.sum(0), x.max(1), jnp.argmax(x, 1), jnp.argmin(x, 0), (x > 0).all(), x.prod(1)), few),
    "other reductions": (logarithm, few),
    "windows": (pooled, images),
    "gradient of a maximum of windows": (slope, images),
    "cumulative": (lambda x: (jnp.cumsum(x, 0), lax.cummax(x, 1), lax.cumlogsumexp(x, 1), jnp.cumprod(x, 1)), few),
    "sort": (lambda x: (jnp.sort(x, 0), jnp.argsort(-x, 1), lax.sort((x, x + 1), num_keys=2), jnp.median(x, 1)), few),
    "top": (lambda x: lax.top_k(x, 2), few),
    "elementwise": (lambda x: (jnp.sin(x), x**3, x**x, jnp.clip(x, -0.5, x[:1]), jax.nn.softmax(x), x % 0.3), few),
    "narrow": (lambda x: ((x * 9).astype(jnp.int8) // 2, (x @ x.T).astype(jnp.bfloat16)), few),
    "complex": (lambda x: ((lax.complex(x, x) ** 2).imag, jnp.abs(lax.complex(x, 1 - x))), few),
    "loops": (lambda x: (lax.fori_loop(0, 3, lambda i, c: c + x[i], x[0]), jax.grad(lambda x: (x**3).sum())(x)), few),
    "branches": (lambda x: lax.cond(x[0, 0] < 0, lambda x: x * 2, lambda x: x[::-1], x), few),
    "random": (lambda x: x + jax.random.normal(jax.random.key(0), x.shape), few),
    "fourier": (lambda x: (jnp.fft.rfft(x).real, jnp.abs(jnp.fft.rfft2(x[:, :, None] * x[0])), jnp.fft.irfft(x)), few),
    "linear algebra": (
        lambda x: (jnp.linalg.inv(x), jnp.linalg.cholesky(x @ x.mT), jnp.linalg.svd(x)[1], jnp.linalg.eigvalsh(x)),
        matrices,
    ),
    "sizes": (lambda x: (x * x.shape[0], jnp.arange(2 * x.shape[0] + 1), jnp.mean(x), jnp.zeros((0, x.shape[0]))), few),
}
CONSTANT = {"slices"}  # too long for some sizes
failed = []
for name, (function, x) in PROGRAMS.items():
    expected = jax.tree.leaves(jax.jit(function)(x))
    for batch in (None, "(b, ...)"):
        if batch and name in CONSTANT:
            continue
        try:
            converted = convert(function, polymorphic_shapes=[batch], native_serialization=False)
            spec = tf.TensorSpec([None if batch else len(x), *x.shape[1:]], x.dtype)
            traced = tf.function(converted, input_signature=[spec], autograph=False)
            for result, one in zip(jax.tree.leaves(traced(tf.constant(x))), expected, strict=True):
                result, one = np.asarray(result), np.asarray(one)
                assert result.dtype == one.dtype and result.shape == one.shape, (result.dtype, one.dtype)
                np.testing.assert_allclose(result.astype(np.float64), one.astype(np.float64), rtol=1e-5, atol=3e-5)
        except Exception as error:
            failed.append((name, batch, type(error).__name__, str(error)[:300]))
print(*failed, sep="\\n")
print("right" if not failed else "wrong")
"""


@pytest.mark.slow
def test_values_are_those_of_jax_where_sizes_are_dimensions():
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, capture_output=True, text=True, timeout=500, env=environment, check=False)
    assert done.stdout.endswith("right\n"), done.stdout + done.stderr
