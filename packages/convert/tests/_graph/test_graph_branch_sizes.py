"""What a branch, or a loop, requires of open sizes says nothing of them where it does not run.

Grappler (TensorFlow 2.21) takes it for true of the whole graph.
"""

import numpy as np
import pytest
import tensorflow as tf

from jaxtf.convert import convert_stablehlo

W = tf.TensorSpec([7, 7])
MAIN = """
func.func public @main(%x: tensor<2x?xf32>, %w: tensor<7x7xf32>, %k: tensor<i32>)
  -> (tensor<2x?xf32>, tensor<i32>, tensor<i32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %seven = stablehlo.constant dense<7> : tensor<i32>
  %columns = stablehlo.get_dimension_size %x, dim = 1 : (tensor<2x?xf32>) -> tensor<i32>
  BODY
  %after = stablehlo.get_dimension_size %r, dim = 1 : (tensor<2x?xf32>) -> tensor<i32>
  return %r, %columns, %after : tensor<2x?xf32>, tensor<i32>, tensor<i32>
}
"""
PRODUCT = """
    %d = stablehlo.dot_general %y, %w, contracting_dims = [1] x [0]
      : (tensor<2x?xf32>, tensor<7x7xf32>) -> tensor<2x?xf32>
"""
KNOWN = "%c = stablehlo.cosine %y : (tensor<2x?xf32>) -> tensor<2x7xf32>"
KNOWN += "  %d = stablehlo.negate %c : (tensor<2x7xf32>) -> tensor<2x?xf32>"
RESHAPED = "%c = stablehlo.reshape %y : (tensor<2x?xf32>) -> tensor<14xf32>"
RESHAPED += "  %e = stablehlo.reshape %c : (tensor<14xf32>) -> tensor<2x7xf32>"
RESHAPED += "  %d = stablehlo.negate %e : (tensor<2x7xf32>) -> tensor<2x?xf32>"
FUNCTION = "%d = func.call @product(%y, %w) : (tensor<2x?xf32>, tensor<7x7xf32>) -> tensor<2x?xf32>"
CALLED = """
func.func private @product(%y: tensor<2x?xf32>, %w: tensor<7x7xf32>) -> tensor<2x?xf32> {
  PRODUCT return %d : tensor<2x?xf32>
}
""".replace("PRODUCT", PRODUCT)
BRANCH = """
  %p = stablehlo.compare GT, COMPARED : (tensor<i32>, tensor<i32>) -> tensor<i1>
  %r = "stablehlo.if"(%p) ({
    %y = stablehlo.abs %x : tensor<2x?xf32>
    COMPUTED
    stablehlo.return %d : tensor<2x?xf32>
  }, {
    stablehlo.return %x : tensor<2x?xf32>
  }) : (tensor<i1>) -> tensor<2x?xf32>
"""
LOOP = """
  %n, %r = stablehlo.while(%i = %zero, %y = %x) : tensor<i32>, tensor<2x?xf32>
  cond {
    %p = stablehlo.compare LT, %i, %k : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %j = stablehlo.add %i, %one : tensor<i32>
    COMPUTED
    stablehlo.return %j, %d : tensor<i32>, tensor<2x?xf32>
  }
"""
OF_SIZE = BRANCH.replace("compare GT", "compare EQ").replace("COMPARED", "%columns, %seven")
BODIES = {"branch": BRANCH.replace("COMPARED", "%k, %zero"), "branch of a size": OF_SIZE, "loop": LOOP}


TWICE = FUNCTION + FUNCTION.replace("%d", "%e")
COMPUTED = {"product": PRODUCT, "known": KNOWN, "reshaped": RESHAPED, "function": TWICE}


@pytest.mark.parametrize("is_traced", [False, True])
@pytest.mark.parametrize("computed", COMPUTED)
@pytest.mark.parametrize("body", BODIES)
def test_sizes_are_not_what_a_branch_requires_that_does_not_run(body, computed, is_traced):
    run = convert_stablehlo(MAIN.replace("BODY", BODIES[body].replace("COMPUTED", COMPUTED[computed])) + CALLED)
    if is_traced:
        run = tf.function(run, [tf.TensorSpec([2, None]), W, tf.TensorSpec([], tf.int32)], autograph=False)
    for columns in (7, 5, 3):
        found, *counts = run(tf.zeros([2, columns]), tf.ones(W.shape), tf.constant(int(columns == 7)))
        assert found.shape == (2, columns)
        assert [int(n) for n in counts] == [columns, columns]


def test_sizes_that_a_branch_requires_are_compared_if_it_runs():
    run = convert_stablehlo(MAIN.replace("BODY", BODIES["branch"].replace("COMPUTED", PRODUCT)))
    with pytest.raises(tf.errors.InvalidArgumentError, match="another size than StableHLO requires"):
        run(tf.zeros([2, 5]), tf.ones(W.shape), tf.constant(1))


@pytest.mark.parametrize("body", ["branch", "loop"])
def test_what_is_vectorized_or_differentiated_has_such_branches_too(body):
    run = convert_stablehlo(MAIN.replace("BODY", BODIES[body].replace("COMPUTED", PRODUCT)))

    @tf.function(input_signature=[tf.TensorSpec([2, None])], autograph=False)
    def gradient(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            (y, *_) = run(x, tf.eye(7), tf.constant(1))
        return tape.gradient(y, x)

    def of_one(x):
        return run(x, 2 * tf.eye(7), tf.constant(1))[0]

    @tf.function(input_signature=[tf.TensorSpec([3, 2, None])], autograph=False)
    def vectorized(x):
        return tf.vectorized_map(of_one, x)

    np.testing.assert_array_equal(gradient(tf.ones([2, 7])), np.ones([2, 7]))
    np.testing.assert_array_equal(vectorized(tf.ones([3, 2, 7])), np.full([3, 2, 7], 2))
