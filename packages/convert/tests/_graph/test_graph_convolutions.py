"""Convolutions in graph mode are what their definition says, with any attributes, dtypes and sizes, also open ones."""

import itertools
from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import assume, given
from hypothesis import strategies as st
from jax import lax

from jaxtf.convert import convert, convert_stablehlo
from jaxtf.convert._graph.plan import plan as plan_module

from .graph_mode import MODES, drawn, run_with_open_sizes

REAL = ("float32", "float64", "bfloat16", "float16")
FLOATS = (*REAL, "complex64")
INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")


@pytest.fixture(autouse=True, scope="module")
def _with_64_bits():
    with jax.enable_x64(True):
        yield


@dataclass(frozen=True)
class Case:
    """A convolution.

    Attributes:
      shapes: Of the operand and the kernel, batch and output features first.
      names: As `shapes`, with names for sizes that are left open.
      options: For `lax.conv_general_dilated`, of arrays in that order.
      orders: Of the dimensions of operand, kernel and result as they are given.
      dtype: Of the operands.
      result: Of the result, if it is another one.
      special: Whether some elements of the operand are infinite or NaN, if it is real and floating.
    """

    shapes: tuple[tuple[int, ...], ...]
    names: tuple[tuple[int | str, ...], ...]
    options: dict = field(hash=False)
    orders: tuple[tuple[int, ...], ...]
    dtype: str
    result: str | None
    special: bool = False

    def layout(self):
        """The dimension numbers of arrays whose dimensions are in those orders."""
        return lax.ConvDimensionNumbers(*(tuple(map(order.index, range(len(order)))) for order in self.orders))

    def given(self, arrays):
        """Arrays with their dimensions in those orders."""
        return [np.transpose(a, order).copy() for a, order in zip(arrays, self.orders, strict=False)]

    def open_names(self):
        pairs = zip(self.names, self.orders, strict=False)
        return [[names[axis] for axis in order] for names, order in pairs]

    def apply(self, x, k):
        options = dict(self.options, preferred_element_type=self.result)
        return lax.conv_general_dilated(x, k, dimension_numbers=self.layout(), **options)


@st.composite
def cases(draw, dtypes=FLOATS + INTEGERS, most_spatial=4):
    spatial = draw(st.sampled_from([n for n in (1, 1, 2, 2, 2, 3, 4, 5) if n <= most_spatial]))

    def integers(least, most):
        return tuple(draw(st.integers(least, most)) for _ in range(spatial))

    groups, batches = draw(st.sampled_from([(1, 1), (1, 1), (2, 1), (3, 1), (1, 2), (1, 3)]))
    inputs, multiple = draw(st.integers(1, 2)), draw(st.integers(1, 2))
    batch = batches * draw(st.sampled_from([1, 1, 2, 0]))
    largest = {1: 7, 2: 6, 3: 4}.get(spatial, 3)
    kernel_sizes = integers(1, 3)
    shapes = (batch, inputs * groups, *integers(0, largest)), (multiple * groups * batches, inputs, *kernel_sizes)
    lhs_dilation = draw(st.sampled_from([(1,) * spatial, integers(1, 3)]))
    spread = [max((n - 1) * d + 1, 0) for n, d in zip(shapes[0][2:], lhs_dilation, strict=True)]
    padding = [(low, high) for low, high in zip(integers(-2, 3), integers(-2, 3), strict=True)]
    padding = [(low, high) if n + low + high >= 0 else (0, 0) for n, (low, high) in zip(spread, padding, strict=True)]
    options = {
        "window_strides": integers(1, 3),
        "padding": tuple(padding),
        "lhs_dilation": lhs_dilation,
        "rhs_dilation": draw(st.sampled_from([(1,) * spatial, integers(1, 3)])),
        "feature_group_count": groups,
        "batch_group_count": batches,
    }
    rank = spatial + 2
    last = (0, *range(2, rank), 1), (*range(2, rank), 1, 0), (0, *range(2, rank), 1)
    orders = last if draw(st.booleans()) else tuple(tuple(draw(st.permutations(range(rank)))) for _ in range(3))
    names = [list(shape) for shape in shapes]
    opened = draw(st.sampled_from(["", "", "n", "nhw", "hw", "k"]))
    if "n" in opened and batch and batches == 1:
        names[0][0] = "n"
    # JAX asks of open sizes that the result has some: those that are surely large enough.
    for axis in range(2, rank):
        low, high = options["padding"][axis - 2]
        reach = (kernel_sizes[axis - 2] - 1) * options["rhs_dilation"][axis - 2] + 1
        if "h" in opened and shapes[0][axis] and low + high + 1 >= max(reach, 1):
            names[0][axis] = f"h{axis}"
    dtype = draw(st.sampled_from(dtypes))
    wider = {"int8": "int32", "uint8": "uint32", "int16": "int64", "bfloat16": "float32", "float16": "float32"}
    result = wider.get(dtype) if draw(st.booleans()) else None
    return Case(shapes, tuple(map(tuple, names)), options, orders, dtype, result, draw(st.booleans()))


