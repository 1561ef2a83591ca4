"""Products, convolutions, transforms and factorizations in graph mode give JAX's results."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax import lax

from jaxtf.convert import convert
from jaxtf.serialization.interop import export_for_graph
from jaxtf.shapepoly import symbolic_shape

from .graph_mode import MODES, operations, run_graph_mode, run_jax


@pytest.fixture(autouse=True)
def _with_64_bits():
    with jax.enable_x64(True):
        yield


def values(*shape, dtype="float32"):
    return (np.sin(np.arange(np.prod(shape))).reshape(shape) * 4).astype(dtype)


def assert_close(function, *arguments, mode="graph", terms=64, authority=None):
    """Equal to the same in JAX, or to another function there, but for the rounding of sums of so many terms."""
    expected = run_jax(authority or function, *arguments)
    for ours, theirs in zip(run_graph_mode(function, *arguments, mode=mode), expected, strict=True):
        assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
        epsilon = float(jnp.finfo(ours.dtype).eps) if jnp.issubdtype(ours.dtype, jnp.inexact) else 0
        wide = ours.dtype if epsilon == 0 or ours.dtype.kind == "c" else np.float64
        scale = np.max(np.abs(theirs.astype(wide)), initial=1)
        np.testing.assert_allclose(ours.astype(wide), theirs.astype(wide), rtol=0, atol=terms * epsilon * float(scale))


PRODUCTS = {
    "matrices": ("ij,jk->ik", (3, 4), (4, 5)),
    "transposed left": ("ji,jk->ik", (4, 3), (4, 5)),
    "transposed right": ("ij,kj->ik", (3, 4), (5, 4)),
    "vectors": ("i,i->", (4,), (4,)),
    "matrix and vector": ("ij,j->i", (3, 4), (4,)),
    "outer": ("i,j->ij", (3,), (4,)),
    "batches": ("bij,bjk->bik", (2, 3, 4), (2, 4, 5)),
    "attention": ("bqhd,bkhd->bhqk", (2, 3, 2, 4), (2, 5, 2, 4)),
    "two contracted": ("ijk,kjl->il", (3, 4, 2), (2, 4, 5)),
    "batch in the middle": ("ibj,kjb->bik", (3, 2, 4), (5, 4, 2)),
    "nothing to sum": ("ij,jk->ik", (3, 0), (0, 5)),
}


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint64", "bfloat16", "float32", "complex64"])
@pytest.mark.parametrize("name", PRODUCTS)
def test_products_agree(name, dtype):
    subscripts, left, right = PRODUCTS[name]
    operands = (np.abs(values(*left)).astype(dtype), np.abs(values(*right)).astype(dtype))
    assert_close(lambda x, y: jnp.einsum(subscripts, x, y), *operands)


@pytest.mark.parametrize("mode", MODES)
def test_products_are_summed_in_the_dtype_asked_for(mode):
    for dtype, result in (("int8", "int32"), ("bfloat16", "float32"), ("float32", "float64"), ("uint8", "uint32")):
        x = (np.abs(values(3, 40)) * 25).astype(dtype)
        assert_close(lambda x, d=result: lax.dot(x, x.T, preferred_element_type=d), x, mode=mode)


SPATIAL = {1: "NWC WIO NWC", 2: "NHWC HWIO NHWC", 3: "NDHWC DHWIO NDHWC"}
CONVOLUTIONS = {
    "plain": {"window_strides": 1, "padding": "VALID"},
    "same": {"window_strides": 2, "padding": "SAME"},
    "uneven edges": {"window_strides": 1, "padding": (2, 0)},
    "negative edges": {"window_strides": 1, "padding": (-1, 1)},
    "kernel dilated": {"window_strides": 1, "padding": "SAME", "rhs_dilation": 2},
    "transposed": {"window_strides": 1, "padding": (1, 2), "lhs_dilation": 2},
    "transposed, strided": {"window_strides": 2, "padding": (1, 1), "lhs_dilation": 3},
    "transposed, wide holes": {"window_strides": 1, "padding": (2, 2), "lhs_dilation": 4},
    "groups": {"window_strides": 1, "padding": "SAME", "feature_group_count": 2},
    "depthwise": {"window_strides": 2, "padding": "SAME", "feature_group_count": 4},
    "depthwise, dilated": {"window_strides": 1, "padding": (1, 0), "feature_group_count": 4, "rhs_dilation": 2},
    "batch groups": {"window_strides": 1, "padding": "VALID", "batch_group_count": 2},
}


ODD_TERMS = {
    "matrices": (lambda x, y: x @ y, (3, 5), (5, 4), ("a, b", "b, c")),
    "transposed": (lambda x, y: x.T @ y.T, (5, 3), (4, 5), ("b, a", "c, b")),
    "batches": (lambda x, y: jnp.einsum("nik,nkj->nij", x, y), (2, 3, 5), (2, 5, 4), ("n, i, k", "n, k, j")),
    "one term": (jnp.outer, (3,), (4,), ("a", "b")),
    "two dimensions of terms": (
        lambda x, y: jnp.einsum("ikl,klj->ij", x, y),
        *((2, 3, 5), (3, 5, 4)),
        ("i, k, l", "k, l, j"),
    ),
    "transposed convolution": (
        lambda x, k: lax.conv_transpose(x, k, (2, 2), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC")),
        *((1, 3, 3, 5), (3, 3, 5, 2)),
        ("n, ...", "..."),
    ),
    "convolution": (
        lambda x, k: lax.conv_general_dilated(
            x, k, (1,), [(1, 1)], lhs_dilation=(2,), dimension_numbers=("NWC", "WIO", "NWC")
        ),
        *((2, 5, 1), (1, 1, 4)),
        ("n, ...", "..."),
    ),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("is_symbolic", [False, True])
@pytest.mark.parametrize("name", ODD_TERMS)
def test_an_infinite_term_of_an_odd_number_in_bfloat16_stays_infinite(name, is_symbolic, mode):
    """It was NaN on CPUs without instructions for bfloat16."""
    function, *shapes, symbolic = ODD_TERMS[name]
    converted = convert(function, native_serialization=False, polymorphic_shapes=symbolic if is_symbolic else None)
    if mode != "eager":
        converted = tf.function(converted, autograph=False, jit_compile=mode == "compiled")
    x, y = (np.arange(1, np.prod(shape) + 1).reshape(shape).astype(jnp.bfloat16) for shape in shapes)
    x.reshape(-1)[-1] = np.inf
    np.testing.assert_array_equal(converted(x, y).numpy(), np.asarray(jax.jit(function)(x, y)))


def with_infinities(rng, *shape):
    numbers = rng.choice([np.inf, -np.inf, np.nan, 0, 1, 2, -3], shape, p=[0.004, 0.004, 0.002, 0.29, 0.3, 0.2, 0.2])
    return numbers.astype(jnp.bfloat16)


def check_in_float32(function, x, y, shapes=None):
    """The numbers are few and whole: sums in float32 are exact, and rounded once."""
    converted = convert(function, native_serialization=False, polymorphic_shapes=shapes)
    exact = jax.jit(function)(x.astype(np.float32), y.astype(np.float32)).astype(jnp.bfloat16)
    np.testing.assert_array_equal(np.asarray(converted(x, y), np.float32), np.asarray(exact, np.float32))


@pytest.mark.parametrize("terms", [3, 16, 31, 32, 33, 40, 50, 63, 64, 100])
@pytest.mark.parametrize("text", ["mk,kn->mn", "bmk,bnk->bmn", "km,kn->mn", "mk,k->m"])
@pytest.mark.parametrize("is_open", [False, True])
def test_an_infinite_row_of_bfloat16_leaves_the_others(text, terms, is_open):
    """On a CPU with AMX it was NaN in the row before, of more than 32 terms."""
    rng, sizes = np.random.default_rng(terms), {"b": 2, "m": 35, "n": 34, "k": terms}
    left, right = (tuple(sizes[axis] for axis in axes) for axes in text.partition("->")[0].split(","))
    x, y = with_infinities(rng, *left), rng.integers(1, 4, right).astype(jnp.bfloat16)
    shapes = [", ".join("k" if axis == "k" else "_" for axis in axes) for axes in text.partition("->")[0].split(",")]
    check_in_float32(lambda x, y: jnp.einsum(text, x, y), x, y, shapes if is_open else None)


@pytest.mark.parametrize("is_open", [False, True])
@pytest.mark.parametrize("features", [1, 3, 6, 8, 12, 14, 16, 33, 40])
@pytest.mark.parametrize(
    ("extent", "options"),
    [
        ((1, 1), {}),
        ((3, 3), {}),
        ((2, 3), {"window_strides": (2, 1)}),
        ((4, 7), {"rhs_dilation": (2, 1)}),
        ((3, 8), {}),
        ((3, 4), {"lhs_dilation": (2, 2)}),
        ((3, 3), {"rhs_dilation": (1, 2)}),
    ],
    ids=str,
)
def test_an_infinite_place_of_bfloat16_leaves_the_others(extent, options, features, is_open):
    """On a CPU with AMX others were NaN, for kernels with rows of more than 32 numbers; of 64 or 96 all were wrong."""

    def convolution(x, kernel):
        numbers = ("NHWC", "HWIO", "NHWC")
        given = {"window_strides": (1, 1), "padding": [(1, 0), (1, 2)], "dimension_numbers": numbers} | options
        return lax.conv_general_dilated(x, kernel, **given)

    rng = np.random.default_rng(features)
    x = with_infinities(rng, 2, 13, 14, features)
    kernel = rng.integers(1, 4, (*extent, features, 5)).astype(jnp.bfloat16)
    check_in_float32(convolution, x, kernel, ["n, h + 12, w + 12, _", None] if is_open else None)


@pytest.mark.parametrize("is_open", [False, True])
@pytest.mark.parametrize("extent", [(1, 1), (3, 3), (1, 5), (5, 1), (2, 3)])
def test_an_infinite_feature_in_bfloat16_leaves_the_others(extent, is_open):
    """Of features with several results each; it was NaN in others, for kernels of an odd number of elements."""

    def depthwise(x, kernel):
        numbers = ("NHWC", "HWIO", "NHWC")
        return lax.conv_general_dilated(x, kernel, (1, 1), "VALID", dimension_numbers=numbers, feature_group_count=3)

    rng = np.random.default_rng(0)
    x = rng.choice([np.inf, -np.inf, np.nan, 0, 1, 2, -3], (2, 6, 7, 3)).astype(jnp.bfloat16)
    kernel = rng.integers(1, 4, (*extent, 1, 6)).astype(jnp.bfloat16)
    shapes = ["(n, h + 5, w + 5, 3)", None] if is_open else None
    converted = convert(depthwise, native_serialization=False, polymorphic_shapes=shapes)
    found, expected = (np.asarray(made, np.float32) for made in (converted(x, kernel), jax.jit(depthwise)(x, kernel)))
    np.testing.assert_array_equal(found, expected)


def test_products_of_bfloat16_have_an_even_number_of_terms():
    converted = convert(jnp.matmul, native_serialization=False)
    for terms, even in ((4, 4), (5, 6)):
        specs = (tf.TensorSpec(shape, tf.bfloat16) for shape in ((3, terms), (terms, 2)))
        graph = tf.function(converted, autograph=False).get_concrete_function(*specs).graph
        (product,) = (operation for operation in graph.get_operations() if operation.type == "MatMul")
        assert product.inputs[0].shape == (3, even)


# Three dimensions take long to compile, and differ from two in nothing compiled.
@pytest.mark.parametrize(
    ("dimensions", "mode"), [(d, mode) for d in SPATIAL for mode in MODES if (d, mode) != (3, "compiled")]
)
@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolutions_agree(name, dimensions, mode):
    given = dict(CONVOLUTIONS[name])
    groups = given.get("feature_group_count", 1)
    for key in ("window_strides", "lhs_dilation", "rhs_dilation"):
        if key in given:
            given[key] = (given[key],) * dimensions
    if isinstance(given["padding"], tuple):
        given["padding"] = (given["padding"],) * dimensions
    operand = values(2, *(7, 6, 5)[:dimensions], 4)
    kernel = values(*(3, 2, 3)[:dimensions], 4 // groups, 8)

    def convolve(x, k):
        return lax.conv_general_dilated(x, k, dimension_numbers=tuple(SPATIAL[dimensions].split()), **given)

    def convolve_cut(x, k):  # compiled for CPU, XLA of jaxlib 0.10 reads beyond the operand where edges are negative
        edges = [(0, 0, 0), *((*edge, 0) for edge in given["padding"]), (0, 0, 0)]
        return lax.conv_general_dilated(
            lax.pad(x, x.dtype.type(0), edges),
            k,
            (1,) * dimensions,
            "VALID",
            dimension_numbers=SPATIAL[dimensions].split(),
        )

    authority = convolve_cut if name == "negative edges" else None
    assert_close(convolve, operand, kernel, mode=mode, terms=256, authority=authority)


@pytest.mark.parametrize("dtype", ["int8", "int32", "bfloat16", "float16", "float64", "complex64"])
def test_convolutions_of_any_dtype_agree(dtype):
    operand, kernel = values(1, 2, 6, 5).astype(dtype), values(3, 2, 3, 3).astype(dtype)
    assert_close(lambda x, k: lax.conv(x, k, (1, 2), "SAME"), operand, kernel)
    if dtype in ("int8", "bfloat16"):
        wide = {"int8": "int32", "bfloat16": "float32"}[dtype]
        assert_close(lambda x, k: lax.conv(x, k, (1, 1), "VALID", preferred_element_type=wide), operand, kernel)


def test_gradients_of_convolutions_agree():
    def loss(x, k):
        return (lax.conv_general_dilated(x, k, (2, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")) ** 2).sum()

    assert_close(jax.grad(loss, (0, 1)), values(2, 6, 5, 3), values(3, 2, 3, 4), terms=256)


def convolved(x, kernel, *, strides=(1, 1), padding="SAME", dilation=(1, 1), groups=1):
    return lax.conv_general_dilated(
        x,
        kernel,
        strides,
        padding,
        rhs_dilation=dilation,
        feature_group_count=groups,
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
    )


# Operand, kernel, strides, padding, dilation, groups: few features, many, and a kernel for each.
SUMMED = {
    "one feature": ((2, 7, 6, 1), (3, 2, 1, 5), (1, 2), "SAME", (1, 1), 1),
    "three, dilated": ((2, 7, 6, 3), (2, 3, 3, 5), (2, 1), ((1, 0), (2, 1)), (2, 1), 1),
    "five": ((2, 7, 6, 5), (3, 2, 5, 4), (2, 1), "SAME", (1, 2), 1),
    "depthwise": ((2, 7, 6, 5), (3, 3, 1, 5), (2, 1), "SAME", (1, 2), 5),
    "depthwise, two each": ((2, 7, 6, 3), (2, 3, 1, 6), (1, 1), ((1, 0), (2, 1)), (2, 1), 3),
    "depthwise, large": ((1, 12, 11, 2), (9, 8, 1, 2), (1, 1), "SAME", (1, 1), 2),
}


@pytest.mark.slow(1)
@pytest.mark.parametrize("name", SUMMED)
def test_small_kernels_and_their_gradients_agree(name):
    x, kernel, strides, padding, dilation, groups = SUMMED[name]

    def loss(x, k):
        y = convolved(x, k, strides=strides, padding=padding, dilation=dilation, groups=groups)
        return y, jnp.sin(y).sum()

    def values_and_gradients(x, k):
        return loss(x, k)[0], jax.grad(lambda *both: loss(*both)[1], (0, 1))(x, k)

    for mode in MODES:
        assert_close(values_and_gradients, values(*x), values(*kernel) / 8, mode=mode, terms=256)


@pytest.mark.parametrize("name", SUMMED)
def test_only_compiled_small_kernels_become_sums_of_products(name):
    x, kernel, strides, padding, dilation, groups = SUMMED[name]

    def convolve(x, k):
        return convolved(x, k, strides=strides, padding=padding, dilation=dilation, groups=groups)

    module = export_for_graph(jax.jit(convolve))(values(*x), values(*kernel)).mlir_module_serialized

    def convolutions(compiled):
        return sum("Conv2" in kind for kind in operations(module, x, kernel, compiled=compiled))

    assert convolutions(False) == 1
    assert convolutions(True) == (name in ("five", "depthwise, large"))


def test_where_there_is_another_device_compiled_convolutions_stay(monkeypatch):
    gpu = tf.config.LogicalDevice("/device:GPU:0", "GPU")
    monkeypatch.setattr(tf.config, "list_logical_devices", lambda: [gpu])
    x, kernel = (2, 6, 6, 3), (3, 3, 1, 3)
    module = export_for_graph(jax.jit(lambda x, k: convolved(x, k, groups=3)))(values(*x), values(*kernel))
    kinds = operations(module.mlir_module_serialized, x, kernel, compiled=True)
    assert kinds.count("DepthwiseConv2dNative") == 1


def test_groups_of_one_image_are_convolutions_and_nothing_else():
    x, kernel = (1, 7, 7, 32), (3, 3, 2, 32)
    module = export_for_graph(jax.jit(lambda x, k: convolved(x, k, groups=16)))(values(*x), values(*kernel))
    kinds = operations(module.mlir_module_serialized, x, kernel, compiled=False)
    assert kinds.count("Conv2D") == 16
    assert not any("Pad" in kind for kind in kinds)


def test_the_gradient_of_a_depthwise_kernel_does_not_grow_with_the_features():
    def count(features):
        def loss(k, x):
            return jnp.sin(convolved(x, k, groups=features)).sum()

        kernel, batch = values(3, 3, 1, features), symbolic_shape("b")[0]
        x = jax.ShapeDtypeStruct((batch, 6, 6, features), "float32")
        module = export_for_graph(jax.jit(jax.grad(loss)))(kernel, x).mlir_module_serialized
        return len(operations(module, [3, 3, 1, features], [None, 6, 6, features], compiled=False))

    assert count(24) == count(12) < 200


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_fourier_transforms_agree(dtype, mode):
    def every(x):
        spectrum = jnp.fft.rfft2(x)
        return [
            jnp.fft.fft(x),
            jnp.fft.ifft2(x),
            spectrum,
            jnp.fft.irfft2(spectrum),
            jnp.fft.irfft(spectrum, 5),
            jnp.fft.rfft(x, 5),
        ]

    assert_close(every, values(2, 4, 6, dtype=dtype), mode=mode)


def positive(matrix):
    return matrix @ np.conj(np.swapaxes(matrix, -1, -2)) + 8 * np.eye(matrix.shape[-1], dtype=matrix.dtype)


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_triangular_systems_are_solved_from_either_side(dtype):
    matrix = (values(2, 3, 3, dtype=dtype) + 5 * np.eye(3)).astype(dtype)
    if dtype == "complex128":
        matrix = matrix + 1j * values(2, 3, 3)[..., ::-1]

    def solve(a, b):
        names = ("left_side", "lower", "transpose_a", "conjugate_a", "unit_diagonal")
        options = [dict(zip(names, given, strict=True)) for given in itertools.product((True, False), repeat=5)]
        sides = {True: b, False: b.swapaxes(1, 2)}
        return [lax.linalg.triangular_solve(a, sides[given["left_side"]], **given) for given in options]

    assert_close(solve, matrix, values(2, 3, 4, dtype=dtype), terms=512)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dtype", "mode"),
    [("float32", "eager"), ("float32", "compiled"), ("float64", "graph"), ("complex64", "graph")],
)
def test_factorizations_agree_but_for_phases(dtype, mode):
    matrix = values(2, 4, 4, dtype=dtype) + np.eye(4, dtype=dtype)
    if dtype == "complex64":
        matrix = (matrix + 1j * values(2, 4, 4)[..., ::-1]).astype(dtype)
    definite = positive(matrix).astype(dtype)

    def every(a, p):
        q, r = jnp.linalg.qr(a)
        w, v = jnp.linalg.eigh(p)
        found = [
            jnp.linalg.cholesky(p),
            q @ r,
            jnp.abs(r),
            w,
            (v * w[..., None, :]) @ jnp.conj(jnp.swapaxes(v, -1, -2)),
        ]
        return [*found, jnp.linalg.solve(p, a), jnp.linalg.det(a), jnp.linalg.inv(p)]

    assert_close(every, matrix, definite, mode=mode, terms=2048)

    def singular(a):
        u, s, vh = jnp.linalg.svd(a[..., :3], full_matrices=False)
        return [s, (u * s[..., None, :]) @ vh]

    assert_close(singular, matrix, mode=mode, terms=2048)


def test_eigenvectors_of_any_matrix_agree_with_its_definition():
    matrix = values(4, 4, dtype="float64")
    w, left, right = run_graph_mode(lax.linalg.eig, matrix)
    np.testing.assert_allclose(matrix @ right, right * w, atol=1e-12)
    np.testing.assert_allclose(np.conj(left.T) @ matrix, w[:, None] * np.conj(left.T), atol=1e-12)


@pytest.mark.parametrize("training", [True, False])
def test_batch_normalization_agrees_with_its_formula(training):
    from .graph_mode import run_module

    x, scale, offset = values(3, 2, 4), np.array([1, 2, 3, 4], np.float32), np.array([0, 1, 0, -1], np.float32)
    t, v = "tensor<3x2x4xf32>", "tensor<4xf32>"
    attributes = "{epsilon = 0.01 : f32, feature_index = 2 : i64}"
    mean, variance = x.mean((0, 1)), x.var((0, 1))
    if training:
        module = f"""func.func @main(%x: {t}, %s: {v}, %o: {v}) -> ({t}, {v}, {v}) {{
          %r:3 = "stablehlo.batch_norm_training"(%x, %s, %o) {attributes} : ({t}, {v}, {v}) -> ({t}, {v}, {v})
          return %r#0, %r#1, %r#2 : {t}, {v}, {v} }}"""
        found, own_mean, own_variance = run_module(module, x, scale, offset)
        np.testing.assert_allclose(own_mean, mean, rtol=1e-5)
        np.testing.assert_allclose(own_variance, variance, rtol=1e-5)
    else:
        module = f"""func.func @main(%x: {t}, %s: {v}, %o: {v}, %m: {v}, %q: {v}) -> {t} {{
          %r = "stablehlo.batch_norm_inference"(%x, %s, %o, %m, %q) {attributes} : ({t}, {v}, {v}, {v}, {v}) -> {t}
          return %r : {t} }}"""
        (found,) = run_module(module, x, scale, offset, mean, variance)
    np.testing.assert_allclose(found, (x - mean) / np.sqrt(variance + 0.01) * scale + offset, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("symbolic", [False, True])
@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("k,kbj->bj", [(3,), (3, 4, 2)]),
        ("nabc,nb->nac", [(2, 3, 4, 5), (2, 4)]),
        (",ij->ij", [(), (3, 4)]),
        ("ij,->ij", [(3, 4), ()]),
        ("b,bij->bij", [(3,), (3, 4, 2)]),
        ("ijk,k->ij", [(3, 4, 2), (2,)]),
        ("ij,kl->ijkl", [(2, 3), (4, 5)]),
        ("i,j->ij", [(2,), (3,)]),
        ("bi,bi->b", [(3, 2), (3, 2)]),
    ],
)
def test_a_product_has_the_sizes_of_its_operands_and_not_only_their_rank(equation, shapes, symbolic):
    texts = [f"({', '.join(letters)}{',' if letters else ''})" for letters in equation.split("->")[0].split(",")]
    x, y = (np.arange(np.prod(shape), dtype=np.float32).reshape(shape) for shape in shapes)

    def product(x, y):
        return jnp.einsum(equation, x, y)

    converted = convert(product, polymorphic_shapes=texts if symbolic else None, native_serialization=False)
    for function in (converted, tf.function(converted, autograph=False)):
        np.testing.assert_array_equal(function(x, y), product(x, y))
