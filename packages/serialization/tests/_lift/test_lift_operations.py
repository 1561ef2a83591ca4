"""Operations whose semantics in StableHLO are not those of the function of `jax.lax` by the same name, or have none.

Expected values are NumPy's or Python's, from the specification.
"""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxtf.serialization import LiftUnsupported, export, lift


def module(body, arguments, results):
    """A function of such a body; `%0` to the last are what it computes, `%r` what it returns."""
    taken = ", ".join(f"%{name}: tensor<{type_}>" for name, type_ in arguments.items())
    given_back = ", ".join(f"tensor<{type_}>" for type_ in results)
    names = ", ".join("%r" if len(results) == 1 else f"%r#{i}" for i in range(len(results)))
    return f"func.func @main({taken}) -> ({given_back}) {{\n{body}\nreturn {names} : {given_back}\n}}"


def run(body, arguments, results, *values):
    return jax.tree.map(np.asarray, lift(module(body, arguments, results))(*values))


FLOATS = np.array([0.0, -0.0, 1.5, -1.5, np.inf, -np.inf, np.nan, -np.nan], np.float32)


@pytest.mark.parametrize("direction", ["EQ", "NE", "LT", "LE", "GT", "GE"])
def test_floats_compare_as_ieee_754_says_or_in_the_total_order(direction):
    left, right = (np.array(pair, np.float32) for pair in zip(*itertools.product(FLOATS, FLOATS), strict=True))
    types = {"a": "64xf32", "b": "64xf32"}
    compare = "%r = stablehlo.compare {}, %a, %b, {} : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xi1>"
    relation = {
        "EQ": "equal",
        "NE": "not_equal",
        "LT": "less",
        "LE": "less_equal",
        "GT": "greater",
        "GE": "greater_equal",
    }
    numpy = getattr(np, relation[direction])
    np.testing.assert_array_equal(
        run(compare.format(direction, "FLOAT"), types, ["64xi1"], left, right), numpy(left, right)
    )
    ordered = [np.where(x < 0, ~x ^ np.int32(-(2**31)), x) for x in (left.view(np.int32), right.view(np.int32))]
    expected = numpy(*ordered)
    np.testing.assert_array_equal(run(compare.format(direction, "TOTALORDER"), types, ["64xi1"], left, right), expected)


EIGHT_BITS = {
    "f8E3M4": "float8_e3m4",
    "f8E4M3": "float8_e4m3",
    "f8E4M3B11FNUZ": "float8_e4m3b11fnuz",
    "f8E4M3FN": "float8_e4m3fn",
    "f8E4M3FNUZ": "float8_e4m3fnuz",
    "f8E5M2": "float8_e5m2",
    "f8E5M2FNUZ": "float8_e5m2fnuz",
    "f8E8M0FNU": "float8_e8m0fnu",
}


@pytest.mark.parametrize("name", EIGHT_BITS)
def test_the_total_order_of_eight_bits_is_that_of_the_numbers(name):
    """NaN is below all or above all by its sign; of two NaN, each format has an order of its own."""
    dtype = jnp.dtype(EIGHT_BITS[name])
    numbers = np.arange(256, dtype=np.uint8).view(dtype)
    left, right = (x.ravel() for x in np.meshgrid(numbers, numbers))
    type_ = f"65536x{name}"
    compare = f"%r = stablehlo.compare LT, %a, %b, TOTALORDER : (tensor<{type_}>, tensor<{type_}>) -> tensor<65536xi1>"
    found = run(compare, {"a": type_, "b": type_}, ["65536xi1"], left, right)

    def place(x):
        is_below = np.signbit(x) if dtype != jnp.float8_e8m0fnu else np.zeros(x.shape, bool)
        wide = x.astype(np.float64)
        wide = np.where(np.isnan(wide), np.where(is_below, -np.inf, np.inf), wide)
        # Infinities are one step nearer to 0 than NaN, and -0 is below 0.
        steps = np.where(np.isnan(x.astype(np.float64)), 1, 0) * np.sign(wide) + np.where((wide == 0) & is_below, -1, 0)
        return wide, np.nan_to_num(steps)

    (a, i), (b, j) = place(left), place(right)
    expected = (a < b) | ((a == b) & (i < j))
    both = np.isnan(left.astype(np.float64)) & np.isnan(right.astype(np.float64))
    np.testing.assert_array_equal(found[~both], expected[~both])


