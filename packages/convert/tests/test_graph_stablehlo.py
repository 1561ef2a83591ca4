"""`convert_stablehlo`: modules of any producer, in every format that they come in."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

from jaxtf.convert import ArgumentTypeError, ConversionOptionError, GraphModeUnsupported, convert_stablehlo
from jaxtf.serialization import export

ADD = """
func.func @main(%x: tensor<?xf32>, %y: tensor<?xf32>) -> tensor<?xf32> {
  %0 = stablehlo.add %x, %y : tensor<?xf32>
  return %0 : tensor<?xf32>
}"""
X = np.linspace(0, 1, 12, dtype=np.float32).reshape(3, 4)


class Printed:
    """A module of somebody's bindings."""

    def __str__(self):
        return ADD


@pytest.mark.parametrize("form", [ADD, ADD.encode(), Printed()], ids=["text", "bytes", "printed"])
def test_a_text_is_a_function_of_tensors(form):
    add = convert_stablehlo(form)
    np.testing.assert_array_equal(add(tf.constant([1.0]), np.float32([2])), [3])
    traced = tf.function(add, autograph=False).get_concrete_function(tf.TensorSpec([None]), tf.TensorSpec([None]))
    np.testing.assert_array_equal(traced(tf.constant([1.0, 2.0]), tf.constant([3.0, 4.0])), [4, 6])
    assert "AddV2" in [operation.type for operation in traced.graph.get_operations()]


@pytest.mark.parametrize("form", ["exported", "artifact", "portable", "bytecode", "memory", "module"])
def test_every_format_of_a_module_is_read(form):
    exported = export(lambda x: (jnp.sin(x), x.sum()))(X)
    lowered = jax.jit(lambda x: (jnp.sin(x), x.sum())).lower(X).compiler_ir()
    module = {
        "exported": exported,
        "artifact": exported.serialize(),
        "portable": exported.mlir_module_serialized,
        "memory": memoryview(exported.mlir_module_serialized),
        "bytecode": bytecode(lowered),
        "module": lowered,
    }[form]
    sine, total = convert_stablehlo(module)(X)
    np.testing.assert_allclose(sine, np.sin(X), atol=1e-6)
    np.testing.assert_allclose(total, X.sum(), rtol=1e-6)


def bytecode(module):
    import io

    stream = io.BytesIO()
    module.operation.write_bytecode(stream)
    return stream.getvalue()


def test_tensorflow_differentiates_it():
    square = convert_stablehlo(ADD.replace("add", "multiply"))
    x = tf.Variable([2.0, 3.0])
    with tf.GradientTape() as tape:
        y = square(x, x)
    np.testing.assert_array_equal(tape.gradient(y, x), [4, 6])


