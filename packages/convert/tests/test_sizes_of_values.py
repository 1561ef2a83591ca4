"""Arguments whose sizes depend on values: compiled, graph mode takes them, and native mode refuses them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax import lax

from jaxtf.convert import convert, convert_stablehlo

NUMBERS = np.array([0.5, -1.0, 2.0, -3.0, 1.5, -0.25, 0.75, -0.125], np.float32)


def masked(x):
    return tf.boolean_mask(x, x > 0)


# Of these XLA knows no more than a bound when it compiles them.
BOUNDED = {
    "mask": masked,
    "where": lambda x: tf.cast(tf.where(x > 0)[:, 0], tf.float32),
    "unique": lambda x: tf.unique(tf.sign(x))[0],
    "gather": lambda x: tf.gather(x, tf.where(x > 0)[:, 0]),
    "partition": lambda x: tf.dynamic_partition(x, tf.cast(x > 0, tf.int32), 2)[1],
    "concatenation": lambda x: tf.concat([masked(x), x[:1]], 0),
    "computed": lambda x: tf.sin(masked(x)) * 2,
    "in a loop": lambda x: tf.while_loop(lambda i, y: i < 2, lambda i, y: (i + 1, y + 1), (0, masked(x)))[1],
}
# The values of these are constants of what is compiled.
KNOWN = {
    "slice": lambda x: x[: tf.size(x) // 2],
    "all": lambda x: x,
    "fill": lambda x: tf.fill([tf.size(x) - 3], 2.0),
}


def function(x):
    return x.mean(), x.shape[0] * 1.0, jnp.exp(x).sum(), x[::-1]


def slope(x):
    return jax.grad(lambda x: (x * x.shape[0]).sum())(x)


def constrained(x):
    return x.sum()


def compiled(converted, sizes):
    signature = [tf.TensorSpec([None], tf.float32)]
    return tf.function(lambda x: converted(sizes(x)), input_signature=signature, autograph=False, jit_compile=True)


def differentiated(converted):
    def run(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            total = tf.reduce_sum(converted(x)[0])
        return tape.gradient(total, x)

    return run


@pytest.mark.parametrize("sizes", BOUNDED.values(), ids=BOUNDED)
@pytest.mark.parametrize("converts", [function, slope])
def test_native_mode_refuses_sizes_that_xla_knows_a_bound_of(converts, sizes):
    converted = convert(converts, polymorphic_shapes=["(b,)"])
    with pytest.raises(tf.errors.InvalidArgumentError, match="sizes_depend_on_values/remedy_graph_mode"):
        compiled(converted, sizes)(NUMBERS)


@pytest.mark.parametrize("sizes", [masked, BOUNDED["computed"]])
def test_native_mode_refuses_to_differentiate_with_them(sizes):
    run = differentiated(convert(function, polymorphic_shapes=["(b,)"]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="sizes_depend_on_values/remedy_graph_mode"):
        compiled(run, sizes)(NUMBERS)


@pytest.mark.parametrize(("shapes", "count"), [("(4*b,)", 3), ("(8,)", 4)])
def test_native_mode_refuses_them_where_the_bound_would_do(shapes, count):
    converted = convert(constrained, polymorphic_shapes=[shapes])
    least = np.sort(NUMBERS)[-count - 1]
    with pytest.raises(tf.errors.InvalidArgumentError, match="sizes_depend_on_values/remedy_graph_mode"):
        compiled(converted, lambda x: tf.boolean_mask(x, x > least))(NUMBERS)


@pytest.mark.parametrize("sizes", KNOWN.values(), ids=KNOWN)
def test_native_mode_takes_sizes_that_are_known_when_it_is_compiled(sizes):
    expected = function(np.asarray(sizes(tf.constant(NUMBERS))))
    found = compiled(convert(function, polymorphic_shapes=["(b,)"]), sizes)(NUMBERS)
    jax.tree.map(lambda one, other: np.testing.assert_allclose(one, other, rtol=1e-6), found, expected)


@pytest.mark.parametrize("sizes", (BOUNDED | KNOWN).values(), ids=BOUNDED | KNOWN)
def test_graph_mode_takes_them(sizes):
    expected = function(np.asarray(sizes(tf.constant(NUMBERS))))
    found = compiled(convert(function, polymorphic_shapes=["(b,)"], native_serialization=False), sizes)(NUMBERS)
    jax.tree.map(lambda one, other: np.testing.assert_allclose(one, other, rtol=1e-6), found, expected)


def shifted(x):
    """Sizes that XLA does not know and that differ."""
    return masked(x), tf.boolean_mask(x, x > 0.6)


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize(
    ("shapes", "constraints", "sizes"),
    [
        (["(4*b,)"], [], lambda x: (tf.boolean_mask(x, x > 0.6),)),
        (["(b,)"], ["b >= 6"], lambda x: (masked(x),)),
        (["(b,)"], ["mod(b, 3) == 0"], lambda x: (masked(x),)),
        (["(b,)", "(b,)"], [], shifted),
        (["(b,)", "(b + 2,)"], [], shifted),
    ],
)
@pytest.mark.parametrize("compiles", [True, False])
def test_sizes_that_a_function_does_not_allow_are_refused(native, shapes, constraints, sizes, compiles):
    converted = convert(
        lambda *arrays: sum(x.sum() for x in arrays),
        polymorphic_shapes=shapes,
        polymorphic_constraints=constraints,
        native_serialization=native,
    )
    run = tf.function(lambda x: converted(*sizes(x)), autograph=False, jit_compile=compiles)
    with pytest.raises(tf.errors.InvalidArgumentError):
        run(tf.constant(NUMBERS))


OPEN = """module {
  func.func public @main(%x: tensor<?xf32>, %y: tensor<?xf32>) -> tensor<f32> {
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %sum = stablehlo.add %x, %y : tensor<?xf32>
    %result = stablehlo.reduce(%sum init: %zero) applies stablehlo.add across dimensions = [0]
      : (tensor<?xf32>, tensor<f32>) -> tensor<f32>
    return %result : tensor<f32>
  }
}"""


@pytest.mark.parametrize("compiles", [True, False])
def test_sizes_that_stablehlo_does_not_allow_are_refused(compiles):
    converted = convert_stablehlo(OPEN)
    run = tf.function(lambda x: converted(*shifted(x)), autograph=False, jit_compile=compiles)
    with pytest.raises((tf.errors.InvalidArgumentError, ValueError)):
        run(tf.constant(NUMBERS))
    for x, y in ((NUMBERS, NUMBERS + 1), (NUMBERS[:3], NUMBERS[5:])):
        total = tf.function(converted, autograph=False, jit_compile=compiles)(tf.constant(x), tf.constant(y))
        np.testing.assert_allclose(total, (x + y).sum(), rtol=1e-6)


def pool(x):
    return lax.reduce_window(x, -np.inf, lax.max, (1, 2, 1), (1, 1, 1), "SAME")


def pool_by_two(x):
    return lax.reduce_window(x, -np.inf, lax.max, (1, 3, 1), (1, 2, 1), "SAME")


def spread(x):
    return lax.pad(x, np.float32(5), ((0, 0, 0), (0, 0, 1), (1, 0, 0)))


BESIDE = {
    "slice": lambda x: x[:, 1:3],
    "slice by two": lambda x: lax.slice_in_dim(x, 1, 4, 2, 1),
    "slice of rows too": lambda x: x[1:, 1:3, 1:],
    "pool": lambda x: jax.vjp(pool, x)[1](pool(x))[0],
    "pool by two": lambda x: jax.vjp(pool_by_two, x)[1](pool_by_two(x))[0],
    "pad": lambda x: jax.vjp(spread, x)[1](spread(x))[0],
    "cumulative maximum": lambda x: jax.vjp(lambda x: lax.cummax(x, 1), x)[1](x)[0],
    "cumulative product": lambda x: lax.cumprod(x, 1, reverse=True),
}


@pytest.mark.parametrize("allows_xla", [True, False])
@pytest.mark.parametrize("is_traced_before", [True, False])
@pytest.mark.parametrize("made", BESIDE.values(), ids=BESIDE)
def test_graph_mode_takes_starts_and_steps_beside_them(made, is_traced_before, allows_xla):
    """TensorFlow's StridedSlice drops them when XLA compiles it, without a word."""
    x = np.sin(np.arange(24, dtype=np.float32)).reshape(3, 4, 2)
    converted = convert(made, polymorphic_shapes=["(b, _, _)"], native_serialization=False, enable_xla=allows_xla)
    if is_traced_before:
        signature = [tf.TensorSpec([None, 4, 2], tf.float32)]
        converted = tf.function(converted, signature, autograph=False).get_concrete_function()
    run = tf.function(lambda x, mask: converted(tf.boolean_mask(x, mask)), autograph=False, jit_compile=True)
    found = run(np.concatenate([x, x[:2]]), np.arange(5) < 3)
    np.testing.assert_allclose(found, made(x), rtol=1e-6)


@pytest.mark.parametrize("reverse", [True, False])
@pytest.mark.parametrize("scan", [lax.cumsum, lax.cumprod])
def test_a_cumulative_sum_of_such_does_not_end_the_process(scan, reverse):
    """That of XLA does (TensorFlow 2.21)."""
    signature = [tf.TensorSpec([None, 2], tf.float32)]
    converted = convert(
        lambda x: scan(x, 0, reverse=reverse), polymorphic_shapes=["(b, _)"], native_serialization=False
    )
    traced = tf.function(converted, signature, autograph=False).get_concrete_function()
    x = np.arange(1, 11, dtype=np.float32).reshape(5, 2)
    for jit_compile in (True, False):
        run = tf.function(lambda x, mask: traced(tf.boolean_mask(x, mask)), autograph=False, jit_compile=jit_compile)
        if jit_compile:
            with pytest.raises(tf.errors.InvalidArgumentError):
                run(x, np.arange(5) < 3)
        else:
            np.testing.assert_array_equal(run(x, np.arange(5) < 3), scan(jnp.asarray(x[:3]), 0, reverse=reverse))