@pytest.mark.slow(1)
@pytest.mark.parametrize("dtype", EIGHT_BITS.values())
def test_eight_bits_are_sorted_as_jax_sorts_them(dtype):
    x = np.random.default_rng(0).permutation(256).astype(np.uint8).view(jnp.dtype(dtype))
    # XLA compares in 16 bits, where numbers below the normal ones count as 0.
    x = x[~(np.abs(x.astype(np.float64)) < float(np.finfo(np.float16).tiny))] if dtype == "float8_e5m2fnuz" else x
    for function in (jnp.argsort, lambda x: jnp.argsort(x, descending=True), lambda x: jax.lax.top_k(x, 99)[1]):
        np.testing.assert_array_equal(export(function)(x).lift()(x), jax.jit(function)(x))


@pytest.mark.parametrize("start", [-3, -1, 0, 2, 4, 9])
def test_positions_outside_are_clamped_not_counted_backwards(start):
    x = np.arange(6, dtype=np.float32)
    slice_ = "%r = stablehlo.dynamic_slice %x, %i, sizes = [2] : (tensor<6xf32>, tensor<i32>) -> tensor<2xf32>"
    inside = min(max(start, 0), 4)
    found = run(slice_, {"x": "6xf32", "i": "i32"}, ["2xf32"], x, np.int32(start))
    np.testing.assert_array_equal(found, x[inside : inside + 2])
    update = (
        "%u = stablehlo.constant dense<[7.0, 8.0]> : tensor<2xf32>\n"
        "%r = stablehlo.dynamic_update_slice %x, %u, %i : (tensor<6xf32>, tensor<2xf32>, tensor<i32>) -> tensor<6xf32>"
    )
    expected = x.copy()
    expected[inside : inside + 2] = 7, 8
    np.testing.assert_array_equal(run(update, {"x": "6xf32", "i": "i32"}, ["6xf32"], x, np.int32(start)), expected)


def gather(index_vector_dim, indices):
    return (
        '%r = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], '
        f"collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = {index_vector_dim}>, "
        f"slice_sizes = array<i64: 1, 3>}}> : (tensor<4x3xf32>, tensor<{indices}xi32>) -> tensor<5x3xf32>"
    )


@pytest.mark.parametrize(("index_vector_dim", "shape"), [(1, (5,)), (1, (5, 1)), (0, (1, 5))])
def test_gathered_positions_are_clamped_also_in_the_gradient(index_vector_dim, shape):
    x, indices = np.arange(12, dtype=np.float32).reshape(4, 3), np.array([0, -2, 3, 7, 1], np.int32)
    text = "x".join(map(str, shape))
    types = {"x": "4x3xf32", "i": f"{text}xi32"}
    body = gather(index_vector_dim, text)
    np.testing.assert_array_equal(run(body, types, ["5x3xf32"], x, indices.reshape(shape)), x[[0, 0, 3, 3, 1]])
    f = lift(module(body, types, ["5x3xf32"]))
    found = jax.grad(lambda x: jnp.sum(f(x, indices.reshape(shape))))(x)
    np.testing.assert_array_equal(found, np.array([2, 1, 0, 2], np.float32)[:, None] * np.ones(3, np.float32))


SCATTER = """%r = "stablehlo.scatter"(%x, %i, %u) <{{scatter_dimension_numbers = #stablehlo.scatter<
  inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}}> ({{
    ^bb0(%a: tensor<{0}>, %b: tensor<{0}>):
      {1}
      stablehlo.return %c : tensor<{0}>
  }}) : (tensor<5x{0}>, tensor<4x1xi32>, tensor<4x{0}>) -> tensor<5x{0}>"""

COMBINATIONS = {
    "stablehlo.add %a, %b": lambda a, b: a + b,
    "stablehlo.multiply %b, %a": lambda a, b: a * b,
    "stablehlo.maximum %a, %b": max,
    "stablehlo.minimum %a, %b": min,
    "stablehlo.subtract %a, %b": lambda a, b: a - b,
    "stablehlo.subtract %b, %a": lambda a, b: b - a,
    "stablehlo.and %a, %b": lambda a, b: a & b,
    "stablehlo.xor %a, %b": lambda a, b: a ^ b,
}


