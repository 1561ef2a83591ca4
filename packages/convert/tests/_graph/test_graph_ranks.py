"""Arrays of more dimensions than many kernels of TensorFlow take, which is eight, give JAX's results."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax import lax

from jaxtf.convert import GraphModeUnsupported, convert, convert_stablehlo

from .graph_mode import MODES, run_graph_mode, run_jax

SHAPE = (2,) * 9 + (3,)

OPERATIONS = {
    "reverse": lambda x: [lax.rev(x, (0, 9)), lax.rev(x, tuple(range(10)))],
    "transpose": lambda x: lax.transpose(x, (3, 1, 0, 2, 9, 5, 4, 8, 7, 6)),
    "slice": lambda x: [x[..., 1:], lax.slice(x, (1, 0) * 5, SHAPE), lax.slice(x, (0,) * 10, SHAPE, (1, 2) * 5)],
    "dynamic slice": lambda x: lax.dynamic_slice(x, [x[(0,) * 10].astype(int), *(1,) * 9], (1, 2) * 5),
    "update": lambda x: lax.dynamic_update_slice(x, x[:1] * 2, (1,) + (0,) * 9),
    "pad": lambda x: [lax.pad(x, 0.0, [(0, 0, 0)] * 9 + [(1, 2, 1)]), lax.pad(x, 1.0, [(1, -1, 0)] * 10)],
    "broadcast": lambda x: [lax.broadcast_in_dim(x, (2, *SHAPE), range(1, 11)), jnp.broadcast_to(x[:, :1], SHAPE)],
    "concatenate": lambda x: jnp.concatenate([x, x], 4),
    "sum": lambda x: [x.sum((0, 4, 9)), x.max((1, 3, 5, 7, 9))],
    "arithmetic": lambda x: [x + x[:1, :, :1], jnp.sign(x), x.astype(int) // 3, lax.clamp(1.0, x, 9.0)],
    "select": lambda x: [jnp.where(x > 3, x, -x), jnp.where(x[:1] > 3, x[:, :1], x)],
    "take": lambda x: x[:, :, jnp.array([1, 0])],
    "cumulative sum": lambda x: jnp.cumsum(x, 4),
    "sort": lambda x: [jnp.sort(x, 2), *lax.top_k(x, 2)],
    "product": lambda x: jnp.tensordot(x, x, axes=([0, 3, 5, 6, 7], [0, 3, 5, 6, 7])),
    "transform": jnp.fft.fft,
    "extreme": lambda x: [jnp.argmax(x, 3), jnp.argmin(x, 9), jnp.argmax(x)],
    "exclusive or": lambda x: lax.reduce(x.astype(jnp.int32), np.int32(0), lax.bitwise_xor, (3, 7)),
    "two together": lambda x: lax.reduce(
        (x, x), (np.float32(1), np.float32(0)), lambda f, g: (f[0] * g[0], f[1] * g[0] + g[1]), (4,)
    ),
    "complex quotients": lambda x: [1 / lax.complex(x, 0 * x), lax.rsqrt(lax.complex(x, x))],
    "softmax": lambda x: [jax.nn.softmax(x, 4), jax.nn.log_softmax(x, 9), jax.nn.softmax(x[0, 0, 0, 0], 1)],
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", OPERATIONS)
def test_arrays_of_ten_dimensions_agree(name, mode):
    x = np.arange(np.prod(SHAPE), dtype=np.float32).reshape(SHAPE) - 7
    found, expected = (run(OPERATIONS[name], x, **o) for run, o in ((run_graph_mode, {"mode": mode}), (run_jax, {})))
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-2)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: lax.cummax(x, 4),
        lambda x: lax.reduce_window(x, 0.0, lax.add, (1,) * 9 + (2,), (1,) * 10, "VALID"),
        jax.grad(lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1,) * 9 + (2,), (1,) * 10, "VALID").sum()),
    ],
    ids=["cumulative", "window", "gradient"],
)
def test_windows_of_more_than_eight_dimensions_are_refused_unless_compiled(function):
    x = np.arange(np.prod(SHAPE), dtype=np.float32).reshape(SHAPE) - 7
    (expected,) = run_jax(function, x)
    (found,) = run_graph_mode(function, x, mode="compiled")
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    with pytest.raises(GraphModeUnsupported, match="windows of arrays of more than 8 dimensions, not compiled"):
        run_graph_mode(function, x, mode="graph")


def alternate(x, first=0):
    """The array with a size of 1 in every other dimension."""
    return x[tuple(slice(1) if axis % 2 == first else slice(None) for axis in range(x.ndim))]


ALTERNATING = {
    "sum": lambda x: [x + alternate(x), alternate(x, 1) - x, alternate(x) + alternate(x, 1)],
    "product": lambda x: [x * alternate(x), x / alternate(x + 100, 1), jnp.abs(x) ** alternate(x / 100)],
    "extreme": lambda x: [jnp.maximum(x, alternate(x)), lax.clamp(*jnp.broadcast_arrays(alternate(x), x, x + 1))],
    "comparison": lambda x: [x < alternate(x), (x > 0) & alternate(x > 3), (x > 0) ^ alternate(x > 3, 1)],
    "choice": lambda x: [jnp.where(alternate(x > 3), x, alternate(x, 1)), jnp.where(x > 3, alternate(x), 0)],
    "broadcast": lambda x: [jnp.broadcast_to(alternate(x), x.shape), jnp.broadcast_to(alternate(x, 1), (2, *x.shape))],
    "tile": lambda x: [jnp.tile(x, (2,) * x.ndim), jnp.tile(x[0, 0, 0], (2,) * (x.ndim - 3))],
    "outer": lambda x: jnp.kron(alternate(x[:1]), x[:, :, :1]),
    "moments": lambda x: [jnp.var(x, (1, 3, 5)), jax.nn.softmax(x / 100, (0, 2, 4)), jax.nn.logsumexp(x, (1, 3, 5))],
    "gradient": jax.grad(lambda x: (x * alternate(x) * jnp.max(x, (0, 2, 4), keepdims=True)).sum()),
    "integers": lambda x: [x.astype(int) ** abs(alternate(x).astype(int) % 3), jnp.remainder(x, alternate(x + 100))],
    "complex": lambda x: [lax.complex(x, x) * alternate(x), lax.complex(x, x) / lax.complex(*[alternate(x + 100)] * 2)],
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ALTERNATING)
@pytest.mark.parametrize("shape", [(2, 3, 2, 3, 2), (2, 3, 2, 3, 2, 3), (2, 3, 1, 2, 2, 2, 1, 3), SHAPE], ids=str)
def test_a_size_of_1_in_every_other_dimension_is_broadcast(shape, name, mode):
    if len(shape) == 5 and name in ("moments", "gradient"):
        shape = (*shape, 1)
    elif len(shape) == 10 and name == "outer":
        shape = shape[3:]
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape) - 7
    found, expected = (run(ALTERNATING[name], x, **o) for run, o in ((run_graph_mode, {"mode": mode}), (run_jax, {})))
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=2e-5, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("sizes", [(2, 3), (1, 3), (1, 1)])
@pytest.mark.parametrize("compiled", [False, True])
def test_open_sizes_in_every_other_dimension_are_broadcast(sizes, compiled):
    a, b = sizes
    x = np.arange((a * b) ** 3, dtype=np.float32).reshape((a, b) * 3) - 7

    def function(x):
        return [
            *(x * alternate(x), alternate(x, 1) + alternate(x), jnp.where(alternate(x > 3), x, 0)),
            *(jnp.broadcast_to(alternate(x), x.shape), jnp.broadcast_to(x, (2, *x.shape)), jnp.tile(x[0, 0], (2,) * 4)),
            jax.grad(lambda y: (y * y * alternate(y)).sum())(x),
        ]

    converted = convert(function, polymorphic_shapes=["a, b, a, b, a, b"], native_serialization=False)
    graph = tf.function(converted, jit_compile=compiled, autograph=False)
    traced = graph.get_concrete_function(tf.TensorSpec((None,) * 6, tf.float32))
    expected = function(x)
    for found in (traced(x), converted(x)):
        for ours, theirs in zip(found, expected, strict=True):
            np.testing.assert_array_equal(ours, theirs)
    with tf.GradientTape() as tape:
        given = tf.constant(x)
        tape.watch(given)
        total = tf.reduce_sum(graph(given)[0])
    expected = jax.grad(lambda x: (x * alternate(x)).sum())(x)
    np.testing.assert_allclose(tape.gradient(total, given), expected, rtol=1e-6)


def test_a_softmax_for_consumers_of_many_dimensions_agrees():
    x = np.arange(np.prod(SHAPE), dtype=np.float32).reshape(SHAPE) / 100
    converted = convert(lambda x: jax.nn.softmax(x, 4), native_serialization=False, enable_xla=False)
    np.testing.assert_allclose(converted(x), jax.nn.softmax(x, 4), rtol=1e-5)


def test_operations_that_broadcast_by_themselves_do_so_in_every_other_dimension():
    small, whole = (2, 1, 2, 1, 2, 1), (2, 3, 2, 3, 2, 3)
    types = ["tensor<{}xf32>".format("x".join(map(str, shape))) for shape in (small, whole)]
    module = f"""func.func @main(%a: {types[0]}, %b: {types[1]}) -> {types[1]} {{
      %0 = chlo.broadcast_subtract %a, %b : ({types[0]}, {types[1]}) -> {types[1]}
      return %0 : {types[1]}
    }}"""
    converted = convert_stablehlo(module)
    a, b = (np.arange(np.prod(shape), dtype=np.float32).reshape(shape) for shape in (small, whole))
    for call in (converted, tf.function(converted, autograph=False)):
        np.testing.assert_array_equal(call(a, b), a - b)
