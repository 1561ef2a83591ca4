"""Sizes that a module leaves open are compared where they may not fit, once, and not taken for what was required."""

import numpy as np
import pytest
import tensorflow as tf

from jaxtf.convert import ArgumentTypeError, convert_stablehlo

OPEN = "tensor<?x?xf32>"


def module(lines, arguments, result):
    given = ", ".join(f"%{name}: {type_}" for name, type_ in arguments.items())
    return f"func.func @main({given}) -> {result} {{\n{lines}\nreturn %r : {result}\n}}"


def assertions(text, ranks):
    specs = [tf.TensorSpec([None] * rank) for rank in ranks]
    graph = tf.function(convert_stablehlo(text), specs, autograph=False).get_concrete_function().graph
    return sum("Assert" in operation.name and operation.type == "If" for operation in graph.get_operations())


def test_a_chain_on_two_arrays_compares_their_sizes_once():
    lines = [f"%a0 = stablehlo.add %x, %y : {OPEN}"]
    for i in range(1, 6):
        lines.append(f"%b{i} = stablehlo.multiply %a{i - 1}, %y : {OPEN}")
        lines.append(f"%a{i} = stablehlo.subtract %x, %b{i} : {OPEN}")
    lines.append(f"%r = stablehlo.maximum %a5, %b3 : {OPEN}")
    text = module("\n".join(lines), {"x": OPEN, "y": OPEN}, OPEN)
    assert assertions(text, [2, 2]) == 2


def test_what_is_reduced_and_broadcast_back_is_not_compared():
    lines = f"""
      %zero = stablehlo.constant dense<0.0> : tensor<f32>
      %s = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1]
        : ({OPEN}, tensor<f32>) -> tensor<?xf32>
      %m = stablehlo.get_dimension_size %x, dim = 0 : ({OPEN}) -> tensor<i32>
      %n = stablehlo.get_dimension_size %x, dim = 1 : ({OPEN}) -> tensor<i32>
      %m1 = stablehlo.reshape %m : (tensor<i32>) -> tensor<1xi32>
      %n1 = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
      %shape = stablehlo.concatenate %m1, %n1, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
      %b = stablehlo.dynamic_broadcast_in_dim %s, %shape, dims = [0] : (tensor<?xf32>, tensor<2xi32>) -> {OPEN}
      %r = stablehlo.divide %x, %b : {OPEN}"""
    text = module(lines, {"x": OPEN}, OPEN)
    assert assertions(text, [2]) == 0
    x = np.random.default_rng(0).random((3, 5), np.float32)
    np.testing.assert_allclose(convert_stablehlo(text)(x), x / x.sum(1, keepdims=True), rtol=1e-6)


RESHAPES = {
    "dynamic": """
      %one = stablehlo.constant dense<1> : tensor<i32>
      %shape = stablehlo.reshape %one : (tensor<i32>) -> tensor<1xi32>
      %r = stablehlo.dynamic_reshape %x, %shape : (tensor<?xf32>, tensor<1xi32>) -> tensor<?xf32>""",
    "static": """
      %s = stablehlo.reshape %x : (tensor<?xf32>) -> tensor<1xf32>
      %r = stablehlo.negate %s : (tensor<1xf32>) -> tensor<?xf32>""",
}


@pytest.mark.parametrize("size", [0, 2])
@pytest.mark.parametrize("mode", ["eager", "graph", "compiled"])
@pytest.mark.parametrize("kind", RESHAPES)
def test_an_array_is_not_taken_for_what_it_is_reshaped_to(kind, mode, size):
    run = convert_stablehlo(module(RESHAPES[kind], {"x": "tensor<?xf32>"}, "tensor<?xf32>"))
    if mode != "eager":
        run = tf.function(run, [tf.TensorSpec([None])], autograph=False, jit_compile=mode == "compiled")
    assert run(tf.ones([1])).shape == (1,)
    with pytest.raises(tf.errors.InvalidArgumentError):
        run(tf.ones([size]))


