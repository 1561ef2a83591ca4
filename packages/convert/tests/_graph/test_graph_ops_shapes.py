"""Operations that move elements give JAX's results in graph mode, with sizes known or not."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax import lax

from jaxtf.convert import convert
from jaxtf.convert._graph.emit import Emitter
from jaxtf.convert._graph.parse import parse
from jaxtf.convert._graph.plan.plan import plan
from jaxtf.serialization.interop import export_for_graph
from jaxtf.shapepoly import symbolic_shape

from .graph_mode import MODES, assert_identical, run_jax, run_module, same_as_jax

DTYPES = ("bool", "int8", "uint32", "bfloat16", "float32", "complex64")


def numbers(shape, dtype="float32"):
    return (np.arange(np.prod(shape)).reshape(shape) % 120 - 3).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_elements_of_any_dtype_are_moved(dtype):
    def every(x):
        return [
            lax.broadcast_in_dim(x, (2, 3, 5, 4), (1, 3)),
            lax.reshape(x, (4, 3)),
            lax.reshape(x, (4, 3), (1, 0)),
            lax.transpose(x, (1, 0)),
            lax.slice(x, (1, 0), (3, 4), (1, 2)),
            lax.concatenate([x, x[:1]], 0),
            lax.rev(x, (0, 1)),
            lax.dynamic_slice(x, (7, -1), (2, 2)),
            lax.dynamic_update_slice(x, x[:2, :2], (5, 1)),
        ]

    same_as_jax(every, numbers((3, 4), dtype))


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "float32", "complex64"])
def test_iota_counts_in_any_dtype(dtype):
    if dtype != "bool":
        same_as_jax(lambda: [lax.broadcasted_iota(dtype, (3, 4), 1), lax.iota(dtype, 5)])


PADDINGS = [
    ((0, 0, 0), (0, 0, 0)),
    ((1, 2, 0), (3, 0, 0)),
    ((0, 0, 2), (1, 1, 1)),
    ((-1, 0, 0), (0, -2, 0)),
    ((-2, 3, 1), (-3, -1, 2)),
    ((-4, 0, 0), (-1, -3, 1)),
]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("padding", PADDINGS)
def test_padding_pads_spreads_and_cuts(padding, mode):
    same_as_jax(lambda x: lax.pad(x, np.float32(7), padding), numbers((4, 5)), mode=mode)
    same_as_jax(lambda x: lax.pad(x, np.float32(-0.0), padding), numbers((4, 5)), mode=mode)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("rank", range(5, 10))
def test_padding_pads_any_number_of_dimensions(rank, mode):
    """TensorFlow's kernel takes six."""
    x = numbers((2,) * rank)
    for edges in ([(1, 0, 0)] * rank, [(0, i % 2, 0) for i in range(rank)], [(i % 3, -1, i % 2) for i in range(rank)]):
        same_as_jax(lambda x, edges=edges: lax.pad(x, np.float32(7), edges), x, mode=mode)


def test_padding_of_nothing_spreads_nothing():
    same_as_jax(lambda x: lax.pad(x, np.int32(7), ((1, 2, 3), (0, 0, 2))), np.zeros((0, 1), np.int32))


@pytest.mark.slow(1)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("index", ["int8", "uint8", "int32", "uint32", "int64"])
def test_slices_are_moved_inside(index, mode):
    operand, update = numbers((5, 100)), numbers((2, 3))
    starts = np.array([[0, 0], [4, 98], [3, 99], [1, 5]]).astype(index)
    if not index.startswith("u"):
        starts = np.concatenate([starts, np.array([[-1, -7]], index)])
    for start in starts:
        same_as_jax(lambda x, i, j: lax.dynamic_slice(x, (i, j), (2, 50)), operand, *start, mode=mode)
        same_as_jax(lambda x, u, i, j: lax.dynamic_update_slice(x, u, (i, j)), operand, update, *start, mode=mode)


