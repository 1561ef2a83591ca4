"""Converted functions in Keras: its variables are arguments, its symbolic inputs are refused with what to do."""

import jax.numpy as jnp
import keras
import numpy as np
import pytest
import tensorflow as tf

from jaxtf.convert import ArgumentTypeError, convert, convert_exported, dtype_of_val, save_model
from jaxtf.serialization import export

WEIGHTS = np.linspace(-1, 1, 8, dtype=np.float32).reshape(4, 2)
X = np.linspace(0.1, 1, 12, dtype=np.float32).reshape(3, 4)
Y = np.ones((3, 2), np.float32)

converted = convert(lambda p, x: jnp.tanh(x @ p["w"]) * p["rest"][0], polymorphic_shapes=[None, "(b, _)"])


class Ours(keras.layers.Layer):
    """A layer that calls a converted function on its variables, in a container that Keras wraps."""

    def build(self, shape):
        self.w = self.add_weight(shape=(4, 2), initializer=keras.initializers.Constant(WEIGHTS), name="w")
        self.scale = self.add_weight(shape=(), initializer="ones", name="scale")
        self.held = {"w": self.w, "rest": [self.scale]}

    def call(self, x):
        return converted(self.held, x)


class Plain(Ours):
    """The same in TensorFlow."""

    def call(self, x):
        return tf.tanh(tf.matmul(x, self.w)) * self.scale


def gradients(layer, mode):
    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.cast(layer(x), tf.float32) ** 2)
        return tape.gradient(loss, layer.trainable_variables)

    layer.build((None, 4))
    run = step if mode == "eager" else tf.function(step, autograph=False, jit_compile=mode == "compiled")
    return run(tf.constant(X))


@pytest.mark.parametrize("mode", ["eager", "graph", "compiled"])
@pytest.mark.parametrize("policy", ["float32", "mixed_bfloat16"])
def test_gradients_reach_the_variables_of_a_layer(mode, policy):
    found, expected = (gradients(kind(dtype=policy), mode) for kind in (Ours, Plain))
    assert len(found) == 2
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.dtype == theirs.dtype == tf.float32
        np.testing.assert_allclose(ours, theirs, rtol=1e-5 if policy == "float32" else 2**-5)


@pytest.mark.parametrize(
    "options",
    [{"run_eagerly": True}, {"jit_compile": False}, {"jit_compile": True}],
    ids=["eager", "graph", "compiled"],
)
def test_a_step_of_training_moves_the_variables_as_in_tensorflow(options):
    moved = []
    for kind in (Ours, Plain):
        model = keras.Sequential([keras.Input((4,)), kind()])
        model.compile(optimizer=keras.optimizers.SGD(0.5), loss="mse", **options)
        model.fit(X, Y, batch_size=3, epochs=1, verbose=0)
        moved.append([variable.numpy() for variable in model.trainable_variables])
    assert not np.allclose(moved[0][0], WEIGHTS)
    for ours, theirs in zip(*moved, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5)


@pytest.mark.parametrize("policy", ["float32", "mixed_float16"])
def test_the_scope_of_a_layer_decides_the_dtype_of_its_variables(policy):
    class Recording(Ours):
        def call(self, x):
            self.dtypes = (
                tf.convert_to_tensor(self.w).dtype,
                convert(lambda w: w * 2)(self.w).dtype,
                dtype_of_val(self.w),
            )
            return x

    layer = Recording(dtype=policy)
    layer(X)
    assert layer.w.value.dtype == "float32"
    assert set(layer.dtypes) == {tf.float32 if policy == "float32" else tf.float16}


def test_variables_are_arguments_of_exported_functions_and_parameters_of_saved_models(tmp_path):
    variable = keras.Variable(WEIGHTS)
    found = convert_exported(export(lambda w: w * 2)(WEIGHTS))(variable)
    np.testing.assert_array_equal(found, WEIGHTS * 2)
    save_model(lambda w, x: x @ w, variable, tmp_path, input_signatures=[tf.TensorSpec([3, 4])])
    np.testing.assert_allclose(tf.saved_model.load(str(tmp_path))(X), X @ WEIGHTS, rtol=1e-6)


def test_symbolic_inputs_are_refused_with_what_to_do():
    symbolic = keras.Input((4,))
    for function in (convert(jnp.sin), convert_exported(export(jnp.sin)(X))):
        with pytest.raises(ArgumentTypeError) as refused:
            function(symbolic)
        assert str(refused.value) == (
            "args[0] is a KerasTensor, a symbolic input or result of Keras layers, of shape (None, 4): it holds no "
            "numbers\n"
            "  remedy: call the converted function in a layer: keras.layers.Lambda(converted)(...), or the method "
            "`call` of a layer of your own; polymorphic_shapes name the sizes that Keras leaves open"
        )


def test_a_lambda_layer_calls_a_converted_function():
    inputs = keras.Input((4,))
    outputs = keras.layers.Lambda(convert(lambda x: jnp.sin(x) * 2, polymorphic_shapes=["(b, _)"]))(inputs)
    assert outputs.shape == (None, 4)
    np.testing.assert_allclose(keras.Model(inputs, outputs).predict(X, verbose=0), 2 * np.sin(X), rtol=1e-6)


def test_what_makes_no_tensor_is_refused_with_its_reason():
    class Broken:
        def __tf_tensor__(self, dtype=None, name=None):
            raise ValueError("nothing in here")

    with pytest.raises(
        ArgumentTypeError, match=r"args\[0\]\['a'\] is a Broken of which TensorFlow makes no tensor: nothing in"
    ):
        convert(lambda x: x["a"])({"a": Broken()})
