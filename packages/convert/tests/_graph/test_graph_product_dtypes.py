"""Products and convolutions whose result has another dtype than the operands are summed in the dtype that XLA takes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax import lax

from jaxtf.convert import convert_stablehlo

from .graph_mode import MODES, run_graph_mode, run_jax

FLOATS = (
    ((1 + 2**-11, -1, 0), (1, 1, 0)),  # what is left is 0 in fewer digits
    ((256, 256, -512), (256, 257, 256)),  # terms beyond float16
    ((0.5, 1.5, 2.5), (0.5, 1.5, 2.5)),
    ((-5, 0, 0), (1, 0, 0)),
    ((448, 1, 0), (448, 1, 0)),
    ((0.25, -0.5, 0), (1, 1, 0)),
)
INTEGERS = (((100, 100, 60), (100, 1, 2)), ((16, 0, 0), (16, 0, 0)), ((-5, 1, 0), (1, 1, 0)))
COMPLEX = (((1 + 2j, 3 - 1j, 0), (1 + 2j, 3 - 1j, 0)), ((0.5, 1j, 0), (3, 1, 0)))
TERMS = {"float": FLOATS, "bfloat": FLOATS, "int": INTEGERS, "complex": COMPLEX}
# The result of XLA is not defined of complex numbers whose real part an unsigned integer does not hold.
RESULTS = {
    "float32": ("bool", "int8", "uint8", "uint32", "float8_e5m2", "bfloat16", "float16", "float64", "complex64"),
    "float64": ("int32", "float16", "float32", "complex64"),
    "float16": ("bool", "int8", "uint32", "bfloat16", "float8_e4m3fn", "float32"),
    "bfloat16": ("int8", "uint32", "float16", "float32"),
    "float8_e4m3fn": ("int8", "float8_e5m2", "bfloat16"),
    "complex64": ("int32", "int64", "float32", "float64", "complex128"),
    "int8": ("uint8", "uint16", "int32", "float8_e5m2", "bfloat16", "float16", "complex64"),
    "int32": ("uint32", "int64", "float32"),
}
PAIRS = [(dtype, result) for dtype, results in RESULTS.items() for result in results]


@pytest.fixture(autouse=True)
def _with_64_bits():
    with jax.enable_x64(True):
        yield


def arrays(dtype):
    terms = TERMS[dtype.rstrip("0123456789").partition("8_")[0].rstrip("0123456789")]
    return [np.array(side).astype(jnp.dtype(dtype)) for side in zip(*terms, strict=True)]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("dtype", "result"), PAIRS)
def test_products_are_summed_as_in_xla(dtype, result, mode):
    def function(a, b):
        return lax.dot_general(a, b, (((1,), (1,)), ((0,), (0,))), preferred_element_type=result)

    left, right = arrays(dtype)
    assert_equal(run_graph_mode(function, left, right, mode=mode), run_jax(function, left, right))


CONVOLUTION = """
func.func public @main(%x: tensor<1x3x1xA>, %y: tensor<3x1x1xA>) -> tensor<1x1x1xR> {
  %r = stablehlo.convolution(%x, %y) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {}
    {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<1x3x1xA>, tensor<3x1x1xA>) -> tensor<1x1x1xR>
  return %r : tensor<1x1x1xR>
}
"""


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(
    ("types", "left", "right", "expected"),
    [  # what XLA for CPU gives; JAX writes none of these
        ("f32 i32", np.float32([0.5, 1.5, 2.5]), np.float32([0.5, 1.5, 2.5]), 8),
        ("f32 i8", np.float32([4e4, 4e4, 0]), np.float32([1, 1, 1]), 127),
        ("f32 ui8", np.float32([-5, 0, 0]), np.float32([1, 1, 1]), 0),
        ("f32 bf16", np.float32([1 + 2**-10, -1, 0]), np.float32([1 + 2**-10, 1, 0]), 0.001953125),
        ("f16 i32", np.float16([4e4, 4e4, 0]), np.float16([1, 1, 1]), 2**31 - 1),
        ("f8E4M3FN i8", np.array([1.5, 1.5, 2.5], "float8_e4m3fn"), np.array([0.5, 1.5, 2.5], "float8_e4m3fn"), 9),
        ("i32 i8", np.int32([100, 1, 0]), np.int32([100, 1, 0]), 17),
        ("complex<f32> f32", np.complex64([1 + 1j, 2 - 1j, 1j]), np.complex64([2 + 1j, 1 + 1j, -1j]), 5),
    ],
)
def test_convolutions_of_others_are_summed_as_in_xla(types, left, right, expected, compiled):
    operand, result = types.split()
    text = CONVOLUTION.replace("xA>", f"x{operand}>").replace("xR>", f"x{result}>")
    run = tf.function(convert_stablehlo(text), autograph=False, jit_compile=compiled)
    found = run(tf.constant(left.reshape(1, 3, 1)), tf.constant(right.reshape(3, 1, 1)))
    assert float(tf.reshape(found, []).numpy()) == expected


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("result", ["float16", "int32"])
def test_ragged_products_are_summed_as_in_xla(result, mode):
    def function(a, b):
        sizes = jnp.array([2, 1, 3], jnp.int32)
        return lax.ragged_dot(a, b, sizes, preferred_element_type=result)

    left, right = arrays("float32")
    stack = np.stack([right[:3].T, -right[3:].T, right[:3]]).astype("float32")
    assert_equal(run_graph_mode(function, left, stack, mode=mode), run_jax(function, left, stack))


def assert_equal(ours, theirs):
    for mine, other in zip(ours, theirs, strict=True):
        assert (mine.dtype, mine.shape) == (other.dtype, other.shape)
        wide = mine.dtype if mine.dtype.kind in "biuc" else np.float64
        np.testing.assert_array_equal(mine.astype(wide), other.astype(wide))
