"""Reductions and windows by any region, in any order, of any size, are JAX's in graph mode: programs drawn at random.

JAX on CPU is the authority: it combines the elements in row-major order, from the initial value on. What it does
otherwise is not drawn: long reductions and scans of a region that is not associative, which it combines in a tree;
reductions over no dimensions, or some of size 1, of which it leaves out the initial values; padded windows over several
dimensions, which it goes through in another order where order matters (there is a loop in NumPy for those); and
reductions of nothing by a region that ignores the initial value.
"""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf
from jax import lax

from jaxtf.convert import convert, convert_stablehlo
from jaxtf.shapepoly import InconclusiveDimensionOperation

from .graph_mode import MODES, assert_identical, in_mode, run_jax

INT, FLOAT, COMPLEX = np.int32, np.float32, np.complex64


@dataclasses.dataclass(frozen=True)
class Reducer:
    """A region: the function, of tuples where it takes several arrays, their dtypes, and initial values for each."""

    function: Callable[..., Any]
    dtypes: Sequence[Any]
    neutral: Sequence[Any]
    has_order: bool = False


def greater_key(a, b):
    keeps = a[0] >= b[0]  # the tangent of a max pool
    return lax.select(keeps, a[0], b[0]), lax.select(keeps, a[1], b[1])


REDUCERS = {
    "add": Reducer(lax.add, [INT], [0]),
    "add of floats": Reducer(lax.add, [FLOAT], [0]),
    "mul": Reducer(lax.mul, [INT], [1]),
    "max": Reducer(lax.max, [FLOAT], [-np.inf]),
    "min": Reducer(lax.min, [FLOAT], [np.inf]),
    "max of integers": Reducer(lax.max, [INT], [np.iinfo(INT).min]),
    "and": Reducer(lax.bitwise_and, [INT], [-1]),
    "or": Reducer(lax.bitwise_or, [INT], [0]),
    "xor": Reducer(lax.bitwise_xor, [INT], [0]),
    "two in one": Reducer(lambda a, b: (a[0] + b[0], lax.min(a[1], b[1])), [INT, FLOAT], [0, np.inf]),
    "twice and": Reducer(lambda a, b: a * 2 + b, [INT], [0], has_order=True),
    "difference": Reducer(lambda a, b: a - b, [INT], [0], has_order=True),
    "reversed difference": Reducer(lambda a, b: b - a, [INT], [0], has_order=True),
    "affine": Reducer(lambda f, g: (f[0] * g[0], f[1] * g[0] + g[1]), [INT, INT], [1, 0], has_order=True),
    "first": Reducer(lambda a, b: a, [INT], [0], has_order=True),
    "second": Reducer(lambda a, b: b, [INT], [0], has_order=True),
    "greater key": Reducer(greater_key, [FLOAT, INT], [-np.inf, 0], has_order=True),
    "constant": Reducer(lambda a, b: jnp.int32(7), [INT], [0], has_order=True),
    "greater complex": Reducer(lax.max, [COMPLEX], [-np.inf], has_order=True),
}


@dataclasses.dataclass
class Program:
    """A function with its arguments, and polymorphic shapes for them, or None."""

    function: Callable[..., Any]
    arguments: Sequence[np.ndarray]
    shapes: Sequence[str] | None
    text: str


def drawn(seed: int, has_nan: bool) -> Program:
    """A program."""
    rng = np.random.RandomState(seed)
    name = rng.choice(list(REDUCERS))
    reducer = REDUCERS[name]
    rank = rng.choice([1, 2, 2, 3, 4])
    shape = tuple(rng.choice([0, 1, 2, 3, 4, 5, 7], rank, p=[0.04, 0.1, 0.12, 0.24, 0.2, 0.2, 0.1]))
    arguments = [values(rng, shape, dtype, has_nan) for dtype in reducer.dtypes]
    initial = reducer.neutral if rng.rand() < 0.5 else [rng.randint(-2, 4) for _ in reducer.neutral]
    initial = [np.asarray(i, dtype) for i, dtype in zip(initial, reducer.dtypes, strict=True)]
    is_symbolic = rng.rand() < 0.4 and 0 not in shape
    draw = reduction if rng.rand() < 0.3 else windows
    function, text = draw(rng, reducer, initial, shape)
    shapes = None
    if is_symbolic:
        unknown = rng.rand(rank) < 0.7
        dimensions = [f"d{i}" if u else str(n) for i, (n, u) in enumerate(zip(shape, unknown, strict=True))]
        shapes = [f"({', '.join(dimensions)},)"] * len(arguments)
    return Program(function, arguments, shapes, f"{seed}: {name} {shape} {initial} {shapes} {text}")


