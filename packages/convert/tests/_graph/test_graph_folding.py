"""What is computed from constants is a constant: the same bits, of bounded size, whatever the sizes that are open."""

import importlib.util
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

from jaxtf.convert import convert
from jaxtf.convert._graph.parse import parse
from jaxtf.convert._graph.plan.folding import MOST_BYTES
from jaxtf.convert._graph.plan.plan import plan
from jaxtf.serialization.interop import operations_of

CONSUMERS = Path(__file__).parents[4] / "examples" / "consumers"


def types_of(function, *specs, shapes=None):
    """The types of all operations of a graph, but for those that hold or pass on values."""
    converted = convert(function, native_serialization=False, polymorphic_shapes=shapes, with_gradient=False)
    definition = tf.function(converted, autograph=False).get_concrete_function(*specs).graph.as_graph_def()
    nodes = [*definition.node, *(node for inner in definition.library.function for node in inner.node_def)]
    unimportant = {"Placeholder", "Const", "Identity", "IdentityN", "NoOp"}
    return [node.op for node in nodes if node.op not in unimportant]


def planned(text):
    """The names of what is left of the main function, and its constants."""
    operations = list(operations_of(plan(parse(text)).functions["main"].body))
    return [operation.name for operation in operations], [
        operation.attributes["value"] for operation in operations if operation.name == "stablehlo.constant"
    ]


KEY = np.array([7, 11], np.uint32)
RANDOM = {
    "bits": lambda: jax.random.bits(jax.random.key(3), (5, 3)),
    "uniform": lambda: jax.random.uniform(jax.random.split(jax.random.key(3), 3)[1], (7,)),
    "integers": lambda: jax.random.randint(jax.random.fold_in(jax.random.key(3), 4), (6,), 0, 10),
    "16 bits": lambda: jax.random.bits(jax.random.wrap_key_data(jnp.asarray(KEY)), (9,), jnp.uint16),
    "bernoulli": lambda: jax.random.bernoulli(jax.random.key(1), 0.3, (8,)),
}


@pytest.mark.parametrize("name", RANDOM)
def test_random_numbers_from_a_constant_key_are_constants_of_the_same_bits(name):
    function = RANDOM[name]
    assert set(types_of(function)) <= {"Fill"}  # of equal elements
    found, expected = convert(function, native_serialization=False)(), jax.jit(function)()
    assert (found.dtype.name, found.shape) == (expected.dtype.name, expected.shape)
    assert found.numpy().tobytes() == np.asarray(expected).tobytes()


@pytest.mark.parametrize("shapes", [None, ["(b, _)"]])
def test_functions_on_constants_are_folded_also_where_sizes_are_open(shapes):
    def noisy(x):
        return x + jax.random.normal(jax.random.key(0), (3,))

    types = types_of(noisy, tf.TensorSpec([None if shapes else 2, 3]), shapes=shapes)
    assert types.count("AddV2") == 1
    assert not {"Bitcast", "BitwiseXor", "LeftShift", "RightShift", "PartitionedCall", "StatefulPartitionedCall"} & {
        *types
    }
    x = np.ones((2, 3), np.float32)
    found = convert(noisy, native_serialization=False, polymorphic_shapes=shapes)(x)
    np.testing.assert_allclose(found, noisy(x), rtol=4 * np.finfo(np.float32).eps)


