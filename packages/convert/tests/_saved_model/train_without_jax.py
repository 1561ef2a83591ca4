"""Makes a SavedModel of a saved program where JAX cannot be imported, and trains it; writes what it found as JSON."""

import json
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
sys.modules["jax"] = sys.modules["jaxlib"] = None

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

from jaxtf.convert import convert_exported, save_exported  # noqa: E402


def main(program: str, folder: str) -> None:
    saved = save_exported(program, folder, input_names=["images"])
    model = tf.saved_model.load(folder)
    images = tf.constant(np.linspace(0, 1, 20, dtype=np.float32).reshape(5, 4))
    scale = tf.constant(2.0)
    served = model.signatures["serving_default"](images=images, scale=scale)
    converted = convert_exported(program)
    losses = []
    for _ in range(2):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(images, scale=scale)["scores"] - 1.0) ** 2)
        losses.append(float(loss))
        gradients = tape.gradient(loss, model.trainable_variables)
        for variable, gradient in zip(model.trainable_variables, gradients, strict=True):
            variable.assign_sub(0.1 * gradient)
    found = {
        "saved": str(saved.signatures["serving_default"]),
        "orders": saved.gradient_order,
        "bytes": saved.parameter_bytes,
        "served": {name: value.numpy().tolist() for name, value in served.items()},
        "converted": converted(images, scale=scale)["scores"].numpy().tolist(),
        "variables": [variable.name for variable in converted.variables],
        "trainable": len(model.trainable_variables),
        "losses": losses,
        "kernel": model.params["dense"]["kernel"].numpy().tolist(),
        "steps": int(model.params["steps"]),
        "imported": sorted(name for name in ("jax", "jaxlib") if sys.modules.get(name)),
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
