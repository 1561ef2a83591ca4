"""Callables that are not plain functions: of `jax.jit`, with static arguments, methods, partials, instances."""

import functools
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

from jaxtf.convert import ArgumentTypeError, convert, save_model, to_tflite, verify

MODES = {
    "eager": lambda f: f,
    "graph": lambda f: tf.function(f, autograph=False),
    "compiled": lambda f: tf.function(f, autograph=False, jit_compile=True),
}
in_each_mode = pytest.mark.parametrize("mode", MODES.values(), ids=MODES)
natively_and_as_graph = pytest.mark.parametrize("native", [True, False], ids=["native", "graph mode"])


class Scaled:
    factor = 2.0

    @functools.partial(jax.jit, static_argnums=0)
    def scaled(self, x):
        return x * self.factor


@functools.partial(jax.jit, static_argnames=("rows", "kind"))
def shaped(x, rows=3, *, kind="plain"):
    assert isinstance(rows, int | float), rows
    reshaped = x.reshape(int(rows), -1)
    return -reshaped if kind == "negative" else reshaped * type(rows)(1)


VALUES = np.arange(6, dtype=np.float32)


@natively_and_as_graph
@in_each_mode
def test_a_method_that_jit_was_applied_to_converts(mode, native):
    method = mode(convert(Scaled().scaled, native_serialization=native))
    np.testing.assert_array_equal(method(VALUES), VALUES * 2)


@natively_and_as_graph
@in_each_mode
@pytest.mark.parametrize(
    ("args", "kwargs"),
    [((), {}), ((2,), {}), ((), {"rows": 2}), ((6,), {"kind": "negative"})],
    ids=["defaults", "by position", "by name", "both"],
)
def test_static_arguments_are_values_of_python(mode, native, args, kwargs):
    found = mode(convert(shaped, native_serialization=native))(tf.constant(VALUES), *args, **kwargs)
    np.testing.assert_array_equal(found, shaped(VALUES, *args, **kwargs), strict=True)


def test_each_static_value_is_a_signature_of_its_own_and_traced_once():
    traced = []

    @functools.partial(jax.jit, static_argnums=-1)
    def noted(x, rows):
        traced.append(rows)
        return x.reshape(int(rows), -1)

    converted = convert(noted)
    # Equal numbers of different types are different values, as in JAX.
    shapes = [converted(tf.constant(VALUES), rows).shape.as_list() for rows in (1, True, 2, 1, 2, True)]
    assert shapes == [[1, 6], [1, 6], [2, 3], [1, 6], [2, 3], [1, 6]]
    assert sorted(map(repr, traced)) == ["1", "2", "True"]


def test_sizes_stay_open_beside_static_arguments():
    scale = jax.jit(lambda x, times: x * times, static_argnums=1)
    converted = tf.function(convert(scale, polymorphic_shapes=["(b, ...)", None]), autograph=False)
    concrete = converted.get_concrete_function(tf.TensorSpec([None], tf.float32), 3)
    assert concrete.outputs[0].shape.as_list() == [None]
    np.testing.assert_array_equal(concrete(tf.constant(VALUES)), VALUES * 3)


def test_a_function_with_static_arguments_has_a_gradient_and_is_saved(tmp_path):
    squares = convert(jax.jit(lambda x, times: (x**2).sum() * times, static_argnames="times"))
    x = tf.constant(VALUES)
    module = tf.Module()
    module.f = tf.function(lambda x: squares(x, times=3), autograph=False, input_signature=[tf.TensorSpec([6])])
    tf.saved_model.save(module, tmp_path)
    for function in (lambda x: squares(x, times=3), module.f, tf.saved_model.load(tmp_path).f):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = function(x)
        np.testing.assert_allclose(tape.gradient(y, x), 6 * VALUES, rtol=1e-6)


def test_large_arrays_beside_static_arguments_compute():
    large = jnp.arange(1 << 17, dtype=jnp.float32)
    converted = convert(jax.jit(lambda x, times: (x[0] + large) * times, static_argnums=1))
    np.testing.assert_array_equal(converted(tf.constant(VALUES + 1), 2), (1 + np.asarray(large)) * 2)


