"""`call_tf_graph=True`: a staged call stays a call of a TensorFlow function, which the export carries."""

import pickle
import re
import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

from jaxtf.calltf import call_tf
from jaxtf.serialization import SerializationError, export
from jaxtf.shapepoly import symbolic_shape

X = jax.ShapeDtypeStruct((3,), np.float32)


def shifted_sine(x):
    return tf.sin(x) + 1


def calls(exported):
    """(called_index, whether it has a token) of each call in the module."""
    pattern = r"@tf\.call_tf_function.*called_index = (\d+).*has_token_input_output = (true|false)"
    return [(int(index), token == "true") for index, token in re.findall(pattern, exported.mlir_module())]


def evaluated(exported):
    """The functions that it carries, applied to ones."""
    return [float(function.value(tf.ones(3))[0][0]) for function in exported.called_functions]


def test_the_export_carries_the_functions_in_the_order_of_their_indices():
    first, second = call_tf(shifted_sine, call_tf_graph=True), call_tf(tf.exp, call_tf_graph=True)
    exported = export(lambda x: second(first(x)) + first(x * 2))(X)
    assert calls(exported) == [(0, False), (1, False), (0, False)]
    np.testing.assert_allclose(evaluated(exported), [np.sin(1) + 1, np.e], rtol=1e-6)


def test_an_export_that_carries_functions_is_not_pickled():
    exported = export(call_tf(shifted_sine, call_tf_graph=True))(X)
    name = exported.called_functions[0].name
    with pytest.raises(SerializationError) as error:
        pickle.dumps(exported)
    assert str(error.value) == (
        f"'shifted_sine' cannot be pickled: it calls {name}, which only this process has\n"
        "  remedy: convert it to TensorFlow here, and save that"
    )


def test_calls_inside_of_control_flow_and_jit_are_found():
    call = call_tf(shifted_sine, call_tf_graph=True)

    def program(x):
        x = jax.lax.cond(x[0] > 0, jax.jit(call), lambda x: x, x)
        return jax.lax.scan(lambda carry, _: (call_tf(tf.exp, call_tf_graph=True)(carry), None), x, length=3)[0]

    exported = export(program)(X)
    assert len(exported.called_functions) == 2
    assert {index for index, _ in calls(exported)} == {0, 1}


def test_exporting_twice_and_for_several_platforms_finds_the_functions_though_lowerings_are_cached():
    call = call_tf(shifted_sine, call_tf_graph=True)
    program = jax.jit(lambda x: call(x) + call(x))
    for platforms in (("cpu",), ("cpu",), ("cpu", "cuda"), ("cuda", "tpu")):
        exported = export(program, platforms=platforms)(X)
        assert len(exported.called_functions) == 1
        assert {index for index, _ in calls(exported)} == {0}
    assert export(program)(X).has_same_function(export(program)(X))


def test_threads_export_each_its_own():
    found = {}

    def work(i):
        call = call_tf(lambda x: x * i, call_tf_graph=True)
        found[i] = evaluated(export(lambda x: call_tf(shifted_sine, call_tf_graph=True)(call(x)))(X))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(found[i][0] == i for i in range(4))


def test_the_vjp_carries_its_own_functions():
    exported = export(call_tf(shifted_sine, call_tf_graph=True))(X)
    [pullback] = exported.vjp().called_functions
    np.testing.assert_allclose(pullback.value(tf.ones(3), tf.ones(3))[0], np.full(3, np.cos(1)), rtol=1e-6)


def test_ordered_calls_have_tokens_and_an_ordered_effect():
    call = call_tf(shifted_sine, ordered=True, call_tf_graph=True)
    exported = export(lambda x: call(call(x)))(X)
    assert [str(effect) for effect in exported.ordered_effects] == ["jaxtf.calltf._effects.CallTfOrderedEffect"]
    assert calls(exported) == [(0, True), (0, True)]


def test_symbolic_shapes_are_shape_operands():
    from jaxtf.shapepoly import symbolic_shape

    exported = export(call_tf(lambda x: tf.concat([x, x], 0), call_tf_graph=True))(
        jax.ShapeDtypeStruct(symbolic_shape("b, 3"), np.float32)
    )
    assert str(exported.out_avals[0].shape) == "(2*b, 3)"
    assert "indices_of_shape_operands" in exported.mlir_module()
    with pytest.raises(NotImplementedError, match=r"ordered=True and symbolic shapes.*\n  remedy"):
        export(call_tf(tf.sin, ordered=True, call_tf_graph=True))(jax.ShapeDtypeStruct(symbolic_shape("b"), np.float32))


def test_eager_calls_are_as_without_it():
    call = call_tf(shifted_sine, ordered=True, call_tf_graph=True)
    np.testing.assert_allclose(call(1.0), np.sin(1) + 1, rtol=1e-6)
    np.testing.assert_allclose(jax.grad(call)(1.0), np.cos(1), rtol=1e-6)