def elements(shape, dtype, seed):
    """Random ones; integers of the whole range."""
    generator = np.random.default_rng(seed)
    if dtype in INTEGERS:
        info = np.iinfo(dtype)
        return generator.integers(info.min, info.max, shape, dtype, endpoint=True)
    real = generator.normal(size=shape)
    return jnp.asarray(real + 1j * generator.normal(size=shape) if dtype == "complex64" else real, dtype).__array__()


def with_special(array):
    """The array with an infinity, and more infinities and NaN in one of 16 elements each."""
    generator = np.random.default_rng(2)
    special = generator.choice([np.inf, -np.inf, np.nan, 0], array.shape, p=[1 / 16, 1 / 16, 1 / 16, 13 / 16])
    special[tuple(generator.integers(0, size) for size in array.shape)] = np.inf
    return np.where(special == 0, array, special.astype(array.dtype))


def by_definition(x, k, options):
    """The convolution of arrays `[batch, features, ...]` and `[outputs, features, ...]` in their widest dtype."""
    wide = {"i": np.int64, "u": np.uint64, "c": np.complex128}.get(x.dtype.kind, np.float64)
    x, k = x.astype(wide), k.astype(wide)
    spread = [max((n - 1) * d + 1, 0) for n, d in zip(x.shape[2:], options["lhs_dilation"], strict=True)]
    sizes = [max(n + low + high, 0) for n, (low, high) in zip(spread, options["padding"], strict=True)]
    padded = np.zeros((*x.shape[:2], *sizes), wide)
    for place in np.ndindex(*x.shape[2:]):
        moved = [i * d + low for i, d, (low, _) in zip(place, options["lhs_dilation"], options["padding"], strict=True)]
        if all(0 <= i < size for i, size in zip(moved, sizes, strict=True)):
            padded[(..., *moved)] = x[(..., *place)]
    dilation, strides = options["rhs_dilation"], options["window_strides"]
    reach = [max((n - 1) * d + 1, 0) for n, d in zip(k.shape[2:], dilation, strict=True)]
    counts = [(size - r) // s + 1 if size >= r else 0 for size, r, s in zip(sizes, reach, strides, strict=True)]
    counts = [0 if size == 0 else count for size, count in zip(sizes, counts, strict=True)]
    groups, batches = options["feature_group_count"], options["batch_group_count"]
    outputs = k.shape[0] // (groups * batches)
    result = np.zeros((x.shape[0] // batches, k.shape[0], *counts), wide)
    if 0 in result.shape:
        return result
    images, features = x.shape[0] // batches, k.shape[1]
    for place, (g, group) in itertools.product(np.ndindex(*k.shape[2:]), enumerate(range(groups * batches))):
        part = [
            slice(i * d, i * d + (n - 1) * s + 1, s)
            for i, d, n, s in zip(place, dilation, counts, strides, strict=True)
        ]
        rows = slice(g * images, (g + 1) * images) if batches > 1 else slice(None)
        columns = slice(g * features, (g + 1) * features) if groups > 1 else slice(None)
        made = slice(group * outputs, (group + 1) * outputs)
        result[:, made] += np.einsum(
            "nf...,of->no...", padded[rows, columns][(..., *part)], k[(made, slice(None), *place)]
        )
    return result


def assert_convolved(case, mode):
    arrays = [elements(shape, case.dtype, seed) for seed, shape in enumerate(case.shapes)]
    is_special = case.special and case.dtype in REAL and arrays[0].size
    finite = arrays
    if is_special:
        arrays = [with_special(arrays[0]), arrays[1]]
    (found,) = run_with_open_sizes(case.apply, case.given(arrays), case.open_names(), mode=mode)
    dtype = jnp.dtype(case.result or case.dtype)
    with np.errstate(invalid="ignore"):
        expected = np.transpose(by_definition(*arrays, case.options), case.orders[2])
    assert (found.dtype, found.shape) == (dtype, expected.shape)
    if case.dtype in INTEGERS:
        np.testing.assert_array_equal(found, expected.astype(dtype))
        return
    bound = by_definition(*(np.abs(a.astype(np.complex128)).astype(np.float64) for a in finite), case.options)
    wide = np.complex128 if case.dtype == "complex64" else np.float64
    # Sums in float32 of what is rounded once, to the result's dtype.
    summed = float(jnp.finfo("float64" if dtype == jnp.float64 else "float32").eps)
    if is_special:
        is_number = np.isfinite(expected)
        np.testing.assert_array_equal(found[~is_number].astype(wide), expected[~is_number])
        found, expected = np.where(is_number, found, 0), np.where(is_number, expected, 0)
    error = np.abs(found.astype(wide) - expected)
    allowed = np.abs(expected) * float(jnp.finfo(dtype).eps) + 32 * summed * np.transpose(bound, case.orders[2])
    assert (error <= allowed).all(), f"off by {error.max()} of {np.abs(expected).max()}"


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
@given(case=cases())
@drawn(25)
def test_any_convolution_agrees_with_its_definition(mode, case):
    assume(mode != "compiled" or len(case.options["window_strides"]) < 3)  # which take long to compile
    assert_convolved(case, mode)


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
@given(case=cases(dtypes=INTEGERS, most_spatial=2))
@drawn(15)
def test_integers_are_convolved_modulo_the_power_of_their_bits(mode, case):
    assert_convolved(case, mode)


def case(shapes, dtype, *, names=None, strides=None, padding=None, dilation=None, apart=None, groups=1, special=False):
    """A convolution of arrays in the order of `lax.conv`; what is not given is what it mostly is."""
    spatial = len(shapes[0]) - 2
    options = {
        "window_strides": strides or (1,) * spatial,
        "padding": padding or ((0, 0),) * spatial,
        "lhs_dilation": dilation or (1,) * spatial,
        "rhs_dilation": apart or (1,) * spatial,
        "feature_group_count": groups,
        "batch_group_count": 1,
    }
    order = tuple(range(spatial + 2))
    return Case(shapes, names or shapes, options, (order,) * 3, dtype, None, special)


# TensorFlow 2.21 itself, on a CPU with AVX-512: memory that is not its own for the first three, a crash for the next.
OF_FEW_PLACES = {
    "one column": case(((1, 1, 3, 1), (1, 1, 1, 2)), "bfloat16", strides=(1, 2), padding=((0, 0), (0, 1))),
    "one column, wide kernel": case(((2, 1, 2, 2), (1, 1, 1, 3)), "float32", strides=(1, 2), padding=((0, 0), (0, 1))),
    "perhaps one column": case(
        ((1, 1, 3, 2), (2, 1, 1, 2)), "float32", names=((1, 1, 3, "w"), (2, 1, 1, 2)), strides=(1, 2)
    ),
    "larger than the operand": case(((1, 3, 1, 5), (8, 3, 2, 1)), "bfloat16", padding=((1, 2), (0, 0)), apart=(3, 3)),
    # Of a pad and a convolution in three dimensions Grappler makes one operation, of the shape without the pad.
    "padded in three dimensions": case(((1, 1, 1, 1, 1), (1, 1, 1, 1, 1)), "float32", padding=((0, 0), (0, 0), (0, 1))),
    "strides in three dimensions": case(
        ((2, 8, 1, 2, 6), (8, 8, 3, 1, 1)), "float64", strides=(3, 3, 3), padding=((1, 1), (0, 0), (0, 0))
    ),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", OF_FEW_PLACES)
def test_convolutions_that_kernels_of_tensorflow_get_wrong_are_right(name, mode):
    assert_convolved(OF_FEW_PLACES[name], mode)


# Of hundreds of terms; in float16 TensorFlow's kernels for CPU sum all but the second in float16.
OF_MANY_TERMS = {
    "depthwise, one dimension": (((2, 4, 300), (4, 1, 200)), {"groups": 4}),
    "two dimensions": (((2, 8, 12, 12), (4, 8, 8, 8)), {}),
    "depthwise": (((2, 8, 12, 12), (32, 1, 8, 8)), {"groups": 8}),
    "depthwise, dilated": (((2, 8, 18, 18), (8, 1, 8, 8)), {"groups": 8, "apart": (2, 2)}),
    "depthwise, wide": (((2, 16, 5, 48), (16, 1, 3, 16)), {"groups": 16}),
    "transposed": (((2, 64, 5, 5), (4, 64, 3, 3)), {"dilation": (2, 2), "padding": ((2, 2), (2, 2))}),
    "three dimensions": (((2, 8, 5, 5, 5), (4, 8, 4, 4, 4)), {}),
    "three dimensions, dilated": (((1, 16, 5, 6, 7), (4, 16, 3, 3, 3)), {"apart": (2, 2, 2)}),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("name", OF_MANY_TERMS)
def test_sums_of_16_bit_floats_are_rounded_once(name, dtype, mode):
    shapes, options = OF_MANY_TERMS[name]
    assert_convolved(case(shapes, dtype, **options), mode)


@pytest.mark.parametrize("extent", [(16,), (3, 16), (3, "k+8")], ids=str)
def test_wide_depthwise_kernels_of_bfloat16_are_convolved_in_float32(extent):
    """TensorFlow's kernel of bfloat16 never returns where the CPU has instructions for it."""
    names = [(1, 4, *("k+48" for _ in extent)), (4, 1, *extent)]
    shapes = [",".join(map(str, shape)) for shape in names]
    wide = case(names, "bfloat16", groups=4)
    function = convert(wide.apply, polymorphic_shapes=shapes, native_serialization=False)
    specs = [tf.TensorSpec([size if isinstance(size, int) else None for size in shape], tf.bfloat16) for shape in names]
    definition = tf.function(function, autograph=False).get_concrete_function(*specs).graph.as_graph_def()
    nodes = [*definition.node, *(node for inner in definition.library.function for node in inner.node_def)]
    dtypes = {node.attr["T"].type for node in nodes if node.op == "DepthwiseConv2dNative"}
    assert dtypes == {tf.float32.as_datatype_enum}


# Kernels of TensorFlow's that know no dilation, in three dimensions and depthwise ones.
APART = {
    "one dimension": (((2, 3, 9), (6, 1, 3)), {"apart": (3,), "groups": 3}),
    "two dimensions": (((2, 3, 7, 6), (6, 1, 2, 3)), {"apart": (2, 2), "groups": 3}),
    "one of two": (((2, 3, 7, 6), (3, 1, 2, 3)), {"apart": (1, 2), "groups": 3, "padding": ((0, 1), (2, 2))}),
    "three dimensions": (((1, 3, 6, 5, 7), (2, 3, 2, 2, 3)), {"apart": (2, 3, 2)}),
    "three, padded": (((1, 3, 6, 5, 7), (2, 3, 2, 2, 3)), {"apart": (2, 1, 3), "padding": ((1, 1), (0, 1), (3, 3))}),
    "three, of groups": (((1, 4, 6, 5, 7), (2, 2, 2, 2, 3)), {"apart": (1, 2, 2), "groups": 2}),
    "and strides": (((2, 3, 9, 8), (6, 1, 2, 3)), {"apart": (2, 2), "groups": 3, "strides": (2, 3)}),
    "three, and strides": (((1, 3, 6, 5, 7), (2, 3, 2, 2, 2)), {"apart": (2, 3, 2), "strides": (2, 1, 3)}),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("is_open", [False, True], ids=["static", "open"])
@pytest.mark.parametrize("name", APART)
def test_what_is_between_the_elements_of_a_dilated_kernel_does_not_count(name, is_open, mode):
    """Infinities and NaN there would make NaN with zeros in the kernel."""
    shapes, options = APART[name]
    (_, features, *spatial), kernel = shapes
    names = ("n", features, *(f"h{i}+{size - 1}" for i, size in enumerate(spatial))), kernel
    assert_convolved(case(shapes, "float32", names=names if is_open else None, special=True, **options), mode)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", ["int32", "uint32", "int64", "uint64"])
def test_products_of_integers_beyond_the_mantissa_of_floats_are_exact(dtype, mode):
    assert_convolved(case(((2, 16, 6, 5), (3, 16, 3, 3)), dtype), mode)


@pytest.mark.parametrize("mode", ["eager", "graph"])
@pytest.mark.parametrize("spatial", [4, 5])
def test_more_than_three_spatial_dimensions_agree(spatial, mode):
    sizes = (3, 4, 2, 3, 2)[:spatial], (2, 3, 1, 2, 2)[:spatial]
    shapes = (2, 4, *sizes[0]), (6, 2, *sizes[1])
    padding = ((1, 0), (-1, 1), (0, 2), (1, 1), (0, 1))[:spatial]
    names = (("n", 4, "a", "b", *sizes[0][2:]), shapes[1])
    assert_convolved(case(shapes, "float32", names=names, padding=padding, groups=2), mode)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("strides", [(1, 1), (2, 1)])
def test_gradients_for_the_kernel_agree_where_heights_and_widths_are_open(strides, mode):
    def gradient(x, k):
        def loss(k):
            y = lax.conv_general_dilated(x, k, strides, "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
            return jnp.sum(jnp.sin(y))

        return jax.grad(loss)(k)

    x, k = elements((2, 6, 5, 3), "float32", 0), elements((3, 2, 3, 4), "float32", 1)
    (found,) = run_with_open_sizes(gradient, [x, k], [("b", "2*h", "w", 3), k.shape], mode=mode)
    np.testing.assert_allclose(found, jax.jit(gradient)(x, k), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("padding", [((-1, 0), (-1, -2)), ((-2, 1), (2, -1))])
def test_negative_padding_agrees_where_heights_and_widths_are_open(padding, mode):
    shapes = (2, 3, 6, 7), (4, 3, 2, 2)
    assert_convolved(case(shapes, "float32", names=((2, 3, "h+3", "w+3"), shapes[1]), padding=padding), mode)


@pytest.mark.parametrize("length", [2, 4])
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_an_open_size_that_leaves_no_window_gives_an_empty_result(rank, groups, length):
    kernel = np.ones((*(length,) * rank, 2 // groups, 2), np.float32)
    layouts = "NHWD"[: rank + 1] + "C", "HWD"[:rank] + "IO", "NHWD"[: rank + 1] + "C"

    def convolved(x, k):
        return lax.conv_general_dilated(
            x, k, (1,) * rank, "VALID", dimension_numbers=layouts, feature_group_count=groups
        )

    def gradients(x, k):
        return jax.vjp(lambda x, k: convolved(x, k).sum(), x, k)[1](jnp.float32(1))

    shape = f"(n, {', '.join('hwd'[:rank])}, 2)"
    # JAX has no gradient where it does not know whether there is a window.
    for function in (convolved, gradients) if length == 2 else (convolved,):
        converted = convert(function, polymorphic_shapes=[shape, None], native_serialization=False, with_gradient=False)
        for run in (converted, tf.function(converted, autograph=False, jit_compile=True)):
            for sizes in ((5,) * rank, (1,) * rank, (5, *(1,) * (rank - 1))):
                x = np.arange(2 * np.prod(sizes) * 2, dtype=np.float32).reshape(2, *sizes, 2)
                for found, expected in zip(
                    tf.nest.flatten(run(x, kernel)), jax.tree.leaves(function(x, kernel)), strict=True
                ):
                    np.testing.assert_allclose(found, expected, rtol=1e-6)
                    assert found.shape == expected.shape


NAMES = ("NHWC", "HWIO", "NHWC")


def convolved(x, kernel, stride=1, groups=1, padding="SAME"):
    options = {"dimension_numbers": NAMES, "feature_group_count": groups}
    return lax.conv_general_dilated(x, kernel, (stride, stride), padding, **options)


EMPTY = {
    "more features": lambda x, k: convolved(x[1:], k),
    "depthwise": lambda x, k: convolved(x[1:], k.reshape(3, 3, 1, 8), groups=2),
    "strided": lambda x, k: convolved(x[1:], k, stride=2),
    "not padded": lambda x, k: convolved(x[1:], k, padding="VALID"),
    "two": lambda x, k: convolved(jnp.tanh(convolved(x[1:], k)), jnp.flip(k, 2).swapaxes(2, 3)),
    "in a function": lambda x, k: jax.jit(convolved)(x[1:], k),
    "in a loop": lambda x, k: lax.fori_loop(0, 2, lambda i, y: convolved(y, k[..., :2]), x[1:]),
    "computed from a size": lambda x, k: convolved(x.reshape(-1, 6, 3, 2)[: x.shape[0] - 1], k),
}


@pytest.mark.slow(1)
@pytest.mark.parametrize("name", EMPTY)
@pytest.mark.parametrize("wrap", [lambda f: f, lambda f: tf.function(f, autograph=False)], ids=["eager", "graph"])
def test_a_convolution_of_a_batch_that_may_be_empty_has_its_shape_and_derivatives(name, wrap):
    def fun(x, k):
        made = jnp.sum(EMPTY[name](x, k), 0)
        return made, jax.nn.logsumexp(made)

    kernel = np.random.default_rng(0).integers(-2, 3, (3, 3, 2, 4)).astype(np.float32)
    converted = wrap(convert(fun, polymorphic_shapes=["b, _, _, _", None], native_serialization=False))
    gradients = jax.grad(lambda x, k: fun(x, k)[1], (0, 1))
    of_gradients = wrap(convert(gradients, polymorphic_shapes=["b, _, _, _", None], native_serialization=False))
    for batch in (1, 3):
        x = np.random.default_rng(1).integers(-2, 3, (batch, 6, 6, 2)).astype(np.float32)
        for f, g in ((converted, fun), (of_gradients, gradients)):
            for found, expected in zip(f(x, kernel), g(x, kernel), strict=True):
                np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def net(x, k):
    """Ways in which a batch goes through a model."""
    back = jnp.flip(k, 2).swapaxes(2, 3)
    y = jax.nn.relu(convolved(x, k))
    y = lax.reduce_window(y, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    y = convolved(jax.image.resize(y, (y.shape[0], 6, 6, 4), "bilinear"), back)
    y = jax.checkpoint(convolved)(jnp.pad(y, ((0, 0), (1, 1), (1, 1), (0, 0))), k)
    y = jax.jit(convolved)(jnp.concatenate([y[..., 2:], y[..., :2]], -1), back)[:, ::2]
    y = lax.fori_loop(0, 2, lambda i, y: convolved(convolved(y, k), back), y)
    y = lax.cond(y.sum() > 0, lambda y: convolved(y, k), lambda y: convolved(-y, k), y)
    y = convolved(y.transpose(0, 2, 1, 3), back).reshape(y.shape[0], 64)
    return jax.vmap(lambda y: convolved(y.reshape(1, 8, 4, 2), k)[0])(y).sum((1, 2, 3))


def branches(function, batch):
    """How many branches the graph has."""
    specs = tf.TensorSpec((None, 8, 8, 2), tf.float32), tf.TensorSpec((3, 3, 2, 4), tf.float32)
    shapes = [f"{batch}, _, _, _", None]
    converted = convert(function, polymorphic_shapes=shapes, native_serialization=False, with_gradient=False)
    definition = tf.function(converted, autograph=False).get_concrete_function(*specs).graph.as_graph_def()
    nodes = [*definition.node, *(node for function in definition.library.function for node in function.node_def)]
    return sum(node.op in ("If", "StatelessIf") for node in nodes)


@pytest.mark.slow
@pytest.mark.parametrize("batch", ["b", "2*b", "b+1"])
def test_a_batch_that_has_an_element_at_least_takes_no_branch_more(batch, monkeypatch):
    functions = (net, jax.grad(lambda x, k: net(x, k).sum(), 1), convolved, lambda x, k: convolved(x[1:], k))
    found = [branches(function, batch) for function in functions]
    monkeypatch.setattr(plan_module, "with_empty_batches", lambda program, exported: program)
    without = [branches(function, batch) for function in functions]
    assert [n - m for n, m in zip(found, without, strict=True)] == [0, 0, 0, batch == "b"]  # b - 1 may be 0


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_a_compiled_convolution_of_no_features_does_not_end_the_process(rank, groups):
    """As the gradient for the kernel, where the batch, which it takes as features, is empty."""
    spatial = "HWD"[:rank]
    layout = f"N{spatial}C", f"{spatial}IO", f"N{spatial}C"

    def convolved(x, kernel):
        some = jnp.concatenate([x[..., 1:]] * groups, -1)
        return lax.conv_general_dilated(
            some, kernel[..., 1:, :], [1] * rank, "VALID", dimension_numbers=layout, feature_group_count=groups
        )

    shapes = (2, *[4] * rank, "a"), (*[2] * rank, "a", 2)
    for count in (1, 3):
        x, kernel = (np.ones([count if n == "a" else n for n in shape], np.float32) for shape in shapes)
        (found,) = run_with_open_sizes(convolved, (x, kernel), shapes, "compiled")
        np.testing.assert_array_equal(found, convolved(x, kernel))


DILATED = """
func.func public @main(%x: tensor<3x?x5x3xf64>, %k: tensor<6x1x2x1xf64>)
  -> (tensor<3x?x7x6xf64>, tensor<i32>, tensor<i32>) {
  %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, 1, f]x[o, i, 0, 1]->[b, 0, 1, f],
    window = {pad = [[2, 2], [1, 1]], rhs_dilate = [2, 1]} {batch_group_count = 1 : i64, feature_group_count = 3 : i64}
    : (tensor<3x?x5x3xf64>, tensor<6x1x2x1xf64>) -> tensor<3x?x7x6xf64>
  %1 = stablehlo.get_dimension_size %0, dim = 1 : (tensor<3x?x7x6xf64>) -> tensor<i32>
  %2 = stablehlo.get_dimension_size %0, dim = 2 : (tensor<3x?x7x6xf64>) -> tensor<i32>
  return %0, %1, %2 : tensor<3x?x7x6xf64>, tensor<i32>, tensor<i32>
}
"""


@pytest.mark.parametrize("mode", MODES)
def test_the_sizes_of_a_dilated_convolution_of_open_ones_are_its_own(mode):
    """Grappler takes all sizes to which SpaceToBatch adds unknown edges for one."""
    run, kernel = convert_stablehlo(DILATED), tf.ones([6, 1, 2, 1], tf.float64)
    if mode != "eager":
        signature = tf.TensorSpec([3, None, 5, 3], tf.float64), tf.TensorSpec(kernel.shape, kernel.dtype)
        run = tf.function(run, signature, autograph=False, jit_compile=mode == "compiled")
    for height in (3, 4, 5, 8):
        found, *extent = run(tf.ones([3, height, 5, 3], tf.float64), kernel)
        assert found.shape == (3, height + 2, 7, 6)
        assert [int(n) for n in extent] == [height + 2, 7]


WIDTHS = [1, 2, 3, 4, 8, 12, 16]
FEATURES = [1, 2, 3, 4, 6, 8, 10, 12, 14, 16, 24]


@pytest.mark.slow(2)
@pytest.mark.parametrize("seed", range(32))
def test_convolutions_of_bfloat16_and_their_gradients_are_those_of_float32(seed):
    """On a CPU with AMX TensorFlow's kernel gives other numbers for few features and kernels of some widths."""
    rng = np.random.default_rng(seed)
    rank, features, outputs = rng.integers(1, 4), rng.choice(FEATURES), rng.choice([1, 4, 5, 16])
    extent = [*rng.choice([1, 2, 3], rank - 1), rng.choice(WIDTHS)][:: rng.choice([1, 1, -1])]
    strides, apart = rng.choice([1, 1, 2], (2, rank)).tolist()
    shape = [(k - 1) * d + 1 + rng.choice([0, 7, 15]) for k, d in zip(extent, apart, strict=True)]
    places = "DHW"[3 - rank :]
    numbers = (f"N{places}C", f"{places}IO", f"N{places}C")
    x = rng.normal(size=(rng.choice([1, 8, 12]), *shape, features)).astype(jnp.bfloat16)
    kernel = rng.normal(size=(*extent, features, outputs)).astype(jnp.bfloat16)

    def convolved(x, kernel):
        padding = ["SAME", "VALID"][seed % 2]
        return lax.conv_general_dilated(x, kernel, strides, padding, rhs_dilation=apart, dimension_numbers=numbers)

    def with_gradients(x, kernel, cotangent):
        result, pulled = jax.vjp(convolved, x, kernel)
        return result, *pulled(cotangent)

    of_result = jax.eval_shape(convolved, x, kernel).shape
    operands = x, kernel, rng.normal(size=of_result).astype(jnp.bfloat16)
    shapes = ["b, ...", None, "b, ..."] if seed % 3 == 0 else None
    found = convert(with_gradients, native_serialization=False, polymorphic_shapes=shapes)(*operands)
    for narrow, wide in zip(found, with_gradients(*(each.astype(np.float32) for each in operands)), strict=True):
        np.testing.assert_allclose(tf.cast(narrow, tf.float32), wide, atol=0.01 * np.abs(wide).max(), rtol=0.01)