@pytest.mark.parametrize(
    ("value", "found"),
    [(tf.constant(2), "EagerTensor"), ([2], "list"), (np.ones(1), "ndarray"), (jnp.ones(1), "ArrayImpl")],
    ids=["tensor", "list", "array", "JAX array"],
)
def test_a_static_argument_that_cannot_be_distinguished_from_another_is_refused(value, found):
    with pytest.raises(ArgumentTypeError) as caught:
        convert(shaped)(VALUES, value)
    assert f"args[1] is a static argument of the jax.jit function and must be hashable: found {found}" in str(
        caught.value
    )
    with pytest.raises(ArgumentTypeError, match=r"kwargs\['rows'\] is a static"):
        convert(shaped)(VALUES, rows=value)


def test_a_tensor_of_a_graph_is_not_a_static_argument():
    with pytest.raises(ArgumentTypeError, match=r"args\[1\] is a static .*\n  remedy: .* out of static_argnums"):
        tf.function(convert(shaped), autograph=False)(tf.constant(VALUES), tf.constant(2))


class Module:
    """As Equinox's modules: compares by its value, and is not hashable for the arrays in it."""

    __hash__ = None

    def __init__(self, factor):
        self.weights = jnp.full((6,), factor)

    def __eq__(self, other):
        return isinstance(other, Module)

    def __call__(self, x):
        return x * self.weights

    def of_params(self, params, x):
        return params["w"] * self(x)


class Hashed(Module):
    """As a module whose hash leaves its arrays out, and which has a name."""

    __name__ = "module"

    def __hash__(self):
        return 1


class OfParams(Module):
    def __call__(self, params, x):
        return params["w"] * x * self.weights


@functools.partial(jax.jit, static_argnums=(0, 2))
def signed(sign, x, times):
    assert (type(sign), type(times)) == (bool, int)
    return x * times if sign else -x * times


class Times:
    @functools.partial(jax.jit, static_argnums=(0, 2))
    def scaled(self, x, times):
        assert isinstance(times, int)
        return x * times


CALLABLES = {
    "unhashable": Module(2.0),
    "equal to others": Hashed(3.0),
    "its method": Module(2.0).__call__,
    "partial of it": functools.partial(Module(2.0)),
    "partial of jit": functools.partial(signed, False, times=3),
    "partial of a method of jit": functools.partial(Times().scaled, times=3),
    "partial of a function": functools.partial(jnp.add, 2.0),
}


@natively_and_as_graph
@in_each_mode
@pytest.mark.parametrize("fun", CALLABLES.values(), ids=CALLABLES)
def test_a_callable_converts(fun, mode, native):
    np.testing.assert_array_equal(mode(convert(fun, native_serialization=native))(VALUES), fun(VALUES))


@natively_and_as_graph
@pytest.mark.parametrize("kind", [Module, Hashed])
def test_callables_that_are_equal_keep_their_own_arrays(kind, native):
    for factor in (2.0, 7.0):
        np.testing.assert_array_equal(convert(kind(factor), native_serialization=native)(VALUES), VALUES * factor)


@natively_and_as_graph
@in_each_mode
@pytest.mark.parametrize("fun", [Times().scaled, functools.partial(signed, True)], ids=["method", "partial"])
def test_what_is_static_stays_so_where_other_arguments_are_fixed(fun, mode, native):
    converted = mode(convert(fun, native_serialization=native))
    for times in (2, 3):
        np.testing.assert_array_equal(converted(tf.constant(VALUES), times), VALUES * times)
        np.testing.assert_array_equal(converted(tf.constant(VALUES), times=times), VALUES * times)


@natively_and_as_graph
@pytest.mark.parametrize("fun", [OfParams(2.0), Module(2.0).of_params], ids=["instance", "method"])
def test_a_callable_of_parameters_is_saved(fun, native, tmp_path):
    inputs = [tf.TensorSpec([6], tf.float32)]
    save_model(fun, {"w": 3.0}, tmp_path, input_signatures=inputs, native_serialization=native)
    np.testing.assert_array_equal(tf.saved_model.load(tmp_path)(VALUES), VALUES * 6)


@pytest.mark.parametrize("fun", CALLABLES.values(), ids=CALLABLES)
def test_a_callable_is_verified(fun):
    report = verify(fun, jax.ShapeDtypeStruct((6,), jnp.float32), backends=["exported", "eager", "graph_mode"])
    assert report.ok, report


def test_a_callable_becomes_a_tflite_model():
    model = to_tflite(Module(2.0), input_signature=[tf.TensorSpec([6], tf.float32)])
    with warnings.catch_warnings(action="ignore", category=UserWarning):  # tf.lite.Interpreter moves to ai_edge_litert
        runner = tf.lite.Interpreter(model_content=model).get_signature_runner()
    np.testing.assert_array_equal(runner(x=VALUES)["output_0"], VALUES * 2)