@pytest.mark.parametrize("operation", COMBINATIONS)
def test_updates_are_combined_by_any_region_and_those_outside_left_out(operation):
    x, u = np.array([3, 5, 6, 9, 12], np.int32), np.array([1, 2, 3, 10], np.int32)
    indices = np.array([[1], [-1], [1], [4]], np.int32)
    body = SCATTER.format("i32", f"%c = {operation} : tensor<i32>")
    expected = [int(value) for value in x]
    for (place,), update in zip(indices.tolist(), u.tolist(), strict=True):
        if 0 <= place < 5:
            expected[place] = COMBINATIONS[operation](expected[place], update)
    found = run(body, {"x": "5xi32", "i": "4x1xi32", "u": "4xi32"}, ["5xi32"], x, indices, u)
    np.testing.assert_array_equal(found, expected)


INDEX_DTYPES = {"i8": np.int8, "ui8": np.uint8, "i16": np.int16, "ui32": np.uint32, "i64": np.int64, "ui64": np.uint64}


@pytest.mark.parametrize("rows", [7, 300])
@pytest.mark.parametrize("operation", ["stablehlo.add %a, %b", "stablehlo.subtract %b, %a"])
@pytest.mark.parametrize("name", INDEX_DTYPES)
def test_indices_of_any_dtype_are_compared_with_sizes_that_it_does_not_hold(name, operation, rows):
    limits = np.iinfo(INDEX_DTYPES[name])
    places = [4, min(limits.max, 260), max(limits.min, -1), limits.max, 2**32 if limits.bits == 64 else 0, 4]
    x, u = np.arange(rows, dtype=np.int32) * 10, np.arange(1, 7, dtype=np.int32)
    with jax.enable_x64(limits.bits == 64):
        body = SCATTER.format("i32", f"%c = {operation} : tensor<i32>")
        body = body.replace("5xi32", f"{rows}xi32").replace("4xi32", "6xi32").replace("4x1xi32", f"6x1x{name}")
        types = {"x": f"{rows}xi32", "i": f"6x1x{name}", "u": "6xi32"}
        found = run(body, types, [f"{rows}xi32"], x, np.array(places, limits.dtype)[:, None], u)
        row = gather(1, "5x1").replace("5x1xi32", f"6x1x{name}").replace("4x3xf32", f"{rows}x3xf32").replace("5x", "6x")
        values = np.arange(rows * 3, dtype=np.float32).reshape(rows, 3)
        types = {"x": f"{rows}x3xf32", "i": f"6x1x{name}"}
        rows_found = run(row, types, ["6x3xf32"], values, np.array(places, limits.dtype)[:, None])
    expected = [int(value) for value in x]
    for place, update in zip(places, u.tolist(), strict=True):
        if 0 <= place < rows:
            expected[place] = COMBINATIONS[operation](expected[place], update)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(rows_found, values[[min(max(place, 0), rows - 1) for place in places]])


def sort(operands, dtype, comparator, stable="true"):
    values = ", ".join(f"%x{i}" for i in range(operands))
    types = ", ".join([f"tensor<6x{dtype}>"] * operands)
    elements = ", ".join(f"%a{i}: tensor<{dtype}>, %b{i}: tensor<{dtype}>" for i in range(operands))
    result = "%r" if operands == 1 else f"%r:{operands}"
    return (
        f'{result} = "stablehlo.sort"({values}) <{{dimension = 0 : i64, is_stable = {stable}}}> ({{\n'
        f"^bb0({elements}):\n{comparator}\nstablehlo.return %less : tensor<i1>\n}}) : ({types}) -> ({types})"
    )


def compare(direction, kind, dtype, left="%a0", right="%b0"):
    types = f"(tensor<{dtype}>, tensor<{dtype}>) -> tensor<i1>"
    return f"%less = stablehlo.compare {direction}, {left}, {right}, {kind} : {types}"


def test_a_descending_sort_is_stable():
    x, y = np.array([2, 3, 2, 1, 3, 2], np.int32), np.arange(6, dtype=np.int32)
    types = {"x0": "6xi32", "x1": "6xi32"}
    found = run(sort(2, "i32", compare("GT", "SIGNED", "i32")), types, ["6xi32", "6xi32"], x, y)
    np.testing.assert_array_equal(found, [[3, 3, 2, 2, 2, 1], [1, 4, 0, 2, 5, 3]])


def test_a_sort_in_the_total_order_tells_zeros_and_nan_apart():
    x = np.array([np.nan, 0.0, -0.0, -np.nan, 1, -np.inf], np.float32)
    found = run(sort(1, "f32", compare("LT", "TOTALORDER", "f32")), {"x0": "6xf32"}, ["6xf32"], x)
    expected = np.array([-np.nan, -np.inf, -0.0, 0.0, 1, np.nan], np.float32)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
    np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))
    np.testing.assert_array_equal(found[1:5], expected[1:5])


