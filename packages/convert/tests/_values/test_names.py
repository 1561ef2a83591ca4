"""Names of arguments and results in graphs, and where in the user's code an operation comes from."""

import inspect

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

from jaxtf.convert import convert
from jaxtf.convert._values.names import argument_names, call_signature, result_names
from jaxtf.serialization import export


def model(params, images, scale=2.0):
    return {"scores": images @ params["w"] * scale, "state": (images.sum(), images)}


def concrete(function, *specs):
    return tf.function(function, autograph=False).get_concrete_function(*specs)


SPECS = ({"w": tf.TensorSpec([4, 3], tf.float32)}, tf.TensorSpec([2, 4], tf.float32))


def test_the_inputs_of_a_graph_have_the_names_of_the_arguments():
    graph = concrete(convert(model), *SPECS)
    assert [tensor.name for tensor in graph.inputs] == ["params:0", "images:0"]
    assert list(graph.structured_input_signature[0][0]) == ["w"]


def test_the_results_in_a_graph_have_the_names_of_their_paths():
    operations = {operation.name for operation in concrete(convert(model), *SPECS).graph.get_operations()}
    assert {"scores", "state_0", "state_1"} <= operations


@pytest.mark.parametrize("native", [True, False], ids=["native", "graph mode"])
def test_the_operations_of_a_gradient_are_in_a_scope_of_their_own(native):
    converted = convert(jnp.sin, native_serialization=native)

    def gradient(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = converted(x)
        return tape.gradient(y, x)

    operations = [operation.name for operation in concrete(gradient, tf.TensorSpec([3])).graph.get_operations()]
    assert [name for name in operations if name.startswith("jaxtf_vjp/")]
    assert not [name for name in operations if name.startswith("jax2tf")]


def test_arguments_with_defaults_may_be_left_out_and_given():
    graph = tf.function(convert(model), autograph=False)
    params, images = {"w": np.ones((4, 3), np.float32)}, np.ones((2, 4), np.float32)
    for options in ({}, {"scale": 3.0}):
        found = graph(params, images, **options)
        np.testing.assert_array_equal(found["scores"], model(params, images, **options)["scores"])
    np.testing.assert_array_equal(graph(params, images, 3.0)["scores"], model(params, images, 3.0)["scores"])


def test_an_option_with_a_default_stays_a_python_value():
    def dropout(x, training=False):
        return x * 2 if training else x

    assert float(tf.function(convert(dropout), autograph=False)(np.float32(3))) == 3


@pytest.mark.parametrize(
    "function", [lambda *args: args[0], lambda args, kwargs: args, lambda *, x: x], ids=["star", "args", "keyword"]
)
def test_signatures_of_every_kind_work_in_graphs(function):
    keywords = {"x": np.float32(1)} if "x" in inspect.signature(function).parameters else {}
    given = () if keywords else (np.float32(1), np.float32(2))
    assert float(tf.function(convert(function), autograph=False)(*given, **keywords)) == 1


def test_what_has_no_signature_takes_anything():
    class Odd:
        __signature__ = "none"

        def __call__(self, x):
            return x

    assert [p.kind.name for p in call_signature(Odd()).parameters.values()] == ["VAR_POSITIONAL", "VAR_KEYWORD"]


def test_names_are_unique_and_valid_in_graphs():
    assert result_names(("result['a']['b']", "result['a_b']", "result['0']", "result['_']['é']")) == (
        "a_b",
        "a_b_1",
        "output_0",
        "value",
    )
    assert argument_names(("args[1].w", "args[0]", "args[2]"), ("x", "y")) == ("y_w", "x", "args_2")
    assert argument_names(("args[0]['b']", "args[1]", "args[2]"), ("a", "a_b", "A_b")) == ("a_b_2", "a_b", "A_b_1")
    assert argument_names(("kwargs['变']", "args[0]", "kwargs['self']"), ("größe",)) == ("value", "gr__e", "self_1")


def test_the_module_tells_which_line_of_the_user_an_operation_comes_from():
    def at_this_line(x):
        return jnp.sin(x)

    text = export(at_this_line)(jax.ShapeDtypeStruct((), np.float32)).mlir_module()
    line = inspect.getsourcelines(at_this_line)[1] + 1
    assert f'test_names.py":{line}:' in text
