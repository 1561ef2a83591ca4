"""Runs the SavedModels in a folder, with gradients unless `--values-only`, in a process that cannot import JAX.

Reads `N`, a SavedModel with a function `f`, and `N.npz`, its arguments; writes `N.results.npz`.
The last line of output tells whether JAX was there, how many programs ran, and on which TensorFlow.
"""

import json
import os
import sys
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
# None makes `import jax` fail as where it is not installed; TensorFlow imports it where it can.
sys.modules["jax"] = sys.modules["jaxlib"] = None

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402


def run(model, arguments):
    """Flat results, and gradients of the sum of the floating ones with respect to the arguments."""
    variables = [tf.Variable(argument) for argument in arguments]
    with tf.GradientTape() as tape:
        results = tf.nest.flatten(model.f(*variables))
        total = tf.add_n([tf.reduce_sum(result) for result in results if result.dtype.is_floating])
    return results, tape.gradient(total, variables)


def stored(tensor):
    """As an array that `np.savez` keeps: not so the dtypes that NumPy does not know."""
    return (tf.cast(tensor, tf.float32) if tensor.dtype == tf.bfloat16 else tensor).numpy()


def main(folder: Path, values_only: bool) -> None:
    saved = sorted(path for path in folder.iterdir() if path.is_dir())
    for path in saved:
        model = tf.saved_model.load(str(path))
        arrays = {}
        with np.load(f"{path}.npz") as arguments:
            for call in sorted({key.split(":")[0] for key in arguments}):
                given = [arguments[key] for key in sorted(k for k in arguments if k.startswith(f"{call}:"))]
                if values_only:
                    specs = tf.nest.flatten(model.f.concrete_functions[0].structured_input_signature)
                    dtypes = [spec.dtype for spec in specs if spec is not None]  # a default argument is None
                    tensors = list(map(tf.constant, given, dtypes))
                    results = [leaf for leaf in tf.nest.flatten(model.f(*tensors)) if leaf is not None]
                    gradients = []
                else:
                    results, gradients = run(model, given)
                arrays.update({f"{call}:value:{j}": stored(result) for j, result in enumerate(results)})
                arrays.update({f"{call}:gradient:{j}": gradient.numpy() for j, gradient in enumerate(gradients)})
        np.savez(f"{path}.results.npz", **arrays)
    loaded = any(name.split(".")[0] in ("jax", "jaxlib") and module for name, module in sys.modules.items())
    print(json.dumps({"jax": loaded, "programs": len(saved), "tensorflow": tf.__version__}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), "--values-only" in sys.argv)