def test_elements_are_ranked_by_a_comparator_of_its_own():
    x = np.array([7, 2, 9, 4, 1, 6], np.int32)
    odd_first = """%one = stablehlo.constant dense<1> : tensor<i32>
      %p = stablehlo.and %a0, %one : tensor<i32>
      %q = stablehlo.and %b0, %one : tensor<i32>
    """ + compare("GT", "SIGNED", "i32", "%p", "%q")
    found = run(sort(1, "i32", odd_first), {"x0": "6xi32"}, ["6xi32"], x)
    np.testing.assert_array_equal(found, [7, 9, 1, 2, 4, 6])


ODD_FIRST = """^bb0(%a: tensor<i32>, %b: tensor<i32>):
  %one = stablehlo.constant dense<1> : tensor<i32>
  %p = stablehlo.and %a, %one : tensor<i32>
  %q = stablehlo.and %b, %one : tensor<i32>
  %less = stablehlo.compare GT, %p, %q, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
  stablehlo.return %less : tensor<i1>"""


@pytest.mark.parametrize("shape", [(2, 6), (6, 2), (2, 3, 4), (0, 3), (3, 0), (1, 1)], ids=str)
def test_lines_of_arrays_are_ranked_along_any_dimension(shape):
    x = np.random.default_rng(0).integers(0, 9, shape).astype(np.int32)
    type_ = "x".join(map(str, (*shape, "i32")))
    for axis in range(len(shape)):
        body = f'%r = "stablehlo.sort"(%x) <{{dimension = {axis} : i64, is_stable = true}}> ({{\n{ODD_FIRST}\n}}) : '
        found = run(f"{body}(tensor<{type_}>) -> tensor<{type_}>", {"x": type_}, [type_], x)
        places = np.argsort(1 - x % 2, axis, kind="stable")
        np.testing.assert_array_equal(found, np.take_along_axis(x, places, axis))


@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (2, 0), (2, 1, 4)], ids=str)
def test_a_reduction_over_no_dimension_combines_once(shape):
    x = np.random.default_rng(0).integers(-5, 6, shape).astype(np.int32)
    type_ = "x".join(map(str, (*shape, "i32")))
    body = f"""%two = stablehlo.constant dense<2> : tensor<i32>
      %r = stablehlo.reduce(%x init: %two) across dimensions = [] : (tensor<{type_}>, tensor<i32>) -> tensor<{type_}>
      reducer(%a: tensor<i32>, %b: tensor<i32>) {{
        %p = stablehlo.multiply %a, %b : tensor<i32>
        %q = stablehlo.subtract %p, %a : tensor<i32>
        stablehlo.return %q : tensor<i32>
      }}"""
    np.testing.assert_array_equal(run(body, {"x": type_}, [type_], x), 2 * x - 2)


@pytest.mark.parametrize("shape", [(), (3,), (2, 3)], ids=str)
def test_one_update_without_an_index_is_combined(shape):
    x = np.arange(np.prod(shape, dtype=int), dtype=np.int32).reshape(shape)
    type_, windows = "x".join(map(str, (*shape, "i32"))), list(range(len(shape)))
    body = f"""%r = "stablehlo.scatter"(%x, %i, %x) <{{scatter_dimension_numbers =
        #stablehlo.scatter<{f"update_window_dims = {windows}" if windows else ""}>}}> ({{
      ^bb0(%a: tensor<i32>, %b: tensor<i32>):
        %p = stablehlo.multiply %a, %b : tensor<i32>
        %q = stablehlo.subtract %p, %a : tensor<i32>
        stablehlo.return %q : tensor<i32>
      }}) : (tensor<{type_}>, tensor<0xi32>, tensor<{type_}>) -> tensor<{type_}>"""
    found = run(body, {"x": type_, "i": "0xi32"}, [type_], x, np.zeros(0, np.int32))
    np.testing.assert_array_equal(found, x * x - x)


@pytest.mark.parametrize("index", [-1, 0, 1, 2, 3])
def test_a_number_that_there_is_no_branch_for_takes_the_last(index):
    branch = "{{ %v{0} = stablehlo.constant dense<{0}> : tensor<i32>\nstablehlo.return %v{0} : tensor<i32> }}"
    branches = ", ".join(branch.format(i) for i in range(3))
    body = f'%r = "stablehlo.case"(%i) ({branches}) : (tensor<i32>) -> tensor<i32>'
    assert int(run(body, {"i": "i32"}, ["i32"], np.int32(index))) == (index if 0 <= index < 3 else 2)