def test_a_tape_inside_a_graph_differentiates_it():
    converted = convert_stablehlo(export(lambda x: (jnp.sin(x) @ x.T).sum())(X).mlir_module_serialized)

    @tf.function(autograph=False)
    def gradient(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = converted(x)
        return tape.gradient(y, x)

    expected = jax.grad(lambda x: (jnp.sin(x) @ x.T).sum())(X)
    np.testing.assert_allclose(gradient(tf.constant(X)), expected, rtol=1e-5, atol=1e-6)


def test_tuples_and_maps_are_translated():
    text = """
    func.func @main(%x: tensor<3xf32>, %y: tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>) {
      %0 = stablehlo.tuple %x, %y : tuple<tensor<3xf32>, tensor<3xf32>>
      %1 = stablehlo.get_tuple_element %0[1] : (tuple<tensor<3xf32>, tensor<3xf32>>) -> tensor<3xf32>
      %2 = "stablehlo.map"(%x, %1) ({
        ^bb0(%a: tensor<f32>, %b: tensor<f32>):
          %c = stablehlo.constant dense<2.0> : tensor<f32>
          %3 = stablehlo.multiply %a, %c : tensor<f32>
          %4 = stablehlo.subtract %3, %b : tensor<f32>
          stablehlo.return %4 : tensor<f32>
      }) {dimensions = array<i64: 0>} : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
      %5:2 = stablehlo.optimization_barrier %2, %1 : tensor<3xf32>, tensor<3xf32>
      return %5#0, %5#1 : tensor<3xf32>, tensor<3xf32>
    }"""
    for compiled in (False, True):
        run = tf.function(convert_stablehlo(text), autograph=False, jit_compile=compiled)
        first, second = run(tf.constant([1.0, 2.0, 3.0]), tf.constant([4.0, 5.0, 6.0]))
        assert (first.numpy().tolist(), second.numpy().tolist()) == ([-2, -1, 0], [4, 5, 6])


def test_if_takes_one_region():
    text = """
    func.func @main(%p: tensor<i1>, %x: tensor<f32>) -> tensor<f32> {
      %0 = "stablehlo.if"(%p) ({
        %1 = stablehlo.negate %x : tensor<f32>
        stablehlo.return %1 : tensor<f32>
      }, { stablehlo.return %x : tensor<f32> }) : (tensor<i1>) -> tensor<f32>
      return %0 : tensor<f32>
    }"""
    negated_if = convert_stablehlo(text)
    assert [negated_if(p, np.float32(3)).numpy() for p in (True, False)] == [-3, 3]


def test_a_composite_without_an_entry_is_its_decomposition():
    text = """
    func.func @main(%x: tensor<f32>) -> tensor<f32> {
      %0 = stablehlo.composite "mine.double" %x {decomposition = @double} : (tensor<f32>) -> tensor<f32>
      return %0 : tensor<f32>
    }
    func.func private @double(%x: tensor<f32>) -> tensor<f32> {
      %0 = stablehlo.add %x, %x : tensor<f32>
      return %0 : tensor<f32>
    }"""
    assert convert_stablehlo(text)(np.float32(3)).numpy() == 6


def test_shardings_change_no_value():
    text = """
    sdy.mesh @mesh = <["a"=2]>
    func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
      %0 = stablehlo.custom_call @Sharding(%x) {mhlo.sharding = "{devices=[2]<=[2]}"} : (tensor<4xf32>) -> tensor<4xf32>
      %1 = sdy.sharding_constraint %0 <@mesh, [{"a"}]> : tensor<4xf32>
      return %1 : tensor<4xf32>
    }"""
    assert convert_stablehlo(text)(tf.ones(4)).numpy().tolist() == [1] * 4


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ((np.float32([1]),), "'main' takes 2 arguments, found 1"),
        ((np.float32([1]), np.int32([1])), "argument 1 of 'main' must be float32(None,), found int32"),
        ((np.float32([1]), np.float32(1)), "argument 1 of 'main' must be float32(None,), found float32()"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(args, message):
    with pytest.raises(ArgumentTypeError) as caught:
        convert_stablehlo(ADD)(*args)
    assert str(caught.value) == message


def test_what_is_no_module_is_refused():
    with pytest.raises(ConversionOptionError, match="convert_stablehlo needs a StableHLO module: Unable to parse"):
        convert_stablehlo("def f(): pass")
    with pytest.raises(ConversionOptionError, match="a module whose function 'main' takes only arrays"):
        convert_stablehlo("func.func @main(%t: !stablehlo.token) -> () { return }")


def test_a_module_that_calls_a_function_it_does_not_hold_is_refused():
    module = """
    func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = stablehlo.custom_call @tf.call_tf_function(%x) {
        tf.backend_config = {called_index = 0 : i64, has_token_input_output = false}, api_version = 2 : i32
      } : (tensor<2xf32>) -> tensor<2xf32>
      return %0 : tensor<2xf32>
    }"""
    with pytest.raises(GraphModeUnsupported, match="it calls a TensorFlow function that the module does not hold"):
        convert_stablehlo(module)(tf.ones(2))
