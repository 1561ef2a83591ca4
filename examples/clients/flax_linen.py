"""Flax linen: a network with batch statistics, saved with its variables, fine-tuned from TensorFlow alone.

python flax_linen.py FOLDER
"""

import sys

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf

from jaxtf.convert import convert, save_model


class Network(nn.Module):
    """Convolution, batch normalization, dropout and a dense layer."""

    @nn.compact
    def __call__(self, images, training: bool):
        x = nn.Conv(8, (3, 3))(images)
        x = nn.BatchNorm(use_running_average=not training)(x)
        x = nn.max_pool(nn.relu(x), (2, 2), (2, 2))
        x = nn.Dropout(0.1, deterministic=not training)(x)
        return nn.Dense(10)(x.reshape(x.shape[0], -1))


def main(folder: str) -> None:
    network = Network()
    images = np.linspace(0, 1, 3 * 8 * 8, dtype=np.float32).reshape(3, 8, 8, 1)
    variables = network.init(jax.random.key(0), images, training=False)

    def predict(variables, images):
        return network.apply(variables, images, training=False)

    saved = save_model(
        predict,
        variables,
        folder,
        input_signatures=[tf.TensorSpec([None, 8, 8, 1], tf.float32)],
        polymorphic_shapes=["(batch, ...)"],
    )
    print(saved.signatures["serving_default"])
    loaded = tf.saved_model.load(folder)
    expected = predict(variables, images)
    np.testing.assert_allclose(loaded(images), expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(loaded(images[:1]), expected[:1], rtol=1e-4, atol=1e-5)

    # One step of gradient descent lowers the loss, with JAX's gradient.
    def loss(variables):
        return (predict(variables, images) ** 2).mean()

    with tf.GradientTape() as tape:
        before = tf.reduce_mean(loaded(images) ** 2)
    gradients = tape.gradient(before, loaded.trainable_variables)
    flat = jax.tree.leaves(jax.grad(loss)(variables))
    for gradient, other in zip(gradients, flat, strict=True):
        np.testing.assert_allclose(gradient, other, rtol=1e-3, atol=1e-5)
    for variable, gradient in zip(loaded.trainable_variables, gradients, strict=True):
        variable.assign_sub(0.1 * gradient)
    assert tf.reduce_mean(loaded(images) ** 2) < before

    # The training mode too: it returns the new batch statistics.
    def train(variables, images, key):
        return network.apply(variables, images, training=True, mutable=["batch_stats"], rngs={"dropout": key})

    key = jax.random.PRNGKey(1)
    logits, updated = convert(train)(variables, images, key)
    expected_logits, expected_updated = jax.jit(train)(variables, images, key)
    np.testing.assert_allclose(logits, expected_logits, rtol=1e-4, atol=1e-5)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6), updated, expected_updated)
    print(f"flax.linen: {len(flat)} variables; logits, gradients and batch statistics are JAX's")
    assert jnp.isfinite(expected_logits).all()


if __name__ == "__main__":
    main(sys.argv[1])
