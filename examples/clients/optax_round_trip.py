"""TensorFlow to JAX and back, three times: a SavedModel fine-tuned from JAX with optax, its custom gradient kept.

python optax_round_trip.py FOLDER

The model is made in TensorFlow, as one from TensorFlow Hub would be: variables, and a function with a custom gradient
(no gradient of its hidden layer is larger than LIMIT). The function takes the variables as an argument, because JAX
trains what is an argument; one that reads them itself has constants for weights under `jax.jit`.

A round loads the SavedModel, calls its function in JAX (`call_tf`), fine-tunes with optax, makes a TensorFlow function
of the JAX function (`convert`) and saves that. So in the third round JAX calls TensorFlow, which calls JAX, and so on
down to the TensorFlow function of the beginning. Values and gradients are NumPy's, and the same in both,
each time.
"""

import sys

import jax
import jax.numpy as jnp
import numpy as np
import optax
import tensorflow as tf

from jaxtf.calltf import call_tf
from jaxtf.convert import convert

LIMIT = 1e-4
ROUNDS = 3


@tf.custom_gradient
def limited(x):
    """x; no gradient of it is larger than LIMIT."""
    return x, lambda upstream: tf.clip_by_value(upstream, -LIMIT, LIMIT)


class Model(tf.Module):
    """Variables, and `apply(weights, x)`, which is a pure function."""

    def __init__(self, apply, weights) -> None:
        super().__init__()
        self.weights = {name: tf.Variable(value) for name, value in weights.items()}
        specs = {name: tf.TensorSpec(value.shape, value.dtype) for name, value in self.weights.items()}
        self.apply = tf.function(apply, [specs, tf.TensorSpec([None, 4], tf.float32)], autograph=False)

    @tf.function(input_signature=[tf.TensorSpec([None, 4], tf.float32)])
    def __call__(self, x):
        return self.apply(self.weights, x)


def made_in_tensorflow(weights, x):
    return limited(tf.tanh(x @ weights["w1"] + weights["b1"])) @ weights["w2"]


def hidden(weights, x):
    return np.tanh(x @ weights["w1"] + weights["b1"])


def in_numpy(weights, x, y):
    """The gradient of the loss by hand, with the limit."""
    inner = hidden(weights, x)
    upstream = 2 * (inner @ weights["w2"] - y) / len(x)
    unlimited = upstream @ weights["w2"].T
    assert np.abs(unlimited).max() > 2 * LIMIT  # so that it matters
    summed = np.clip(unlimited, -LIMIT, LIMIT) * (1 - inner**2)
    return {"w1": x.T @ summed, "b1": summed.sum(axis=0), "w2": inner.T @ upstream}


def save(model: Model, folder: str) -> None:
    tf.saved_model.save(model, folder, options=tf.saved_model.SaveOptions(experimental_custom_gradients=True))


def from_tensorflow(model):
    """The function of a loaded model as a JAX function, for any size of batch."""

    def apply(weights, x):
        # The graph is for any size: what it returns for this one must be declared.
        result = jax.ShapeDtypeStruct((x.shape[0], 1), jnp.float32)
        return call_tf(model.apply, output_shape_dtype=result)(weights, x)

    return apply


def fine_tune(apply, weights, x, y):
    """Weights, the losses before each step, and the gradient of the first."""
    optimizer = optax.adam(0.01)

    @jax.jit
    def step(weights, state):
        loss, gradient = jax.value_and_grad(lambda weights: ((apply(weights, x) - y) ** 2).mean())(weights)
        updates, state = optimizer.update(gradient, state)
        return optax.apply_updates(weights, updates), state, loss, gradient

    state, losses, first = optimizer.init(weights), [], None
    for _ in range(60):
        weights, state, loss, gradient = step(weights, state)
        losses.append(float(loss))
        first = gradient if first is None else first
    return weights, losses, first


def tensorflow_gradient(model, x, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((model(x) - y) ** 2)
    return tape.gradient(loss, dict(model.weights))


def assert_close(found, expected) -> None:
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-4, atol=1e-6, err_msg=name)


def main(folder: str) -> None:
    random = np.random.default_rng(0)
    x = random.uniform(-1, 1, (64, 4)).astype(np.float32)
    y = (x[:, :1] * x[:, 1:2] + np.sin(3 * x[:, 2:3])).astype(np.float32)
    weights = {
        "w1": random.normal(size=(4, 16)).astype(np.float32),
        "b1": np.zeros(16, np.float32),
        "w2": random.normal(size=(16, 1), scale=0.25).astype(np.float32),
    }
    save(Model(made_in_tensorflow, weights), f"{folder}/0")
    report = []
    for number in range(ROUNDS):
        loaded = tf.saved_model.load(f"{folder}/{number}")
        weights = {name: variable.numpy() for name, variable in loaded.weights.items()}
        apply = from_tensorflow(loaded)
        expected_gradient = in_numpy(weights, x, y)
        weights, losses, gradient = fine_tune(apply, weights, x, y)
        # JAX, TensorFlow and NumPy agree, also that the gradient is limited.
        assert_close(gradient, expected_gradient)
        assert_close(tensorflow_gradient(loaded, x, y), expected_gradient)
        assert losses[-1] < losses[0], losses
        report.append(f"{losses[0]:.3f} -> {losses[-1]:.3f}")

        save(Model(convert(apply, polymorphic_shapes=[None, "(batch, _)"]), weights), f"{folder}/{number + 1}")
        again = tf.saved_model.load(f"{folder}/{number + 1}")
        for batch in (1, 5, 64):
            answers = jax.jit(apply)(weights, x[:batch])
            np.testing.assert_allclose(again(x[:batch]), answers, rtol=1e-5, atol=1e-6)
            np.testing.assert_allclose(hidden(weights, x[:batch]) @ weights["w2"], answers, rtol=1e-4, atol=1e-5)
    print(f"optax: {ROUNDS} times TensorFlow to JAX and back, loss {', '.join(report)}; the custom gradient is kept")


if __name__ == "__main__":
    main(sys.argv[1])