def values(rng: np.random.RandomState, shape: Sequence[int], dtype: Any, has_nan: bool) -> np.ndarray:
    """Small whole numbers, many of them equal."""
    found = rng.randint(-3, 4, shape)
    if dtype == INT:
        return found.astype(dtype)
    array = found.astype(dtype) if dtype == FLOAT else (found + 1j * rng.randint(-1, 2, shape)).astype(dtype)
    special = rng.rand(*shape)
    array[special < 0.1] = -np.inf
    if has_nan:
        array[special > 0.9] = np.nan
    return array


def applied(reducer: Reducer, operands: Sequence[Any], initial: Sequence[Any], reduce: Callable[..., Any]) -> Any:
    """A reduction of one array, or of several in a tuple."""
    if len(operands) == 1:
        return reduce(operands[0], initial[0], reducer.function)
    return reduce(tuple(operands), tuple(initial), reducer.function)


def reduction(rng: np.random.RandomState, reducer: Reducer, initial: Sequence[Any], shape: Sequence[int]) -> Any:
    axes = tuple(int(i) for i in np.flatnonzero(rng.rand(len(shape)) < 0.6))
    if not axes or any(shape[axis] == 1 for axis in axes) or (0 in shape and reducer.has_order):
        return windows(rng, reducer, initial, shape)

    def function(*operands):
        return applied(reducer, operands, initial, functools.partial(lax.reduce, dimensions=axes))

    return function, f"reduce {axes}"


def windows(rng: np.random.RandomState, reducer: Reducer, initial: Sequence[Any], shape: Sequence[int]) -> Any:
    rank = len(shape)
    size = [int(n) for n in rng.choice([1, 2, 3, 4], rank, p=[0.35, 0.35, 0.2, 0.1])]
    whole = [bool(n) and rng.rand() < 0.2 for n in shape]
    if max(size) == 1 and not any(whole):
        size[0] = 2  # windows of one element, with strides, end the process in XLA's algebraic simplifier (JAX 0.12)
    stride = [int(n) for n in rng.choice([1, 2, 3], rank, p=[0.6, 0.3, 0.1])]
    base, dilation = ([int(n) for n in rng.choice([1, 2, 3], rank, p=[0.8, 0.15, 0.05])] for _ in range(2))
    padding = rng.choice(["VALID", "SAME", "VALID", "own"])
    if padding == "own":
        padding = [tuple(int(n) for n in rng.choice([-2, -1, 0, 1, 2, 4], 2)) for _ in shape]
        extents = [(max(n - 1, -1)) * b + 1 + sum(p) for n, b, p in zip(shape, base, padding, strict=True)]
        padding = [p if e >= 0 else (0, 0) for p, e in zip(padding, extents, strict=True)]
    if reducer.has_order and (padding != "VALID" or max(base) > 1):
        only = rng.randint(rank)
        size, whole = ([x if i == only else none for i, x in enumerate(xs)] for xs, none in ((size, 1), (whole, False)))

    def function(*operands):
        lengths = [operands[0].shape[i] if w else n for i, (w, n) in enumerate(zip(whole, size, strict=True))]
        return applied(
            reducer,
            operands,
            initial,
            lambda x, i, f: lax.reduce_window(x, i, f, lengths, stride, padding, base, dilation),
        )

    return function, f"windows {size} whole {whole} by {stride} dilated {base} {dilation} {padding}"


def run(program: Program, mode: str) -> list[np.ndarray]:
    """The results in graph mode."""
    function = convert(program.function, polymorphic_shapes=program.shapes, native_serialization=False)
    if mode != "eager":
        shapes = [None if program.shapes and "d" in program.shapes[0] else x.shape for x in program.arguments]
        shapes = [[None] * x.ndim if s is None else s for s, x in zip(shapes, program.arguments, strict=True)]
        specs = [tf.TensorSpec(s, x.dtype) for s, x in zip(shapes, program.arguments, strict=True)]
        function = tf.function(function, autograph=False, jit_compile=mode == "compiled", input_signature=specs)
    return [np.asarray(leaf) for leaf in tf.nest.flatten(function(*map(tf.constant, program.arguments)))]


