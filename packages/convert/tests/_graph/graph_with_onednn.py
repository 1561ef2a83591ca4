"""Run with TF_ENABLE_ONEDNN_OPTS=1: what Grappler fuses for oneDNN has the values of JAX. Prints what does not."""

import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf

from jaxtf.convert import convert

X = np.float32([-3, -1, -0.0, 0, 0.5, 2, np.nan, np.inf, -np.inf] * 8)
ONES = np.linspace(0, 3, len(X), dtype=np.float32)


@jax.jit
def twice(x):
    return x * 2


@jax.jit
def larger(x, y):
    """So large that it becomes a function of the graph, which is put where it is called later."""
    z = jnp.sin(x) + jnp.cos(x) * jnp.tanh(x) + jnp.exp(-abs(x))
    return jnp.where(z > 1e9, z, jnp.maximum(x, y))


# Grappler makes a leaky relu of `max(x, c * x)`.
MAXIMA = {
    "2 * x": lambda x: jnp.maximum(x, 2 * x),
    "x + x": lambda x: jnp.maximum(x, x + x),
    "x - -x": lambda x: jnp.maximum(x, x - (-x)),
    "x / 0.5": lambda x: jnp.maximum(x / 0.5, x),
    "x * 0.5 * 6": lambda x: jnp.maximum(x, x * 6 * 0.5),
    "0 * x": lambda x: jnp.maximum(x, 0 * x),
    "inf * x": lambda x: jnp.maximum(np.inf * x, x),
    "0.5 * x": lambda x: jnp.maximum(x, 0.5 * x),
    "x by many": lambda x: jnp.maximum(x, x * ONES),
    "by a function": lambda x: jnp.maximum(x, twice(x)),
    "by functions": lambda x: jnp.maximum(x, twice(x)) + jnp.maximum(twice(jnp.sin(x)), jnp.sin(x)),
    "in a function": lambda x: larger(x, 2 * x) + larger(jnp.tanh(x), 2 * jnp.tanh(x)),
    "of equal expressions": lambda x: jnp.maximum(jnp.tanh(x), 2 * jnp.tanh(x)),
    "reshaped": lambda x: jnp.maximum(x, (x.reshape(8, 9) * 2).reshape(-1)),
    "behind a barrier": lambda x: jnp.maximum(x, jax.lax.optimization_barrier(x) * 2),
    "leaky relu": lambda x: jax.nn.leaky_relu(x, 2.0),
}
SHAPES = ((3,), (1, 3), (4, 3), (4, 1), (1, 1, 3), (5, 1, 3), (1, 4, 3), ())
ACTIVATIONS = (lambda x: x, jax.nn.relu, jax.nn.gelu, jnp.tanh, jax.nn.elu)


def differs(name, function, *arguments):
    """Prints the name of a function of which graph mode has other values."""
    converted = convert(function, native_serialization=False, with_gradient=False)
    found, expected = converted(*map(tf.constant, arguments)).numpy(), np.asarray(jax.jit(function)(*arguments))
    if found.shape != expected.shape or not np.allclose(found, expected, rtol=1e-5, atol=1e-5, equal_nan=True):
        print("differs:", name, found.ravel()[:9], expected.ravel()[:9])


for name, function in MAXIMA.items():
    differs(name, function, X)
random = np.random.default_rng(0)
for shape in SHAPES:
    x, w, b = (random.normal(size=size).astype(np.float32) for size in ((4, 2), (2, 3), shape))
    for activation in ACTIVATIONS:
        differs(f"bias of {shape}", lambda x, w, b, f=activation: f(x @ w + b), x, w, b)
print("done")
