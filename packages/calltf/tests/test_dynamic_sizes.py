"""Arrays whose sizes depend on values: a staged call gives what TensorFlow gives eagerly, or is refused."""

import jax
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, reject

from jaxtf.calltf import CompilationError, DynamicShapeError, call_tf

from .batched.sampling import sampled
from .dynamic_programs import by_tensorflow, programs, slope_of, squared

X = np.float32([1, -2, 3, 4, -5])


def positive(x):
    return tf.boolean_mask(x, x > 0)


def right_or_refused(run, found, program):
    try:
        results = run([x for x, _ in found])
    except (CompilationError, DynamicShapeError):
        return
    for ours, (_, theirs) in zip(results, found, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=2e-3, atol=2e-4, err_msg=program.source)


@pytest.mark.slow
@given(programs())
@sampled(40)
def test_a_program_of_such_sizes_is_right_or_refused(program):
    function = program.function()
    total = squared(function)
    results, slopes = by_tensorflow(function), by_tensorflow(slope_of(total))
    if not results:
        reject()  # no program
    call, jitted = call_tf(function), jax.jit(call_tf(function))
    right_or_refused(lambda arguments: [jitted(x) for x in arguments], results, program)
    right_or_refused(lambda arguments: jax.vmap(call)(np.stack(arguments)), results, program)
    if slopes:
        gradient = jax.jit(jax.grad(call_tf(total)))
        right_or_refused(lambda arguments: [gradient(x) for x in arguments], slopes, program)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: tf.reduce_sum(tf.ones_like(positive(x))),
        lambda x: tf.concat([positive(x), [10.0, 11.0]], 0)[-1],
        lambda x: tf.reduce_sum(tf.cumsum(positive(x))),
        lambda x: tf.reduce_sum(tf.cast(tf.logical_or(positive(x) > 0, True), tf.int32)),
        lambda x: tf.reduce_sum(tf.bitwise.bitwise_and(tf.cast(positive(x), tf.int32), 0) + 1),
        lambda x: tf.reduce_sum(tf.where(positive(x) > 2, 1.0, 1.0)),
        lambda x: tf.reduce_sum(tf.math.divide_no_nan(positive(x), 0.0) + 1),
        lambda x: tf.reduce_sum(tf.function(tf.cumsum)(positive(x))),
        lambda x: tf.reduce_sum(tf.while_loop(lambda y: y[0] < 0, lambda y: (y,), (positive(x),))[0]),
        lambda x: tf.image.rot90(x[:, tf.newaxis, tf.newaxis])[0, 0, 0],
    ],
    ids=["ones", "the last", "running", "or", "and", "select", "quotient", "in a function", "loop", "two sizes"],
)
@pytest.mark.parametrize("stage", [jax.jit, lambda call: lambda x: jax.vmap(call)(x[np.newaxis])], ids=["jit", "vmap"])
def test_what_loses_the_size_is_refused_with_the_remedy(function, stage):
    with pytest.raises(CompilationError, match=r"whose sizes depend on values (.|\n)* remedy: keep sizes constant"):
        stage(call_tf(function))(X)


def of_three(x):
    x.set_shape([3])  # as somebody who knows how many there are
    return x


@pytest.mark.slow(1)
@pytest.mark.parametrize(
    "function",
    [
        lambda x: tf.reduce_mean(tf.exp(positive(x))),
        lambda x: tf.math.reduce_std(positive(x)),
        lambda x: tf.reduce_max(tf.gather(x, tf.where(x > 2)[:, 0])),
        lambda x: tf.reduce_sum(x[: tf.cast(x[2], tf.int32)] * 2),
        lambda x: tf.reduce_sum(tf.nn.softmax(positive(x)) * positive(x)),
        lambda x: tf.reduce_sum(tf.matmul(positive(x)[:, tf.newaxis], x[tf.newaxis]), 0),
        lambda x: tf.unique(tf.round(tf.abs(x) / 2))[1],
        lambda x: tf.cast(tf.size(tf.boolean_mask(positive(x), positive(x) > 1)), tf.float32) * x,
    ],
    ids=["mean", "deviation", "where", "slice", "softmax", "matmul", "unique", "mask of a mask"],
)
def test_what_keeps_the_size_is_computed(function):
    expected = function(tf.constant(X)).numpy()
    np.testing.assert_allclose(jax.jit(call_tf(function))(X), expected, rtol=1e-5)
    np.testing.assert_allclose(jax.vmap(call_tf(function))(np.stack([X, X]))[1], expected, rtol=1e-5)


def test_a_size_that_is_declared_in_the_graph_is_still_one_that_depends_on_values():
    with pytest.raises(CompilationError, match="whose sizes depend on values"):
        jax.jit(call_tf(lambda x: of_three(positive(x))[-1]))(X)


def with_two_sizes(x):
    chosen = positive(x)
    return tf.expand_dims(chosen, 1) * tf.expand_dims(chosen, 0)


STAGED = {
    "jit": lambda **declared: jax.jit(call_tf(with_two_sizes, **declared))(X),
    "vmap": lambda **declared: jax.vmap(call_tf(with_two_sizes, **declared))(X[None]),
    "gradient": lambda **declared: jax.jit(jax.grad(lambda x: call_tf(with_two_sizes, **declared)(x).sum()))(X),
}


@pytest.mark.parametrize("kind", STAGED)
def test_an_array_of_two_sizes_that_depend_on_values_is_refused(kind):
    with pytest.raises(DynamicShapeError, match=r"cannot call functions whose output has dynamic shape"):
        STAGED[kind]()
    text = "with_two_sizes for CPU: .* has two such sizes, .*\n  remedy" if kind == "jit" else "with_two_sizes for CPU"
    with pytest.raises(CompilationError, match=text):
        STAGED[kind](output_shape_dtype=jax.ShapeDtypeStruct((3, 3), np.float32))