def test_a_large_update_is_selected_and_a_small_one_scattered():
    operand = numbers((3, 100, 100))
    for shape in ((3, 90, 90), (1, 100, 100), (3, 1, 100), (0, 100, 100), (3, 100, 100)):
        same_as_jax(lambda x, u, i: lax.dynamic_update_slice(x, u, (i, i, i)), operand, -numbers(shape), np.int32(2))


def test_a_scalar_is_sliced_and_updated():
    same_as_jax(
        lambda x, u: [lax.dynamic_slice(x, (), ()), lax.dynamic_update_slice(x, u, ())], np.float32(1), np.float32(2)
    )


def run_with_unknown_sizes(function, text, *arguments):
    """Runs in a graph in which no size is known that the text, such as "b, 3", names."""
    shape = symbolic_shape(text)
    specifications = [jax.ShapeDtypeStruct(shape, x.dtype) for x in arguments]
    exported = export_for_graph(jax.jit(function))(*specifications)
    program = plan(parse(exported.mlir_module_serialized))
    unknown = [tf.TensorSpec([s if isinstance(s, int) else None for s in shape], x.dtype) for x in arguments]
    graph = tf.function(lambda *xs: Emitter(program, False).main(xs), autograph=False, input_signature=unknown)
    return [x.numpy() for x in graph(*arguments)]


