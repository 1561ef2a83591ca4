"""What adds or multiplies many 16-bit floats gives what float64 gives, or is no worse than JAX's own.

Added one by one in float16, ones stay at 2048, in bfloat16 at 256: a kernel that rounds each step is wrong in silence.
"""

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st
from jax import lax

from jaxtf.convert import convert, convert_stablehlo

from .graph_mode import MODES, drawn, run_module

DTYPES = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16}
COUNTS = (5_000, 60_000)
NHWC = ("NHWC", "HWIO", "NHWC")


@st.composite
def places(draw):
    """A shape and dimensions of it that have many elements, the others few."""
    count, kept = draw(st.sampled_from(COUNTS)), draw(st.lists(st.sampled_from((1, 2, 3)), max_size=3))
    several = draw(st.sampled_from(((count,), (count // 100, 100), (10, count // 1000, 100), (count, 1))))
    marked = draw(st.permutations([*((n, True) for n in several), *((n, False) for n in kept)]))
    return tuple(n for n, _ in marked), tuple(i for i, (_, reduced) in enumerate(marked) if reduced)


def uniform(draw, *shape, low=0.0, high=1.0):
    return np.random.default_rng(draw(st.integers(0, 99))).uniform(low, high, shape)


def reduced(operation, initial, axes):
    return lambda x: lax.reduce(x, np.array(initial, x.dtype), operation, axes)


def of_sum(draw):
    shape, axes = draw(places())
    return reduced(lax.add, 0, axes), uniform(draw, *shape)


def of_product(draw):
    shape, axes = draw(places())
    return reduced(lax.mul, 1, axes), uniform(draw, *shape, low=0.96, high=1.04)


def of_mean(draw):
    shape, axes = draw(places())
    count = int(np.prod([shape[axis] for axis in axes]))
    return lambda x: reduced(lax.add, 0, axes)(x) / np.array(count, x.dtype), uniform(draw, *shape)


def of_statistics(draw):
    shape, axes = draw(places())
    return lambda x: (jnp.mean(x, axes), jnp.var(x, axes), jnp.sqrt(jnp.sum(x * x, axes))), uniform(draw, *shape)


def of_softmax(draw):
    shape, axes = draw(places())
    functions = jax.nn.log_softmax, jax.nn.softmax, jax.nn.logsumexp
    return lambda x: [function(x, axes) for function in functions], uniform(draw, *shape)


def of_several_at_once(draw):
    shape, axes = draw(places())

    def sums(x):
        zero = np.array(0, x.dtype)
        return lax.reduce((x, x * x), (zero, zero), lambda a, b: (a[0] + b[0], a[1] + b[1]), axes)

    return sums, uniform(draw, *shape)


def of_contraction(draw):
    shape, axes = draw(places())
    numbers = ((axes, axes), ((), ()))
    return lambda x, y: lax.dot_general(x, y, numbers), uniform(draw, *shape), uniform(draw, *shape)


def of_bias_gradient(draw):
    """What a bias, or a scale, that is broadcast over dimensions gets."""
    shape, axes = draw(places())
    few = [1 if axis in axes else n for axis, n in enumerate(shape)]
    gradient = jax.grad(lambda b, c, x: ((c * x + b) * x).astype("float32").sum(), (0, 1))
    return gradient, uniform(draw, *few), uniform(draw, *few), uniform(draw, *shape)


def of_running_sums(draw):
    count, axis = COUNTS[0], draw(st.sampled_from((0, 1)))  # XLA takes long for more
    shape = (count, 2) if axis == 0 else (2, count)
    functions = lax.cumsum, lax.cumprod, lax.cumlogsumexp
    return lambda x: [function(x, axis) for function in functions], uniform(draw, *shape, low=0.98, high=1.02)


def of_windows(draw):
    height, width = COUNTS[0] // 10, 10
    size = draw(st.sampled_from(((1, height, width, 1), (1, height, width // 2, 1), (1, height, 1, 1))))
    return lambda x: lax.reduce_window(x, np.array(0, x.dtype), lax.add, size, (1, 1, 1, 1), "VALID"), uniform(
        draw, 2, height, width, 2
    )


def of_scatter(draw):
    """Here JAX adds one by one in 16 bits, too."""
    count, features = draw(st.sampled_from(COUNTS)), draw(st.sampled_from(((), (1,), (3,))))
    rows = (np.arange(count) % draw(st.sampled_from((1, 2, 7)))).astype(np.int32)

    def sums(x):
        held = jnp.zeros((8, *features), x.dtype)
        return held.at[rows].add(x), jax.ops.segment_sum(x, rows, 8), jax.vjp(lambda t: t[rows], held)[1](x)[0]

    return sums, uniform(draw, count, *features)


def of_convolution(draw):
    """A convolution of one large window, and the gradient for a small kernel, with groups or without."""
    height, groups = draw(st.sampled_from(COUNTS)) // 100, draw(st.sampled_from((1, 2)))

    def convolved(x, kernel, padding):
        return lax.conv_general_dilated(x, kernel, (1, 1), padding, dimension_numbers=NHWC, feature_group_count=groups)

    def both(x, large, small, cotangent):
        return convolved(x, large, "VALID"), jax.vjp(lambda k: convolved(x, k, "SAME"), small)[1](cotangent)[0]

    inputs = 2 // groups
    return (
        both,
        uniform(draw, 1, height, 100, 2),
        uniform(draw, height, 99, inputs, 2),
        uniform(draw, 3, 3, inputs, 2),
        uniform(draw, 1, height, 100, 2),
    )


def of_pool_gradient(draw):
    """Of windows that overlap, most with the same maximum."""
    rate = draw(st.sampled_from((4, 8)))

    def gradient(x, cotangent):
        least = np.array(-np.inf, x.dtype)
        pool = lambda x: lax.reduce_window(x, least, lax.max, (1, rate, rate, 1), (1, 1, 1, 1), "VALID")  # noqa: E731
        return jax.vjp(pool, x)[1](cotangent)[0]

    x = np.zeros((1, 39, 39, 2))
    x[:, 19, 19] = 2
    return gradient, x, uniform(draw, 1, 40 - rate, 40 - rate, 2)


KINDS = {name.removeprefix("of_"): made for name, made in list(globals().items()) if name.startswith("of_")}


def error(found, truth):
    """The largest, relative to the number, or to a thousandth of the largest."""
    found, truth = np.asarray(found).astype(np.float64), np.asarray(truth)
    with np.errstate(all="ignore"):
        relative = np.abs(found - truth) / np.maximum(np.abs(truth), 1e-3 * np.abs(truth).max())
    return np.where(found == truth, 0, relative).max()


def in_mode(function, mode):
    return function if mode == "eager" else tf.function(function, autograph=False, jit_compile=mode == "compiled")


def computed_in_float64(function, arguments):
    with jax.enable_x64(True):
        return jax.tree.leaves(jax.jit(function)(*(x.astype(np.float64) for x in arguments)))


@pytest.mark.slow(3)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", KINDS)
def test_what_accumulates_many_halves_is_right(kind, dtype):
    """Or no more than twice as wrong as JAX on CPU. What is rounded once has an error of half an eps; a sum of few that
    are rounded, and what is computed of one, of a few.
    """
    eps = float(ml_dtypes.finfo(DTYPES[dtype]).eps)

    @drawn(3)
    @given(data=st.data())
    def right(data):
        function, *arguments = KINDS[kind](data.draw)
        arguments = [x.astype(DTYPES[dtype]) for x in arguments]
        truths = computed_in_float64(function, arguments)
        of_jax = jax.tree.leaves(jax.jit(function)(*arguments))
        bounds = [max(4 * eps, 2 * error(x, t)) for x, t in zip(of_jax, truths, strict=True)]
        converted = convert(function, native_serialization=False)
        for mode in MODES:
            results = tf.nest.flatten(in_mode(converted, mode)(*map(tf.constant, arguments)))
            for found, truth, bound in zip(results, truths, bounds, strict=True):
                assert error(found.numpy(), truth) <= bound, (mode, error(found.numpy(), truth), bound)

    right()


@pytest.mark.parametrize("mode", MODES)
def test_what_a_tape_gives_a_bias_is_right(mode):
    converted = convert(lambda x, b: x + b, native_serialization=False)
    x, bias = (tf.zeros(shape, tf.float16) for shape in ((60_000, 2), (2,)))
    cotangent = tf.fill(x.shape, tf.constant(0.5, tf.float16))

    def gradient(x, bias, cotangent):
        with tf.GradientTape() as tape:
            tape.watch(bias)
            result = converted(x, bias)
        return tape.gradient(result, bias, cotangent)

    np.testing.assert_array_equal(in_mode(gradient, mode)(x, bias, cotangent), np.full(2, 30_000, np.float16))


@pytest.mark.parametrize("mode", MODES)
def test_a_sum_of_a_constant_is_right(mode):
    """Compiled, TensorFlow's kernel computes it before XLA compiles."""

    def gradient(b):
        return jax.grad(lambda b: (jnp.zeros((60_000, 2), b.dtype) + b).astype("float32").sum() / 2)(b)

    converted = convert(gradient, native_serialization=False)
    np.testing.assert_array_equal(in_mode(converted, mode)(tf.zeros(2, tf.float16)), np.full(2, 30_000, np.float16))


@pytest.mark.parametrize("mode", ["eager", "graph"])
@pytest.mark.parametrize("axes", [(0,), (1,), (0, 1)])
def test_a_sum_of_sizes_known_at_run_time_is_right(axes, mode):
    converted = convert(
        lambda x: lax.reduce(x, np.float16(0), lax.add, axes), polymorphic_shapes=["n, m"], native_serialization=False
    )
    x = np.full((6_000, 20), 0.5, np.float16)
    np.testing.assert_array_equal(in_mode(converted, mode)(tf.constant(x)), x.astype(np.float64).sum(axes))


BROADCAST = {  # over many rows, of what comes last; each gives numbers of the same shape
    "bias": lambda x, b: x + b,
    "scale": lambda x, b: x * b,
    "difference": lambda x, b: b - x,
    "quotient": lambda x, b: x / b,
    "power": lambda x, b: x**b,
    "maximum": lambda x, b: jnp.maximum(x, 2 * b),
    "choice": lambda x, b: jnp.where(x > 0.5, x, b),
    "clamp": lambda x, b: lax.clamp(x.dtype.type(2), x + b, x.dtype.type(3)),
    "row": lambda x, b: x + b[None],
    "broadcast": lambda x, b: jnp.broadcast_to(b, x.shape),
    "several dimensions": lambda x, b: (x.reshape(10, -1, 30, 2) * b).reshape(x.shape),
    "of a product": lambda x, b: x @ jnp.eye(2, dtype=x.dtype) + b,
    "along a row": lambda x, b: (x.T * b[:, None]).T,
}


def pulled(function, is_constant, arguments, cotangent):
    """The gradient for the last argument by a tape."""

    def gradient(arguments, given):
        with tf.GradientTape() as tape:
            tape.watch(arguments)
            result = function(*arguments)
        return tape.gradient(result, arguments[-1], tf.constant(cotangent) if is_constant else given)

    return gradient, tuple(map(tf.constant, arguments)), tf.constant(cotangent)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", BROADCAST)
def test_what_a_tape_gives_what_is_broadcast_in_a_module_is_right(name, dtype, mode):
    """By TensorFlow's own gradients."""
    numbers = np.random.default_rng(0)
    given = [numbers.uniform(0.1, 1, shape).astype(DTYPES[dtype]) for shape in ((15_000, 2), (2,), (15_000, 2))]
    *arguments, cotangent = given
    with jax.enable_x64(True):
        x, b, upwards = (each.astype(np.float64) for each in given)
        truth = jax.vjp(BROADCAST[name], x, b)[1](upwards)[1]
    converted = convert_stablehlo(jax.jit(BROADCAST[name], keep_unused=True).lower(*arguments))
    for is_constant in (False, True):
        gradient, tensors, upwards = pulled(converted, is_constant, arguments, cotangent)
        found = in_mode(gradient, mode)(tensors, upwards)
        assert error(found.numpy(), truth) <= 2 * ml_dtypes.finfo(DTYPES[dtype]).eps


@pytest.mark.parametrize("mode", MODES)
def test_what_a_tape_gives_what_is_broadcast_to_open_sizes_is_right(mode):
    module = """
    func.func @main(%x: tensor<?x2xf16>, %b: tensor<2xf16>) -> tensor<?x2xf16> {
      %0 = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x2xf16>) -> tensor<i32>
      %1 = stablehlo.reshape %0 : (tensor<i32>) -> tensor<1xi32>
      %2 = stablehlo.constant dense<2> : tensor<1xi32>
      %3 = stablehlo.concatenate %1, %2, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
      %4 = stablehlo.dynamic_broadcast_in_dim %b, %3, dims = [1] : (tensor<2xf16>, tensor<2xi32>) -> tensor<?x2xf16>
      %5 = stablehlo.add %x, %4 : tensor<?x2xf16>
      return %5 : tensor<?x2xf16>
    }"""
    arguments, cotangent = (np.ones((15_000, 2), np.float16), np.ones(2, np.float16)), np.full((15_000, 2), 0.5)
    gradient, tensors, upwards = pulled(convert_stablehlo(module), False, arguments, cotangent.astype(np.float16))
    np.testing.assert_array_equal(in_mode(gradient, mode)(tensors, upwards), np.full(2, 7_500, np.float16))


OTHERS = {
    "chlo.broadcast_add": """
      %0 = chlo.broadcast_add %x, %b : (tensor<15000x2xf16>, tensor<2xf16>) -> tensor<15000x2xf16>""",
    "stablehlo.broadcast": """
      %1 = "stablehlo.broadcast"(%b) {broadcast_sizes = array<i64: 15000>} : (tensor<2xf16>) -> tensor<15000x2xf16>
      %0 = stablehlo.multiply %x, %1 : tensor<15000x2xf16>""",
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", OTHERS)
def test_what_a_tape_gives_what_other_operations_broadcast_is_right(name, mode):
    module = f"""
    func.func @main(%x: tensor<15000x2xf16>, %b: tensor<2xf16>) -> tensor<15000x2xf16> {{
      {OTHERS[name]}
      return %0 : tensor<15000x2xf16>
    }}"""
    arguments, cotangent = (np.ones((15_000, 2), np.float16), np.ones(2, np.float16)), np.full((15_000, 2), 0.5)
    gradient, tensors, upwards = pulled(convert_stablehlo(module), False, arguments, cotangent.astype(np.float16))
    np.testing.assert_array_equal(in_mode(gradient, mode)(tensors, upwards), np.full(2, 7_500, np.float16))


def test_broadcasts_whose_gradients_were_right_are_left_to_the_operations():
    def types(dtype, *shapes):
        traced = tf.function(convert_stablehlo(jax.jit(lambda x, b: x * b).lower(*(np.ones(s, dtype) for s in shapes))))
        graph = traced.get_concrete_function(*(tf.TensorSpec(shape, dtype) for shape in shapes)).graph
        return {operation.type for operation in graph.get_operations()}

    assert types(np.float16, (60, 2), (2,)) >= {"Cast", "BroadcastTo"}
    for dtype in (np.float32, ml_dtypes.bfloat16):
        assert not types(dtype, (60, 2), (2,)) & {"Cast", "BroadcastTo"}
    for shape in ((2, 1), (), (1, 1)):
        assert not types(np.float16, (2, 60), shape) & {"Cast", "BroadcastTo"}


def test_sums_that_were_right_are_left_as_they_are():
    """Along the innermost dimensions, of two numbers, of bfloat16 and of float32."""

    def casts(shape, axes, dtype=np.float16):
        converted = convert(lambda x: lax.reduce(x, dtype(0), lax.add, axes), native_serialization=False)
        traced = tf.function(converted, autograph=False).get_concrete_function(tf.TensorSpec(shape, dtype))
        return [operation.type for operation in traced.graph.get_operations()].count("Cast")

    assert casts((5000, 2), (0,)) == 2
    assert casts((2, 5000, 2), (1,)) == 2
    assert casts((50, 2, 100), (0, 2)) == 2
    assert casts((2, 5000), (1,)) == casts((50, 100), (0, 1)) == casts((5000, 1), (0,)) == casts((2, 2), (0,)) == 0
    assert casts((50, 2, 100, 2), (0, 2)) == 0  # these TensorFlow transposes first
    assert casts((5000, 2), (0,), np.float32) == casts((5000, 2), (0,), ml_dtypes.bfloat16) == 0


def normalized(kind, dtype, shape, feature):
    """A module that normalizes a batch, or is the gradient of that."""
    t, v = f"tensor<{'x'.join(map(str, shape))}x{dtype}>", f"tensor<{shape[feature]}x{dtype}>"
    types = [t, v, v] if kind == "training" else [t, v, v, v, t]
    names = ", ".join(f"%a{i}" for i in range(len(types)))
    arguments = ", ".join(f"%a{i}: {each}" for i, each in enumerate(types))
    return f"""func.func public @main({arguments}) -> ({t}, {v}, {v}) {{
      %r:3 = "stablehlo.batch_norm_{kind}"({names}) {{epsilon = 0.001 : f32, feature_index = {feature} : i64}}
        : ({", ".join(types)}) -> ({t}, {v}, {v})
      return %r#0, %r#1, %r#2 : {t}, {v}, {v} }}"""


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("shape", "feature"), [((60_000, 2), 1), ((2, 60_000), 0), ((600, 2, 100), 1)])
@pytest.mark.parametrize("kind", ["training", "grad"])
def test_the_normalization_of_a_large_batch_is_right(kind, shape, feature, dtype, mode):
    """Each of the results is computed of a few numbers that are rounded."""
    numbers = np.random.default_rng(0)
    x, cotangent = numbers.uniform(0, 2, shape), numbers.uniform(0, 1, shape)
    others = tuple(i for i in range(len(shape)) if i != feature)
    scale, offset = numbers.uniform(0.5, 1, (2, 2))
    arguments = [x, scale, offset] if kind == "training" else [x, scale, x.mean(others), x.var(others), cotangent]
    arguments = [argument.astype(DTYPES[dtype]) for argument in arguments]
    short = {"float16": "f16", "bfloat16": "bf16"}[dtype]
    found = run_module(normalized(kind, short, shape, feature), *arguments, mode=mode)
    truth = run_module(normalized(kind, "f64", shape, feature), *(a.astype(np.float64) for a in arguments))
    for result, expected in zip(found, truth, strict=True):
        difference = np.abs(result.astype(np.float64) - expected).max() / np.abs(expected).max()
        assert difference <= 4 * ml_dtypes.finfo(DTYPES[dtype]).eps


def large_convolution(spatial, groups):
    size = {1: 3_000, 2: 56, 3: 14}[spatial]
    names = "HWD"[:spatial]
    layout = f"N{names}C", f"{names}IO", f"N{names}C"
    shapes = (1, *[size] * spatial, 4), (*[size] * spatial, 4 // groups, 4)
    return shapes, lambda x, kernel: lax.conv_general_dilated(
        x,
        kernel,
        [1] * spatial,
        [(size // 2, size // 2)] * spatial,
        dimension_numbers=layout,
        feature_group_count=groups,
    )


@pytest.mark.parametrize("make", ["convert", "convert_stablehlo"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("groups", [1, 4])
@pytest.mark.parametrize("spatial", [1, 2, 3])
def test_gradients_of_compiled_convolutions_are_not_rounded_at_each_step(spatial, groups, dtype, make):
    """The cotangent of a sum is a constant, which TensorFlow's kernels take with a constant kernel before XLA does."""
    shapes, function = large_convolution(spatial, groups)
    x, kernel = (np.ones(shape, DTYPES[dtype]) for shape in shapes)
    if make == "convert":
        converted = convert(lambda x: function(x, kernel), native_serialization=False)
    else:
        converted = convert_stablehlo(jax.jit(lambda x: function(x, kernel)).lower(x).as_text())

    @tf.function(jit_compile=True, autograph=False)
    def gradient(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            made = tf.reduce_sum(tf.nest.flatten(converted(x))[0])
        return tape.gradient(made, x)

    found = gradient(tf.constant(x)).numpy().astype(np.float64)
    wide = [each.astype(np.float32) for each in (x, kernel)]
    expected = np.asarray(jax.grad(lambda x: function(x, wide[1]).sum())(wide[0]), np.float64)
    np.testing.assert_allclose(found, expected, rtol=2 * float(ml_dtypes.finfo(DTYPES[dtype]).eps))


@pytest.mark.slow(1)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("groups", [1, 4])
def test_tapes_add_gradients_of_convolutions_of_float16_in_float32(groups, mode):
    shapes, function = large_convolution(2, groups)
    x, kernel = (np.ones(shape, np.float16) for shape in shapes)
    imported = convert_stablehlo(jax.jit(function).lower(x, kernel).as_text())

    def gradients(*given):
        with tf.GradientTape() as tape:
            tape.watch(given)
            made = tf.nest.flatten(imported(*given))[0]
        return tape.gradient(made, given, tf.ones_like(made))

    if mode != "eager":
        gradients = tf.function(gradients, autograph=False, jit_compile=mode == "compiled")
    wide = [each.astype(np.float32) for each in (x, kernel)]
    expected = jax.grad(lambda *given: function(*given).sum(), (0, 1))(*wide)
    for found, each in zip(gradients(*map(tf.constant, (x, kernel))), expected, strict=True):
        np.testing.assert_allclose(found.numpy().astype(np.float32), each, rtol=2e-3)