def test_integers_on_constants_are_those_of_jax_also_where_kernels_would_raise():
    arguments = np.array([5, -5, 0, -(2**31)], np.int32), np.int32(0), np.int32(-1), np.int32(40)

    def function(x, zero, least, many):
        return jax.lax.div(x, zero), jax.lax.div(x, least), jax.lax.rem(x, zero), x << many, jax.lax.clz(x)

    def on_constants():
        return function(*map(jnp.asarray, arguments))

    assert set(types_of(on_constants)) <= {"Fill"}  # of equal elements
    # JAX is given arguments: the compiler of jaxlib 0.10.2 crashes when it divides constants so.
    expected = jax.jit(function)(*arguments)
    for ours, theirs in zip(convert(on_constants, native_serialization=False)(), expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def iota_plus_one(count):
    return f"""
        func.func @main() -> tensor<{count}xi32> {{
          %0 = stablehlo.iota dim = 0 : tensor<{count}xi32>
          %c = stablehlo.constant dense<1> : tensor<i32>
          %1 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<{count}xi32>
          %2 = stablehlo.add %0, %1 : tensor<{count}xi32>
          return %2 : tensor<{count}xi32>
        }}"""


def test_no_constant_grows_beyond_the_bound():
    largest = MOST_BYTES // 4
    names, constants = planned(iota_plus_one(largest))
    assert names == ["stablehlo.constant"]
    np.testing.assert_array_equal(constants[0], np.arange(1, largest + 1))
    names, constants = planned(iota_plus_one(largest + 1))
    assert "stablehlo.add" in names
    assert all(constant.size == 1 for constant in constants)


def test_iotas_and_broadcasts_stay_and_equal_elements_are_held_once():
    names, constants = planned(
        """
        func.func @main() -> (tensor<9xi32>, tensor<9x2xf32>, tensor<9xf32>) {
          %0 = stablehlo.iota dim = 0 : tensor<9xi32>
          %c = stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf32>
          %1 = stablehlo.broadcast_in_dim %c, dims = [1] : (tensor<2xf32>) -> tensor<9x2xf32>
          %d = stablehlo.constant dense<3.0> : tensor<9xf32>
          %2 = stablehlo.negate %d : tensor<9xf32>
          return %0, %1, %2 : tensor<9xi32>, tensor<9x2xf32>, tensor<9xf32>
        }"""
    )
    assert names == ["stablehlo.iota", "stablehlo.constant", "stablehlo.broadcast_in_dim", "stablehlo.constant"]
    assert (constants[1].shape, set(constants[1].strides), float(constants[1][0])) == ((9,), {0}, -3.0)


def test_what_depends_on_an_argument_or_on_a_size_or_has_an_effect_is_left():
    names, _ = planned(
        """
        func.func @main(%x: tensor<?xf32>) -> (tensor<f32>, tensor<i32>, tensor<f32>) {
          %c = stablehlo.constant dense<1.0> : tensor<f32>
          %one = stablehlo.constant dense<1> : tensor<i32>
          %p = stablehlo.constant dense<true> : tensor<i1>
          %0 = func.call @checked(%c, %p) : (tensor<f32>, tensor<i1>) -> tensor<f32>
          %1 = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?xf32>) -> tensor<i32>
          %2 = stablehlo.add %1, %one : tensor<i32>
          %3 = func.call @unused(%c, %1) : (tensor<f32>, tensor<i32>) -> tensor<f32>
          return %0, %2, %3 : tensor<f32>, tensor<i32>, tensor<f32>
        }
        func.func private @checked(%c: tensor<f32>, %p: tensor<i1>) -> tensor<f32> {
          stablehlo.custom_call @shape_assertion(%p) {error_message = "no", has_side_effect = true} : (tensor<i1>) -> ()
          return %c : tensor<f32>
        }
        func.func private @unused(%c: tensor<f32>, %n: tensor<i32>) -> tensor<f32> {
          %0 = stablehlo.negate %c : tensor<f32>
          return %0 : tensor<f32>
        }"""
    )
    # The last call has a size that its function does not use.
    assert sorted(name for name in names if name != "stablehlo.constant") == [
        "func.call",
        "stablehlo.add",
        "stablehlo.get_dimension_size",
    ]


def test_equal_constants_are_one_of_the_graph():
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)

    def function(x):
        return jnp.transpose(x, (2, 0, 1)) + jnp.sin(jnp.transpose(jnp.exp(x), (2, 0, 1)))

    converted = convert(function, native_serialization=False, with_gradient=False)
    graph = tf.function(converted, autograph=False).get_concrete_function(tf.TensorSpec([2, 3, 4])).graph
    types = [operation.type for operation in graph.get_operations()]
    assert (types.count("Transpose"), types.count("Const")) == (2, 1)
    np.testing.assert_allclose(converted(x / 24), function(x / 24), rtol=1e-6, atol=1e-6)


