"""The fast path of eager calls gives the same results as the slow path."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

from jaxtf.calltf import ResultError, _call, call_tf

X = np.linspace(0.1, 1, 6, dtype=np.float32)

# Name: the TensorFlow function, its arguments, and whether the call takes the fast path.
CALLS = {
    "one array": (tf.sin, (jnp.asarray(X),), True),
    "two arrays": (lambda x, y: x * y, (jnp.asarray(X), jnp.asarray(X)), True),
    "no argument": (lambda: tf.range(3), (), True),
    "a scalar": (lambda x: x + 1, (jnp.float32(2),), True),
    "bfloat16": (lambda x: x + 1, (jnp.ones(3, jnp.bfloat16),), True),
    "a bfloat16 scalar": (lambda x: x + 1, (jnp.bfloat16(2),), True),
    "int8": (lambda x: x + 1, (jnp.ones(3, jnp.int8),), True),
    "bool": (tf.math.logical_not, (jnp.array([True, False]),), True),
    "complex": (tf.math.conj, (jnp.array([1 + 2j], jnp.complex64),), True),
    "float8": (lambda x: tf.cast(x, tf.float32), (jnp.ones(3, jnp.float8_e5m2),), False),
    "NumPy": (tf.sin, (X,), False),
    "a Python number": (lambda x: x + 1, (2.0,), False),
    "an array in a dict": (lambda d: d["x"] + 1, ({"x": jnp.asarray(X)},), False),
    "empty": (lambda x: x + 1, (jnp.zeros((0, 3)),), True),
    "a double result": (lambda x: tf.cast(x, tf.float64), (jnp.asarray(X),), True),
    "several results": (lambda x: {"a": x, "b": [x + 1, None]}, (jnp.asarray(X),), True),
    "no result": (lambda x: None, (jnp.asarray(X),), True),
    "a variable as result": (tf.Variable, (jnp.asarray(X),), True),
    "a number as result": (lambda x: 3, (jnp.asarray(X),), True),
    "a NumPy result": (np.asarray, (jnp.asarray(X),), True),
    "a float8 result": (lambda x: tf.cast(x, tf.dtypes.experimental.float8_e5m2), (jnp.asarray(X),), True),
    "a dynamic shape": (lambda x: tf.boolean_mask(x, x > 0.5), (jnp.asarray(X),), True),
}


@pytest.mark.parametrize("name", CALLS)
def test_the_short_way_gives_what_the_long_way_gives(name, monkeypatch):
    function, args, is_short = CALLS[name]
    short_ways = []
    plain_tensors = _call.plain_tensors

    def noted(args):
        tensors = plain_tensors(args)
        short_ways.append(tensors is not None)
        return tensors

    monkeypatch.setattr(_call, "plain_tensors", noted)
    found = call_tf(function)(*args)
    assert short_ways == [is_short]
    monkeypatch.setattr(_call, "plain_tensors", lambda args: None)
    expected = call_tf(function)(*args)
    assert jax.tree.structure(found) == jax.tree.structure(expected)
    for leaf, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        assert isinstance(leaf, jax.Array)
        assert (leaf.shape, leaf.dtype, leaf.committed) == (other.shape, other.dtype, other.committed)
        np.testing.assert_array_equal(np.asarray(leaf, np.complex128), np.asarray(other, np.complex128))


def test_side_effects_happen_once():
    calls = []
    for result in (lambda x: x, lambda x: [x], lambda x: tf.cast(x, tf.float64)):
        calls.clear()
        call_tf(lambda x, result=result: (calls.append(x), result(x))[1])(jnp.asarray(X))
        assert len(calls) == 1


def test_memory_is_shared_both_ways():
    x, seen = jnp.asarray(X), []
    result = call_tf(lambda x: (seen.append(np.asarray(x).ctypes.data), tf.identity(x))[1])(x)
    assert seen == [x.unsafe_buffer_pointer()]
    assert result.unsafe_buffer_pointer() == x.unsafe_buffer_pointer()


def test_64_bits_follow_the_setting_of_the_call():
    with jax.enable_x64(True):
        x = jnp.asarray(X, jnp.float64)
        assert call_tf(tf.identity)(x).dtype == jnp.float64
    assert x.dtype == jnp.float64
    assert call_tf(tf.identity)(x).dtype == jnp.float32
    assert call_tf(lambda x: tf.cast(x, tf.int64))(jnp.asarray(X)).dtype == jnp.int32


def test_what_is_declared_is_checked():
    declared = jax.ShapeDtypeStruct((6,), jnp.float32)
    np.testing.assert_array_equal(call_tf(tf.identity, output_shape_dtype=declared)(jnp.asarray(X)), X)
    with pytest.raises(ValueError, match=r"result"):
        call_tf(lambda x: x[1:], output_shape_dtype=declared)(jnp.asarray(X))


def test_a_result_that_is_not_an_array_is_refused():
    with pytest.raises(ResultError, match="not convertible to JAX"):
        call_tf(lambda x: tf.constant("text"))(jnp.asarray(X))


def test_an_eager_call_while_tensorflow_builds_a_graph_stays_eager():
    found = []
    tf.function(lambda: found.append(call_tf(tf.sin)(jnp.asarray(X))), autograph=False)()
    np.testing.assert_allclose(found[0], np.sin(X), rtol=1e-6)
