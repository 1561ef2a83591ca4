"""Uses the SavedModels in a folder in a process that cannot import JAX; writes what it found as JSON.

The last line of output holds, for each name, what the function of that name here returned.
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


def nth_gradient(model, order, persistent=False):
    """The gradient of the sum of the results, again and again, with respect to `params`."""
    x = tf.constant(np.linspace(0, 1, 6, dtype=np.float32).reshape(2, 3))

    def gradient(order):
        if order == 0:
            return model(x)
        with tf.GradientTape(persistent=persistent) as tape:
            total = tf.reduce_sum(gradient(order - 1))
        return tape.gradient(total, model.params)

    return gradient(order).numpy().tolist()


def refusal(model, order):
    """What TensorFlow says of an order that was not saved."""
    try:
        nth_gradient(model, order)
    except LookupError as error:
        return str(error)
    return None


def orders(model):
    @tf.function
    def in_graph():
        first = tf.gradients(tf.reduce_sum(model(tf.ones((2, 3)))), model.params)[0]
        return tf.gradients(first, model.params)[0]

    return {
        "gradients": [nth_gradient(model, order) for order in (0, 1, 2, 3)],
        "persistent": nth_gradient(model, 3, persistent=True),
        "in graph": in_graph().numpy().tolist(),
        "beyond": refusal(model, 4),
    }


def plain(model):
    """A SavedModel that `tf.saved_model.save` wrote of a converted function."""
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        total = tf.reduce_sum(model.f(x))
    first = tape.gradient(total, x)
    beyond = None
    try:
        with tf.GradientTape() as outer:
            with tf.GradientTape() as inner:
                total = tf.reduce_sum(model.f(x))
            again = inner.gradient(total, x)
        outer.gradient(again, x)
    except LookupError as error:
        beyond = str(error)
    with tf.GradientTape(persistent=True) as tape:
        total = tf.reduce_sum(model.f(x))
    return {"first": first.numpy().tolist(), "persistent": tape.gradient(total, x).numpy().tolist(), "beyond": beyond}


def images(size):
    return tf.constant(np.linspace(0, 1, size * 4, dtype=np.float32).reshape(size, 4))


def network(model):
    """A model with parameters: served at several batch sizes, then trained further."""
    served = {size: model.signatures["scoring"](images=images(size), options_scale=tf.constant(2.0)) for size in (1, 5)}
    called = model(images(5), {"scale": 2.0})
    before = [variable.numpy() for variable in model.trainable_variables]
    losses = []
    for _ in range(5):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(images(5), {"scale": tf.constant(2.0)})["scores"] - 1.0) ** 2)
        losses.append(float(loss))
        for variable, gradient in zip(
            model.trainable_variables, tape.gradient(loss, model.trainable_variables), strict=True
        ):
            variable.assign_sub(0.1 * gradient)
    moved = [
        bool((variable.numpy() != old).any()) for variable, old in zip(model.trainable_variables, before, strict=True)
    ]
    return {
        "served": {size: {name: value.numpy().tolist() for name, value in r.items()} for size, r in served.items()},
        "called": tf.nest.map_structure(lambda value: value.numpy().tolist(), called),
        "losses": losses,
        "moved": moved,
        "variables": len(model.variables),
        "trainable": len(model.trainable_variables),
        "regularization": len(model.regularization_losses),
        "asset": Path(model.assets["labels"].asset_path.numpy().decode()).read_text(encoding="utf-8"),
        "step": int(model.params["step"]),
    }


def constants(model):
    x = tf.Variable(np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 4))
    call = getattr(model, "f", model)
    with tf.GradientTape() as tape:
        result = call(x)
        total = tf.reduce_sum(result)
    return {"result": result.numpy().tolist(), "gradient": tape.gradient(total, x).numpy().tolist()}


def main(folder: Path) -> None:
    uses = {"orders": orders, "plain": plain, "network": network, "constants": constants, "captured": constants}
    found = {}
    for path in sorted(path for path in folder.iterdir() if path.is_dir()):
        found[path.name] = uses[path.name](tf.saved_model.load(str(path)))
    assert not any(name.split(".")[0] in ("jax", "jaxlib") and module for name, module in sys.modules.items())
    print(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
