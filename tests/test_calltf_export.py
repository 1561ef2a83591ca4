"""TensorFlow functions inside of JAX functions that are exported, converted, saved, loaded and trained on."""

import json
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

import jaxtf.serialization
from jaxtf.calltf import call_tf
from jaxtf.convert import GraphModeUnsupported, NativeModeUnsupported, convert, convert_exported
from jaxtf.serialization import LiftUnsupported, deserialize, export
from jaxtf.shapepoly import symbolic_shape

HERE = Path(__file__).resolve().parent
pytestmark = pytest.mark.skipif(jax.default_backend() != "cpu", reason="TensorFlow compiles the functions for the CPU")


def shifted_sine(x):
    return tf.sin(x) + 1


def in_graph(function):
    return tf.function(function, autograph=False)


def spec(text):
    return jax.ShapeDtypeStruct(symbolic_shape(text), np.float32)


# --- sizes that depend on values ---

MASKED = {
    "boolean_mask": lambda x: tf.reduce_sum(tf.boolean_mask(x, x > 0)),
    "where": lambda x: tf.reduce_max(tf.gather(x, tf.where(x > 0)[:, 0])),
    "slice": lambda x: tf.reduce_sum(x[: tf.cast(x[0], tf.int32)]),
}


@pytest.mark.parametrize("name", MASKED)
def test_sizes_that_depend_on_values_are_refused_in_native_mode_and_run_in_graph_mode(name):
    function, x = call_tf(MASKED[name]), np.float32([2, -2, 3])
    exported = export(jax.jit(function))(x)
    expected = function(x)
    np.testing.assert_array_equal(exported.call(x), expected)
    with pytest.raises(NativeModeUnsupported, match="has arrays whose sizes depend on values"):
        convert_exported(exported)
    for converted in (convert(function), in_graph(convert(function))):
        with pytest.raises(NativeModeUnsupported, match="has arrays whose sizes depend on values"):
            converted(tf.constant(x))
    for converted in (
        convert(function, native_serialization=False),
        convert_exported(exported, native_serialization=False),
    ):
        np.testing.assert_array_equal(converted(tf.constant(x)), expected)
    by_name = convert(
        call_tf(MASKED[name], output_shape_dtype=jax.ShapeDtypeStruct((), np.float32), call_tf_graph=True)
    )
    np.testing.assert_array_equal(by_name(tf.constant(x)), expected)


def test_sizes_that_are_constants_run_in_native_mode():
    function, x = call_tf(lambda x: tf.boolean_mask(x, tf.constant([True, False, True]))), np.float32([2, -2, 3])
    np.testing.assert_array_equal(convert(function)(tf.constant(x)), [2, 3])


# --- symbolic shapes ---


def doubled_rows(x):
    return call_tf(lambda x: tf.nn.softmax(tf.concat([x, tf.sin(x)], axis=0)))(x) * 2


@pytest.mark.slow(1)
@pytest.mark.parametrize("rows", [1, 2, 5, 400])
def test_an_artifact_with_symbolic_shapes_runs_at_every_size_with_gradients(rows):
    exported = deserialize(export(doubled_rows)(spec("b, 3")).serialize(vjp_order=1))
    assert str(exported.out_avals[0]) == "float32[2*b,3]"
    x = np.linspace(-1, 1, 3 * rows, dtype=np.float32).reshape(rows, 3)
    np.testing.assert_allclose(exported.call(x), doubled_rows(x), rtol=1e-5)

    def loss(f):
        return lambda x: (f(x) ** 2).sum()

    np.testing.assert_allclose(jax.grad(loss(exported.call))(x), jax.grad(loss(doubled_rows))(x), rtol=1e-4, atol=1e-6)


@pytest.mark.slow(1)
@pytest.mark.parametrize("wrap", [lambda f: f, in_graph], ids=["eager", "graph"])
def test_a_converted_function_with_polymorphic_shapes_runs_at_every_size_with_gradients(wrap):
    f = wrap(convert(doubled_rows, polymorphic_shapes=["b, _"]))
    for rows in (1, 4, 33):
        x = tf.constant(np.linspace(-1, 1, 3 * rows, dtype=np.float32).reshape(rows, 3))
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
            loss = tf.reduce_sum(y * y)
        np.testing.assert_allclose(y, doubled_rows(x.numpy()), rtol=1e-5)
        expected = jax.grad(lambda x: (doubled_rows(x) ** 2).sum())(x.numpy())
        np.testing.assert_allclose(tape.gradient(loss, x), expected, rtol=1e-4, atol=1e-6)


def test_the_declaration_of_the_guide_converts():
    def fun_jax(x):
        shape = (x.shape[0] * 2, *x.shape[1:])
        y = call_tf(lambda x: tf.concat([x, x], axis=0), output_shape_dtype=jax.ShapeDtypeStruct(shape, x.dtype))(x)
        return jnp.ones(y.shape, dtype=y.dtype) + y

    x = np.ones((3, 2), np.float32)
    np.testing.assert_array_equal(convert(fun_jax, polymorphic_shapes=["b, ..."])(x), np.full((6, 2), 2.0))
    same = convert(lambda x: call_tf(tf.math.sin, output_shape_dtype=x)(x), polymorphic_shapes=["b, ..."])
    np.testing.assert_allclose(same(x), np.sin(x), rtol=1e-6)


