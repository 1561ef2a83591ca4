"""Reductions of nothing in TFLite models are refused: their results would be memory. Sums of no updates are right."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

from jaxtf.convert import TFLiteUnsupported, to_tflite

RESOLVERS = tf.lite.experimental.OpResolverType
ROWS = np.arange(12, dtype=np.float32).reshape(3, 4) % 5 - 2


def run(model, x, resolver=RESOLVERS.AUTO):
    with warnings.catch_warnings(action="ignore", category=UserWarning):  # tf.lite.Interpreter moves to ai_edge_litert
        lite = tf.lite.Interpreter(model_content=model, experimental_op_resolver_type=resolver)
    [found] = lite.get_signature_runner()(x=x).values()
    return found


def model_of(fun, **options):
    return to_tflite(fun, input_signature=[tf.TensorSpec([None, 4])], polymorphic_shapes=["b, _"], **options)


def in_a_loop(x):
    return jax.lax.fori_loop(0, 2, lambda i, total: total + (x[1:] + total).sum(0), jnp.zeros(4))


def in_a_branch(x):
    return jax.lax.cond(x[0, 0] < 9, lambda x: x[1:].max(0, initial=-9), lambda x: x[0], x)


REDUCTIONS = {
    "sum": lambda x: x[1:].sum(0),
    "sum of all": lambda x: x[1:].sum(),
    "mean": lambda x: x[1:].mean(0),
    "maximum": lambda x: x[1:].max(0, initial=-9),
    "minimum": lambda x: x[1:].min(0, initial=9),
    "last axis": lambda x: x.T[:, 1:].sum(-1),
    "in a loop": in_a_loop,
    "in a branch": in_a_branch,
}


@pytest.mark.parametrize("name", REDUCTIONS)
def test_a_reduction_of_nothing_is_refused_and_others_are_right(name):
    fun = REDUCTIONS[name]
    model = model_of(fun)
    for resolver in (RESOLVERS.AUTO, RESOLVERS.BUILTIN_WITHOUT_DEFAULT_DELEGATES):
        np.testing.assert_allclose(run(model, ROWS, resolver), fun(ROWS), rtol=1e-6)
        with pytest.raises(RuntimeError, match="gather index out of bounds"):
            run(model, ROWS[:1], resolver)


@pytest.mark.parametrize(
    "fun", [lambda x: jnp.prod(x[1:], 0), lambda x: jnp.any(x[1:] > 0, 0), lambda x: x[1:].astype(jnp.int32).sum(0)]
)
def test_what_tflite_gives_of_nothing_rightly_it_still_gives(fun):
    np.testing.assert_array_equal(run(model_of(fun), ROWS[:1]), fun(jnp.asarray(ROWS[:1])), strict=True)


def test_int8_sums_of_nothing_are_refused():
    model = model_of(lambda x: x[1:].sum(0), representative_data=[[ROWS], [ROWS / 2]])
    np.testing.assert_allclose(run(model, ROWS), ROWS[1:].sum(0), atol=0.1)
    with pytest.raises(RuntimeError, match="gather index out of bounds"):
        run(model, ROWS[:1])


@pytest.mark.parametrize("reduction", [jnp.sum, jnp.mean])
def test_a_reduction_of_a_dimension_without_elements_is_refused(reduction):
    with pytest.raises(TFLiteUnsupported, match=r"TFLite has no result of a reduction of nothing: .* \(0, 4\)\n"):
        to_tflite(lambda x: reduction(x, axis=0), input_signature=[tf.TensorSpec([0, 4])])
    result = run(to_tflite(lambda x: reduction(x, axis=1).shape[0], input_signature=[tf.TensorSpec([3, 4])]), ROWS)
    assert result == 3


def updates(x, dtype):
    return jnp.ones((5, 4), dtype).at[jnp.zeros(x.shape[0] - 1, jnp.int32)].add(x[1:].astype(dtype))


@pytest.mark.slow(1)
@pytest.mark.parametrize("resolver", [RESOLVERS.AUTO, RESOLVERS.BUILTIN_WITHOUT_DEFAULT_DELEGATES])
@pytest.mark.parametrize("dtype", [jnp.float32, jnp.int32])
def test_sums_of_no_updates_are_the_array(dtype, resolver):
    model = model_of(lambda x: updates(x, dtype))
    for x in (ROWS[:1], ROWS):
        np.testing.assert_array_equal(run(model, x, resolver), updates(jnp.asarray(x), dtype))


def test_sums_of_updates_keep_infinities():
    def fun(x):
        return x.at[jnp.array([0, 0])].add(jnp.ones(4))

    x = ROWS.copy()
    x[0, 1] = np.inf
    np.testing.assert_array_equal(run(model_of(fun), x), fun(jnp.asarray(x)))


@pytest.mark.slow(1)
@pytest.mark.parametrize("resolver", [RESOLVERS.AUTO, RESOLVERS.BUILTIN_WITHOUT_DEFAULT_DELEGATES])
@pytest.mark.parametrize("softmax", [jax.nn.softmax, jax.nn.log_softmax])
def test_a_softmax_of_nothing_is_refused(softmax, resolver):
    model = model_of(lambda x: softmax(x[1:], 0))
    np.testing.assert_allclose(run(model, ROWS, resolver), softmax(ROWS[1:], 0), rtol=1e-5)
    with pytest.raises(RuntimeError, match=r"gather index out of bounds|XNNPack delegate failed to reshape"):
        run(model, ROWS[:1], resolver)


def test_a_softmax_of_an_input_is_not_checked_again():
    counts = [model_of(lambda x, axis=axis: jax.nn.softmax(x, axis)).count(b"jaxtf_sizes/") for axis in (0, 1)]
    assert counts[0] == counts[1]