@pytest.mark.slow
@given(st.integers(-9, 9), st.integers(-3, 7))
@settings(max_examples=30, deadline=None)
def test_powers_of_integers_are_exact_modulo_the_width(base, exponent):
    body = "%r = stablehlo.power %x, %y : tensor<i8>"
    found = run(body, {"x": "i8", "y": "i8"}, ["i8"], np.int8(base), np.int8(exponent))
    exact = base**exponent if exponent >= 0 else {1: 1, -1: -1 if exponent % 2 else 1}.get(base, 0)
    assert int(found) == (exact + 128) % 256 - 128
    four = {name: jnp.asarray(value, jnp.int4) for name, value in (("x", base % 8), ("y", exponent % 8))}
    narrow = run(body.replace("i8", "i4"), {"x": "i4", "y": "i4"}, ["i4"], *four.values())
    assert int(narrow) == ((base % 8) ** (exponent % 8) + 8) % 16 - 8


@pytest.mark.parametrize("name", ["shift_left", "shift_right_logical", "shift_right_arithmetic"])
def test_shifts_by_the_width_or_more_leave_no_bits(name):
    x, amount = np.array([-5, -5, -5, 5], np.int8), np.array([1, 8, 100, -1], np.int8)
    found = run(f"%r = stablehlo.{name} %x, %y : tensor<4xi8>", {"x": "4xi8", "y": "4xi8"}, ["4xi8"], x, amount)
    first = {"shift_left": -10, "shift_right_logical": 125, "shift_right_arithmetic": -3}[name]
    rest = [-1, -1, 0] if name == "shift_right_arithmetic" else [0, 0, 0]
    np.testing.assert_array_equal(found, [first, *rest])


def test_a_broadcast_may_permute_dimensions():
    x = np.arange(4, dtype=np.float32).reshape(2, 2)
    body = "%r = stablehlo.broadcast_in_dim %x, dims = [1, 0] : (tensor<2x2xf32>) -> tensor<2x2xf32>"
    np.testing.assert_array_equal(run(body, {"x": "2x2xf32"}, ["2x2xf32"], x), x.T)


REDUCE = """%r = "stablehlo.reduce"(%x, %i) <{{dimensions = array<i64: 0>}}> ({{
  ^bb0(%a: tensor<{0}>, %b: tensor<{0}>):
    {1}
    stablehlo.return %c : tensor<{0}> }}) : (tensor<3x2x{0}>, tensor<{0}>) -> tensor<2x{0}>"""


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        ("%c = stablehlo.add %a, %b : tensor<i32>", [11, 14]),
        ("%c = stablehlo.maximum %b, %a : tensor<i32>", [5, 6]),
        ("%c = stablehlo.minimum %a, %b : tensor<i32>", [1, 2]),
        ("%c = stablehlo.multiply %a, %b : tensor<i32>", [30, 96]),
        ("%c = stablehlo.xor %a, %b : tensor<i32>", [1 ^ 3 ^ 5 ^ 2, 2 ^ 4 ^ 6 ^ 2]),
        ("%z = stablehlo.add %a, %b : tensor<i32>\n%c = stablehlo.maximum %z, %a : tensor<i32>", [11, 14]),
    ],
)
def test_a_reduction_counts_its_initial_value(operation, expected):
    x = np.array([[1, 2], [3, 4], [5, 6]], np.int32)
    found = run(REDUCE.format("i32", operation), {"x": "3x2xi32", "i": "i32"}, ["2xi32"], x, np.int32(2))
    np.testing.assert_array_equal(found, expected)


def test_a_reduction_of_truth_values_is_logic():
    x = np.array([[True, False], [True, False], [False, False]])
    body = REDUCE.format("i1", "%c = stablehlo.add %a, %b : tensor<i1>")
    np.testing.assert_array_equal(run(body, {"x": "3x2xi1", "i": "i1"}, ["2xi1"], x, np.bool_(False)), [True, False])


