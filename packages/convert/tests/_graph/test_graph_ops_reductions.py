"""Reductions, windows and sorting in graph mode give JAX's results, also with NaN, ties and regions of their own."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from jaxtf.convert._errors import GraphModeUnsupported
from jaxtf.serialization.interop import export_for_graph

from .graph_mode import MODES, operations, run_graph_mode, run_jax, run_module, same_as_jax

NAN, INF = np.nan, np.inf
SPECIAL = np.array([[1, NAN, 3, NAN], [INF, 2, -INF, 2], [-0.0, 0.0, -1, 5], [7, 7, -7, 7]], np.float32)


def waves(*shape):
    return np.sin(np.arange(np.prod(shape), dtype=np.float32)).reshape(shape) * 3


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int32", "float32"])
def test_reductions_by_one_operation_agree(dtype, mode):
    x = np.abs(waves(3, 4, 2)).astype(dtype)

    def every(x):
        found = [jnp.sum(x, 1), jnp.prod(x, (0, 2)), jnp.max(x, 1), jnp.min(x), jnp.all(x > 1, 0), jnp.any(x > 1)]
        if dtype != "float32":
            found += [lax.reduce(x, np.zeros((), dtype), f, (0,)) for f in (lax.bitwise_or, lax.bitwise_xor)]
        return found

    same_as_jax(every, x, mode=mode, max_error_in_eps=8) if dtype == "float32" else same_as_jax(every, x, mode=mode)


def test_an_initial_value_takes_part_unless_it_is_neutral():
    same_as_jax(lambda x: lax.reduce(x, np.int32(5), lax.add, (1,)), waves(3, 4).astype(np.int32))
    same_as_jax(lambda x: lax.reduce(x, np.float32(2), lax.max, (0,)), waves(3, 4))
    same_as_jax(lambda x, i: lax.reduce(x, i, lax.add, (0,)), np.zeros((0, 3), np.float32), np.float32(4))


@pytest.mark.parametrize("mode", ["eager", "graph"])  # compiled, XLA's CPU backend drops NaN in min and max
def test_extremes_of_nan_are_nan(mode):
    same_as_jax(lambda x: [jnp.max(x, 1), jnp.min(x, 0)], SPECIAL, mode=mode)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", ["int32", "uint8", "float32", "bfloat16"])
def test_the_first_extreme_is_found_and_nan_before_all(dtype, mode):
    values = SPECIAL if dtype in ("float32", "bfloat16") else np.array([[3, 1, 3, 1], [0, 0, 0, 0], [1, 2, 3, 4]])
    same_as_jax(lambda x: [jnp.argmax(x, 1), jnp.argmin(x, 0), jnp.argmax(x)], values.astype(dtype), mode=mode)


@pytest.mark.slow(1)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("allows_xla", [True, False])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_an_extreme_is_found_among_any_numbers(dtype, allows_xla, mode):
    """Of the lowest finite number, of infinities and NaN, in each order; a kernel may begin with any of them."""
    lowest = float(jnp.finfo(dtype).min)
    rows = np.array(list(itertools.product([-INF, lowest, INF, NAN, 1], repeat=3))).astype(dtype)

    def function(x):
        found = [jnp.argmax(x, 1), jnp.argmin(-x, 1), jnp.argmax(x.T, 0), jnp.nanargmax(x, 1)]
        return [*found, lax.argmin(-x, 1, "uint8")]

    with jax.enable_x64(dtype == "float64"):
        for several in (rows, np.tile(rows, (12, 1))):
            same_as_jax(function, several, mode=mode, allows_xla=allows_xla)
        same_as_jax(function, np.tile(np.array([[-INF, lowest]], dtype), (3000, 1)), mode=mode, allows_xla=allows_xla)
        for row in ([-INF, lowest, -INF], [-INF, lowest, NAN], [-INF, -INF, -INF]):
            x = np.array(row, dtype)
            same_as_jax(lambda x: [jnp.argmax(x), jnp.argmin(-x)], x, mode=mode, allows_xla=allows_xla)


def searching(keeps):
    """The region of a search: of two values, each with its index, what `keeps` says, of equal ones the lesser index."""

    def region(a, b):
        (value, index), (other, other_index) = a, b
        is_kept = keeps(value, other)
        is_first = is_kept | ((value == other) & (index < other_index))
        return lax.select(is_kept, value, other), lax.select(is_first, index, other_index)

    return region


GREATEST = searching(lambda a, b: (a > b) | lax.ne(a, a))
GREATEST_BUT_NAN = searching(lambda a, b: a > b)


@pytest.mark.parametrize("region", [GREATEST, GREATEST_BUT_NAN])
@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("start", [(-INF, 0), (2, -1), (-INF, 7), (-INF, -3), (NAN, 1)])
def test_a_search_from_any_value_among_any_indices_is_not_taken_for_argmax(start, backwards, region):
    indices = np.broadcast_to(np.arange(4, dtype=np.int32)[:: -1 if backwards else 1], (5, 4))
    values = np.concatenate([SPECIAL, np.full((1, 4), -INF, np.float32)])

    def search(x):
        return lax.reduce((x, indices), (np.float32(start[0]), np.int32(start[1])), region, (1,))

    same_as_jax(search, values)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("count", [0, 1, 2, 7, 16])
def test_a_region_of_several_operations_reduces_in_order(count, mode):
    def affine(f, g):  # composition of x -> a x + b: associative, not commutative
        return f[0] * g[0], f[1] * g[0] + g[1]

    operands = (np.arange(1, 3 * count + 1).reshape(3, count) % 3, np.arange(3 * count).reshape(3, count) % 5)

    def reduced(a, b):
        return lax.reduce((a, b), (jnp.int32(1), jnp.int32(0)), affine, (1,))

    same_as_jax(reduced, *(x.astype(np.int32) for x in operands), mode=mode)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("reverse", [False, True])
def test_cumulative_operations_agree(reverse, mode):
    def every(x):
        return [f(x, 1, reverse) for f in (lax.cumsum, lax.cumprod, lax.cummax, lax.cummin, lax.cumlogsumexp)]

    same_as_jax(every, waves(3, 7), mode=mode, max_error_in_eps=64)
    same_as_jax(lambda x: lax.cumsum(x, 0, reverse), waves(9, 2).astype(np.int8), mode=mode)


WINDOWS = {
    "pool": {"window_dimensions": (1, 2, 3, 1), "window_strides": (1, 2, 2, 1), "padding": "VALID"},
    "same": {"window_dimensions": (1, 3, 3, 1), "window_strides": (1, 2, 2, 1), "padding": "SAME"},
    "channels first": {"window_dimensions": (1, 1, 2, 2), "window_strides": (1, 1, 2, 2), "padding": "VALID"},
    "uneven edges": {
        "window_dimensions": (1, 2, 2, 1),
        "window_strides": (1, 1, 1, 1),
        "padding": ((0, 0), (2, 0), (0, 1), (0, 0)),
    },
    "overlapping by one": {"window_dimensions": (1, 5, 7, 1), "window_strides": (1, 1, 3, 1), "padding": "SAME"},
    "dilated": {
        "window_dimensions": (1, 2, 2, 1),
        "window_strides": (1, 1, 2, 1),
        "padding": "VALID",
        "base_dilation": (1, 2, 1, 1),
        "window_dilation": (1, 1, 2, 1),
    },
    "all dimensions": {"window_dimensions": (2, 2, 2, 2), "window_strides": (1, 2, 1, 1), "padding": "SAME"},
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", WINDOWS)
def test_windows_are_reduced(name, mode):
    def every(x):
        return [
            lax.reduce_window(x, -np.inf, lax.max, **WINDOWS[name]),
            lax.reduce_window(x, np.inf, lax.min, **WINDOWS[name]),
            lax.reduce_window(x, 0.0, lax.add, **WINDOWS[name]),
            lax.reduce_window(x, 1.0, lax.mul, **WINDOWS[name]),
            lax.reduce_window(x, 2.0, lax.add, **WINDOWS[name]),
        ]

    found = run_graph_mode(every, waves(2, 6, 8, 3), mode=mode)
    for ours, theirs in zip(found, run_jax(every, waves(2, 6, 8, 3)), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)  # sums of up to 35 terms of magnitude 3


def kinds_of_pool(size, stride, *, compiled, initial, region):
    """Types of the operations of a reduction over windows of images."""

    def pool(x):
        return lax.reduce_window(x, initial, region, (1, size, size, 1), (1, stride, stride, 1), "SAME")

    module = export_for_graph(jax.jit(pool))(waves(2, 6, 8, 3)).mlir_module_serialized
    return set(operations(module, (2, 6, 8, 3), compiled=compiled))


@pytest.mark.parametrize(("size", "stride", "is_pool"), [(2, 2, False), (3, 2, False), (3, 1, True)])
def test_only_compiled_windows_that_overlap_little_are_no_pools(size, stride, is_pool):
    for compiled in (False, True):
        kinds = kinds_of_pool(size, stride, compiled=compiled, initial=-np.inf, region=lax.max)
        assert any("Pool" in kind for kind in kinds) == (is_pool or not compiled)


@pytest.mark.parametrize(("size", "stride"), [(2, 2), (3, 2), (3, 1)])
def test_sums_over_windows_are_pools_or_convolutions_where_nothing_is_compiled(size, stride):
    kinds = kinds_of_pool(size, stride, compiled=False, initial=0.0, region=lax.add)
    assert kinds & {"AvgPool", "DepthwiseConv2dNative"} == {"AvgPool" if size == 2 else "DepthwiseConv2dNative"}
    kinds = kinds_of_pool(size, stride, compiled=True, initial=0.0, region=lax.add)
    assert not kinds & {"AvgPool", "DepthwiseConv2dNative"}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("padding", ["VALID", "SAME"])
def test_gradients_of_pools_agree(padding, mode):
    def gradient(x):
        pool = lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 2, 1), (1, 2, 1, 1), padding)  # noqa: E731
        return jax.grad(lambda x: (pool(x) ** 2).sum())(x)

    same_as_jax(gradient, np.round(waves(2, 6, 5, 2)), mode=mode)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "uint32", "int64", "bfloat16", "float32"])
def test_sorting_orders_nan_last_and_keeps_ties_in_order(dtype, mode):
    values = SPECIAL if dtype in ("float32", "bfloat16") else waves(4, 5) * 10
    same_as_jax(
        lambda x: [
            jnp.sort(x, 1),
            jnp.sort(x, 0),
            jnp.argsort(x, 1),
            jnp.sort(x, 1, descending=True),
            jnp.sort(x, None),
        ],
        values.astype(dtype),
        mode=mode,
    )


def test_sorting_by_several_keys_carries_other_arrays_along():
    a, b = np.array([2, 1, 2, 1, 0], np.int32), np.array([0.5, NAN, -1, 0.0, -0.0], np.float32)
    c = np.arange(5)
    for keys in (1, 2):
        same_as_jax(lambda a, b, c, k=keys: lax.sort((a, b, c), num_keys=k), a, b, c)
        same_as_jax(lambda a, b, c, k=keys: lax.sort((b, a, c), num_keys=k), a, b, c)
    same_as_jax(lax.sort, (b + 1j * a)[:4].astype(np.complex64))


OWN_COMPARATOR = """
func.func @main(%x: tensor<SIZExi32>) -> tensor<SIZExi32> {
  %y = "stablehlo.sort"(%x) <{dimension = 0 : i64, is_stable = true}> ({
    ^bb0(%a: tensor<i32>, %b: tensor<i32>):
      %mask = stablehlo.constant dense<15> : tensor<i32>
      %c = stablehlo.and %a, %mask : tensor<i32>
      %d = stablehlo.and %b, %mask : tensor<i32>
      %e = stablehlo.compare LT, %c, %d : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %e : tensor<i1>
  }) : (tensor<SIZExi32>) -> tensor<SIZExi32>
  return %y : tensor<SIZExi32>
}"""


@pytest.mark.parametrize("mode", MODES)
def test_any_comparator_sorts(mode):
    x = (np.arange(50) * 37 % 101).astype(np.int32)
    (found,) = run_module(OWN_COMPARATOR.replace("SIZE", "50"), x, mode=mode)
    np.testing.assert_array_equal(found, sorted(x, key=lambda n: n & 15))


def test_many_elements_by_an_unknown_comparator_need_xla():
    x = (np.arange(5000) * 37 % 4999).astype(np.int32)
    module = OWN_COMPARATOR.replace("SIZE", "5000")
    with pytest.raises(GraphModeUnsupported, match=r"stablehlo\.sort: a comparator of its own for more than 4096"):
        run_module(module, x)
    (found,) = run_module(module, x, allows_xla=True)
    np.testing.assert_array_equal(found, sorted(x, key=lambda n: n & 15))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", ["int8", "uint16", "float32"])
def test_the_greatest_are_found_first_of_equal_ones_first(dtype, mode):
    same_as_jax(lambda x: lax.top_k(x, 3), np.array([[3, 1, 3, 2, 3], [0, 9, 9, 0, 1]], dtype), mode=mode)
