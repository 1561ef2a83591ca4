"""Variables and tensors that a TensorFlow function captures are constants of what is exported or converted."""

import warnings

import jax
import numpy as np
import pytest
import tensorflow as tf

from jaxtf.calltf import CaptureWarning, call_tf
from jaxtf.convert import convert, save_model
from jaxtf.serialization import deserialize, export

X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)
W = np.linspace(1, 2, 3, dtype=np.float32)


def nested(x, w):
    inner = tf.function(lambda x: x * w, autograph=False)
    return tf.function(lambda x: inner(x) + inner(x), autograph=False)(x)


def in_a_switch(x, w):
    return tf.switch_case(tf.cast(tf.size(x) > 0, tf.int32), [lambda: x, lambda: x * w])


# How a function reads the vector `w` that it captures, a variable or a tensor.
READERS = {
    "plain": lambda x, w: x * x * w,
    "nested functions": nested,
    "a branch": lambda x, w: tf.cond(tf.reduce_sum(x * x) > 0, lambda: x * w, lambda: x),
    "a switch": in_a_switch,
    "a loop": lambda x, w: tf.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * w), (0, x), maximum_iterations=3)[
        1
    ],
    "a branch in a loop": lambda x, w: tf.while_loop(
        lambda i, x: i < 3,
        lambda i, x: (i + 1, tf.cond(i > 1, lambda: x * w, lambda: x + w)),
        (0, x),
        maximum_iterations=3,
    )[1],
    "rows": lambda x, w: x * tf.gather(w, [2, 0, 1]),
    "its size": lambda x, w: x * w * tf.cast(tf.shape(w)[0], x.dtype),
    "a custom gradient": lambda x, w: tf.custom_gradient(lambda x, w: (x * w, lambda dy: (dy * w, None)))(x, w + 0.0),
    "assertions": lambda x, w: (tf.debugging.assert_equal(w, w), x * w)[1],
    "an asynchronous loop": lambda x, w: x * tf.map_fn(lambda v: v * w[0], w),
}
CAPTURED = {"variable": tf.Variable, "tensor": lambda value: tf.constant(np.tile(value, 100))}
RUN = {
    "eager": lambda f: f,
    "graph": lambda f: tf.function(f, autograph=False),
    "compiled": lambda f: tf.function(f, autograph=False, jit_compile=True),
}
MODES = {
    "native": {"native_serialization": True},
    "graph": {"native_serialization": False},
    "plain graph": {"native_serialization": False, "enable_xla": False},
}


@pytest.mark.slow(1)
@pytest.mark.parametrize("run", RUN)
@pytest.mark.parametrize("symbolic", [False, True], ids=["", "symbolic"])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("reader", READERS)
def test_a_variable_is_a_constant_of_value_and_gradient_in_every_mode(reader, mode, symbolic, run):
    variable, read = tf.Variable(W), READERS[reader]
    x = tf.constant(X)
    with tf.GradientTape() as tape:
        tape.watch(x)
        expected = read(x, W)
    slope = tape.gradient(expected, x)
    converted = convert(
        call_tf(lambda x: read(x, variable)),
        polymorphic_shapes=["b, _"] if symbolic else None,
        **MODES[mode],
    )
    function = RUN[run](converted)
    with tf.GradientTape() as tape:
        tape.watch(x)
        with pytest.warns(CaptureWarning, match=r"tf.Variable .* float32\[3\]"):
            found = function(x)
    variable.assign(W + 1)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CaptureWarning)
        np.testing.assert_allclose(tape.gradient(found, x), slope, rtol=1e-6)
    np.testing.assert_allclose(function(x), expected, rtol=1e-6)


@pytest.mark.parametrize("mode", MODES)
def test_a_variable_of_a_program_is_initialized(mode):
    variable = tf.Variable(W)
    converted = convert(call_tf(lambda x: tf.where(variable.is_initialized(), x * variable, x)), **MODES[mode])
    with pytest.warns(CaptureWarning):
        np.testing.assert_array_equal(converted(X), X * W)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("captured", CAPTURED)