def agrees(seed: int, mode: str) -> bool:
    """Whether a program was run; then it gives what it gives in JAX. Some JAX does not take for all sizes."""
    program = drawn(seed, has_nan=mode != "compiled")
    try:
        found = run(program, mode)
    except InconclusiveDimensionOperation:
        assert program.shapes
        return False
    try:
        assert_identical([x + 0 for x in found], [x + 0 for x in run_jax(program.function, *program.arguments)])
    except AssertionError as error:
        raise AssertionError(f"{program.text}, {mode}") from error
    return True


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("is_symbolic", [False, True])
def test_padded_windows_are_gone_through_in_row_major_order(is_symbolic, mode):
    x = np.random.RandomState(0).randint(-5, 5, (4, 5)).astype(INT)
    padding, window, stride = ((1, 2), (2, 1)), (3, 2), (1, 2)

    def function(x):
        return lax.reduce_window(x, INT(4), lambda a, b: a * 3 + b, window, stride, padding)

    program = Program(function, [x], ["(d0, d1)"] if is_symbolic else None, "")
    (found,) = run(program, mode)
    expected = np.full((5, 4), 4, INT)
    for place in np.ndindex(*expected.shape):
        for offset in np.ndindex(*window):
            at = [p * s + o - low for p, s, o, (low, _) in zip(place, stride, offset, padding, strict=True)]
            if all(0 <= i < n for i, n in zip(at, x.shape, strict=True)):
                expected[place] = expected[place] * 3 + x[tuple(at)]
    np.testing.assert_array_equal(found, expected)


def compared(function, *arguments, mode, shapes=None):
    """Asserts that graph mode gives what JAX gives."""
    assert_identical(run(Program(function, arguments, shapes, ""), mode), run_jax(function, *arguments))


@pytest.mark.parametrize("mode", MODES)
def test_the_tangent_of_a_maximum_is_that_of_the_first_in_row_major_order(mode):
    x, tangent = np.array([[1, 2], [2, 1]], FLOAT), np.array([[1, 2], [3, 4]], FLOAT)

    def function(x, tangent):
        return jax.jvp(lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (2, 2), (1, 1), "VALID"), (x,), (tangent,))

    compared(function, x, tangent, mode=mode)
    compared(function, x, tangent, mode=mode, shapes=["(n, _)", "(n, _)"])


@pytest.mark.parametrize("mode", MODES)
def test_an_initial_value_counts_once_in_a_window_of_a_size_known_at_run_time(mode):
    def function(x):
        return lax.reduce_window(x, FLOAT(1), lax.add, (2, x.shape[0]), (1, 1), "VALID")

    compared(function, np.arange(24, dtype=FLOAT).reshape(4, 6), mode=mode, shapes=["(n, 6)"])


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("padding", [(-1, 0), (0, -2), (-2, 0), (-2, 1), (-1, -1)])
@pytest.mark.parametrize(("size", "shapes"), [(0, None), (1, None), (3, None), (1, ["(w,)"]), (3, ["(w,)"])])
def test_padding_may_take_more_than_there_is(size, shapes, padding, mode):
    x = np.arange(1, size + 1, dtype=FLOAT)

    def function(x):
        return lax.reduce_window(x, FLOAT(0), lax.add, (1,), (1,), [padding])

    (found,) = run(Program(function, [x], shapes, ""), mode)  # not compared with JAX, which XLA ends for some of these
    places = np.arange(max(size + sum(padding), 0)) - padding[0]
    np.testing.assert_array_equal(found, [x[i] if 0 <= i < size else 0 for i in places])


