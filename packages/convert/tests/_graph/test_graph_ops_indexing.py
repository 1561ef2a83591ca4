"""Gather and scatter in graph mode give JAX's results, wherever the indices point."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax import lax

from jaxtf.convert import convert, convert_stablehlo

from .graph_mode import MODES, same_as_jax

INDICES = np.array([0, 2, -1, 5, -9, 2, 4, 100], np.int32)


def numbers(*shape):
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("how", ["fill", "clip", "wrap"])
def test_elements_are_taken_from_inside_and_outside(how, mode):
    def every(x, i):
        return [
            jnp.take(x, i, axis=0, mode=how),
            jnp.take(x, i, axis=1, mode=how),
            x.at[i, i].get(mode=how if how != "wrap" else "clip"),
            x.at[:, i[:4].reshape(2, 2)].get(mode="fill", fill_value=-1),
        ]

    same_as_jax(every, numbers(5, 6), INDICES, mode=mode)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "uint32"])
def test_indices_of_any_dtype_are_taken(dtype):
    same_as_jax(lambda x, i: x[i], numbers(100, 2), np.array([0, 7, 99], dtype))


GATHERS = {
    "windows": (
        lax.GatherDimensionNumbers(offset_dims=(1, 2), collapsed_slice_dims=(), start_index_map=(0, 1)),
        (2, 3),
        (4, 2),
    ),
    "window moved to the front": (
        lax.GatherDimensionNumbers(offset_dims=(0,), collapsed_slice_dims=(0,), start_index_map=(1, 0)),
        (1, 3),
        (4, 2),
    ),
    "part of a dimension without index": (
        lax.GatherDimensionNumbers(offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0,)),
        (1, 4),
        (4, 1),
    ),
}


@pytest.mark.parametrize("name", GATHERS)
def test_windows_are_gathered_and_moved_inside(name):
    numbers_, sizes, index_shape = GATHERS[name]
    index = np.random.default_rng(0).integers(-2, 8, index_shape).astype(np.int32)
    same_as_jax(lambda x, i: lax.gather(x, i, numbers_, sizes, mode="clip"), numbers(5, 6), index)
    same_as_jax(lambda x, i: lax.gather(x, i, numbers_, sizes, mode="fill", fill_value=-5), numbers(5, 6), index)


def test_batches_are_gathered_each_from_its_own():
    x, i = numbers(3, 4, 5), np.array([[0, 3], [1, 1], [-1, 9]], np.int32)
    same_as_jax(jax.vmap(lambda x, i: x[i]), x, i)
    same_as_jax(jax.vmap(lambda x, i: x[:, i], in_axes=(1, 1)), numbers(4, 3, 5), i.T.copy())
    same_as_jax(lambda x, i: jnp.take_along_axis(x, i, axis=1), x[:, :, 0], i)


BODIES = {
    "set": lambda ref, value: ref.set(value),
    "add": lambda ref, value: ref.add(value),
    "multiply": lambda ref, value: ref.multiply(value),
    "divide": lambda ref, value: ref.divide(value),
    "min": lambda ref, value: ref.min(value),
    "max": lambda ref, value: ref.max(value),
}


@pytest.mark.slow(1)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("body", BODIES)
def test_updates_outside_are_dropped_and_repeated_ones_combined(body, mode):
    unique = np.array([3, 0, 7, -2], np.int32)  # of two updates by `set` either may win
    index = unique if body == "set" else INDICES
    update = np.linspace(-2, 2, index.size * 6, dtype=np.float32).reshape(index.size, 6)

    def every(x, i, u):
        return [
            BODIES[body](x.at[i], u),
            BODIES[body](x.at[:, i], u[:, :5].T),
            BODIES[body](x.at[i, i], u[:, 0]),
            BODIES[body](x.at[i, 1:3], u[:, :2]),
            BODIES[body](x.at[i], 3.0),
        ]

    same_as_jax(every, numbers(5, 6), index, update, mode=mode, max_error_in_eps=4)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int64", "bfloat16", "complex64"])
def test_any_dtype_is_scattered(dtype):
    x, index = numbers(5, 3).astype(dtype), np.array([1, 1, 4], np.int32)
    update = np.array([[1, 0, 2], [3, 1, 1], [0, 5, 1]]).astype(dtype)
    same_as_jax(lambda x, i, u: x.at[i[1:]].set(u[1:]), x, index, update)
    if dtype != "bool":
        same_as_jax(lambda x, i, u: [x.at[i].add(u), x.at[i].multiply(u)], x, index, update)
    if dtype != "complex64":
        same_as_jax(lambda x, i, u: [x.at[i].min(u), x.at[i].max(u)], x, index, update)


def test_windows_that_do_not_fit_are_dropped_whole():
    dimensions = lax.ScatterDimensionNumbers(
        update_window_dims=(1, 2), inserted_window_dims=(), scatter_dims_to_operand_dims=(0, 1)
    )
    index = np.array([[0, 0], [3, 4], [4, 4], [-1, 0], [2, 2]], np.int32)
    update = numbers(5, 2, 2) + 1
    same_as_jax(lambda x, i, u: lax.scatter_add(x, i, u, dimensions, mode="drop"), numbers(5, 6), index, update)


def test_batches_are_scattered_each_into_its_own():
    x, i, u = numbers(3, 4, 5), np.array([[0, 3], [1, 1], [-1, 9]], np.int32), numbers(3, 2, 5)
    same_as_jax(jax.vmap(lambda x, i, u: x.at[i].add(u)), x, i, u)
    same_as_jax(
        jax.vmap(lambda x, i, u: x.at[:, i].max(u), in_axes=(1, 1, 1), out_axes=2),
        numbers(4, 3, 5),
        i.T.copy(),
        5.0 + numbers(4, 3, 2),
    )


def test_nothing_is_scattered_where_there_are_no_updates():
    same_as_jax(lambda x, i: x.at[i].add(1.0), numbers(4, 2), np.zeros((0,), np.int32))


def test_a_region_of_several_operations_is_applied_to_repeated_updates_in_turn():
    module_region = """
    func.func @main(%x: tensor<4xi32>, %i: tensor<5x1xi32>, %u: tensor<5xi32>) -> tensor<4xi32> {
      %y = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0],
        scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
        ^bb0(%a: tensor<i32>, %b: tensor<i32>):
          %s = stablehlo.add %a, %b : tensor<i32>
          %m = stablehlo.constant dense<100> : tensor<i32>
          %r = stablehlo.remainder %s, %m : tensor<i32>
          stablehlo.return %r : tensor<i32>
      }) : (tensor<4xi32>, tensor<5x1xi32>, tensor<5xi32>) -> tensor<4xi32>
      return %y : tensor<4xi32>
    }"""
    from .graph_mode import run_module

    index = np.array([[2], [0], [2], [9], [2]], np.int32)
    update = np.array([70, 5, 80, 1, 90], np.int32)
    for mode in MODES:
        (found,) = run_module(module_region, np.array([1, 2, 3, 4], np.int32), index, update, mode=mode)
        np.testing.assert_array_equal(found, [6, 2, (3 + 70 + 80 + 90) % 100, 4])


APPLIED = {
    "an index twice": lambda x: x.at[jnp.array([0, 0, 3])].apply(lambda y: y * 2 + 1),
    "outside": lambda x: x.at[jnp.array([0, 0, 1, 9])].apply(jnp.sin),
    "elements": lambda x: x.at[jnp.array([1, 1, 1]), jnp.array([0, 0, 2])].apply(lambda y: y * 3 - 1),
    "each once": lambda x: x.at[jnp.array([3, 1])].apply(jnp.exp, unique_indices=True),
    "a slice": lambda x: x.at[1:3].apply(jnp.cos),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", APPLIED)
def test_a_function_is_applied_as_often_as_an_index_occurs(name, mode):
    same_as_jax(APPLIED[name], numbers(4, 3) / 7, mode=mode, max_error_in_eps=8)


# Regions of a and b, and what each does in Python: all the operations that one may be, and some of several.
REGIONS = {
    "b - a": ("%r = stablehlo.subtract %b, %a : tensor<i32>", lambda a, b: b - a),
    "a - b": ("%r = stablehlo.subtract %a, %b : tensor<i32>", lambda a, b: a - b),
    "a - a": ("%r = stablehlo.subtract %a, %a : tensor<i32>", lambda a, b: 0),
    "a + b": ("%r = stablehlo.add %b, %a : tensor<i32>", lambda a, b: a + b),
    "b + b": ("%r = stablehlo.add %b, %b : tensor<i32>", lambda a, b: b + b),
    "a * b": ("%r = stablehlo.multiply %a, %b : tensor<i32>", lambda a, b: a * b),
    "a xor b": ("%r = stablehlo.xor %a, %b : tensor<i32>", lambda a, b: a ^ b),
    "a and b": ("%r = stablehlo.and %a, %b : tensor<i32>", lambda a, b: a & b),
    "-(a + b)": (
        "%s = stablehlo.add %a, %b : tensor<i32>\n %r = stablehlo.negate %s : tensor<i32>",
        lambda a, b: -(a + b),
    ),
    "2 a + b": (
        "%s = stablehlo.add %a, %a : tensor<i32>\n %r = stablehlo.add %s, %b : tensor<i32>",
        lambda a, b: 2 * a + b,
    ),
    "a / 2": (
        "%two = stablehlo.constant dense<2> : tensor<i32>\n %r = stablehlo.divide %a, %two : tensor<i32>",
        lambda a, b: int(a / 2),
    ),
}


@pytest.mark.parametrize("symbolic", [False, True])
@pytest.mark.parametrize("region", REGIONS)
def test_updates_of_one_element_are_combined_in_their_order_by_any_region(region, symbolic):
    text, function = REGIONS[region]
    count = "?" if symbolic else 7
    module = f"""
    func.func @main(%x: tensor<4xi32>, %i: tensor<{count}x1xi32>, %u: tensor<{count}xi32>) -> tensor<4xi32> {{
      %y = "stablehlo.scatter"(%x, %i, %u) <{{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0],
        scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}}> ({{
        ^bb0(%a: tensor<i32>, %b: tensor<i32>):
          {text}
          stablehlo.return %r : tensor<i32>
      }}) : (tensor<4xi32>, tensor<{count}x1xi32>, tensor<{count}xi32>) -> tensor<4xi32>
      return %y : tensor<4xi32>
    }}"""
    converted = convert_stablehlo(module, enable_xla=False)
    random = np.random.default_rng(0)
    for _ in range(3):
        x, update = (random.integers(-9, 9, n).astype(np.int32) for n in (4, 7))
        index = random.integers(-1, 5, 7).astype(np.int32)
        expected = x.copy()
        for i, u in zip(index, update, strict=True):
            if 0 <= i < 4:
                expected[i] = function(int(expected[i]), int(u))
        for run in (converted, tf.function(converted, autograph=False, jit_compile=True)):
            np.testing.assert_array_equal(run(x, index[:, None], update), expected)


@pytest.mark.parametrize("mode", MODES)
def test_what_is_subtracted_at_one_index_several_times_is_subtracted_each_time(mode):
    def subtracted(x, i, u):
        return [x.at[i].subtract(u), x.at[i, 1].subtract(u[:, 0]), x.at[i].subtract(u.astype("bfloat16"))]

    i = np.array([1, 3, 1, 1, 9], np.int32)
    same_as_jax(subtracted, numbers(4, 3), i, np.exp2(np.arange(15, dtype=np.float32)).reshape(5, 3), mode=mode)
    same_as_jax(lambda x, i, u: x.at[i].subtract(u), np.ones(4, np.uint8), i, np.arange(5, dtype=np.uint8), mode=mode)


@pytest.mark.parametrize("allows_xla", [False, True])
@pytest.mark.parametrize("mode", MODES)
def test_an_element_is_multiplied_with_its_updates_in_turn(mode, allows_xla):
    """The product of the updates alone overflows, or is 0."""
    x, indices = np.float32([1e-30, 1e30, 3, 0]), np.int32([0, 0, 1, 1, 3, 3])
    factors = np.float32([1e30, 1e30, 1e-30, 1e-30, 1e30, 1e30])

    def product(x, i, u):
        return x.at[i].multiply(u)

    same_as_jax(product, x, indices, factors, mode=mode, max_error_in_eps=1, allows_xla=allows_xla)


@pytest.mark.slow(1)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", ["float32", "int8", "bfloat16"])
def test_ones_are_multiplied_with_their_updates_alone(dtype, mode):
    indices, factors = np.int32([0, 5, 2, 0, -9, 2, 2]), np.array([2, 3, 5, -7, 2, 3, 1]).astype(dtype)

    def products(x, i, u):
        started = [jnp.full_like(x, start).at[i].multiply(u) for start in (1, 0, 2)]
        return *started, jnp.ones((4, 3), x.dtype).at[i, 1:].multiply(u[:, None])

    same_as_jax(products, np.zeros(4, dtype), indices, factors, mode=mode)
    shapes = ["(n,)", "(m,)", "(m,)"]
    converted = convert(products, polymorphic_shapes=shapes, native_serialization=False)
    for count in (1, 7):
        found = converted(np.zeros(4, dtype), indices[:count], factors[:count])
        for ours, expected in zip(found, products(np.zeros(4, dtype), indices[:count], factors[:count]), strict=True):
            np.testing.assert_array_equal(ours, expected)


def test_quotients_by_scattered_updates_join_no_arrays():
    converted = convert(lambda x, i, u: x.at[i].divide(u), native_serialization=False)
    specs = [tf.TensorSpec([4, 2]), tf.TensorSpec([3], tf.int32), tf.TensorSpec([3, 2])]
    graph = tf.function(converted, autograph=False).get_concrete_function(*specs).graph
    assert "ConcatV2" not in {op.type for op in graph.get_operations()}


def test_a_symbolic_number_of_updates_is_scattered():
    converted = convert(
        lambda x, i, u: x.at[i].subtract(u), polymorphic_shapes=[None, "(n,)", "(n,)"], native_serialization=False
    )
    for i in ([0], [1, 1, 1], [2, 0, 2, 9]):
        found = converted(np.zeros(3, np.float32), np.int32(i), np.ones(len(i), np.float32))
        np.testing.assert_array_equal(found, -np.bincount(i, minlength=10)[:3].astype(np.float32))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64"])
@pytest.mark.parametrize("allows_xla", [False, True])
@pytest.mark.parametrize("mode", MODES)
def test_an_extreme_of_nan_is_nan_wherever_it_is(mode, allows_xla, dtype):
    with jax.enable_x64(dtype == "float64"):
        x = np.array([1, np.nan, 3, 4, np.nan, 6]).astype(jnp.dtype(dtype))
        u = np.array([np.nan, 0, 9, np.inf, 2]).astype(jnp.dtype(dtype))
        i = np.array([0, 1, 2, 3, 0], np.int32)

        def extremes(x, i, u):
            return [x.at[i].max(u), x.at[i].min(u), x.at[i % 2].max(u)]

        same_as_jax(extremes, x, i, u, mode=mode, allows_xla=allows_xla)


@pytest.mark.parametrize("mode", MODES)
def test_dimensions_that_no_index_names_are_taken_at_their_first_element(mode):
    numbers_ = lax.GatherDimensionNumbers(offset_dims=(0,), collapsed_slice_dims=(0, 2), start_index_map=(0,))
    i = np.array([[1], [9]], np.int32)
    same_as_jax(lambda x, i: lax.gather(x, i, numbers_, (1, 2, 1), mode="clip"), numbers(3, 2, 4), i, mode=mode)
    none = lax.GatherDimensionNumbers(offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=())
    empty = np.zeros((2, 0), np.int32)
    same_as_jax(lambda x, i: lax.gather(x, i, none, (1, 2), mode="clip"), numbers(3, 4), empty, mode=mode)
