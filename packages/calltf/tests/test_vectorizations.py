"""`jax.vmap` of a call of one operation gives what a loop over the batch gives, whatever its attributes.

A fixed number of operations is tried always; `RANDOM_PROGRAMS` of each type, others each time, in the session
`random_operations`.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, reject
from hypothesis import strategies as st

from jaxtf.calltf import _vectorizations, call_tf
from jaxtf.calltf._configuration import Configuration
from jaxtf.calltf._function import Staging, UserFunction
from jaxtf.calltf._vectorized import Vectorized

from .batched import MAKERS, operations
from .batched.sampling import FULL, sampled

BATCH = np.arange(12, dtype=np.float32).reshape(4, 3) / 5 - 1


def gives_what_a_loop_gives(operation):
    arguments = operation.arguments()
    count = next(len(x.values) for x in arguments if x.batched)
    one = tf.function(operation, autograph=False, jit_compile=True)
    elements = [[x.values[i] if x.batched else x.values for x in arguments] for i in range(count)]
    try:
        expected = [[np.asarray(result.numpy()) for result in one(*map(tf.constant, values))] for values in elements]
    except (tf.errors.OpError, ValueError):
        reject()  # not an operation that TensorFlow compiles
    mapped = jax.vmap(call_tf(operation), [0 if x.batched else None for x in arguments])
    found = mapped(*(x.values for x in arguments))
    for result, *theirs in zip(found, *expected, strict=True):
        compare(operation, np.asarray(result), np.stack(theirs))


def compare(operation, ours, theirs):
    assert ours.dtype == theirs.dtype, operation
    assert ours.shape == theirs.shape, operation
    if ours.dtype.kind in "fc":
        tolerance = 1e-2 if ours.dtype == np.float16 else 5e-4
        np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance, err_msg=str(operation))
    else:
        np.testing.assert_array_equal(ours, theirs, err_msg=str(operation))


@pytest.mark.parametrize("dtype", [tf.bfloat16, tf.float16])
@pytest.mark.parametrize("truncate", [True, False])
def test_a_batch_is_cast_as_its_elements_are(dtype, truncate):
    def cast(x):
        return tf.raw_ops.Cast(x=x, DstT=dtype, Truncate=truncate)

    values = np.random.default_rng(0).normal(size=(7, 5)).astype(np.float32)
    call = call_tf(tf.function(cast))
    np.testing.assert_array_equal(jax.vmap(call)(values), call(values))
    np.testing.assert_array_equal(jax.jit(jax.vmap(call))(values), call(values))


@pytest.mark.slow
@given(st.sampled_from(list(MAKERS)).flatmap(operations))
@sampled(80, is_fixed=True)
def test_a_batch_gives_what_a_loop_gives(operation):
    with jax.enable_x64(True):
        gives_what_a_loop_gives(operation)


@pytest.mark.slow(1)
@pytest.mark.parametrize("name", list(MAKERS) if FULL else list(_vectorizations.REPLACED))
def test_a_batch_of_one_type_gives_what_a_loop_gives(name):
    @given(operations(name))
    @sampled(10)
    def runs(operation):
        with jax.enable_x64(True):
            gives_what_a_loop_gives(operation)

    runs()
    jax.clear_caches()


def test_operations_of_every_type_that_is_vectorized_are_drawn():
    assert set(MAKERS) == _vectorizations.COMPARED | _vectorizations.REPLACED.keys()


def is_vectorized(function, batch=BATCH):
    tree = jax.tree.structure(((0,), {}))
    user = UserFunction(function, tree, staging=Staging(), declared=None, configuration=Configuration.now())
    traced = Vectorized(user, (True,)).trace([jax.typeof(jnp.asarray(batch))])
    return not any(node.op.endswith("While") for node in traced.concrete.graph.as_graph_def().node)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: tf.pad(x, [[1, 2]], constant_values=-1e9),
        lambda x: tf.roll(x, 1, axis=-1),
        lambda x: tf.nn.bias_add(tf.reshape(x, [1, 3, 1]), x, data_format="NCHW"),
        lambda x: tf.math.unsorted_segment_sum(x, [0, 1, -1], 2),
        tf.function(lambda x: tf.function(lambda y: tf.roll(y, [1], [-1]))(x) * x),
    ],
    ids=["pad", "roll", "bias", "segments", "in functions"],
)
def test_what_is_replaced_is_vectorized_and_right(function):
    assert is_vectorized(function)
    expected = np.stack([np.asarray(function(tf.constant(x))) for x in BATCH])
    np.testing.assert_array_equal(jax.vmap(call_tf(function))(BATCH), expected)


def test_what_was_not_compared_is_computed_in_a_loop(monkeypatch):
    def function(x):
        return tf.sin(x) + tf.reduce_sum(tf.cos(tf.range(3.0)))

    assert is_vectorized(function)
    monkeypatch.setattr(_vectorizations, "COMPARED", _vectorizations.COMPARED - {"Cos"})
    assert is_vectorized(function)  # of what does not depend on the batch
    monkeypatch.setattr(_vectorizations, "COMPARED", _vectorizations.COMPARED - {"Sin"})
    assert not is_vectorized(function)
    expected = np.stack([np.asarray(function(tf.constant(x))) for x in BATCH])
    np.testing.assert_allclose(jax.vmap(call_tf(function))(BATCH), expected, rtol=1e-6)


def test_the_gradient_of_a_gather_stays_with_its_element():
    """Compiled, an index beyond the rows has no gradient; it is not that of a row of the next element."""
    table, indices = np.ones((2, 3), np.float32), np.array([[0, 2], [1, 1]])

    def total(rows, index):
        return call_tf(lambda r, i: tf.reduce_sum(tf.gather(r, i) * tf.constant([[1.0], [5.0]])))(rows, index)

    found = jax.jit(jax.vmap(jax.grad(total)))(np.stack([table, table]), indices)
    np.testing.assert_array_equal(found[:, :, 0], [[1, 0], [0, 6]])


def shifted():
    scale, offset = tf.Variable([1.0, 2.0, 3.0]), tf.constant([1.0, 0.0, 2.0])
    inner = tf.function(lambda x: tf.roll(x, [1], [-1]) * scale + offset)
    return lambda x: inner(x) * scale


@tf.custom_gradient
def tenfold(x):
    return tf.pad(x, [[0, 1]], constant_values=7.0), lambda upstream: upstream[:3] * 10


@pytest.mark.filterwarnings("ignore::jaxtf.calltf.CaptureWarning")
@pytest.mark.parametrize("function", [shifted(), tenfold], ids=["variables", "gradient of its own"])
def test_what_is_replaced_may_stand_beside_variables_and_derivatives(function):
    assert is_vectorized(function)
    call = call_tf(function)
    expected = np.stack([np.asarray(function(tf.constant(x))) for x in BATCH])
    for mapped in (jax.vmap(call), jax.jit(jax.vmap(call)), lambda x: jax.vmap(jax.vmap(call))(x[None])[0]):
        np.testing.assert_allclose(mapped(BATCH), expected, rtol=1e-6)
    one = jax.grad(lambda x: (call(x) ** 2).sum())
    np.testing.assert_allclose(jax.vmap(one)(BATCH), [one(x) for x in BATCH], rtol=1e-6)
