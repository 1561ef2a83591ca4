"""A SavedModel of a program with its weights, written and trained in a process that has no JAX."""

import io
import json
import re
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

from jaxtf.convert import ConversionOptionError, convert_exported, save_exported, save_model
from jaxtf.serialization import export, load, save
from jaxtf.shapepoly import symbolic_shape

HERE = Path(__file__).parent
X = np.linspace(0, 1, 20, dtype=np.float32).reshape(5, 4)


def weights():
    kernel = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
    return {"dense": {"kernel": kernel, "again": kernel}, "steps": np.int32(7)}


def predict(params, images, *, scale):
    hidden = jnp.tanh(images @ params["dense"]["kernel"]) * scale
    return {"scores": hidden @ params["dense"]["again"].T, "top": (hidden.max(axis=1),)}


def loss_of(params):
    return jnp.mean((predict(params, X, scale=2.0)["scores"] - 1.0) ** 2)


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    spec = jax.ShapeDtypeStruct(symbolic_shape("b, 4"), jnp.float32)
    exported = export(predict, tensorflow_version="2.21")(weights(), spec, scale=jax.ShapeDtypeStruct((), jnp.float32))
    path = tmp_path_factory.mktemp("program") / "model.jaxtf"
    save(path, exported, weights(), vjp_order=1, metadata={"license": "Apache-2.0"})
    return path


def test_a_process_without_jax_writes_serves_and_trains_it(run_without_jax, program, tmp_path):
    done = run_without_jax(HERE / "train_without_jax.py", program, tmp_path / "saved")
    assert done.returncode == 0, done.stderr[-4000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["imported"] == []
    assert found["saved"] == "(images: float32[?,4], scale: float32[]) -> scores: float32[?,4], top_0: float32[?]"
    assert (found["orders"], found["bytes"], found["trainable"]) == (1, 52, 1)
    expected = predict(weights(), X, scale=2.0)
    np.testing.assert_allclose(found["served"]["scores"], expected["scores"], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found["served"]["top_0"], expected["top"][0], rtol=1e-5)
    np.testing.assert_allclose(found["converted"], expected["scores"], rtol=1e-5, atol=1e-6)
    kernel = weights()["dense"]["kernel"]
    for loss in found["losses"]:

        def shared(kernel):
            return loss_of({"dense": {"kernel": kernel, "again": kernel}, "steps": 7})

        value, gradient = jax.value_and_grad(shared)(kernel)
        np.testing.assert_allclose(loss, value, rtol=1e-5)
        kernel = kernel - 0.1 * gradient
    np.testing.assert_allclose(found["kernel"], kernel, rtol=1e-4, atol=1e-6)
    assert found["steps"] == 7
    assert json.loads((tmp_path / "saved" / "assets.extra" / "metadata.json").read_text()) == {"license": "Apache-2.0"}


def test_a_path_a_file_bytes_and_what_was_loaded_are_converted_alike(program):
    expected = predict(weights(), X, scale=2.0)["scores"]
    for source in (str(program), io.BytesIO(program.read_bytes()), program.read_bytes(), load(program)):
        converted = convert_exported(source)
        np.testing.assert_allclose(converted(X, scale=np.float32(2))["scores"], expected, rtol=1e-5, atol=1e-6)
        assert [variable.shape.as_list() for variable in converted.variables] == [[4, 3], []]
        assert len(converted.trainable_variables) == 1
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((converted(X, scale=np.float32(2))["scores"] - 1.0) ** 2)
    assert tape.gradient(loss, converted.trainable_variables[0]).shape == (4, 3)


def test_an_artifact_alone_becomes_a_savedmodel_without_variables(tmp_path):
    exported = export(lambda x, y: x + y, tensorflow_version="2.21")(jnp.ones(3), jnp.ones(3))
    (tmp_path / "f").write_bytes(exported.serialize())
    saved = save_exported(tmp_path / "f", tmp_path / "saved")
    assert str(saved.signatures["serving_default"]) == (
        "(args_0: float32[3], args_1: float32[3]) -> output_0: float32[3]"
    )
    assert saved.gradient_order == 0
    np.testing.assert_array_equal(tf.saved_model.load(str(tmp_path / "saved"))(tf.ones(3), tf.ones(3)), 2 * np.ones(3))


def test_a_keyword_argument_with_the_name_of_a_positional_one_is_refused(tmp_path):
    exported = export(lambda x, *, args_0: x - args_0)(jnp.ones(3), args_0=jnp.ones(3))
    with pytest.raises(ConversionOptionError, match="keyword argument 'args_0'"):
        save_exported(exported, tmp_path / "saved")


@pytest.mark.parametrize("order", [-1, "2", True, 1.0, None])
def test_orders_of_gradient_are_a_number_of_them(tmp_path, order):
    exported = export(jnp.sin)(jnp.ones(3))
    message = rf"gradient_order must be a number of orders, 0 for no gradient\. Got: {order!r}"
    for source in (exported, exported.serialize(vjp_order=1)):  # as many orders as asked for; one
        if order is None:
            assert save_exported(source, tmp_path).gradient_order == 1
            continue
        with pytest.raises(ConversionOptionError, match=message):
            save_exported(source, tmp_path, gradient_order=order)
    if order is not None:
        with pytest.raises(ConversionOptionError, match=message):
            save_model(lambda p, x: p * x, 2.0, tmp_path, input_signatures=[tf.TensorSpec([2])], gradient_order=order)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"signature": 3}, "signature must be a text. Got: 3"),
        ({"signature": None}, "signature must be a text. Got: None"),
        ({"signature": b"x"}, "signature must be a text. Got: b'x'"),
        ({"signature": "__saved_model_init_op"}, "TensorFlow runs what has this name when it loads"),
        ({"input_names": [1, 2]}, "input_names must be different texts of ASCII letters, digits and _"),
        ({"input_names": ["x", "X"]}, "Got: ['x', 'X']"),
        ({"input_names": ["x", "x"]}, "different also in lower case, and other than 'self'. Got: ['x', 'x']"),
        ({"input_names": ["größe", "y"]}, "Got: ['größe', 'y']"),
        ({"input_names": ["a b", "y"]}, "Got: ['a b', 'y']"),
        ({"input_names": ["", "y"]}, "Got: ['', 'y']"),
        ({"input_names": ["self", "y"]}, "Got: ['self', 'y']"),
    ],
)
def test_names_that_tensorflow_cannot_have_are_refused(tmp_path, options, message):
    exported = export(lambda x, y: x + y)(jnp.ones(3), jnp.ones(3))
    with pytest.raises(ConversionOptionError, match=re.escape(message)):
        save_exported(exported, tmp_path / "saved", **options)


def test_what_the_program_does_not_have_is_refused_with_a_message(program, tmp_path):
    with pytest.raises(ConversionOptionError, match=r"gradient_order must be from 0 to 1, the orders of VJP that"):
        save_exported(program, tmp_path / "saved", gradient_order=2)
    with pytest.raises(ConversionOptionError, match=r"input_names must be 1 names, one for each positional argument"):
        save_exported(program, tmp_path / "saved", input_names=["a", "b"])
    with pytest.raises(ConversionOptionError, match=r"input_names must be 1 names, .* Got: 'x'"):
        save_exported(program, tmp_path / "saved", input_names="x")
    with pytest.raises(ConversionOptionError, match="save_exported needs an Exported or the bytes of an artifact"):
        save_exported(3, tmp_path / "saved")
    assert list(tmp_path.iterdir()) == []
