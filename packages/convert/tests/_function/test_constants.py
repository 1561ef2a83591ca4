"""Large arrays that a function closes over: arguments of the module, constants to its gradient."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

from jaxtf.convert import convert
from jaxtf.convert._convert.lift import LARGE_BYTES, export_lifted
from jaxtf.convert._convert.target import Target
from jaxtf.convert._function.constants import Constants
from jaxtf.convert._native import native as native_module
from jaxtf.convert._native.native import NativeFunction
from jaxtf.serialization import export

TABLE = np.linspace(-1, 1, 4 * 40_000, dtype=np.float32).reshape(4, 40_000)
ON_DEVICE = jnp.linspace(0.001, 0.002, 40_000 * 2, dtype=np.float32).reshape(40_000, 2)
INTEGERS = np.arange(40_000, dtype=np.int32)
X = np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 4)


@jax.jit
def inner(x):
    return jnp.tanh(x @ ON_DEVICE)


def in_jit(x):
    largest, _ = jax.lax.top_k(x, 4)  # two results, one unused
    return inner(jnp.sin(largest @ TABLE)) + 1


@jax.custom_vjp
def scaled(x):
    return x * 2


scaled.defvjp(lambda x: (scaled(x), None), lambda _, cotangent: ((cotangent @ ON_DEVICE) @ ON_DEVICE.T * TABLE[0],))


def in_scan(x):
    return jax.lax.scan(lambda carry, _: (jnp.tanh(carry @ TABLE @ TABLE.T) + X[0, 0], None), x, None, length=2)[0]


FUNCTIONS = {
    "array": lambda x: jnp.sin(x @ TABLE),
    "in a jit inside": in_jit,
    "integers": lambda x: (x @ TABLE) * INTEGERS,
    "transposed": lambda x: (x @ TABLE) @ TABLE.T,
    "in a loop": in_scan,
    "in the gradient only": lambda x: scaled(x @ TABLE),
}
WRAPPERS = {
    "eager": lambda f: f,
    "graph": lambda f: tf.function(f, autograph=False),
    "compiled": lambda f: tf.function(f, autograph=False, jit_compile=True),
}


def native(function, *specs):
    return export_lifted(jax.jit(function), Target(export, NativeFunction), Constants(), specs, {})


SPEC = jax.ShapeDtypeStruct((2, 4), np.float32)


@pytest.mark.parametrize("native_serialization", [True, False])
@pytest.mark.parametrize("is_large", [True, False])
def test_a_result_of_64_bits_has_a_gradient_where_64_bit_types_are_off(is_large, native_serialization):
    scale = jnp.full(20000 if is_large else 3, 3.0)

    def function(x):
        with jax.enable_x64(True):
            return jnp.sin(jnp.asarray(x, jnp.float64)) * scale[:3]

    x = tf.constant([1.0, 2.0, 3.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = convert(function, native_serialization=native_serialization)(x)
    assert y.dtype == tf.float64
    np.testing.assert_allclose(tape.gradient(y, x), 3 * np.cos(x), rtol=1e-6)


@pytest.mark.parametrize("wrap", WRAPPERS.values(), ids=WRAPPERS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_and_gradients_are_those_of_jax(name, wrap):
    function = FUNCTIONS[name]
    converted = wrap(convert(function, polymorphic_shapes=["(b, _)"]))
    x = tf.Variable(X)
    with tf.GradientTape() as tape:
        result = converted(x)
        total = tf.reduce_sum(result)
    np.testing.assert_allclose(result, jax.jit(function)(X), rtol=1e-4, atol=1e-3)
    expected = jax.grad(lambda x: function(x).sum())(X)
    found = tape.gradient(total, x)
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3 * np.abs(expected).max())


def test_second_gradients_are_those_of_jax():
    function = FUNCTIONS["in a jit inside"]
    converted = convert(function)
    x = tf.Variable(X)
    with tf.GradientTape() as outer:
        with tf.GradientTape() as tape:
            total = tf.reduce_sum(converted(x))
        first = tape.gradient(total, x)
    expected = jax.grad(lambda x: jax.grad(lambda x: function(x).sum())(x).sum())(X)
    np.testing.assert_allclose(outer.gradient(first, x), expected, rtol=1e-3, atol=1e-3 * np.abs(expected).max())


@pytest.mark.parametrize("name", FUNCTIONS)
def test_large_constants_are_in_no_module(name):
    function = native(FUNCTIONS[name], SPEC)
    assert function.constants
    for exported in (function.exported, function.vjp.exported, function.vjp.vjp.exported):
        assert len(exported.mlir_module_serialized) < LARGE_BYTES


def test_the_function_and_its_gradient_share_each_constant():
    function = native(FUNCTIONS["in a jit inside"], SPEC)
    assert len(function.constants) == 2
    assert set(function.vjp.constants) <= set(function.constants)


@pytest.mark.parametrize("native_serialization", [True, False])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int4"])
@pytest.mark.parametrize("size", [4, 70_000])
def test_value_and_gradient_are_of_the_numbers_when_a_signature_was_first_seen(size, dtype, native_serialization):
    weights = np.ones((2, size), dtype).T
    converted = convert(
        lambda x: x * jax.lax.convert_element_type(weights, x.dtype).sum() / 2,
        native_serialization=native_serialization,
    )

    def value_and_gradient(count):
        x = tf.Variable(tf.ones([count]))
        with tf.GradientTape() as tape:
            value = converted(x)
        return lambda: (float(value[0]), float(tape.gradient(value, x)[0]))

    first = value_and_gradient(2)
    weights[:] = 3
    assert first() == (size, size)
    assert value_and_gradient(2)() == (size, size)
    assert value_and_gradient(3)() == (3 * size, 3 * size)
    weights[:] = 1
    assert value_and_gradient(4)() == (size, size)


@pytest.mark.parametrize("native_serialization", [True, False])
def test_a_gradient_by_a_rule_is_of_the_numbers_when_a_signature_was_first_seen(native_serialization):
    """Also beside a large array, which is outside of the module."""
    small = np.full(4, 2, np.float32)
    by_small = jax.custom_vjp(lambda x: x * small)
    by_small.defvjp(lambda x: (by_small(x), None), lambda _, cotangent: (cotangent * small,))
    converted = convert(lambda x: (by_small(x) @ TABLE).sum(), native_serialization=native_serialization)
    x = tf.constant(X)
    before = converted(x)
    small[:] = 5
    with tf.GradientTape() as tape:
        tape.watch(x)
        result = converted(x)
    np.testing.assert_allclose(result, before)
    np.testing.assert_allclose(tape.gradient(result, x), np.broadcast_to(2 * TABLE.sum(1), X.shape), rtol=1e-4)


def test_an_array_that_may_be_written_to_is_copied_once_into_the_tensor():
    weights = np.linspace(0, 1, LARGE_BYTES, dtype=np.float32)
    constants = Constants()

    def exported(count):
        function = jax.jit(lambda x: x[:, None] * weights)
        spec = jax.ShapeDtypeStruct((count,), np.float32)
        return export_lifted(function, Target(export, NativeFunction), constants, (spec,), {})

    first, second = exported(2), exported(3)
    [constant] = first.constants
    assert second.constants == first.vjp.constants == first.constants
    assert not np.shares_memory(constant.value, weights)
    assert np.shares_memory(constant.value, np.asarray(constant.tensor()))
    weights[0] = 1
    [changed] = exported(4).constants
    assert changed is not constant
    np.testing.assert_array_equal(changed.value, weights)


@pytest.mark.parametrize("native_serialization", [True, False])
def test_a_gradient_is_of_64_bits_as_its_function_is(native_serialization):
    weights = np.linspace(0, 1, LARGE_BYTES)
    converted = convert(lambda x: (x * weights).sum(), native_serialization=native_serialization)
    x = tf.Variable(np.ones(LARGE_BYTES))
    with jax.enable_x64(), tf.GradientTape() as tape:
        value = converted(x)
    np.testing.assert_array_equal(tape.gradient(value, x), weights)


@pytest.mark.parametrize("first", ["graph", "eager"])
@pytest.mark.parametrize("array", [TABLE, jnp.asarray(TABLE)], ids=["NumPy", "JAX"])
def test_a_constant_is_a_tensor_of_each_graph(array, first):
    converted = convert(lambda x: (x @ array)[:, :9])

    def in_graph():
        with tf.Graph().as_default() as graph:
            result = tf.function(converted)(tf.constant(X)) + converted(tf.constant(X))
            with tf.compat.v1.Session(graph=graph) as session:
                return session.run(result) / 2

    calls = [in_graph, in_graph, lambda: converted(X), lambda: tf.function(converted)(X), in_graph]
    for call in calls if first == "graph" else calls[2:]:
        np.testing.assert_allclose(call(), (X @ TABLE)[:, :9], rtol=1e-5)


def test_the_gradient_computes_none_for_the_constants():
    function = native(FUNCTIONS["array"], SPEC)
    assert [aval.shape for aval in function.vjp.exported.out_avals] == [(2, 4)]


def test_small_constants_stay_in_the_module():
    small = np.ones(LARGE_BYTES // 4 - 1, np.float32)
    large = np.ones(LARGE_BYTES // 4, np.float32)
    assert not native(lambda: small + 1).constants
    assert native(lambda: large + 1).constants


def test_names_in_messages_are_still_those_of_the_arguments():
    converted = convert(lambda x, y: x @ TABLE + y, polymorphic_shapes=["(b, _)", "(b, _)"])
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"args\[1\].shape\[0\]"):
        converted(tf.ones((2, 4)), tf.ones((3, 40_000)))


def test_functions_with_shardings_keep_their_constants():
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:1]), "x")
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("x"))
    function = export_lifted(
        jax.jit(FUNCTIONS["array"], in_shardings=(sharding,)), Target(export, NativeFunction), Constants(), (SPEC,), {}
    )
    assert not function.constants


def test_a_module_is_compiled_once_for_eager_calls_of_all_sizes(monkeypatch):
    calls = []
    original = native_module._tf.compiled_call
    monkeypatch.setattr(native_module._tf, "compiled_call", lambda *given: calls.append(given) or original(*given))
    converted = convert(lambda x, y: (jnp.sin(x) * 2, x[:1]), polymorphic_shapes=["(b,)", None])
    for size in (3, 5):
        x = tf.Variable(np.arange(size, dtype=np.float32))
        with tf.GradientTape() as tape:
            result, _ = converted(x, tf.constant(1))
        np.testing.assert_allclose(result, np.sin(np.arange(size)) * 2, rtol=1e-5)
        np.testing.assert_allclose(tape.gradient(result, x), np.cos(np.arange(size)) * 2, rtol=1e-5)
    assert len(calls) == 2  # the function and its VJP


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("name", ["float64", "int64"])
def test_arrays_of_64_bits_keep_their_numbers_where_64_bit_types_are_off(name, native):
    with jax.enable_x64(True):
        numbers = jnp.arange(LARGE_BYTES // 8, dtype=name) * 2**33
        expected = np.asarray(numbers[1:4])

    def fun(x):
        return numbers[1:4], jnp.sin(x)

    with jax.enable_x64(False):
        in_jax = jax.jit(fun)(X[0, :3])
        found, _ = convert(fun, native_serialization=native)(X[0, :3])
    assert found.dtype.name == in_jax[0].dtype.name == name
    np.testing.assert_array_equal(found, expected)
