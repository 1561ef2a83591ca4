"""Sizes that do not fit are refused also where nothing but sizes and constants is computed of them, compiled or not."""

import jax
import jax.numpy as jnp
import pytest
import tensorflow as tf
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

from jaxtf.convert import convert, convert_stablehlo

OPEN = [tf.TensorSpec([None]), tf.TensorSpec([None])]

FUNCTIONS = {
    "positions": (lambda x, y: jnp.arange(x.shape[0]) * 1.0, "b", "b"),
    "matrix": (lambda x, y: jnp.eye(x.shape[0]), "b", "b"),
    "constants": (lambda x, y: jnp.zeros(x.shape[0]), "b", "b"),
    "mask": (lambda x, y: jnp.tril(jnp.ones((x.shape[0], y.shape[0]))), "b", "b"),
    "of a known size": (lambda x, y: jnp.ones(3), "b", "b"),
    "size": (lambda x, y: jnp.float32(x.shape[0]), "b", "b"),
    "random numbers": (lambda x, y: jax.random.normal(jax.random.key(0), x.shape), "b", "b"),
    "half a size": (lambda x, y: jnp.ones(x.shape[0] // 2), "2*b", "c"),
    "gradient of a sum": (jax.grad(lambda x, y: x.sum() * 1.0), "b", "b"),
    "beside a value": (lambda x, y: (jnp.zeros(x.shape[0]), x * 2), "b", "b"),
    "a value": (lambda x, y: x * 2, "b", "b"),
}


def compiled(function):
    return tf.function(function, OPEN, autograph=False, jit_compile=True)


def scaled(function):
    """A result that is computed from a value, with one that is not."""
    return lambda x, y: [y[0] * tf.reduce_sum(result) for result in tf.nest.flatten(function(x, y))]


def with_constant(function):
    """The first argument as a constant of the graph, wherever its size is known."""
    return lambda x, y: scaled(function)(tf.ones(5), y)


WAYS = {
    "compiled": compiled,
    "within a compiled function": lambda f: compiled(scaled(tf.function(f, OPEN, autograph=False))),
    "of a constant": lambda f: compiled(with_constant(tf.function(f, OPEN, autograph=False))),
    "in a branch": lambda f: compiled(lambda x, y: tf.cond(y[0] > 0, lambda: scaled(f)(x, y), lambda: scaled(f)(y, y))),
    "not compiled": lambda f: tf.function(scaled(f), OPEN, autograph=False),
}


@pytest.mark.slow(8)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_sizes_that_do_not_fit_are_refused(name, way):
    function, *shapes = FUNCTIONS[name]
    run = WAYS[way](convert(function, native_serialization=False, polymorphic_shapes=shapes))
    with pytest.raises((tf.errors.InvalidArgumentError, ValueError)):
        run(tf.ones(5), tf.ones(3))
    if name != "half a size":
        tf.nest.map_structure(lambda result: result.numpy(), run(tf.ones(5), tf.ones(5)))


BESIDE_CONSTANTS = {
    "a product by a size": lambda x, y: (x * y.shape[0], jnp.float32(7)),
    "an argument": lambda x, y: (jnp.float32(7), x),
    "values and sizes": lambda x, y: {"a": x + 1, "b": jnp.zeros(y.shape), "c": jnp.arange(3)},
}


@pytest.mark.parametrize("with_gradient", [False, True])
@pytest.mark.parametrize("name", BESIDE_CONSTANTS)
def test_sessions_and_frozen_graphs_refuse_them_beside_constants(name, with_gradient):
    function = convert(
        BESIDE_CONSTANTS[name], native_serialization=False, polymorphic_shapes=["b", "b"], with_gradient=with_gradient
    )
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        x, y = (tf.compat.v1.placeholder(tf.float32, [None]) for _ in range(2))
        results = function(x, y)
        session.run(results, {x: [1, 2], y: [1, 2]})
        for fetched in (results, tf.nest.flatten(results)[:1], tf.nest.flatten(results)[-1:]):
            with pytest.raises(tf.errors.InvalidArgumentError):
                session.run(fetched, {x: [1, 2, 3], y: [1, 2]})
    frozen = convert_variables_to_constants_v2(tf.function(function, OPEN, autograph=False).get_concrete_function())
    with pytest.raises(tf.errors.InvalidArgumentError):
        frozen(tf.ones(3), tf.ones(2))
    frozen(tf.ones(2), tf.ones(2))


MODULE = """func.func @main(%x: tensor<?xf32>, %y: tensor<?xf32>) -> tensor<?xf32> {
  %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?xf32>) -> tensor<i32>
  %m = stablehlo.get_dimension_size %y, dim = 0 : (tensor<?xf32>) -> tensor<i32>
  %i = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
  %j = stablehlo.reshape %m : (tensor<i32>) -> tensor<1xi32>
  %a = stablehlo.dynamic_iota %i, dim = 0 : (tensor<1xi32>) -> tensor<?xf32>
  %b = stablehlo.dynamic_iota %j, dim = 0 : (tensor<1xi32>) -> tensor<?xf32>
  %z = stablehlo.add %a, %b : tensor<?xf32>
  %r = stablehlo.multiply %z, %x : tensor<?xf32>
  return %r : tensor<?xf32>
}"""


@pytest.mark.parametrize("is_compiled", [False, True])
def test_operands_that_are_computed_from_sizes_are_not_broadcast(is_compiled):
    run = tf.function(convert_stablehlo(MODULE), OPEN, autograph=False, jit_compile=is_compiled)
    with pytest.raises(tf.errors.InvalidArgumentError):
        run(tf.ones(3), tf.ones(1))
    assert run(tf.ones(3), tf.ones(3)).numpy().tolist() == [0, 2, 4]


CLAIMED = """func.func @main(%x: tensor<?xf32>, %y: tensor<?xf32>) -> tensor<?xf32> {
  %one = stablehlo.negate %x : (tensor<?xf32>) -> tensor<1xf32>
  %n = stablehlo.get_dimension_size %one, dim = 0 : (tensor<1xf32>) -> tensor<i32>
  %i = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
  %r = stablehlo.dynamic_iota %i, dim = 0 : (tensor<1xi32>) -> tensor<?xf32>
  return %r : tensor<?xf32>
}"""
OF_A_SIZE = CLAIMED.replace(
    "%one = stablehlo.negate %x : (tensor<?xf32>)",
    """%m = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?xf32>) -> tensor<i32>
  %j = stablehlo.reshape %m : (tensor<i32>) -> tensor<1xi32>
  %one = stablehlo.dynamic_iota %j, dim = 0 : (tensor<1xi32>)""",
)


@pytest.mark.parametrize("is_compiled", [False, True])
@pytest.mark.parametrize("text", [CLAIMED, OF_A_SIZE], ids=["of a value", "of a size"])
def test_a_size_that_a_type_claims_is_compared_where_nothing_else_is_used(text, is_compiled):
    run = tf.function(convert_stablehlo(text), OPEN, autograph=False, jit_compile=is_compiled)
    for size in (0, 2):
        with pytest.raises(tf.errors.InvalidArgumentError):
            run(tf.ones(size), tf.ones(1))
    assert run(tf.ones(1), tf.ones(1)).numpy().tolist() == [0]