def test_jit_without_an_export_is_refused():
    with pytest.raises(ValueError, match=r"(?s)call_tf_graph=True only supports exporting.*remedy: convert"):
        jax.jit(call_tf(shifted_sine, call_tf_graph=True))(1.0)


def test_ordered_without_call_tf_graph_is_refused_when_staged():
    with pytest.raises(
        NotImplementedError, match=r"(?s)ordered=True in a JAX staging context .* needs call_tf_graph=True"
    ):
        jax.jit(call_tf(shifted_sine, ordered=True))(1.0)


def test_captures_are_refused():
    variable = tf.Variable(1.0)
    with pytest.raises(NotImplementedError, match=r"(?s)call_tf_graph=True and captures variables.*pass them as arg"):
        export(call_tf(lambda x: x * variable, call_tf_graph=True))(X)


def test_forward_mode_and_ordered_vmap_are_refused():
    with pytest.raises(NotImplementedError, match=r"forward mode of shifted_sine with call_tf_graph=True"):
        export(lambda x: jax.jvp(call_tf(shifted_sine, call_tf_graph=True), (x,), (x,))[1])(X)
    with pytest.raises(NotImplementedError, match=r"(?s)vmap of shifted_sine with ordered=True.*use jax.lax.map"):
        export(jax.vmap(call_tf(shifted_sine, call_tf_graph=True, ordered=True)))(X)


def test_such_an_export_is_neither_serialized_nor_called():
    exported = export(call_tf(shifted_sine, call_tf_graph=True))(X)
    with pytest.raises(
        ValueError, match=r"(?s)by name, functions of this process that an artifact cannot hold.*remedy"
    ):
        exported.serialize()
    with pytest.raises(NotImplementedError, match=r"(?s)has no functions of these names.*run it in TensorFlow"):
        exported.call(jnp.ones(3))


def test_with_declared_symbolic_shapes_the_function_may_contain_anything():
    def function(x):
        tf.print("rows:", tf.shape(x)[0], output_stream="file:///dev/null")
        return tf.ensure_shape(tf.py_function(lambda x: x * 2, [x], tf.float32), x.shape)

    def program(x):
        return call_tf(function, call_tf_graph=True, output_shape_dtype=x)(x)

    exported = export(program)(jax.ShapeDtypeStruct(symbolic_shape("b, 3"), np.float32))
    assert str(exported.out_avals[0]) == "float32[b,3]"
    assert len(calls(exported)) == 1


@pytest.mark.parametrize(
    ("function", "shape"),
    [
        (
            lambda x: (tf.print("rows:", tf.shape(x)[0], output_stream="file:///dev/null"), tf.concat([x, x], 0))[1],
            "2*b,3",
        ),
        (lambda x: x * tf.ensure_shape(tf.py_function(lambda x: x.numpy().sum(), [x], tf.float32), []), "b,3"),
        (lambda x: tf.cond(tf.reduce_sum(x) > 0, lambda: x, lambda: x @ tf.linalg.expm(tf.ones([3, 3]))), "b,3"),
        (lambda x: tf.strings.length(tf.strings.as_string(tf.reduce_sum(x))), ""),
    ],
)
def test_with_inferred_symbolic_shapes_the_function_may_contain_anything(function, shape):
    exported = export(call_tf(function, call_tf_graph=True))(
        jax.ShapeDtypeStruct(symbolic_shape("b, 3", constraints=["b == 3"] if shape == "" else []), np.float32)
    )
    assert str(exported.out_avals[0]).partition("[")[2] == f"{shape}]"
    assert len(calls(exported)) == 1


def test_shapes_that_are_not_inferred_are_to_be_declared():
    function = lambda x: tf.py_function(lambda x: x * 2, [x], tf.float32) + 1  # noqa: E731
    spec = jax.ShapeDtypeStruct(symbolic_shape("b, 3"), np.float32)
    with pytest.raises(NotImplementedError) as raised:
        export(call_tf(function, call_tf_graph=True))(spec)
    assert re.search(
        r"shape of result\[0\] is not inferred: that of its operation EagerPyFunc \(\w+\) is not known\n  remedy: ",
        str(raised.value),
    )


def test_the_gradient_of_a_call_with_declared_symbolic_shapes_may_contain_anything():
    def function(x):
        return tf.ensure_shape(tf.py_function(lambda x: x * 2, [x], tf.float32), x.shape)

    def total(x):
        return jnp.sum(call_tf(function, call_tf_graph=True, output_shape_dtype=x)(x))

    exported = export(jax.grad(total))(jax.ShapeDtypeStruct(symbolic_shape("b, 3"), np.float32))
    assert str(exported.out_avals[0]) == "float32[b,3]"
