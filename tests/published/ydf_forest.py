"""ydf: gradient boosted trees as a JAX function, from there to TensorFlow and a SavedModel.

python ydf_forest.py jaxtf|upstream
"""

import tempfile

import jax
import numpy as np
import tensorflow as tf
import ydf
from place import in_place

in_place()

from jax.experimental import jax2tf  # noqa: E402


def main() -> None:
    random = np.random.default_rng(0)
    features = {name: random.normal(size=500).astype(np.float32) for name in "ab"}
    features["c"] = random.choice(["x", "y", "z"], size=500)
    data = features | {"label": features["a"] * features["b"] + (features["c"] == "x")}
    model = ydf.GradientBoostedTreesLearner(label="label", task=ydf.Task.REGRESSION, num_trees=20).train(
        data, verbose=0
    )
    with jax.numpy_dtype_promotion("strict"):
        in_jax = model.to_jax_function()
        inputs = in_jax.encoder(features)
        expected = in_jax.predict(inputs)
    np.testing.assert_allclose(expected, model.predict(features), rtol=1e-5, atol=1e-5)
    module = tf.Module()
    module.call = tf.function(jax2tf.convert(in_jax.predict, with_gradient=False), jit_compile=True, autograph=False)
    np.testing.assert_allclose(module.call(inputs), expected, rtol=1e-6, atol=1e-6)
    with tempfile.TemporaryDirectory() as folder:
        tf.saved_model.save(module, folder)
        np.testing.assert_allclose(tf.saved_model.load(folder).call(inputs), expected, rtol=1e-6, atol=1e-6)
    print(f"ydf {ydf.__version__}: 20 trees in TensorFlow and from a SavedModel")


if __name__ == "__main__":
    main()
