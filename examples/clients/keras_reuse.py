"""Keras 3 on the TensorFlow backend: a JAX model, saved with its gradient, as a layer under a new head.

    KERAS_BACKEND=tensorflow python keras_reuse.py FOLDER

The JAX model is a `keras.layers.TFSMLayer`, first frozen, then trained with the head; saved and loaded again. Which of
the two happens is seen in its weights; its values and its gradient are compared with JAX's.
"""

import os
import sys
from itertools import pairwise

os.environ["KERAS_BACKEND"] = "tensorflow"

import jax
import jax.numpy as jnp
import keras
import numpy as np
import tensorflow as tf

from jaxtf.convert import save_model

SIZES = (8, 32, 16)


def features(params, x):
    for layer in params:
        x = jnp.tanh(x @ layer["kernel"] + layer["bias"])
    return x


def initial_params():
    random = np.random.default_rng(0)
    return [
        {
            "kernel": random.normal(size=(n, m), scale=n**-0.5).astype(np.float32),
            "bias": np.zeros(m, np.float32),
        }
        for n, m in pairwise(SIZES)
    ]


def moved(layer, before) -> float:
    """The largest change of a weight of the layer."""
    return max(np.abs(now - then).max() for now, then in zip(layer.get_weights(), before, strict=True))


def main(folder: str) -> None:
    keras.utils.set_random_seed(0)
    params = initial_params()
    saved = save_model(
        features,
        params,
        f"{folder}/features",
        input_signatures=[tf.TensorSpec([None, SIZES[0]], tf.float32)],
        polymorphic_shapes=["(batch, _)"],
        gradient_order=1,
    )
    print(saved.signatures["serving_default"])

    layer = keras.layers.TFSMLayer(f"{folder}/features", call_endpoint="__call__")
    inputs = keras.Input((SIZES[0],))
    model = keras.Model(inputs, keras.layers.Dense(1)(layer(inputs)))
    x = np.random.default_rng(1).uniform(-1, 1, (256, SIZES[0])).astype(np.float32)
    y = np.sin(3 * x[:, :1] * x[:, 1:2]) + x[:, 2:3] ** 2
    for batch in (1, 7):
        np.testing.assert_allclose(layer(x[:batch]), features(params, x[:batch]), rtol=1e-5, atol=1e-6)
    with tf.GradientTape() as tape:
        total = tf.reduce_sum(layer(x) ** 2)
    gradients = tape.gradient(total, [weight.value for weight in layer.trainable_weights])
    expected = jax.grad(lambda params: (features(params, x) ** 2).sum())(params)
    flat = jax.tree.leaves(expected)
    assert len(flat) == len(gradients) == 4
    for weight, gradient in zip(layer.trainable_weights, gradients, strict=True):
        [other] = [other for other in flat if other.shape == weight.shape]  # all four shapes are different
        np.testing.assert_allclose(gradient, other, rtol=1e-3, atol=1e-3)

    # The head alone: JAX's weights stay, bit by bit.
    before = layer.get_weights()
    layer.trainable = False
    assert len(model.trainable_variables) == 2
    model.compile(keras.optimizers.Adam(0.01), "mse")
    frozen = model.fit(x, y, epochs=30, batch_size=48, verbose=0).history["loss"]  # the last batch has 16
    assert moved(layer, before) == 0.0
    assert frozen[-1] < 0.6 * frozen[0], frozen

    # All of it: they move, and the loss falls below what the head could do alone.
    layer.trainable = True
    assert len(model.trainable_variables) == 6
    optimizer = keras.optimizers.Adam(0.01)
    # Before `fit`, or Keras (3.15) fails: inside it, "w:0_momentum", after a variable of any SavedModel, is not a name.
    optimizer.build(model.trainable_variables)
    model.compile(optimizer, "mse")
    tuned = model.fit(x, y, epochs=40, batch_size=48, verbose=0).history["loss"]
    change = moved(layer, before)
    assert change > 1e-2, change
    assert tuned[-1] < 0.5 * frozen[-1], (frozen, tuned)

    answers = model(x).numpy()
    # A `.keras` file has the weights and the path of the SavedModel, whose code runs: hence safe_mode.
    model.save(f"{folder}/model.keras")
    loaded = keras.models.load_model(f"{folder}/model.keras", safe_mode=False)
    np.testing.assert_array_equal(loaded(x), answers)
    assert moved(loaded.layers[1], before) == change
    # An exported model needs no other files.
    model.export(f"{folder}/exported", verbose=False)
    exported = tf.saved_model.load(f"{folder}/exported")
    for batch in (1, 256):
        np.testing.assert_allclose(exported.serve(x[:batch]), answers[:batch], rtol=1e-5, atol=1e-6)
    losses = f"frozen {frozen[0]:.3f} -> {frozen[-1]:.3f}, fine-tuned -> {tuned[-1]:.3f}"
    print(f"Keras: loss {losses}; JAX's weights moved by 0, then {change:.3f}; saved and loaded")


if __name__ == "__main__":
    main(sys.argv[1])
