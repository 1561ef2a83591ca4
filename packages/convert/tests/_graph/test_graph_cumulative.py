"""Cumulative sums of many elements in graph mode, where each element added to the sum of all before loses digits."""

import jax
import numpy as np
import pytest
import tensorflow as tf
from jax import lax

from jaxtf.convert import convert
from jaxtf.convert._graph.ops.cumulative import LONG

RANDOM = np.random.RandomState(0).rand(2, 20 * LONG + 1, 2).astype(np.float32)
NUMBERS = {"all": RANDOM, "few": RANDOM[:, :LONG], "more": RANDOM[:, : LONG + 1], "some": RANDOM[:, :300]}


def in_graph(function, x, *, size_known):
    """The result in a graph of plain operations, the middle dimension static or symbolic."""
    converted = convert(function, polymorphic_shapes=[None if size_known else "(_, n, _)"], native_serialization=False)
    shape = x.shape if size_known else (x.shape[0], None, x.shape[2])
    return tf.function(converted, autograph=False, input_signature=[tf.TensorSpec(shape, x.dtype)])(x).numpy()


@pytest.mark.parametrize("size_known", [True, False])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("name", NUMBERS)
def test_sums_of_many_elements_are_as_exact_as_of_few(name, reverse, size_known):
    x = NUMBERS[name]
    step = -1 if reverse else 1
    found = in_graph(lambda x: lax.cumsum(x, 1, reverse=reverse), x, size_known=size_known)
    exact = np.cumsum(x[:, ::step].astype(np.float64), 1)[:, ::step]
    np.testing.assert_allclose(found, exact, rtol=64 * np.finfo(np.float32).eps)
    assert np.diff(found[:, ::step], axis=1).min() >= 0, "sums of what is not negative do not decrease"


@pytest.mark.parametrize("size_known", [True, False])
def test_ones_are_counted_beyond_the_integers_of_float32(size_known):
    x = np.ones((1, 2**24 + 3 * 2**10, 1), np.float32)
    (found,) = in_graph(lambda x: lax.cumsum(x, 1)[:, -1], x, size_known=size_known)
    np.testing.assert_array_equal(found, x.shape[1])


@pytest.mark.parametrize("size_known", [True, False])
def test_the_gradient_of_sums_of_many_elements_agrees(size_known):
    def function(x):
        return jax.grad(lambda y: (lax.cumsum(y, 1) * x).sum())(x)

    found = in_graph(function, RANDOM, size_known=size_known)
    exact = np.cumsum(RANDOM[:, ::-1].astype(np.float64), 1)[:, ::-1]
    np.testing.assert_allclose(found, exact, rtol=64 * np.finfo(np.float32).eps)


def test_infinities_and_nan_stay_where_they_are():
    x = RANDOM.copy()
    x[0, 5000, 0], x[0, LONG + 7, 1], x[1, 2 * LONG, 0], x[1, 3 * LONG, 0] = np.inf, np.nan, np.inf, -np.inf
    found = in_graph(lambda x: lax.cumsum(x, 1), x, size_known=True)
    with np.errstate(invalid="ignore"):
        exact = np.cumsum(x.astype(np.float64), 1)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(exact))
    np.testing.assert_array_equal(found == np.inf, exact == np.inf)