POOLS = {
    "small": ((1, 2, 2, 1), (1, 2, 2, 1), "VALID"),
    "overlapping": ((1, 3, 3, 1), (1, 1, 1, 1), "SAME"),
    "uneven": ((1, 3, 2, 1), (1, 2, 1, 1), ((0, 0), (2, 0), (0, 1), (0, 0))),
    "larger than the array": ((1, 8, 2, 1), (1, 1, 1, 1), "VALID"),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", POOLS)
@pytest.mark.parametrize("is_symbolic", [False, True])
def test_pools_keep_nan_and_infinity(name, is_symbolic, mode):
    x = np.random.RandomState(0).randint(-3, 4, (2, 6, 7, 2)).astype(FLOAT)
    x[1, :4] = -np.inf
    x[0, 2, 3, 1] = np.nan if mode != "compiled" else 9  # compiled, XLA's CPU backend drops NaN in min and max

    def function(x):
        extremes = (lax.max, -jnp.inf), (lax.min, jnp.inf)
        return [lax.reduce_window(x, i, f, *POOLS[name]) for f, i in extremes]

    compared(function, x, mode=mode, shapes=["(b, h, w, _)"] if is_symbolic else None)
    compared(lambda x: lax.reduce_window(x, 0.0, lax.add, *POOLS["larger than the array"]), x, mode=mode)


# The shape, the windows and their strides.
SMALL_ARRAYS = (
    (("b", 2, "w", 2), (1, 2, 2, 1), (1, 1, 1, 1)),
    ((1, "h", 2, 1), (1, 2, 2, 1), (1, 2, 1, 1)),
    (("b", "h", "w", 3), (1, 3, 2, 1), (1, 1, 2, 1)),
)


@pytest.mark.slow(1)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("enable_xla", [False, True])
@pytest.mark.parametrize(("sizes", "lengths", "strides"), SMALL_ARRAYS)
def test_a_pool_of_an_array_smaller_than_its_windows_is_empty(sizes, lengths, strides, enable_xla, mode):
    # Of sizes known at run time; with oneDNN such a MaxPool of TensorFlow's ends the process.
    def function(x):
        named = (lax.max, -jnp.inf), (lax.min, jnp.inf), (lax.add, 0.0)
        return [lax.reduce_window(x, initial, region, lengths, strides, "VALID") for region, initial in named]

    text = f"({', '.join(map(str, sizes))})"
    converted = convert(function, polymorphic_shapes=[text], native_serialization=False, enable_xla=enable_xla)
    if mode != "eager":
        spec = tf.TensorSpec([None if isinstance(size, str) else size for size in sizes])
        converted = tf.function(converted, [spec], autograph=False, jit_compile=mode == "compiled")
    for h, w in ((1, 1), (1, 2), (2, 1), (2, 2), (3, 2), (5, 4)):
        x = np.random.RandomState(h).randint(-3, 4, [{"b": 1, "h": h, "w": w}.get(n, n) for n in sizes]).astype(FLOAT)
        assert_identical([np.asarray(y) for y in converted(x)], run_jax(function, x))


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("enable_xla", [False, True])
def test_windows_of_a_pool_may_lie_in_padding_of_a_size_known_at_run_time(enable_xla, mode):
    def function(x):
        n = x.shape[1]  # of sums no -0: one of nothing else may be -0
        paddings = (n, 0), (0, n), (n, 2 * n - 3), (n - 3, 1 - n), (-n, 2), (1, -n)
        named = (lax.max, -jnp.inf), (lax.min, jnp.inf), (lax.add, 0.0)
        return [
            lax.reduce_window(
                x if region is not lax.add else abs(x),
                initial,
                region,
                (1, 2, 2, 1),
                (1, stride, 1, 1),
                ((0, 0), edges, (0, n), (0, 0)),
            )
            for region, initial in named
            for edges in paddings
            for stride in (1, 2)
        ]

    converted = convert(
        function, polymorphic_shapes=["(b, h, w, _)"], native_serialization=False, enable_xla=enable_xla
    )
    if mode != "eager":
        spec = tf.TensorSpec([None, None, None, 2])
        converted = tf.function(converted, [spec], autograph=False, jit_compile=mode == "compiled")
    for h, w in ((3, 2), (4, 1), (7, 5)):
        x = np.random.RandomState(h).randint(-3, 4, (2, h, w, 2)).astype(FLOAT)
        x[x == -3], x[x == 0], x[0, 0, 0, 0] = np.finfo(FLOAT).min, 1, -0.0
        assert_identical([np.asarray(y) for y in converted(x)], run_jax(function, x))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("enable_xla", [False, True])
@pytest.mark.parametrize("shapes", [None, "(b, ...)", "(b, h, w, _)"])
@pytest.mark.parametrize(
    "windows",
    [
        ((1, 7, 7, 1), (1, 1, 1, 1), "SAME"),
        ((1, 11, 11, 1), (1, 1, 1, 1), "VALID"),
        ((1, 5, 11, 1), (1, 2, 1, 1), "SAME"),
        ((1, 1, 7, 7), (1, 1, 2, 6), "VALID"),
        ((1, 4, 4, 1), (1, 4, 4, 1), "SAME"),
    ],
    ids=str,
)
def test_sums_over_windows_of_whole_numbers_are_exact(windows, shapes, enable_xla, mode):
    def function(x):
        total = lax.reduce_window(x, 0.0, lax.add, *windows)
        return total, total * np.float32(0.1), total.astype(jnp.int32)

    converted = convert(function, polymorphic_shapes=shapes, native_serialization=False, enable_xla=enable_xla)
    if mode != "eager":
        converted = tf.function(converted, autograph=False, jit_compile=mode == "compiled")
    x = np.random.RandomState(0).randint(0, 100, (2, 14, 15, 13)).astype(FLOAT)
    assert_identical([np.asarray(y) for y in converted(x)], run_jax(function, x))


def test_sums_over_windows_of_an_empty_batch_have_their_shape():
    text = """
    func.func @main(%x: tensor<?x8x8x3xf32>) -> tensor<?x6x6x3xf32> {
      %zero = stablehlo.constant dense<0.0> : tensor<f32>
      %sums = "stablehlo.reduce_window"(%x, %zero) ({
        ^bb0(%a: tensor<f32>, %b: tensor<f32>):
          %sum = stablehlo.add %a, %b : tensor<f32>
          stablehlo.return %sum : tensor<f32>
      }) {window_dimensions = array<i64: 1, 3, 3, 1>} : (tensor<?x8x8x3xf32>, tensor<f32>) -> tensor<?x6x6x3xf32>
      return %sums : tensor<?x6x6x3xf32>
    }"""
    sums = tf.function(convert_stablehlo(text), [tf.TensorSpec([None, 8, 8, 3])], autograph=False)
    assert [tuple(tf.shape(sums(tf.zeros((n, 8, 8, 3)))).numpy()) for n in (0, 2)] == [(0, 6, 6, 3), (2, 6, 6, 3)]


@pytest.mark.parametrize(
    ("region", "initial", "pool"), [(lax.max, -jnp.inf, "MaxPool"), (lax.add, 0.0, "DepthwiseConv2dNative")]
)
@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_a_pool_over_sizes_known_at_run_time_is_one_of_tensorflow_without_xla(region, initial, pool, padding):
    function = convert(
        lambda x: lax.reduce_window(x, initial, region, (1, 3, 3, 1), (1, 2, 2, 1), padding),
        polymorphic_shapes=["(b, h, w, _)"],
        native_serialization=False,
        enable_xla=False,
    )
    spec = tf.TensorSpec([None, None, None, 3])
    graph = tf.function(function, [spec], autograph=False).get_concrete_function().graph.as_graph_def()
    types = {node.op for nodes in (graph.node, *(f.node_def for f in graph.library.function)) for node in nodes}
    assert pool in types
    assert not types & {"If", "StatelessIf", "While", "StatelessWhile", "GatherV2"}, types


def test_a_pool_is_one_of_tensorflow_where_nothing_is_lost():
    function = convert(lambda x: lax.reduce_window(x, -jnp.inf, lax.max, *POOLS["small"]), native_serialization=False)
    graph = tf.function(function, autograph=False).get_concrete_function(tf.TensorSpec([2, 6, 8, 3])).graph
    inner = [node.op for f in graph.as_graph_def().library.function for node in f.node_def]
    assert "MaxPool" in [operation.type for operation in graph.get_operations()] + inner


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["graph", "compiled"])
def test_any_reduction_over_a_size_known_at_run_time_agrees(mode):
    x = np.random.RandomState(0).randint(-100, 100, (100, 3)).astype(INT)
    z = (x + 1j * x[::-1]).astype(COMPLEX)

    def function(x, z):
        single = [lax.reduce(x, INT(5), f, (0,)) for f in (lax.bitwise_xor, lax.bitwise_or, lax.bitwise_and)]
        two = lax.reduce((x, x), (INT(1), INT(2)), lambda a, b: (a[0] + b[0], a[1] * b[1]), (0, 1))
        return *single, *two, lax.reduce(z, COMPLEX(-200), lax.max, (0,))

    for count in (2, 31, 100):
        compared(function, x[:count], z[:count], mode=mode, shapes=["(n, _)", "(n, _)"])