def test_captures_are_named_in_a_warning_and_are_no_part_of_the_graph(captured, mode):
    value = CAPTURED[captured](W)
    converted = convert(call_tf(lambda x: x * value[:3]), **MODES[mode])
    with pytest.warns(CaptureWarning, match=r"call_tf works best.*found in <lambda>"):
        concrete = tf.function(converted, autograph=False).get_concrete_function(tf.TensorSpec([4, 3]))
    assert not concrete.captured_inputs
    np.testing.assert_array_equal(concrete(X), X * W)


@pytest.mark.filterwarnings("ignore:call_tf works best")
@pytest.mark.parametrize("mode", MODES)
def test_a_saved_model_holds_the_values(mode, tmp_path):
    variable = tf.Variable(W)
    f = call_tf(lambda x: x * variable)
    save_model(lambda p, x: p * f(x), np.float32(2), tmp_path, input_signatures=[tf.TensorSpec([4, 3])], **MODES[mode])
    variable.assign(-W)
    np.testing.assert_array_equal(tf.saved_model.load(tmp_path)(X), 2 * X * W)


@pytest.mark.filterwarnings("ignore:call_tf works best")
@pytest.mark.parametrize("read", ["vjp", "artifact"])
def test_the_derivative_of_an_export_has_the_values_of_the_export(read):
    variable = tf.Variable(3.0)
    exported = export(call_tf(lambda x: x * x * variable))(jax.ShapeDtypeStruct((), np.float32))
    variable.assign(7.0)
    if read == "artifact":
        exported = deserialize(exported.serialize(vjp_order=2))
    assert exported.call(2.0) == 12.0
    assert exported.vjp().call(np.float32(2), np.float32(1)) == (12.0,)
    assert jax.grad(jax.grad(exported.call))(2.0) == 6.0


@pytest.mark.parametrize("by_name", [False, True], ids=["compiled", "by name"])
@pytest.mark.parametrize("mode", MODES)
def test_a_tensor_of_the_graph_that_is_being_built_is_refused(mode, by_name):
    @tf.function(autograph=False)
    def outer(t, x):
        return convert(call_tf(lambda x: x * t, call_tf_graph=by_name), **MODES[mode])(x)

    with pytest.raises(NotImplementedError, match=r"captures tf.Tensor float32\[\] of a TensorFlow graph that is"):
        outer(tf.constant(3.0), tf.constant(2.0))


@pytest.mark.parametrize("mode", MODES)
def test_a_variable_that_a_call_by_name_captures_is_refused(mode):
    variable = tf.Variable(3.0)
    converted = convert(call_tf(lambda x: x * variable, call_tf_graph=True), **MODES[mode])
    with pytest.raises(NotImplementedError, match=r"(?s)call_tf_graph=True and captures variables.*pass them as arg"):
        converted(2.0)


@pytest.mark.filterwarnings("ignore:call_tf works best")  # its default is a tensor
@pytest.mark.parametrize("mode", ["graph", "plain graph"])
def test_a_table_stays_in_a_call_by_name_in_graph_mode(mode):
    table = tf.lookup.experimental.MutableHashTable(tf.int32, tf.float32, 0.0)
    table.insert([1, 2], [3.0, 4.0])
    call = call_tf(lambda x: tf.ensure_shape(table.lookup(x), x.shape), call_tf_graph=True)
    converted = tf.function(convert(call, **MODES[mode]), autograph=False)
    np.testing.assert_array_equal(converted(np.int32([1, 2, 5])), [3, 4, 0])
    table.insert([5], [6.0])
    np.testing.assert_array_equal(converted(np.int32([1, 2, 5])), [3, 4, 6])


@pytest.mark.parametrize("mode", ["graph", "plain graph"])
def test_a_tensor_stays_in_a_call_by_name_in_graph_mode_with_a_warning(mode):
    tensor = tf.constant(np.tile(W, 100))
    converted = tf.function(
        convert(call_tf(lambda x: x * tensor[:3], call_tf_graph=True), **MODES[mode]), autograph=False
    )
    with pytest.warns(CaptureWarning, match=r"tf.Tensor float32\[300\]"):
        np.testing.assert_array_equal(converted(X), X * W)