# --- calls by name ---


@pytest.mark.parametrize("wrap", [lambda f: f, in_graph], ids=["eager", "graph"])
def test_a_call_by_name_gives_values_and_gradients(wrap):
    call = call_tf(shifted_sine, call_tf_graph=True)
    f = wrap(convert(lambda x: call(jnp.cos(x)) * 2 + call(x)))
    x = tf.constant([0.5, 1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    np.testing.assert_allclose(y, 2 * np.sin(np.cos(x)) + np.sin(x) + 3, rtol=1e-6)
    expected = -2 * np.cos(np.cos(x)) * np.sin(x) + np.cos(x)
    np.testing.assert_allclose(tape.gradient(y, x), expected, rtol=1e-5)


def test_calls_by_name_with_symbolic_shapes_and_for_several_platforms():
    call = call_tf(lambda x: tf.concat([x, tf.sin(x)], 0), call_tf_graph=True)
    f = in_graph(convert(call, polymorphic_shapes=["b"], native_serialization_platforms=("cpu", "cuda")))
    for size in (1, 3, 8):
        x = np.arange(size, dtype=np.float32)
        np.testing.assert_allclose(f(x), np.concatenate([x, np.sin(x)]), rtol=1e-6)


@pytest.mark.parametrize("wrap", [lambda f: f, in_graph], ids=["eager", "graph"])
def test_ordered_calls_run_each_once(wrap):
    """Random numbers: the same call twice gives two of them."""
    # In the first compiled program of a process that draws any, TensorFlow 2.19 gives all of them the same number.
    tf.function(lambda: tf.random.uniform([]), jit_compile=True)()
    draw = call_tf(lambda x: x + tf.random.uniform([]), ordered=True, call_tf_graph=True)
    f = wrap(convert(lambda x: jnp.stack([draw(x), draw(x)])))
    first, second = f(np.float32(2.0)).numpy()
    assert 2 <= first < 3
    assert 2 <= second < 3
    assert first != second


def test_converting_twice_and_in_threads_is_no_different():
    call = call_tf(shifted_sine, call_tf_graph=True)
    program = jax.jit(lambda x: call(call(x)))
    expected = np.sin(np.sin(2.0) + 1) + 1
    found = []

    def work():
        found.append(convert(program)(np.float32(2.0)).numpy())

    work()
    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    np.testing.assert_allclose(found, [expected] * 5, rtol=1e-6)


@pytest.mark.slow
def test_a_saved_model_that_calls_by_name_runs_without_jax(run_without_jax, tmp_path):
    call = call_tf(shifted_sine, call_tf_graph=True)
    model = tf.Module()
    model.f = tf.function(
        convert(lambda x: call(jnp.cos(x)) * 2),
        autograph=False,
        input_signature=[tf.TensorSpec([3], tf.float32)],
    )
    x = np.array([0.5, 1.0, 2.0], np.float32)
    tf.saved_model.save(model, str(tmp_path / "model"))
    np.savez(tmp_path / "model.npz", **{"0:0": x})
    done = run_without_jax(HERE / "serve_without_jax.py", tmp_path)
    assert done.returncode == 0, done.stderr[-4000:]
    assert json.loads(done.stdout.splitlines()[-1])["jax"] is False
    with np.load(tmp_path / "model.results.npz") as results:
        np.testing.assert_allclose(results["0:value:0"], 2 * np.sin(np.cos(x)) + 2, rtol=1e-6)
        np.testing.assert_allclose(results["0:gradient:0"], -2 * np.cos(np.cos(x)) * np.sin(x), rtol=1e-5)


# --- there and back ---


def test_conversions_nest_in_both_directions():
    def layers(x):
        return call_tf(convert(lambda y: jnp.cos(call_tf(tf.sin)(y)) * 3))(x) + 1

    x = np.linspace(0, 1, 4, dtype=np.float32)
    for f in (layers, jax.jit(layers), convert(layers), in_graph(convert(layers))):
        np.testing.assert_allclose(f(x), 3 * np.cos(np.sin(x)) + 1, rtol=1e-6)
    gradient = -3 * np.sin(np.sin(x)) * np.cos(x)
    np.testing.assert_allclose(jax.vmap(jax.grad(layers))(x), gradient, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(jax.jit(jax.grad(lambda x: layers(x).sum()))(x), gradient, rtol=1e-5, atol=1e-6)


class Model(tf.Module):
    """A model with variables, and an activation with a gradient of its own: at most 1."""

    def __init__(self, weights, function=lambda w, b, x: clipped(x @ w + b)):
        super().__init__()
        self.function = function
        self.weights = {name: tf.Variable(value, name=name) for name, value in weights.items()}

    @tf.function(input_signature=[tf.TensorSpec([None, 3], tf.float32)])
    def predict(self, x):
        return self.apply(self.weights["w"], self.weights["b"], x)

    @tf.function(input_signature=[tf.TensorSpec(shape, tf.float32) for shape in ([3, 2], [2], [None, 3])])
    def apply(self, w, b, x):
        return self.function(w, b, x)


@tf.custom_gradient
def clipped(x):
    return x * x, lambda upstream: tf.clip_by_value(upstream * 2 * x, -1.0, 1.0)


@pytest.mark.slow
def test_a_saved_model_is_tuned_in_jax_and_saved_again_three_times(tmp_path):
    x = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)
    y = np.ones((4, 2), np.float32)
    weights = {"w": np.full((3, 2), 0.5, np.float32), "b": np.full(2, 0.1, np.float32)}
    model, losses = Model(weights), []
    for turn in range(3):
        tf.saved_model.save(
            model, str(tmp_path / str(turn)), options=tf.saved_model.SaveOptions(experimental_custom_gradients=True)
        )
        loaded = tf.saved_model.load(str(tmp_path / str(turn)))
        weights = {name: variable.numpy() for name, variable in loaded.weights.items()}
        apply = call_tf(loaded.apply)

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # the variables are captured
            served = jax.jit(call_tf(loaded.predict))(x)
        np.testing.assert_allclose(served, apply(weights["w"], weights["b"], x), rtol=1e-5)

        def loss(weights, apply=apply):
            return ((apply(weights["w"], weights["b"], x) - y) ** 2).mean()

        step = jax.jit(jax.value_and_grad(loss))
        for _ in range(5):
            value, gradients = step(weights)
            losses.append(float(value))
            weights = jax.tree.map(lambda w, g: w - 0.1 * g, weights, gradients)

        model = Model(weights, convert(apply, polymorphic_shapes=["...", "...", "n, _"]))
    assert losses == sorted(losses, reverse=True)

    big = tf.constant([[100.0, 0.0, 0.0]])
    with tf.GradientTape() as tape:
        tape.watch(big)
        result = model.predict(big)
    w = model.weights["w"].numpy()
    slope = np.clip(2 * (big.numpy() @ w + model.weights["b"].numpy()), -1, 1)  # the custom gradient, after three turns
    np.testing.assert_allclose(tape.gradient(result, big), slope @ w.T, rtol=1e-5)


# --- random numbers with a state ---


def noisy(x):
    return x + tf.random.uniform((3,))


def noisy_export(module):
    return module.export(jax.jit(call_tf(noisy)))(jax.ShapeDtypeStruct((3,), np.float32))


@pytest.mark.parametrize("writer", [jaxtf.serialization, jax.export], ids=["own", "jax"])
@pytest.mark.parametrize("reader", [jaxtf.serialization, jax.export], ids=["own", "jax"])
def test_an_artifact_with_random_numbers_draws_new_ones_at_each_call(writer, reader):
    reloaded = reader.deserialize(bytearray(noisy_export(writer).serialize()))
    drawn = [np.asarray(run(np.zeros(3, np.float32))) for run in (reloaded.call, reloaded.call, jax.jit(reloaded.call))]
    assert all(((number >= 0) & (number < 1)).all() for number in drawn)
    assert len({number.tobytes() for number in drawn}) == 3


def test_an_artifact_with_random_numbers_is_converted_in_native_mode_and_refused_elsewhere():
    reloaded = deserialize(noisy_export(jaxtf.serialization).serialize())
    converted = in_graph(convert_exported(reloaded))
    assert len({converted(np.zeros(3, np.float32)).numpy().tobytes() for _ in range(3)}) == 3
    with pytest.raises(GraphModeUnsupported, match="depend on the state of the device"):
        in_graph(convert_exported(reloaded, native_serialization=False))(np.zeros(3, np.float32))
    with pytest.raises(LiftUnsupported, match="depend on the state of the device"):
        reloaded.lift()


READER = """
import sys
import numpy as np
from jaxtf.serialization import ArtifactError, deserialize
with open(sys.argv[1], "rb") as file:
    exported = deserialize(file.read())
try:
    exported.call(np.zeros(3, np.float32))
except ArtifactError as error:
    print(error)
import jaxtf.calltf
print(len({np.asarray(exported.call(np.zeros(3, np.float32))).tobytes() for _ in range(3)}))
"""


@pytest.mark.slow
def test_a_process_that_has_not_imported_calltf_is_told_to(tmp_path):
    (tmp_path / "artifact").write_bytes(noisy_export(jaxtf.serialization).serialize())
    found = subprocess.run(
        [sys.executable, "-c", READER, tmp_path / "artifact"], capture_output=True, text=True, check=True
    )
    assert found.stdout == (
        "the exported function has the effect jaxtf.calltf._effects.CallTfEffect, a class that this process does not "
        "have\n  remedy: import jaxtf.calltf before calling the function\n3\n"
    )
