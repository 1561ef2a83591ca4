"""Functions that the user gave to `jax.jit`: methods, and static arguments."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

from jaxtf.convert import ArgumentTypeError, convert

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
def test_a_static_argument_that_cannot_be_told_from_another_is_refused(value, found):
    with pytest.raises(ArgumentTypeError) as caught:
        convert(shaped)(VALUES, value)
    assert f"args[1] is static in the function that jax.jit was given, and must be hashable: found {found}" in str(
        caught.value
    )
    with pytest.raises(ArgumentTypeError, match=r"kwargs\['rows'\] is static"):
        convert(shaped)(VALUES, rows=value)


def test_a_tensor_of_a_graph_is_no_static_argument():
    with pytest.raises(ArgumentTypeError, match=r"args\[1\] is static .*\n  remedy: .* leave it out of static_argnums"):
        tf.function(convert(shaped), autograph=False)(tf.constant(VALUES), tf.constant(2))
