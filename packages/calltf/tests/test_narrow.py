"""Dtypes of fewer bits than a byte, and floats of 4 to 8 bits, as arguments and results: right, or refused."""

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf

from jaxtf.calltf import ArgumentTypeError, CompilationError, call_tf

INTEGERS = ["int2", "uint2", "int4", "uint4"]
FLOATS = [
    *("float4_e2m1fn", "float6_e2m3fn", "float6_e3m2fn", "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz"),
    *("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu"),
]
NARROW = [*INTEGERS, *FLOATS]
VERSION = tuple(int(part) for part in tf.__version__.split(".")[:2])
SINCE = {"int2": (2, 20), "uint2": (2, 20), "float4_e2m1fn": (2, 21)}
# What TensorFlow 2.21 does not have; and what it has without a form in its compiler.
UNKNOWN = {"float6_e2m3fn", "float6_e3m2fn", "float8_e3m4", "float8_e4m3", "float8_e8m0fnu"}
UNKNOWN |= {name for name, since in SINCE.items() if since > VERSION}
NOT_COMPILED = set(SINCE) - UNKNOWN
SIZES = [1, 2, 3, 8, 33]


def every_value(name, size):
    """Values of a dtype, in an order without a pattern, as NumPy has them."""
    dtype = np.dtype(getattr(ml_dtypes, name))
    info = ml_dtypes.iinfo(dtype) if name in INTEGERS else None
    codes = np.arange(info.min, info.max + 1) if info else np.arange(2 ** int(name[5]), dtype=np.uint8).view(dtype)
    values = codes.astype(dtype)
    values = values[np.isfinite(values.astype(np.float32))]
    return np.random.default_rng(0).choice(values, size)


def array(values):
    try:
        return jnp.asarray(values)
    except (TypeError, jax.errors.JaxRuntimeError) as error:
        pytest.skip(f"JAX {jax.__version__} has no such arrays on a CPU: {error}")


def test_what_tensorflow_does_not_have_is_what_is_refused():
    for name in NARROW:
        if name in UNKNOWN:
            with pytest.raises(TypeError):
                tf.as_dtype(name)
        else:
            assert tf.as_dtype(name).name == name


def assert_same(found, expected):
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    np.testing.assert_array_equal(np.asarray(found).view(np.uint8), np.asarray(expected).view(np.uint8))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", NARROW)
def test_what_passes_eagerly_is_what_came(name, size):
    values, call = every_value(name, size), call_tf(lambda x: x)
    if name in UNKNOWN:
        with pytest.raises(ArgumentTypeError, match=rf"args\[0\] has dtype {name}, which JAX and TensorFlow do"):
            call(array(values))
        return
    assert_same(call(array(values)), values)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", NARROW)
@pytest.mark.parametrize("way", ["in", "out", "through"])
def test_what_is_staged_is_right_or_refused_by_name(name, size, way):
    values = every_value(name, size)
    wide, dtype = values.astype(np.float32), None if name in UNKNOWN else tf.as_dtype(name)
    function, argument, expected = {
        "in": (lambda x: tf.cast(x, tf.float32) * 2, values, wide * 2),
        "out": (lambda x: tf.cast(x, dtype), wide, values),
        "through": (lambda x: tf.concat([x[1:], x[:1]], 0), values, np.roll(values, -1)),
    }[way]
    if dtype is None and way == "out":
        pytest.skip("TensorFlow has no such dtype")
    call = jax.jit(call_tf(function))
    if name in UNKNOWN:
        with pytest.raises(ArgumentTypeError, match=f"dtype {name}"):
            call(array(argument))
        return
    if name in NOT_COMPILED:
        with pytest.raises(CompilationError, match=f"(?i){name}"):
            call(array(argument))
        return
    assert_same(call(array(argument)), np.ascontiguousarray(expected))


@pytest.mark.parametrize("name", sorted({*NARROW} - UNKNOWN - NOT_COMPILED))
@pytest.mark.parametrize("is_inside", [True, False])
def test_a_batch_of_narrow_values_is_right(name, is_inside):
    """It runs in TensorFlow, compiled, which casts integers of 4 bits wrongly (TensorFlow 2.21)."""
    values = every_value(name, 60).reshape(20, 3)
    wide = values.astype(np.float32)
    if is_inside:
        found = jax.vmap(call_tf(lambda x: tf.cast(tf.cast(x, name), tf.float32) + 1))(jnp.asarray(wide))
    else:
        found = jax.vmap(call_tf(lambda x: tf.cast(x, tf.float32) + 1))(array(values))
    assert_same(found, wide + 1)
    if is_inside:
        assert_same(jax.vmap(call_tf(lambda x: tf.cast(x, name)))(jnp.asarray(wide)), values)


def test_a_batch_of_narrow_values_reads_variables_when_it_runs():
    variable = tf.Variable(1.0)
    call = jax.vmap(call_tf(lambda x: tf.cast(x, tf.float32) * variable))
    values = every_value("int4", 5)
    for factor in (1.0, 3.0):
        variable.assign(factor)
        assert_same(call(jnp.asarray(values)), values.astype(np.float32) * np.float32(factor))
