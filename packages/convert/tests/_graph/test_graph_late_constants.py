"""Numbers are those of JAX also where TensorFlow finds a constant that was none when the graph was made.

By such a constant it leaves out an operation, as `x * 1`, and takes what is before and behind it together.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax import lax

from jaxtf.convert import convert, convert_stablehlo

TINY = np.full(8, 1e-9, np.float32)
ONE, ZERO, YES = np.float32(1), np.float32(0), np.True_
# By each of them `log(1 + x)` is that of a sum which is rounded to 1, so 0; TensorFlow's log1p would be 1e-9.
BY_ARGUMENTS = {
    "product": lambda x, one, zero, yes: jnp.log((1 + x) * one),
    "quotient": lambda x, one, zero, yes: jnp.log((1 + x) / one),
    "power": lambda x, one, zero, yes: jnp.log((1 + x) ** one),
    "broadcast": lambda x, one, zero, yes: jnp.log((1 + x) * jnp.broadcast_to(one.reshape(1), x.shape)),
    "branch": lambda x, one, zero, yes: jnp.log(lax.cond(yes, lambda x: 1 + x, lambda x: x, x)),
    "choice": lambda x, one, zero, yes: jnp.log(jnp.where(yes, 1 + x, 7)),
    "sum": lambda x, one, zero, yes: (jnp.exp(x) + zero) - 1,
    "difference": lambda x, one, zero, yes: (jnp.exp(x) - zero) - 1,
}
# Sums of arrays, products of matrices, sorts and so on are not computed when a graph is made.
COMPUTED = {
    "sum": lambda x: x * (jnp.sum(jnp.zeros(3, x.dtype)) + 1),
    "greatest": lambda x: x * jnp.max(jnp.ones(3, x.dtype)),
    "scalar product": lambda x: x * jnp.dot(jnp.ones(3, x.dtype), np.float32([1, 0, 0])),
    "sorted": lambda x: x / jnp.sort(jnp.ones(3, x.dtype))[0],
    "element": lambda x: x ** jnp.ones(3, x.dtype)[jnp.arange(1)[0]],
    "broadcast": lambda x: x * jnp.full(x.shape, jnp.sum(jnp.ones(1, x.dtype))),
    "choice": lambda x: jnp.where(jnp.any(jnp.arange(3) > 1), x, 3),
    "branch": lambda x: lax.cond(jnp.any(jnp.arange(3) > 1), lambda x: x, lambda x: 2 * x, x),
    "in a loop": lambda x: lax.fori_loop(0, 1, lambda i, y: y * jnp.max(jnp.ones(3, x.dtype)), x),
}
# Of an array that has one element where it is called.
BY_SIZES = {
    "mean": lambda x, one: jnp.mean(jnp.broadcast_to(x, (one.size, 8)), 0),
    "sum": lambda x, one: jnp.sum(jnp.broadcast_to(x, (one.size, 8)), 0),
    "tile": lambda x, one: jnp.tile(x, one.size)[:8],
    "pad": lambda x, one: jnp.pad(x, (0, one.size - 1))[:8],
    "product": lambda x, one: x * one.size,
    "quotient": lambda x, one: x / one.size,
    "term": lambda x, one: x + (one.size - 1),
    "choice": lambda x, one: jnp.where(jnp.asarray(one.size) == 1, x, 3),
    "branch": lambda x, one: lax.cond(jnp.asarray(one.size) == 1, lambda x: x, lambda x: 2 * x, x),
}


def in_graph(function, **options):
    return convert(function, native_serialization=False, with_gradient=False, **options)


@pytest.fixture(scope="module")
def loaded(tmp_path_factory):
    """All of `BY_ARGUMENTS` in one SavedModel."""
    module = tf.Module()
    specs = [tf.TensorSpec(x.shape, x.dtype) for x in (TINY, ONE, ZERO, YES)]
    for name, function in BY_ARGUMENTS.items():
        setattr(module, name, tf.function(in_graph(function), specs, autograph=False))
    folder = str(tmp_path_factory.mktemp("late_constants"))
    tf.saved_model.save(module, folder)
    return tf.saved_model.load(folder)


@pytest.mark.parametrize("name", BY_ARGUMENTS)
def test_a_loaded_function_that_is_called_with_constants(name, loaded):
    @tf.function(autograph=False)
    def calling(x):
        return getattr(loaded, name)(x, tf.constant(ONE), tf.constant(ZERO), tf.constant(YES))

    assert not calling(TINY).numpy().any()
    assert not BY_ARGUMENTS[name](*map(jnp.asarray, (TINY, ONE, ZERO, YES))).any()


@pytest.mark.parametrize("name", BY_ARGUMENTS)
def test_a_function_that_is_called_with_what_is_computed_from_constants(name):
    @tf.function(autograph=False)
    def calling(x):
        zero = tf.reduce_sum(tf.zeros(2))
        return in_graph(BY_ARGUMENTS[name])(x, tf.exp(zero), zero, tf.equal(zero, 0))

    assert not calling(TINY).numpy().any()


@pytest.mark.parametrize("name", BY_ARGUMENTS)
def test_a_function_of_the_program_that_is_called_with_constants(name):
    @jax.jit
    def large(x, one, zero, yes):
        """So large that it becomes a function of the graph."""
        y = x
        for _ in range(8):
            y = jnp.tanh(jnp.sin(y))
        return BY_ARGUMENTS[name](x, one, zero, yes), y

    def function(x):
        return large(x, ONE, ZERO, YES), large(2 * x, ONE, ZERO, YES)

    converted = tf.function(in_graph(function), autograph=False)
    is_function = any("Call" in op.type for op in converted.get_concrete_function(TINY).graph.get_operations())
    assert is_function == (name not in ("sum", "difference"))  # with 0 it is emitted where it is called
    (first, _), (second, _) = converted(TINY)
    assert not first.numpy().any()
    assert not second.numpy().any()


@pytest.mark.parametrize("name", COMPUTED)
def test_what_is_computed_from_constants(name):
    found = tf.function(in_graph(lambda x: jnp.log(COMPUTED[name](1 + x))), autograph=False)(TINY)
    assert not found.numpy().any()


@pytest.mark.parametrize("name", BY_SIZES)
def test_sizes_that_are_known_where_a_function_is_called(name):
    def function(x, one):
        return jnp.log(BY_SIZES[name](1 + x, one))

    converted = in_graph(function, polymorphic_shapes=["(8,)", "(n,)"])
    specs = tf.TensorSpec((8,), tf.float32), tf.TensorSpec((None,), tf.float32)
    open_size = tf.function(converted, specs, autograph=False)
    known_size = tf.function(lambda x: open_size(x, tf.ones(1)), autograph=False)
    assert not open_size(TINY, np.ones(1, np.float32)).numpy().any()
    assert not known_size(TINY).numpy().any()


def test_a_large_constant_that_a_module_does_not_call_one_of_equal_elements():
    count = 10000
    resource = (np.uint32(4).tobytes() + np.ones(count, np.float32).tobytes()).hex()
    type_ = f"tensor<{count}xf32>"
    text = f"""
    module {{
      func.func public @main(%x: {type_}) -> {type_} {{
        %ones = stablehlo.constant dense_resource<ones> : {type_}
        %one = stablehlo.constant dense<1.0> : {type_}
        %sum = stablehlo.add %x, %one : {type_}
        %same = stablehlo.multiply %sum, %ones : {type_}
        %log = stablehlo.log %same : {type_}
        return %log : {type_}
      }}
    }}
    {{-# dialect_resources: {{ builtin: {{ ones: "0x{resource}" }} }} #-}}
    """
    found = tf.function(convert_stablehlo(text), autograph=False)(np.full(count, 1e-9, np.float32))
    assert not found.numpy().any()


def test_weights_stay_constants_and_each_argument_is_passed_on_once():
    def function(x, weights, bias):
        return (jnp.tanh(x) @ weights.T + bias) * bias - x[:, :1]

    shapes = (4, 5), (6, 5), (6,)
    concrete = tf.function(in_graph(function), autograph=False).get_concrete_function(*map(tf.TensorSpec, shapes))
    x, weights, bias = (sorted(op.type for op in tensor.consumers()) for tensor in concrete.inputs)
    assert set(weights) <= {"Transpose", "MatMul"}
    assert x == ["Identity", "StridedSlice"]
    assert bias == ["Identity"]
