"""Keras 3 on the JAX backend: `model.export`, unmodified, with jaxtf in place of jax2tf.

    KERAS_BACKEND=jax python keras_jax.py FOLDER

Keras imports `jax.experimental.jax2tf` when it exports; `install_as_jax2tf` puts jaxtf there.
"""

import os
import sys

os.environ["KERAS_BACKEND"] = "jax"

import jax
import keras
import numpy as np
import tensorflow as tf

from jaxtf.convert import explain, install_as_jax2tf
from jaxtf.shapepoly import symbolic_shape

install_as_jax2tf()


def network() -> keras.Model:
    inputs = keras.Input((8, 8, 1), name="images")
    x = keras.layers.Conv2D(8, 3, activation="relu")(inputs)
    x = keras.layers.BatchNormalization()(x)
    x = keras.layers.MaxPooling2D()(x)
    x = keras.layers.Dropout(0.2)(keras.layers.Flatten()(x))
    return keras.Model(inputs, keras.layers.Dense(10, activation="softmax", name="scores")(x))


def sequence_network() -> keras.Model:
    inputs = keras.Input((None,), dtype="int32", name="words")
    x = keras.layers.Embedding(50, 8)(inputs)
    x = keras.layers.MultiHeadAttention(2, 4)(x, x)
    x = keras.layers.GlobalAveragePooling1D()(keras.layers.LayerNormalization()(x))
    return keras.Model(inputs, keras.layers.Dense(3)(x))


def explained(model: keras.Model, inputs: np.ndarray) -> None:
    """What each mode makes of the model, for any batch, before anything is converted."""
    trained = [variable.value for variable in model.trainable_variables]
    others = [variable.value for variable in model.non_trainable_variables]

    def predict(trained, others, x):
        return model.stateless_call(trained, others, x, training=False)[0]

    batch = jax.ShapeDtypeStruct(symbolic_shape("b, ...", like=inputs.shape), inputs.dtype)
    explanation = explain(predict, trained, others, batch)
    assert explanation.ok, explanation
    for name in ("graph", "graph_without_xla", "tflite"):
        mode = explanation[name]
        line, count = next(iter(mode.nodes_of_lines.items()), ("", 0))
        print(f"keras, explain {model.name}, {name}: {mode.nodes} operations, none refused; {count} of them of {line}")


def main(folder: str) -> None:
    images = np.linspace(0, 1, 5 * 64, dtype=np.float32).reshape(5, 8, 8, 1)
    words = np.arange(14, dtype=np.int32).reshape(2, 7) % 50
    for name, model, inputs in (("images", network(), images), ("words", sequence_network(), words)):
        path = os.path.join(folder, name)
        model.export(path, verbose=False)
        loaded = tf.saved_model.load(path)
        for batch in (inputs, inputs[:1]):
            np.testing.assert_allclose(loaded.serve(batch), model(batch), rtol=1e-4, atol=1e-5)
        ops = {node.op for function in loaded.serve.concrete_functions for node in function.graph.as_graph_def().node}
        library = {
            node.op
            for function in loaded.serve.concrete_functions
            for called in function.graph.as_graph_def().library.function
            for node in called.node_def
        }
        assert "XlaCallModule" in ops | library
        print(f"keras, {name}: served from SavedModel, {len(loaded.variables)} variables; values are Keras's")
        explained(model, inputs)
    short = words[:, :3]
    np.testing.assert_allclose(loaded.serve(short), model(short), rtol=1e-4, atol=1e-5)


if __name__ == "__main__":
    main(sys.argv[1])