@pytest.mark.slow(1)
@pytest.mark.parametrize("mode", ["graph", "compiled"])
def test_cumulative_operations_over_a_size_known_at_run_time_agree(mode):
    x = np.random.RandomState(0).randint(1, 3, (7, 3)).astype(FLOAT)

    def function(x):
        exact = [f(x, 0, reverse) for f in (lax.cumsum, lax.cumprod, lax.cummax, lax.cummin) for reverse in (0, 1)]
        gradient = jax.grad(lambda x: (lax.cumsum(x, 0) ** 2).sum())(x)
        return *exact, gradient, *jnp.nonzero(x > 1, size=4), jnp.unique(x, size=3)

    compared(function, x, mode=mode, shapes=["(n, _)"])
    (found,) = run(Program(lax.cumlogsumexp, [x], ["(n, _)"], ""), mode)
    np.testing.assert_allclose(found, run_jax(lax.cumlogsumexp, x)[0], rtol=1e-6)  # 7 eps


@pytest.mark.slow(1)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("reduction", [(lax.max, -np.inf), (lax.min, np.inf)], ids=["max", "min"])
def test_the_gradient_of_a_pool_goes_to_the_element_that_jax_selects(reduction, mode):
    function, initial = reduction
    x = np.random.RandomState(0).randint(-2, 3, (2, 6, 7, 2)).astype(FLOAT)
    special = x.copy()
    special[0, 1::3, ::2], special[1, ::3] = np.nan, -np.inf

    def gradient(window, stride, padding):
        def pool(x):
            return lax.reduce_window(x, initial, function, window, stride, padding)

        return jax.grad(lambda x: pool(x).sum())

    for window, stride in (((1, 2, 3, 1), (1, 2, 1, 1)), ((2, 2, 2, 2), (1, 1, 1, 1)), ((1, 7, 2, 1), (1, 9, 1, 1))):
        compared(gradient(window, stride, "SAME"), x, mode=mode)
        compared(gradient(window, stride, "VALID"), special, mode=mode)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", [jnp.bfloat16, np.float16])
