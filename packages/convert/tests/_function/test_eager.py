"""Eager calls that repeat an earlier one take the fast path: the same results, errors and gradients."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

from jaxtf.convert import _tf, convert
from jaxtf.convert._convert.signature import Signatures

X = np.linspace(0.1, 1, 6, dtype=np.float32)


@pytest.fixture
def long_ways(monkeypatch):
    """How many calls took the slow path."""
    taken = []
    of_call = Signatures.of_call
    monkeypatch.setattr(Signatures, "of_call", lambda self, *args: (taken.append(args), of_call(self, *args))[1])
    return taken


def of_structures(tree, *, scale):
    return {"sum": tree["a"] + tree["b"][0] * scale, "rest": [tree["b"][1], (scale,)]}


X2 = X * 2
BIG = jnp.ones(60_000)
CALLS = {
    "one array": (jnp.sin, (X,), {}, ["(b,)"]),
    "nothing": (lambda: jnp.arange(3), (), {}, None),
    "two arrays": (lambda x, y: (x - y, y), (X, X2), {}, ["(b,)", "(b,)"]),
    "an argument that is not used": (lambda x, y: y * 2, (X, X2), {}, ["(a,)", "(b,)"]),
    "structures": (of_structures, ({"a": X, "b": [X2, X]},), {"scale": X}, None),
    "a large array": (lambda x: x @ jnp.ones((6, 6_000)) + jnp.arange(6_000), (X,), {}, None),
    "a large array closed over": (lambda x: x + BIG[:6], (X,), {}, None),
    "integers": (lambda x, n: (x * n, n + 1), (X, np.int32(3)), {}, ["(b,)", None]),
}


@pytest.mark.parametrize(
    ("name", "is_polymorphic"), [(name, p) for name in CALLS for p in (False, True) if CALLS[name][-1] or not p]
)
def test_a_repeated_call_takes_the_short_way_to_the_same_result(name, is_polymorphic, long_ways):
    function, args, kwargs, shapes = CALLS[name]
    converted = convert(function, polymorphic_shapes=shapes if is_polymorphic else None)
    tensors, named = jax.tree.map(tf.constant, (args, kwargs))
    for _ in range(3):
        found = converted(*tensors, **named)
        jax.tree.map(np.testing.assert_allclose, found, function(*args, **kwargs))
    assert len(long_ways) == 1


# Structures of one node, of one leaf, and of neither.
STRUCTURES = [(), [], {}, None, 0, (0,), [0], {"a": 0}, ((),), [None], {"a": {}}, (0, None), [[], 0, {"a": (0, ())}]]


@pytest.mark.parametrize("with_gradient", [False, True])
@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("structure", STRUCTURES, ids=str)
def test_every_call_has_the_structure_of_the_function(structure, native, with_gradient, long_ways):
    def function(x):
        return jax.tree.map(lambda leaf: x + leaf, structure)

    converted = convert(function, native_serialization=native, with_gradient=with_gradient)
    for _ in range(3):
        found = converted(tf.constant(X))
        assert jax.tree.structure(found) == jax.tree.structure(structure)
        jax.tree.map(np.testing.assert_array_equal, found, function(X))
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x := tf.constant(X))
        found = converted(x)
    assert jax.tree.structure(found) == jax.tree.structure(structure)
    assert len(long_ways) == 1


def test_each_size_is_looked_at_once(long_ways):
    converted = convert(lambda x: x * x.shape[0], polymorphic_shapes=["(b,)"])
    for _ in range(2):
        for size in (1, 2, 5):
            np.testing.assert_array_equal(converted(tf.ones(size)), np.full(size, size, np.float32))
    assert len(long_ways) == 3


def test_sizes_that_do_not_fit_are_refused_each_time_in_the_same_words():
    converted = convert(lambda x: x.reshape(2, -1), polymorphic_shapes=["(2*b,)"])
    converted(tf.ones(4))
    texts = []
    for _ in range(3):
        with pytest.raises(tf.errors.InvalidArgumentError) as refused:
            converted(tf.ones(5))
        texts.append(str(refused.value))
    assert "Division had remainder 1 when computing the value of 'b'" in texts[0]
    assert len({text.partition("[[")[0] for text in texts}) == 1


def test_a_repeated_call_under_a_tape_is_recorded(long_ways):
    converted = convert(lambda x, y: (jnp.sin(x) * y, x + 1))
    x, y = tf.constant(X), tf.constant(X2)
    converted(x, y)
    for _ in range(2):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch([x, y])
            product, other = converted(x, y)
            both = product * other
        np.testing.assert_allclose(tape.gradient(product, x), np.cos(X) * X2, rtol=1e-6)
        np.testing.assert_allclose(tape.gradient(product, y), np.sin(X), rtol=1e-6)
        np.testing.assert_allclose(tape.gradient(other, x), np.ones(6))
        np.testing.assert_allclose(tape.gradient(both, x), np.cos(X) * X2 * (X + 1) + np.sin(X) * X2, rtol=1e-6)
    assert len(long_ways) == 1


def test_gradients_of_gradients_of_a_repeated_call():
    converted = convert(jnp.sin)
    x = tf.constant(X)
    for _ in range(2):
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = converted(x)
            first = inner.gradient(y, x)
        np.testing.assert_allclose(first, np.cos(X), rtol=1e-6)
        np.testing.assert_allclose(outer.gradient(first, x), -np.sin(X), rtol=1e-5)


def test_a_tape_that_stopped_stays_stopped():
    converted = convert(jnp.sin)
    x = tf.constant(X)
    with tf.GradientTape() as tape:
        tape.watch(x)
        with tape.stop_recording():
            y = converted(x) + converted(x)
        z = converted(x)
    assert tape.gradient(y, x) is None
    with tf.GradientTape() as tape:
        tape.watch(x)
        z = converted(x) * x  # recording goes on after the call
    np.testing.assert_allclose(tape.gradient(z, x), np.cos(X) * X + np.sin(X), rtol=1e-6)


def test_a_repeated_call_without_gradient_refuses_to_be_differentiated():
    converted = convert(jnp.sin, with_gradient=False)
    x = tf.constant(X)
    converted(x)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = converted(x)
    with pytest.raises(LookupError, match="does not support gradients"):
        tape.gradient(y, x)


def test_a_tensor_of_eager_mode_that_a_graph_captures_is_not_an_eager_call(long_ways):
    converted = convert(jnp.sin)
    x = tf.constant(X)
    converted(x)
    graph = tf.function(lambda: converted(x), autograph=False).get_concrete_function()
    assert "XlaCallModule" in {operation.type for operation in graph.graph.get_operations()}
    np.testing.assert_allclose(graph(), np.sin(X), rtol=1e-6)


def test_numerics_are_checked_where_tensorflow_is_asked_to():
    tf.debugging.enable_check_numerics()
    try:
        converted = convert(jnp.log)
        np.testing.assert_allclose(converted(tf.constant([1.0])), [0.0])
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"(?s)inference_log.*NaN"):
            converted(tf.constant([-1.0]))
    finally:
        tf.debugging.disable_check_numerics()


def test_a_call_has_the_options_that_hold_then(monkeypatch):
    given, run = [], _tf.execute.execute

    def execute(name, results, arguments, attributes, state):
        given.append(attributes)
        return run(name, results, arguments, attributes, state)

    monkeypatch.setattr(_tf.execute, "execute", execute)
    converted, x = convert(jnp.sin, native_serialization=False), tf.constant([1.0, 2.0])
    before = tf.config.optimizer.get_experimental_options()
    try:
        for folds in (True, False, False):
            tf.config.optimizer.set_experimental_options({"constant_folding": folds})
            converted(x)
    finally:
        tf.config.optimizer.set_experimental_options({"constant_folding": True, **before})
    first, second, third = given[-3:]
    assert first != second == third