def test_precision_is_the_modules_whatever_jax_is_set_to():
    x = np.linspace(0, 1, 4, dtype=np.float32).reshape(2, 2)
    dot = (
        "%r = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0], precision = {} : "
        "(tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>"
    )
    for written, expected in (("[DEFAULT, DEFAULT]", "DEFAULT"), ("[HIGH, HIGHEST]", "HIGH")):
        f = lift(module(dot.format(written), {"x": "2x2xf32"}, ["2x2xf32"]))
        with jax.default_matmul_precision("highest"):
            [equation] = jax.make_jaxpr(f)(x).eqns[0].params["jaxpr"].eqns
        assert equation.params["precision"][0] == getattr(jax.lax.Precision, expected)
        assert equation.params["preferred_element_type"] == np.float32


def test_an_algorithm_is_the_modules():
    def f(x):
        return jax.lax.dot(x, x, precision=jax.lax.DotAlgorithmPreset.BF16_BF16_F32_X3)

    x = np.ones((2, 2), np.float32)
    text = jax.jit(f).lower(x).as_text()
    again = jax.jit(lift(text)).lower(x).as_text()
    algorithm = text.partition("algorithm = ")[2].partition(">")[0]
    assert algorithm
    assert algorithm in again


def test_bits_are_read_as_another_width():
    x = np.array([[1, 2], [3, 4]], np.uint16)
    body = "%r = stablehlo.bitcast_convert %x : (tensor<2x2xui16>) -> tensor<2xui32>"
    np.testing.assert_array_equal(run(body, {"x": "2x2xui16"}, ["2xui32"], x), x.view(np.uint32)[:, 0])


