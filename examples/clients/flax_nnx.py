"""Flax nnx: a model split into graph and state; the state becomes the variables of a SavedModel.

python flax_nnx.py FOLDER
"""

import sys

import jax
import numpy as np
import tensorflow as tf
from flax import nnx

from jaxtf.convert import convert, save_model


class Network(nnx.Module):
    """A residual layer with normalization."""

    def __init__(self, rngs: nnx.Rngs) -> None:
        self.inner = nnx.Linear(4, 16, rngs=rngs)
        self.norm = nnx.LayerNorm(16, rngs=rngs)
        self.outer = nnx.Linear(16, 4, rngs=rngs)

    def __call__(self, x):
        return x + self.outer(nnx.gelu(self.norm(self.inner(x))))


def main(folder: str) -> None:
    graph, state = nnx.split(Network(nnx.Rngs(0)))
    parameters = nnx.to_pure_dict(state)
    x = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)

    def predict(parameters, x):
        restored = jax.tree.unflatten(jax.tree.structure(state), jax.tree.leaves(parameters))
        return nnx.merge(graph, restored)(x)

    expected = predict(parameters, x)
    np.testing.assert_allclose(convert(predict)(parameters, x), expected, rtol=1e-5, atol=1e-6)
    save_model(
        predict,
        parameters,
        folder,
        input_signatures=[tf.TensorSpec([None, 4], tf.float32)],
        polymorphic_shapes=["(batch, _)"],
    )
    loaded = tf.saved_model.load(folder)
    np.testing.assert_allclose(loaded(x), expected, rtol=1e-5, atol=1e-6)
    with tf.GradientTape() as tape:
        total = tf.reduce_sum(loaded(x) ** 2)
    gradient = tape.gradient(total, loaded.params["outer"]["kernel"])
    other = jax.grad(lambda parameters: (predict(parameters, x) ** 2).sum())(parameters)["outer"]["kernel"]
    np.testing.assert_allclose(gradient, other, rtol=1e-4, atol=1e-5)
    print(f"flax.nnx: {len(loaded.variables)} variables; values and gradients are JAX's")


if __name__ == "__main__":
    main(sys.argv[1])