OF_UNKNOWN_SIZE = {
    "sizes": lambda x: [jnp.float32(x.shape[0]), x.shape[0] * jnp.ones(2)],
    "broadcast": lambda x: jnp.broadcast_to(x[:, None], (x.shape[0], 2, 3)) + jnp.ones((x.shape[0], 2, 1)),
    "reshape": lambda x: [x.reshape(-1), x.reshape((3, -1)), x.reshape(x.shape[0] * 3)],
    "iota": lambda x: x + lax.broadcasted_iota(np.float32, x.shape, 0),
    "pad": lambda x: [jnp.pad(x, ((1, 2), (0, 1))), lax.pad(x, np.float32(1), ((0, 1, 1), (0, 0, 2)))],
    "slice": lambda x: [x[1:], x[:-1], x[::2], x[-2:]],
    "concatenate": lambda x: jnp.concatenate([x, x[:1], x]),
    "reverse": lambda x: x[::-1],
    "gather": lambda x: [x[jnp.arange(x.shape[0]) // 2], jnp.take(x, jnp.array([0, 5, -1]), axis=0), x[:, 1]],
    "scatter": lambda x: [x.at[0].set(1), x.at[jnp.array([0, 0, 9])].add(2.0), x.at[:, 1].max(3)],
    "dynamic_slice": lambda x: lax.dynamic_slice(x, (x.shape[0], 0), (1, 2)),
    "dynamic_update_slice": lambda x: [
        lax.dynamic_update_slice(x, x[1:], (1, 0)),
        lax.dynamic_update_slice(x, x[:1], (2, 0)),
    ],
    "reduce": lambda x: [x.sum(0), x.max(1), jnp.mean(x), x.argmax(0), x.argmin(1), jnp.prod(x, 0), jnp.any(x > 2)],
    "dot": lambda x: [x @ x.T, x.T @ x, jnp.einsum("bi,bj->ij", x, x), x @ jnp.ones((3, 4))],
    "cumulative": lambda x: [jnp.cumsum(x, 0), jnp.cumsum(x, 1), lax.cummax(x, 0), jnp.cumprod(x * 0.1, axis=0)],
    "sort": lambda x: [jnp.sort(x, 0), jnp.sort(x, 1), jnp.argsort(x, 0), lax.top_k(x, 2)],
    "softmax": lambda x: jax.nn.softmax(x, -1),
    "where": lambda x: jnp.where(x > 2, x, 0.0),
    "loop": lambda x: lax.fori_loop(0, 3, lambda i, y: y * 2 + i, x),
    "transpose": lambda x: x.T.reshape(3, -1, 1),
    "window": lambda x: lax.reduce_window(x, 0.0, lax.add, (2, 1), (1, 1), "VALID"),
    "convolution": lambda x: lax.conv_general_dilated(x[:, None], jnp.ones((2, 1, 2)), (1,), "SAME"),
}


@pytest.mark.parametrize("name", OF_UNKNOWN_SIZE)
def test_one_graph_serves_all_sizes(name):
    function = OF_UNKNOWN_SIZE[name]
    for size in (2, 5):
        operand = np.sin(np.arange(3 * size, dtype=np.float32)).reshape(size, 3) * 4
        found = run_with_unknown_sizes(function, "b, 3", operand)
        assert_rounded_or_equal(found, run_jax(function, operand))


def assert_rounded_or_equal(found, expected):
    for ours, theirs in zip(found, expected, strict=True):
        if ours.dtype.kind == "f":
            assert ours.dtype == theirs.dtype
            np.testing.assert_allclose(ours, theirs, rtol=32 * 2**-23, atol=32 * 2**-23)
        else:
            assert_identical([ours], [theirs])


def test_sizes_given_as_operands_make_shapes():
    module = """
    func.func @main(%x: tensor<3xf32>, %n: tensor<i32>) -> (tensor<?x3xf32>, tensor<?xi32>) {
      %three = stablehlo.constant dense<3> : tensor<1xi32>
      %size = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
      %shape = stablehlo.concatenate %size, %three, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
      %y = stablehlo.dynamic_broadcast_in_dim %x, %shape, dims = [1] : (tensor<3xf32>, tensor<2xi32>) -> tensor<?x3xf32>
      %z = stablehlo.dynamic_iota %size, dim = 0 : (tensor<1xi32>) -> tensor<?xi32>
      return %y, %z : tensor<?x3xf32>, tensor<?xi32>
    }"""
    row = np.array([1, 2, 3], np.float32)
    for size in (0, 4):
        found = run_module(module, row, np.int32(size))
        assert_identical(found, [np.tile(row, (size, 1)), np.arange(size, dtype=np.int32)])


def test_amounts_of_padding_may_be_operands():
    module = """
    func.func @main(%x: tensor<4xf32>, %low: tensor<1xi32>, %high: tensor<1xi32>) -> tensor<?xf32> {
      %v = stablehlo.constant dense<9.0> : tensor<f32>
      %none = stablehlo.constant dense<0> : tensor<1xi32>
      %y = stablehlo.dynamic_pad %x, %v, %low, %high, %none
        : (tensor<4xf32>, tensor<f32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<?xf32>
      return %y : tensor<?xf32>
    }"""
    x = np.arange(4, dtype=np.float32)
    for low, high in ((1, 2), (-1, 0), (2, -3)):
        found = run_module(module, x, np.array([low], np.int32), np.array([high], np.int32))
        assert_identical(found, run_jax(lambda x, p=(low, high, 0): lax.pad(x, np.float32(9), (p,)), x))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("shape", [(1, 1, 1, 1, 1, 1, 2), (5000,)], ids=["many dimensions", "many rows"])
def test_an_update_that_turns_out_to_be_empty_changes_nothing(shape, mode):
    """So large a part, or of so many dimensions, that each element is chosen by itself."""

    def function(x):
        return lax.dynamic_update_slice(x, -x[..., 1:], (0,) * x.ndim)

    sizes = ", ".join(map(str, shape))
    converted = convert(function, polymorphic_shapes=[f"({sizes}, b)"], native_serialization=False)
    if mode != "eager":
        open_size = tf.TensorSpec((*shape, None), tf.float32)
        converted = tf.function(converted, [open_size], autograph=False, jit_compile=mode == "compiled")
    for b in (1, 2, 4):
        x = np.arange(np.prod(shape) * b, dtype=np.float32).reshape(*shape, b)
        np.testing.assert_array_equal(converted(x), function(x))