def test_cumulative_sums_in_16_bits_are_accurate(dtype, mode):
    x = np.random.RandomState(0).rand(2000).astype(dtype)
    (found,) = run(Program(lax.cumsum, [x], None, ""), mode)
    found, exact = found.astype(np.float64), np.cumsum(x.astype(np.float64))
    np.testing.assert_allclose(
        found, exact, rtol=float(ml_dtypes.finfo(dtype).eps)
    )  # one rounding, and less in float32


COUNTS = {"eager": 60, "graph": 40, "compiled": 25}


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_any_reduction_of_any_windows_agrees(mode):
    first = 1000 * MODES.index(mode)
    done = [agrees(seed, mode) for seed in range(first, first + COUNTS[mode])]
    assert sum(done) > len(done) / 2


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize(("reducer", "start"), [(lax.add, 0.0), (lax.max, -np.inf)])
def test_a_graph_may_know_that_a_window_of_an_open_size_does_not_fit(reducer, start, size):
    def pooled(x):
        moved = x.shape[1] - 1
        padding = ((0, 0), (moved, -moved), (1, 0), (0, 0))
        return lax.reduce_window(x, jnp.float32(start), reducer, (1, 3, 2, 1), (1, 1, 1, 1), padding)

    converted = convert(pooled, polymorphic_shapes=["1, a, 2, 1"], native_serialization=False, with_gradient=False)
    x = np.arange(1, 2 * size + 1, dtype=np.float32).reshape(1, size, 2, 1)
    found = tf.function(converted, autograph=False)(tf.constant(x))
    np.testing.assert_array_equal(found, pooled(jnp.asarray(x)), strict=True)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("after", [lambda x: x, lambda x: jnp.maximum(x, 0.0)], ids=["maxima", "maxima and 0"])
@pytest.mark.parametrize("edges", [((1, 1), (1, 1)), ((2, 1), (1, 0)), ((1, 0), (1, 1))], ids=str)
def test_maxima_of_padding_alone_are_those_of_nothing(edges, after, mode):
    """Of no elements the sum, which is 0, was taken for that of finite ones."""

    def pooled(x):
        window = (1, edges[0][0] + 1, edges[1][1] + 1, 1)
        return lax.reduce_window(after(x[:, 1:]), -np.inf, lax.max, window, (1, 1, 1, 1), ((0, 0), *edges, (0, 0)))

    def total(x):
        return jnp.where(jnp.isfinite(pooled(x)), pooled(x), 0.0).sum()

    open_size = convert(pooled, native_serialization=False, polymorphic_shapes="(1, b, 3, 1)")
    of_open_size = convert(total, native_serialization=False, polymorphic_shapes="(1, b, 3, 1)")

    def gradient(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = of_open_size(x)
        return tape.gradient(y, x)

    for size in (1, 2, 4):
        x = np.cos(np.arange(3 * size, dtype=np.float32)).reshape(1, size, 3, 1)
        np.testing.assert_array_equal(in_mode(open_size, mode)(x), pooled(x))
        np.testing.assert_array_equal(in_mode(gradient, mode)(tf.constant(x)), jax.grad(total)(x))