def test_functions_emitted_where_they_are_called_share_constants():
    @jax.jit
    def turned(x):
        return jnp.transpose(x, (2, 0, 1)) + 2

    def function(x):
        return turned(turned(turned(x)))

    converted = convert(function, native_serialization=False, with_gradient=False)
    graph = tf.function(converted, autograph=False).get_concrete_function(tf.TensorSpec([2, 3, 4])).graph
    types = [operation.type for operation in graph.get_operations()]
    assert (types.count("Transpose"), types.count("Const")) == (3, 2)
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    np.testing.assert_array_equal(converted(x), function(x))


@pytest.fixture(scope="module")
def consumer_models():
    specification = importlib.util.spec_from_file_location("consumer_models", CONSUMERS / "models.py")
    module = importlib.util.module_from_spec(specification)
    sys.modules[specification.name] = module  # dataclasses look there
    specification.loader.exec_module(module)
    yield {model.name: model for model in module.MODELS}
    del sys.modules[specification.name]


@pytest.mark.parametrize("name", ["vae", "diffusion"])
def test_models_with_a_constant_key_have_no_operations_on_bits(consumer_models, name):
    model = consumer_models[name]
    specs = [tf.TensorSpec(shape, dtype) for shape, dtype in model.signature.values()]
    types = types_of(lambda *inputs: model.predict(model.params, *inputs), *specs, shapes=model.polymorphic_shapes)
    assert not {"Bitcast", "BitwiseXor", "BitwiseOr", "LeftShift", "RightShift"} & {*types}


def test_what_was_computed_is_used_again_only_for_the_same_bits_and_attributes():
    names, constants = planned("""
    func.func @main() -> (tensor<f32>, tensor<f32>, tensor<f32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) {
      %zero = stablehlo.constant dense<0.0> : tensor<f32>
      %minus = stablehlo.constant dense<-0.0> : tensor<f32>
      %pair = stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf32>
      %a = stablehlo.negate %zero : tensor<f32>
      %b = stablehlo.negate %minus : tensor<f32>
      %c = stablehlo.negate %zero : tensor<f32>
      %d = stablehlo.composite "user.f" %pair {composite_attributes = {a = 1 : i64}, decomposition = @f}
        : (tensor<2xf32>) -> tensor<2xf32>
      %e = stablehlo.composite "user.f" %pair {composite_attributes = {a = 1 : i64}, decomposition = @g}
        : (tensor<2xf32>) -> tensor<2xf32>
      %f = stablehlo.composite "user.f" %pair {composite_attributes = {a = 1 : i64}, decomposition = @f}
        : (tensor<2xf32>) -> tensor<2xf32>
      return %a, %b, %c, %d, %e, %f
        : tensor<f32>, tensor<f32>, tensor<f32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
    }
    func.func private @f(%x: tensor<2xf32>) -> tensor<2xf32> {
      %y = stablehlo.add %x, %x : tensor<2xf32>
      return %y : tensor<2xf32>
    }
    func.func private @g(%x: tensor<2xf32>) -> tensor<2xf32> {
      %y = stablehlo.multiply %x, %x : tensor<2xf32>
      return %y : tensor<2xf32>
    }
    """)
    assert names == 6 * ["stablehlo.constant"]
    assert [np.signbit(constant) for constant in constants[:3]] == [True, False, True]
    assert [constant.tolist() for constant in constants[3:]] == [[2, 4], [1, 4], [2, 4]]


def test_broadcasts_are_computed_where_something_is_computed_from_them():
    names, constants = planned("""
    func.func @main(%x: tensor<3x2xi32>) -> (tensor<3x2xi32>, tensor<3x2xi32>) {
      %row = stablehlo.constant dense<[1, 2]> : tensor<2xi32>
      %rows = stablehlo.broadcast_in_dim %row, dims = [1] : (tensor<2xi32>) -> tensor<3x2xi32>
      %count = stablehlo.iota dim = 0 : tensor<3x2xi32>
      %sum = stablehlo.add %rows, %count : tensor<3x2xi32>
      %result = stablehlo.divide %x, %rows : tensor<3x2xi32>
      return %sum, %result : tensor<3x2xi32>, tensor<3x2xi32>
    }
    """)
    assert names == ["stablehlo.constant", "stablehlo.broadcast_in_dim", "stablehlo.constant", "stablehlo.divide"]
    assert constants[1].tolist() == [[1, 2], [2, 3], [3, 4]]