def test_a_batch_is_normalized_with_the_derivatives_of_the_formula():
    x, scale = np.linspace(-1, 2, 12, dtype=np.float32).reshape(6, 2), np.array([1.5, 0.5], np.float32)
    types = {"x": "6x2xf32", "s": "2xf32"}
    training = lift(module(
        '%r:3 = "stablehlo.batch_norm_training"(%x, %s, %s) <{epsilon = 0.1 : f32, feature_index = 1 : i64}> : '
        "(tensor<6x2xf32>, tensor<2xf32>, tensor<2xf32>) -> (tensor<6x2xf32>, tensor<2xf32>, tensor<2xf32>)",
        types, ["6x2xf32", "2xf32", "2xf32"],
    ))  # fmt: skip
    found, mean, variance = training(x, scale)
    np.testing.assert_allclose(mean, x.mean(0), rtol=1e-6)
    np.testing.assert_allclose(variance, x.var(0), rtol=1e-6)
    np.testing.assert_allclose(found, (x - x.mean(0)) / np.sqrt(x.var(0) + 0.1) * scale + scale, rtol=1e-5, atol=1e-6)
    gradient = lift(module(
        '%r:3 = "stablehlo.batch_norm_grad"(%x, %s, %m, %v, %g) <{epsilon = 0.1 : f32, feature_index = 1 : i64}> : '
        "(tensor<6x2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<6x2xf32>) -> "
        "(tensor<6x2xf32>, tensor<2xf32>, tensor<2xf32>)",
        {**types, "m": "2xf32", "v": "2xf32", "g": "6x2xf32"}, ["6x2xf32", "2xf32", "2xf32"],
    ))  # fmt: skip
    cotangent = np.sin(x)
    _, pull = jax.vjp(lambda x, s: training(x, s)[0], x, scale)
    of_x, of_both = pull(cotangent)
    ours = gradient(x, scale, mean, variance, cotangent)
    np.testing.assert_allclose(ours[0], of_x, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(ours[1] + ours[2], of_both, rtol=1e-4, atol=1e-5)  # the offset is the scale here


def test_operations_of_chlo_broadcast():
    x, y = np.arange(6, dtype=np.float32).reshape(2, 3), np.arange(3, dtype=np.float32)
    body = "%r = chlo.broadcast_add %x, %y : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>"
    np.testing.assert_array_equal(run(body, {"x": "2x3xf32", "y": "3xf32"}, ["2x3xf32"], x, y), x + y)


def test_the_first_of_equal_elements_is_found_and_nan_before_all():
    x = np.array([[1, 3, 3, 0], [np.nan, 9, np.nan, 1], [-np.inf] * 4], np.float32)
    for function in (jnp.argmax, jnp.argmin):
        text = jax.jit(lambda x, f=function: f(x, axis=1)).lower(x).as_text()
        f = lift(text)
        np.testing.assert_array_equal(f(x), function(x, axis=1))
        assert "argm" in str(jax.make_jaxpr(f)(x))


def from_bits(bits):
    return jax.lax.bitcast_convert_type(bits, jnp.float32)


@pytest.mark.parametrize(
    ("function", "is_refused"),
    [
        (lambda x: from_bits(jax.lax.bitcast_convert_type(x, jnp.int32) - (1 << 23)), True),
        (lambda x: jnp.where(jnp.signbit(x), -2 * x, x), False),
        (lambda x: x * jax.random.uniform(jax.random.key(0)), False),
    ],
    ids=["half", "sign", "random bits"],
)
def test_a_derivative_through_the_bits_of_a_float_is_refused(function, is_refused):
    lifted = lift(jax.jit(function).lower(np.float32(3)))
    np.testing.assert_array_equal(lifted(np.float32(3)), jax.jit(function)(np.float32(3)))
    for differentiate in (jax.grad, jax.jacfwd):
        if is_refused:
            with pytest.raises(LiftUnsupported, match="takes a float apart by its bits"):
                differentiate(lifted)(np.float32(3))
        else:
            np.testing.assert_allclose(differentiate(lifted)(np.float32(3)), differentiate(function)(np.float32(3)))


def test_bits_are_followed_through_calls_and_loops():
    def halved(x):
        def body(_, bits):
            return jnp.where(bits > 0, bits - (1 << 23), bits)

        bits = jax.lax.fori_loop(0, 2, body, jax.lax.bitcast_convert_type(x, jnp.int32))
        return jax.jit(from_bits)(bits)

    lifted = lift(jax.jit(halved).lower(np.float32(3)))
    assert float(lifted(np.float32(3))) == 0.75
    with pytest.raises(LiftUnsupported, match="takes a float apart by its bits"):
        jax.grad(lifted)(np.float32(3))


@pytest.mark.slow
@pytest.mark.parametrize("size", [1, 5])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("name", ["cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp"])
def test_cumulative_operations_have_the_derivatives_of_jax(name, reverse, size):
    function = getattr(jax.lax, name)
    x = np.cos(np.arange(3.0 * size, dtype=np.float32)).reshape(size, 3)
    lifted = lift(jax.jit(lambda x: function(x, axis=0, reverse=reverse)).lower(x))
    np.testing.assert_array_equal(lifted(x), jax.jit(lambda x: function(x, axis=0, reverse=reverse))(x))
    found = jax.grad(lambda x: jnp.sum(jnp.sin(lifted(x))))(x)
    expected = jax.grad(lambda x: jnp.sum(jnp.sin(function(x, axis=0, reverse=reverse))))(x)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


REGION = "({{ ^bb0({}): %k = stablehlo.constant dense<{}> : tensor<{}> stablehlo.return %k : tensor<{}> }})"


def constant_region(count, value="7", result="i32"):
    arguments = ", ".join(f"%a{i}: tensor<i32>" for i in range(count))
    return REGION.format(arguments, value, result, result)


OF_CONSTANTS = {
    "map": (f'"stablehlo.map"(%x) {constant_region(1)} {{dimensions = array<i64: 0>}} : (tensor<4xi32>)', [7] * 4),
    "reduce": (
        f'"stablehlo.reduce"(%x, %z){constant_region(2)} {{dimensions = array<i64: 0>}} : (tensor<4xi32>, tensor<i32>)',
        7,
    ),
    "reduce over nothing": (
        f'"stablehlo.reduce"(%x, %z) {constant_region(2)} {{dimensions = array<i64>}} : (tensor<4xi32>, tensor<i32>)',
        [7] * 4,
    ),
    "windows": (
        f"""\"stablehlo.reduce_window\"(%x, %z) {constant_region(2)} {{window_dimensions = array<i64: 2>}}
        : (tensor<4xi32>, tensor<i32>)""",
        [7] * 3,
    ),
    "scatter": (
        f"""\"stablehlo.scatter\"(%x, %i, %u) {constant_region(2)} {{
          scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0],
          scatter_dims_to_operand_dims = [0], index_vector_dim = 1> }}
        : (tensor<4xi32>, tensor<2x1xi32>, tensor<2xi32>)""",
        [4, 7, 2, 7],
    ),
    "sort": (
        f'"stablehlo.sort"(%x) {constant_region(2, "false", "i1")} {{dimension = 0 : i64}} : (tensor<4xi32>)',
        [4, 1, 2, 3],
    ),
}


@pytest.mark.parametrize("name", OF_CONSTANTS)
def test_regions_may_give_constants(name):
    operation, expected = OF_CONSTANTS[name]
    result = "i32" if np.ndim(expected) == 0 else f"{len(expected)}xi32"
    body = f"""%z = stablehlo.constant dense<0> : tensor<i32>
      %i = stablehlo.constant dense<[[1], [3]]> : tensor<2x1xi32>
      %u = stablehlo.constant dense<5> : tensor<2xi32>
      %r = {operation} -> tensor<{result}>"""
    x = np.array([4, 1, 2, 3], np.int32)
    np.testing.assert_array_equal(run(body, {"x": "4xi32"}, [result], x), expected)


@pytest.mark.parametrize("name", ["add", "maximum", "minimum", "multiply"])
def test_a_dtype_without_zero_is_reduced_by_the_region(name):
    x = np.array([2, 0.5, 4, 4], jnp.float8_e8m0fnu)
    expected = {"maximum": 4.0, "minimum": 0.5, "multiply": 16.0}
    initial = {"add": "0x7F", "maximum": "0x00", "minimum": "0xFE", "multiply": "0x7F"}[name]
    body = f"""%z = stablehlo.constant dense<{initial}> : tensor<f8E8M0FNU>
      %r = stablehlo.reduce(%x init: %z) applies stablehlo.{name} across dimensions = [0]
        : (tensor<4xf8E8M0FNU>, tensor<f8E8M0FNU>) -> tensor<f8E8M0FNU>"""
    found = run(body, {"x": "4xf8E8M0FNU"}, ["f8E8M0FNU"], x)
    if name == "add":
        assert 8 <= float(found) <= 16  # rounded to powers of 2 in any order
    else:
        assert float(found) == expected[name]


@pytest.mark.parametrize("name", EIGHT_BITS)
def test_the_logistic_function_of_eight_bits_is_rounded_once(name):
    dtype = jnp.dtype(EIGHT_BITS[name])
    x = np.arange(256, dtype=np.uint8).view(dtype)
    found = run(f"%r = stablehlo.logistic %x : tensor<256x{name}>", {"x": f"256x{name}"}, [f"256x{name}"], x)
    with np.errstate(over="ignore"):
        expected = 1 / (1 + np.exp(-x.astype(np.float64)))
    limits = jnp.finfo(dtype)
    least = 0 if dtype == jnp.float8_e8m0fnu else float(limits.smallest_subnormal)
    np.testing.assert_allclose(found.astype(np.float64), expected, rtol=float(limits.eps) / 2, atol=least)


@pytest.mark.parametrize(
    ("left", "right", "result", "expected"),
    [
        ("f32", "f32", "bf16", 0.001),  # summed in float32, then rounded
        ("f32", "bf16", "bf16", 0.001),
        ("bf16", "f32", "f16", 0.001),
        ("f32", "f32", "i32", 0),
        ("i32", "i32", "f32", 0),
        ("i32", "i32", "i8", 0),
        ("f16", "i32", "ui8", 0),
        ("complex<f32>", "f32", "f32", 0.001),  # the real part of the sum
        ("f32", "f32", "complex<f32>", 0.001),
    ],
)
@pytest.mark.parametrize("name", ["dot_general", "convolution"])
def test_products_are_summed_in_the_most_precise_dtype(name, left, right, result, expected):
    """1.001 * 1 - 1 * 1, of which the operands and the result have other dtypes."""
    if name == "convolution" and left != right:
        pytest.skip("StableHLO has convolutions of one dtype")
    dtypes = {"bf16": "bfloat16", "f16": "float16", "f32": "float32", "i32": "int32", "complex<f32>": "complex64"}
    a, b = np.array([[1.001, -1.0]]).astype(dtypes[left]), np.ones((2, 1)).astype(dtypes[right])
    types = {"a": f"1x2x{left}", "b": f"2x1x{right}"}
    how = {
        "dot_general": "%r = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]",
        "convolution": "%r = stablehlo.convolution(%a, %b) dim_numbers = [b, f]x[i, o]->[b, f], window = {} "
        "{batch_group_count = 1 : i64, feature_group_count = 1 : i64}",
    }
    body = f"{how[name]} : (tensor<1x2x{left}>, tensor<2x1x{right}>) -> tensor<1x1x{result}>"
    found = run(body, types, [f"1x1x{result}"], a, b)
    if left == "bf16":
        expected = 0  # 1.001 is 1 there
    np.testing.assert_allclose(found.item(), expected, rtol=2e-2)
