"""Every element type that JAX and TensorFlow share crosses between them bit by bit."""

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf

from jaxtf.calltf._transfer import canonical_dtype, jax_dtype, tensorflow_dtype, to_array, to_tensor

NUMPY = [
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "float32",
    "float64",
    "complex64",
    "complex128",
]
ML_DTYPES = ["bfloat16", "float8_e4m3fn", "float8_e5m2", "int4", "uint4"]


@pytest.mark.parametrize("name", NUMPY + ML_DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (2, 3)])
def test_an_element_type_crosses_and_comes_back(name, shape):
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    with jax.enable_x64(True):
        array = np.random.default_rng(0).integers(0, 7, size=shape).astype(dtype)
        tensor = to_tensor(jnp.asarray(array))
        assert (tensor.dtype.name, tuple(tensor.shape)) == (name, shape)
        back = to_array(tensor)
    assert back.dtype == dtype
    assert np.asarray(back).tobytes() == array.tobytes()


@pytest.mark.parametrize("name", NUMPY + ML_DTYPES)
def test_the_two_tables_of_element_types_are_inverse(name):
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    assert jax_dtype(tensorflow_dtype(dtype)) == dtype


@pytest.mark.parametrize("name", NUMPY)
def test_canonical_element_types_are_those_of_jax(name, x64):
    assert canonical_dtype(name) == jnp.asarray(np.zeros(1, name)).dtype


@pytest.mark.parametrize("dtype", [tf.string, tf.resource, tf.variant, tf.qint8])
def test_element_types_that_are_no_numbers_are_refused(dtype):
    with pytest.raises(TypeError, match=f"JAX has no element type {dtype.name}"):
        jax_dtype(dtype)


def test_an_array_made_of_a_tensor_does_not_change_with_the_variable():
    variable = tf.Variable(np.zeros(100, np.float32))
    array = to_array(variable.read_value())
    variable.assign_add(np.ones(100, np.float32))
    np.testing.assert_array_equal(array, np.zeros(100))