@pytest.mark.parametrize("mode", ["eager", "graph", "compiled"])
def test_a_broadcast_to_no_elements_is_compared_too(mode):
    lines = """
      %shape = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
      %r = stablehlo.dynamic_broadcast_in_dim %x, %shape, dims = [0]
        : (tensor<?xf32>, tensor<1xi32>) -> tensor<?xf32>"""
    run = convert_stablehlo(module(lines, {"x": "tensor<?xf32>", "n": "tensor<i32>"}, "tensor<?xf32>"))
    if mode != "eager":
        specs = [tf.TensorSpec([None]), tf.TensorSpec([], tf.int32)]
        run = tf.function(run, specs, autograph=False, jit_compile=mode == "compiled")
    assert run(tf.ones([1]), 0).shape == (0,)
    with pytest.raises(tf.errors.InvalidArgumentError):
        run(tf.ones([2]), 0)


def test_known_sizes_that_disagree_are_refused_in_words():
    lines = """
      %two = stablehlo.constant dense<2> : tensor<i32>
      %shape = stablehlo.reshape %two : (tensor<i32>) -> tensor<1xi32>
      %i = stablehlo.dynamic_iota %shape, dim = 0 : (tensor<1xi32>) -> tensor<?xf32>
      %k = stablehlo.negate %i : (tensor<?xf32>) -> tensor<1xf32>
      %r = stablehlo.add %x, %k : (tensor<?xf32>, tensor<1xf32>) -> tensor<?xf32>"""
    with pytest.raises(ArgumentTypeError, match=r"a result has shape \(2,\), and its type \(1,\)"):
        convert_stablehlo(module(lines, {"x": "tensor<?xf32>"}, "tensor<?xf32>"))(tf.ones([1]))


GROWN = """
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %value = stablehlo.constant dense<0.0> : tensor<f32>
  %n, %y = stablehlo.while(%i = %zero, %z = %x) : tensor<i32>, tensor<?xf32>
  cond {
    %p = stablehlo.compare LT, %i, %k : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %j = stablehlo.add %i, %one : tensor<i32>
    %w = stablehlo.pad %z, %value, low = [1], high = [0], interior = [0]
      : (tensor<?xf32>, tensor<f32>) -> tensor<?xf32>
    stablehlo.return %j, %w : tensor<i32>, tensor<?xf32>
  }
  %r = stablehlo.add %x, %y : tensor<?xf32>"""
COUNTED = """
func.func private @counted(%x: tensor<?xf32>) -> tensor<?xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %s = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0]
    : (tensor<?xf32>, tensor<f32>) -> tensor<f32>
  %n = stablehlo.convert %s : (tensor<f32>) -> tensor<i32>
  %shape = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
  %r = stablehlo.dynamic_iota %shape, dim = 0 : (tensor<1xi32>) -> tensor<?xf32>
  return %r : tensor<?xf32>
}"""
CALLS = """
  %a = func.call @counted(%x) : (tensor<?xf32>) -> tensor<?xf32>
  %b = func.call @counted(%y) : (tensor<?xf32>) -> tensor<?xf32>
  %r = stablehlo.add %a, %b : tensor<?xf32>"""


def test_what_a_loop_makes_larger_is_not_taken_for_what_it_was():
    run = convert_stablehlo(module(GROWN, {"x": "tensor<?xf32>", "k": "tensor<i32>"}, "tensor<?xf32>"))
    np.testing.assert_array_equal(run(tf.ones([1]), 0), [2])
    with pytest.raises(tf.errors.InvalidArgumentError):
        run(tf.ones([1]), 1)


def test_a_size_that_one_call_computes_is_not_that_of_another():
    arguments = {"x": "tensor<?xf32>", "y": "tensor<?xf32>"}
    run = convert_stablehlo(module(CALLS, arguments, "tensor<?xf32>") + COUNTED)
    np.testing.assert_array_equal(run(tf.constant([1.0, 1.0]), tf.constant([2.0, 0.0])), [0, 2])
    with pytest.raises(tf.errors.InvalidArgumentError):
        run(tf.constant([1.0, 0.0]), tf.constant([2.0, 0.0]))
