"""A small convolutional network in JAX, and its loss; the parameters are a flat dict of float32 arrays.

Knows nothing of TensorFlow: this is the code that a JAX user brings.
"""

import jax
import jax.numpy as jnp
from jax import lax

Parameters = dict[str, jax.Array]

SHAPES = {
    "kernel_1": (3, 3, 1, 16),
    "bias_1": (16,),
    "kernel_2": (3, 3, 16, 32),
    "bias_2": (32,),
    "weights": (4 * 4 * 32, 10),
    "bias": (10,),
}


def initial_parameters(seed: int) -> Parameters:
    """Biases of zero, and normal weights scaled by the number of inputs (He et al. 2015, section 2.2)."""
    keys = dict(zip(SHAPES, jax.random.split(jax.random.key(seed), len(SHAPES)), strict=True))
    return {
        name: jnp.zeros(shape)
        if len(shape) == 1
        else jax.random.normal(keys[name], shape) * jnp.sqrt(2 / jnp.prod(jnp.array(shape[:-1])))
        for name, shape in SHAPES.items()
    }


def predict(parameters: Parameters, images: jax.Array) -> jax.Array:
    """Logits float32[b, 10] of images float32[b, 8, 8], for any batch size b."""
    x = images[..., None] / 16
    x = jax.nn.relu(convolution(x, parameters["kernel_1"], stride=1) + parameters["bias_1"])
    x = jax.nn.relu(convolution(x, parameters["kernel_2"], stride=2) + parameters["bias_2"])
    x = x.reshape(x.shape[0], -1)
    return x @ parameters["weights"] + parameters["bias"]


def convolution(x: jax.Array, kernel: jax.Array, stride: int) -> jax.Array:
    """A padded two-dimensional convolution over images in the layout batch, height, width, channel."""
    return lax.conv_general_dilated(x, kernel, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def cross_entropy(parameters: Parameters, images: jax.Array, labels: jax.Array) -> jax.Array:
    """The mean over the batch of -log(probability given to the true digit)."""
    log_probabilities = jax.nn.log_softmax(predict(parameters, images))
    return -jnp.mean(jnp.take_along_axis(log_probabilities, labels[:, None], axis=1))
