"""tensorflow_hub: a SavedModel of a JAX network as a KerasLayer of tf_keras; fine-tuning moves its weights.

TF_USE_LEGACY_KERAS=1 python hub_keras.py FOLDER
"""

import os
import sys

os.environ["TF_USE_LEGACY_KERAS"] = "1"

import jax.numpy as jnp
import numpy as np
import tensorflow as tf
import tensorflow_hub as hub
import tf_keras

from jaxtf.convert import save_model


def features(params, x):
    return jnp.tanh(x @ params["w1"]) @ params["w2"]


def main(folder: str) -> None:
    tf_keras.utils.set_random_seed(1)  # of the new layer, and of the order of batches
    params = {
        "w1": np.linspace(-1, 1, 32, dtype=np.float32).reshape(4, 8),
        "w2": np.linspace(1, -1, 24, dtype=np.float32).reshape(8, 3),
    }
    save_model(
        features,
        params,
        folder,
        input_signatures=[tf.TensorSpec([None, 4], tf.float32)],
        polymorphic_shapes=["(batch, _)"],
    )
    layer = hub.KerasLayer(folder, trainable=True)
    model = tf_keras.Sequential([tf_keras.layers.InputLayer((4,)), layer, tf_keras.layers.Dense(1)])
    x = np.linspace(-1, 1, 64, dtype=np.float32).reshape(16, 4)
    np.testing.assert_allclose(layer(x), features(params, x), rtol=1e-5, atol=1e-6)
    model.compile(tf_keras.optimizers.SGD(0.02), "mse")
    losses = model.fit(x, np.sin(x.sum(axis=1)), epochs=60, batch_size=8, verbose=0).history["loss"]
    assert losses[-1] < 0.5 * losses[0], losses
    weights = {variable.name: variable.numpy() for variable in layer.trainable_variables}
    assert len(weights) == 2
    moved = [np.abs(now - before).max() for now, before in zip(weights.values(), params.values(), strict=True)]
    assert min(moved) > 1e-3, moved
    print(f"tensorflow_hub: loss {losses[0]:.3f} -> {losses[-1]:.3f}; weights moved by {moved[0]:.3f}, {moved[1]:.3f}")


if __name__ == "__main__":
    main(sys.argv[1])
