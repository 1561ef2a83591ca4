"""Convolutions whose padding takes elements away before and adds some after: XLA for CPU may read other memory."""

import jax
import numpy as np
import pytest
from jax import lax

from jaxtf.serialization import deserialize, export, lift
from jaxtf.shapepoly import symbolic_shape

# The sizes of an operand, features last, and of a kernel, strides, padding, groups.
CASES = {
    "one dimension": ((2, 7, 3), (3, 3, 2), (1,), ((-1, 1),), 1),
    "strides": ((3, 5, 3), (3, 3, 2), (2,), ((-1, 1),), 1),
    "taken twice": ((2, 7, 3), (4, 3, 2), (1,), ((-2, 2),), 1),
    "two dimensions": ((2, 5, 7, 2), (3, 3, 2, 2), (2, 2), ((-1, 1), (-1, -1)), 1),
    "groups": ((1, 7, 5, 4), (3, 3, 2, 4), (2, 2), ((-1, 2), (-1, 2)), 2),
    "more than all": ((2, 3, 3), (3, 3, 2), (1,), ((-5, 10),), 1),
    "of nothing": ((2, 0, 3), (3, 3, 2), (1,), ((-1, 5),), 1),
    "one of two": ((2, 5, 6, 3), (2, 3, 3, 2), (1, 1), ((1, 0), (-2, 1)), 1),
}
DTYPES = "float32", "bfloat16", "float16", "complex64"


def convolution(strides, padding, groups):
    names = {1: ("NWC", "WIO", "NWC"), 2: ("NHWC", "HWIO", "NHWC")}[len(strides)]

    def convolve(x, k):
        return lax.conv_general_dilated(x, k, strides, padding, dimension_numbers=names, feature_group_count=groups)

    return convolve


def by_definition(x, k, strides, padding, groups):
    x = np.pad(x, [(0, 0), *((max(low, 0), max(high, 0)) for low, high in padding), (0, 0)])
    kept = (slice(-min(low, 0), size + min(high, 0)) for size, (low, high) in zip(x.shape[1:-1], padding, strict=True))
    x = x[(slice(None), *kept)]
    parts, spatial = k.shape[-1] // groups, k.shape[:-2]
    counts = [(size - length) // s + 1 for size, length, s in zip(x.shape[1:-1], spatial, strides, strict=True)]
    result = np.zeros((x.shape[0], *counts, k.shape[-1]), x.dtype)
    for place in np.ndindex(*counts):
        window = x[(slice(None), *(slice(i * s, i * s + n) for i, s, n in zip(place, strides, spatial, strict=True)))]
        for feature in range(k.shape[-1]):
            first = feature // parts * k.shape[-2]
            terms = window[..., first : first + k.shape[-2]] * k[..., feature]
            result[(slice(None), *place, feature)] = terms.reshape(len(x), -1).sum(1)
    return result


def integers(shape, dtype, seed):
    random = np.random.RandomState(seed)
    real = random.randint(-4, 5, shape)
    return (real + 1j * random.randint(-4, 5, shape) if dtype == "complex64" else real).astype(jax.numpy.dtype(dtype))


def arguments_and_result(name, dtype):
    *shapes, strides, padding, groups = CASES[name]
    x, k = (integers(shape, dtype, seed) for seed, shape in enumerate(shapes))
    wide = np.complex128 if dtype == "complex64" else np.float64
    return x, k, by_definition(x.astype(wide), k.astype(wide), strides, padding, groups)


def function_of(name):
    return jax.jit(convolution(*CASES[name][2:]))


def assert_is(found, expected):
    np.testing.assert_array_equal(np.asarray(found).astype(expected.dtype), expected)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", CASES)
def test_what_is_exported_computes_what_it_says(name, dtype):
    x, k, expected = arguments_and_result(name, dtype)
    exported = export(function_of(name))(x, k)
    for _ in range(3):
        assert_is(exported.call(x, k), expected)
    assert_is(jax.jit(deserialize(exported.serialize()).call)(x, k), expected)
    assert_is(lift(exported)(x, k), expected)


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if 0 not in case[0]])
def test_sizes_may_be_symbolic(name):
    x, k, expected = arguments_and_result(name, "float32")
    names = ", ".join("ab"[: x.ndim - 2])
    least = [f"{name} >= {min(x.shape[1:-1])}" for name in names.split(", ")]
    shape = symbolic_shape(f"n, {names}, {x.shape[-1]}", constraints=least)
    exported = export(function_of(name))(jax.ShapeDtypeStruct(shape, x.dtype), k)
    assert_is(exported.call(x, k), expected)


@pytest.mark.parametrize("name", CASES)
def test_a_module_of_jax_is_read_so(name):
    x, k, expected = arguments_and_result(name, "float32")
    written = jax.export.export(function_of(name))(x, k)
    assert_is(deserialize(bytes(written.serialize())).call(x, k), expected)
    assert_is(lift(written.mlir_module())(x, k), expected)


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if len(case[2]) == 1])
def test_padding_that_is_an_operand_is_read_so(name):
    x, k, expected = arguments_and_result(name, "float32")
    (stride,), ((low, high),) = CASES[name][2:4]
    types = (f"tensor<{x.shape[0]}x?x{x.shape[2]}xf32>", f"tensor<{len(k)}x3x2xf32>")
    result = f"tensor<{x.shape[0]}x?x2xf32>"
    module = f"""func.func @main(%x: {types[0]}, %k: {types[1]}) -> {result} {{
      %p = stablehlo.constant dense<[[{low}, {high}]]> : tensor<1x2xi32>
      %r = "stablehlo.dynamic_conv"(%x, %k, %p) {{batch_group_count = 1 : i64, feature_group_count = 1 : i64,
        window_strides = array<i64: {stride}>, dimension_numbers = #stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>
      }} : ({types[0]}, {types[1]}, tensor<1x2xi32>) -> {result}
      return %r : {result} }}"""
    lifted = lift(module)
    for _ in range(3):
        assert_is(lifted(x, k), expected)


def test_gradients_compute_what_they_say():
    """That for the operand of a kernel of 3 elements and padding of 5 and 1 takes 3 elements away, and adds 1."""
    x, k = integers((2, 6, 3), "float32", 0), integers((3, 3, 2), "float32", 1)
    function = convolution((1,), ((5, 1),), 1)
    exported = export(jax.jit(function))(x, k)
    cotangent = integers((2, 10, 2), "float32", 2)
    found, _ = exported.vjp().call(x, k, cotangent)
    padded = np.pad(cotangent[:, 3:], [(0, 0), (0, 1), (0, 0)]).astype(np.float64)
    assert_is(found, by_definition(padded, np.swapaxes(k[::-1], 1, 2).astype(np.float64), (1,), ((0, 0),), 1))


def test_others_are_left_as_they_are():
    def paddings(strides, padding, **options):
        def convolve(x, k):
            return lax.conv_general_dilated(x, k, strides, padding, dimension_numbers=("NWC", "WIO", "NWC"), **options)

        text = export(jax.jit(convolve))(np.ones((1, 9, 2), np.float32), np.ones((3, 2, 2), np.float32)).mlir_module()
        return "stablehlo.pad" in text

    assert paddings((1,), [(-1, 1)])
    assert paddings((1,), [(-1, 1)], rhs_dilation=(2,))
    assert not paddings((1,), [(-1, 1)], lhs_dilation=(2,))
    for padding in ((-1, 0), (1, -1), (-1, -1), (2, 2), (0, 0)):
        assert not paddings((2,), [padding])
