"""What graph mode knows of a tensor while it makes the graph."""

import warnings

import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf

from jaxtf.convert._graph.known import known_value

DTYPES = [np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e5m2, ml_dtypes.float8_e4m3fn, np.float32, np.int8, np.bool_]
VALUES = [2, [1, 2, 2, 2], [[1, 2, 0], [0, 1, 2]], np.full((2, 3), 2), np.zeros((0, 2)), np.zeros(3), [-0.0, 1]]


@pytest.mark.parametrize("dtype", DTYPES)
def test_constants_are_known_with_no_warning(dtype):
    with tf.Graph().as_default(), warnings.catch_warnings():
        warnings.simplefilter("error")
        for value in VALUES:
            array = np.asarray(value).astype(dtype)
            found = known_value(tf.constant(array))
            assert found.dtype == dtype
            assert found.shape == array.shape
            assert found.tobytes() == array.tobytes()


@pytest.mark.parametrize("dtype", [tf.float16, tf.bfloat16, tf.float32])
def test_one_number_is_known_wherever_it_is_repeated(dtype):
    with tf.Graph().as_default(), warnings.catch_warnings():
        warnings.simplefilter("error")
        for tensor in (tf.constant(-0.5, dtype, shape=[2, 3]), tf.fill([2, 3], tf.constant(-0.5, dtype))):
            np.testing.assert_array_equal(known_value(tensor).astype(np.float64), np.full((2, 3), -0.5))


def test_what_the_graph_computes_is_not_known():
    with tf.Graph().as_default():
        given = tf.compat.v1.placeholder(tf.bfloat16, [2])
        assert known_value(given) is None
        assert known_value(given + 1) is None
        assert known_value(tf.fill([2], given[0])) is None
        sizes = tf.stack([tf.size(given + 1), tf.cast(given[0], tf.int32)])
        assert known_value(sizes, partial=True).tolist() == [2, None]


def test_eager_tensors_are_known():
    assert known_value(tf.constant(2, tf.bfloat16)) == 2


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e5m2, ml_dtypes.float8_e4m3fn])
def test_what_a_constant_is_cast_to_is_known_with_no_warning(dtype):
    with tf.Graph().as_default(), warnings.catch_warnings():
        warnings.simplefilter("error")
        for value in VALUES:
            array = np.asarray(value).astype(dtype)
            found = known_value(tf.cast(tf.constant(array), tf.float32))
            assert found.dtype == np.float32
            np.testing.assert_array_equal(found, array.astype(np.float32))
        assert known_value(tf.cast(tf.compat.v1.placeholder(dtype, [2]), tf.float32)) is None
