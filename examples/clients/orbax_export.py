"""orbax-export, unmodified, with jaxtf in place of jax2tf: preprocessing, a JAX module, postprocessing.

python orbax_export.py FOLDER
"""

import sys

import jax.numpy as jnp
import numpy as np
import tensorflow as tf
from orbax.export import ExportManager, JaxModule, ServingConfig

from jaxtf.convert import install_as_jax2tf

install_as_jax2tf()  # before or after the imports of what imports jax2tf: orbax-export holds it by now


def predict(params, x):
    return jnp.tanh(x @ params["w"] + params["b"])


def main(folder: str) -> None:
    params = {"w": jnp.linspace(-1, 1, 12).reshape(4, 3), "b": jnp.ones(3)}
    module = JaxModule(params, predict, trainable=True, input_polymorphic_shape="b, 4")
    config = ServingConfig(
        "serving_default",
        input_signature=[tf.TensorSpec([None, 4], tf.int32, name="x")],
        tf_preprocessor=lambda x: tf.cast(x, tf.float32) / 10,
        tf_postprocessor=lambda y: {"scores": y, "best": tf.argmax(y, axis=-1)},
    )
    ExportManager(module, [config]).save(folder)
    loaded = tf.saved_model.load(folder)
    for size in (1, 5):
        x = np.arange(4 * size, dtype=np.int32).reshape(size, 4)
        expected = predict(params, x.astype(np.float32) / 10)
        found = loaded.signatures["serving_default"](x=tf.constant(x))
        np.testing.assert_allclose(found["scores"], expected, rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(found["best"], jnp.argmax(expected, axis=-1))
    print("orbax-export: served from SavedModel; values are JAX's")


if __name__ == "__main__":
    main(sys.argv[1])
