"""Native mode under `tf.vectorized_map` and `tape.jacobian`: the op runs for the elements and no further time."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

from jaxtf.convert import convert
from jaxtf.convert._native.custom_calls import only_computes
from jaxtf.serialization import export

BACKENDS = {
    "eager": lambda function, _: function,
    "graph": lambda function, _: tf.function(function, autograph=False),
    "unknown": lambda function, spec: tf.function(function, autograph=False, input_signature=[spec]),
    "compiled": lambda function, _: tf.function(function, autograph=False, jit_compile=True),
    "compiled_unknown": lambda function, spec: tf.function(
        function, autograph=False, jit_compile=True, input_signature=[spec]
    ),
}

sine = convert(lambda x: jnp.sin(x) * 2)
sine_of_any = convert(lambda x: jnp.sin(x) * 2, polymorphic_shapes=["(n - 1,)"])
nested = tf.function(sine, autograph=False)
places = convert(lambda: jnp.arange(3.0))
nested_places = tf.function(convert(lambda x: jnp.arange(3.0), with_gradient=False), autograph=False)
CALLS = {
    "direct": sine,
    "function": lambda x: nested(x) + 1,
    "branch": lambda x: tf.cond(tf.reduce_sum(x) > 0, lambda: sine(x), lambda: x * 2),
    "loop": lambda x: tf.while_loop(lambda i, _: i < 2, lambda i, y: (i + 1, sine(y)), (0, x))[1],
    "nothing_in_function": lambda x: x + nested_places(x),
    "nothing_in_branch": lambda x: tf.cond(tf.reduce_sum(x) > 4, lambda: x + places(), lambda: x * 2),
    "nothing_in_loop": lambda x: tf.while_loop(lambda i, _: i < 2, lambda i, y: (i + 1, y + places()), (0, x))[1],
    "twice": lambda x: tf.vectorized_map(sine, x[:, None])[:, 0] + sine(sine(x)),
    "thrice": lambda x: tf.vectorized_map(lambda row: tf.vectorized_map(sine, row), x[:, None, None])[:, 0, 0] * 2,
    "graph_mode": convert(lambda x: x * x.shape[0], polymorphic_shapes=["(2*b + 1,)"], native_serialization=False),
}
# TensorFlow's loop over no rows.
NOT_COMPILED = ("branch", "loop", "nothing_in_branch", "nothing_in_loop")


@pytest.mark.slow(1)
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("count", [0, 1, 3])
def test_elements_are_mapped_however_many_there_are(call, backend, count):
    if backend.startswith("compiled") and call in NOT_COMPILED:
        pytest.skip("TensorFlow does not compile it")
    mapped = BACKENDS[backend](lambda x: tf.vectorized_map(CALLS[call], x), tf.TensorSpec([None, 3]))
    x = np.linspace(0.5, 2, 9).astype(np.float32).reshape(3, 3)
    expected = np.stack([CALLS[call](tf.constant(row)) for row in x])
    np.testing.assert_allclose(mapped(tf.constant(x[:count])), expected[:count], rtol=1e-6)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("count", [0, 2])
def test_a_jacobian_has_as_many_rows_as_there_are_results(backend, count):
    if not count and backend not in ("eager", "graph"):
        pytest.skip("XLA compiles what is traced, also for element 0; of unknown sizes TensorFlow makes no rows")

    def jacobian(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = sine_of_any(x)
        return tape.jacobian(y, x)

    x = np.linspace(0.5, 2, count).astype(np.float32)
    found = BACKENDS[backend](jacobian, tf.TensorSpec([None]))(tf.constant(x))
    np.testing.assert_allclose(found, np.diag(2 * np.cos(x)), rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["eager", "graph", "compiled"])
@pytest.mark.parametrize("flat", [jnp.sign, jnp.floor, lambda x: jax.lax.stop_gradient(x) * 2, lambda x: 1.0 * (x > 0)])
def test_derivatives_that_take_nothing_are_of_all_elements(flat, backend):
    """The VJP of such a function is constant: an op without operands, here within the gradient of a `tf.function`."""
    converted = convert(flat)
    traced = tf.function(lambda x: x**3 + converted(x), autograph=False)

    def in_jax(x):
        return x**3 + flat(x)

    def jacobian(function, x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = function(x)
        return tape.jacobian(y, x)

    def rows(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.vectorized_map(traced, x)
        return tape.batch_jacobian(y, x)

    def slope(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(traced(x) ** 2)
        return tape.gradient(y, x)

    def derivatives(x):
        return jacobian(traced, x), jacobian(slope, x), rows(tf.stack([x, -x]))

    x = np.float32([0.3, -0.7, 1.5])
    expected = (
        jax.jacobian(in_jax)(x),
        jax.hessian(lambda x: (in_jax(x) ** 2).sum())(x),
        jax.vmap(jax.jacobian(in_jax))(np.stack([x, -x])),
    )
    for found, each in zip(BACKENDS[backend](derivatives, None)(tf.constant(x)), expected, strict=True):
        np.testing.assert_allclose(found, each, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("call", [call for call in CALLS if call not in ("twice", "thrice")])
def test_nothing_runs_for_the_element_that_is_traced(call):
    mapped = tf.function(lambda x: tf.vectorized_map(CALLS[call], x), autograph=False)
    graph = mapped.get_concrete_function(tf.TensorSpec([None, None if call == "graph_mode" else 3])).graph
    assert [each.name for each in graph.control_outputs if "/pfor/" not in each.name] == []


def test_no_elements_of_unknown_sizes_are_none():
    mapped = tf.function(lambda x: tf.vectorized_map(sine_of_any, x), autograph=False)
    mapped = mapped.get_concrete_function(tf.TensorSpec([None, None]))
    assert mapped(tf.ones([0, 5])).shape == (0, 5)
    np.testing.assert_allclose(mapped(tf.ones([2, 5])), np.full((2, 5), 2 * np.sin(1.0)), rtol=1e-6)


def test_an_assertion_holds_for_the_elements():
    mapped = tf.function(lambda x: tf.vectorized_map(CALLS["graph_mode"], x), autograph=False)
    mapped = mapped.get_concrete_function(tf.TensorSpec([None, None]))
    assert mapped(tf.ones([0, 5])).shape == (0, 5)
    np.testing.assert_array_equal(mapped(tf.ones([2, 5])), np.full((2, 5), 5))
    with pytest.raises(tf.errors.InvalidArgumentError, match="Division had remainder"):
        mapped(tf.ones([2, 4]))


def test_code_that_only_its_process_knows_may_do_more_than_compute():
    assert only_computes(export(jnp.sin)(np.float32(1)))
    assert not only_computes(export(jnp.linalg.cholesky)(np.eye(2, dtype=np.float32)))
