"""objax: a module with its variables as a `tf.Module`, saved and loaded.

objax 1.8 asks JAX for a class that JAX 0.10 no longer has; an empty one is put there.

python objax_module.py jaxtf|upstream
"""

import tempfile

import jax
import numpy as np

jax.sharding.PmapSharding = type("PmapSharding", (), {})

import objax  # noqa: E402
import tensorflow as tf  # noqa: E402
from place import in_place  # noqa: E402

in_place()


def main() -> None:
    network = objax.nn.Sequential(
        [objax.nn.Linear(4, 8), objax.nn.BatchNorm0D(8), objax.functional.relu, objax.nn.Linear(8, 3)]
    )
    predict = objax.Jit(lambda x: network(x, training=False), network.vars())

    class Predict(objax.Module):
        """The network with its batch statistics fixed."""

        def __init__(self):
            self.network = network

        def __call__(self, x):
            return self.network(x, training=False)

    x = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
    converted = objax.util.Objax2Tf(Predict())
    np.testing.assert_allclose(converted(x), predict(x), rtol=1e-5, atol=1e-6)
    with tempfile.TemporaryDirectory() as folder:
        tf.saved_model.save(converted, folder)
        loaded = tf.saved_model.load(folder)
        np.testing.assert_allclose(loaded(x), predict(x), rtol=1e-5, atol=1e-6)
    print(f"objax {objax.__version__}: a module in TensorFlow, and from a SavedModel")


if __name__ == "__main__":
    main()
