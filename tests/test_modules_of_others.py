"""Modules of other producers than JAX, of what JAX never writes: graph mode and `lift` give what XLA gives, or refuse.

Results are XLA's, or follow from the specification where XLA takes no such module.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax import lax
from scipy import special

from jaxtf.convert import GraphModeUnsupported, convert_stablehlo
from jaxtf.convert._graph.keys import KEYS as KEYS_OF_SORT
from jaxtf.convert._graph.parse import parse
from jaxtf.convert._graph.plan.plan import plan
from jaxtf.serialization import LiftUnsupported, export, lift
from jaxtf.serialization.interop import operations_of
from jaxtf.shapepoly import symbolic_shape

RUNS = {
    "eager": convert_stablehlo,
    "graph": lambda text: tf.function(convert_stablehlo(text), autograph=False),
    "plain": lambda text: convert_stablehlo(text, enable_xla=False),
    "compiled": lambda text: tf.function(convert_stablehlo(text), autograph=False, jit_compile=True),
    "lift": lift,
    "lift, jit": lambda text: jax.jit(lift(text)),
}


def module(body, arguments, result):
    """A function that returns `%r`; `reg(op)` in the body stands for a region of two scalars."""
    taken = ", ".join(f"%{name}: tensor<{type_}>" for name, type_ in arguments.items())
    return f"func.func @main({taken}) -> tensor<{result}> {{\n{body}\nreturn %r : tensor<{result}>\n}}"


def region(operation, type_):
    return f"""({{ ^bb0(%l: tensor<{type_}>, %m: tensor<{type_}>):
      %s = stablehlo.{operation} %l, %m : tensor<{type_}>
      stablehlo.return %s : tensor<{type_}> }})"""


def mapped(body, type_="f32", count=3):
    """A map of a function of the scalar `%l`, which gives `%s`."""
    return module(
        f"""%r = "stablehlo.map"(%x) ({{ ^bb0(%l: tensor<{type_}>):
          %zero = stablehlo.constant dense<0.0> : tensor<{type_}>
          {body}
          stablehlo.return %s : tensor<{type_}> }}) {{dimensions = array<i64: 0>}}
          : (tensor<{count}x{type_}>) -> tensor<{count}x{type_}>""",
        {"x": f"{count}x{type_}"},
        f"{count}x{type_}",
    )


def sorted_by(nan, zero, compared, constants, *, inside=True):
    """A sort by `select(x != x, nan, select(x == compared, zero, x))`, whose constants are in it, or around."""
    keys = "\n".join(
        f"""%n{x} = stablehlo.compare NE, %{x}, %{x}, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
        %z{x} = stablehlo.compare EQ, %{x}, %{compared}, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
        %i{x} = stablehlo.select %z{x}, %{zero}, %{x} : tensor<i1>, tensor<f32>
        %k{x} = stablehlo.select %n{x}, %{nan}, %i{x} : tensor<i1>, tensor<f32>"""
        for x in "lm"
    )
    named = "\n".join(f"%{name} = stablehlo.constant dense<{value}> : tensor<f32>" for name, value in constants.items())
    return module(
        f"""{"" if inside else named}
        %r = "stablehlo.sort"(%x) ({{ ^bb0(%l: tensor<f32>, %m: tensor<f32>):
        {named if inside else ""}
        {keys}
        %s = stablehlo.compare LT, %kl, %km, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
        stablehlo.return %s : tensor<i1> }}) {{dimension = 0 : i64, is_stable = true}}
          : (tensor<6xf32>) -> tensor<6xf32>""",
        {"x": "6xf32"},
        "6xf32",
    )


CONSTANTS = {
    **{"nan": "0x7FC00000", "minus_nan": "0xFFC00000", "zero": "0.0", "minus_zero": "-0.0"},
    **{"minus_one": "-1.0", "three": "3.0", "nine": "9.0"},
}
UNSORTED = np.array([3, np.nan, -2, 0.0, 5, -0.0], np.float32)


def by_keys(nan, zero, compared):
    """`UNSORTED` by these keys, in the total order."""
    value = {name: np.float32(np.nan if "nan" in name else float(text)) for name, text in CONSTANTS.items()}
    value["minus_nan"] = -value["nan"]

    def key(x):
        chosen = value[nan] if np.isnan(x) else value[zero] if x == value[compared] else x
        bits = int(np.float32(chosen).view(np.int32))
        return bits if bits >= 0 else bits ^ 0x7FFFFFFF

    return np.array(sorted(UNSORTED.tolist(), key=lambda x: key(np.float32(x))), np.float32)


KEYS = [
    ("nan", "zero", "zero"),
    ("nan", "minus_zero", "zero"),
    ("minus_one", "zero", "zero"),
    ("minus_nan", "zero", "zero"),
    ("nan", "nine", "zero"),
    ("nan", "zero", "three"),
]

GATHER = """%r = "stablehlo.gather"(%x, %i) {dimension_numbers = #stablehlo.gather<offset_dims = [],
  collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [BATCH],
  start_index_map = [1], index_vector_dim = VECTOR>, slice_sizes = array<i64: 1, 1>}
  : (tensor<2x3xi32>, tensor<SHAPExi32>) -> tensor<RESULTxi32>"""
SCATTER = f"""%r = "stablehlo.scatter"(%x, %i, %u) {region("add", "i32")}
  {{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [], inserted_window_dims = [1],
  input_batching_dims = [0], scatter_indices_batching_dims = [BATCH], scatter_dims_to_operand_dims = [1],
  index_vector_dim = VECTOR>}}
  : (tensor<2x3xi32>, tensor<SHAPExi32>, tensor<RESULTxi32>) -> tensor<2x3xi32>"""


def with_batches(text, batch, vector, shape):
    """A gather or scatter whose indices have so many dimensions, of which one is the operand's and one the vectors'."""
    left = [size for place, size in enumerate(shape) if place != vector]
    names = {"BATCH": batch, "VECTOR": vector, "SHAPE": "x".join(map(str, shape)), "RESULT": "x".join(map(str, left))}
    for name, value in names.items():
        text = text.replace(name, str(value))
    types = {"x": "2x3xi32", "i": f"{names['SHAPE']}xi32"}
    if "scatter" in text:
        return module(text, types | {"u": f"{names['RESULT']}xi32"}, "2x3xi32")
    return module(text, types, f"{names['RESULT']}xi32")


PLACES = [
    (1, 0, (1, 2, 3)),
    (2, 0, (1, 3, 2)),
    (2, 1, (3, 1, 2)),
    (0, 2, (2, 3, 1)),
    (0, 1, (2, 1, 3)),
    (1, 2, (3, 2, 1)),
]
TABLE = np.arange(6, dtype=np.int32).reshape(2, 3) * 10


def batched_indices(batch, vector, shape):
    """Indices, and of each element of the batch the row and the column that they name."""
    indices = np.random.RandomState(0).randint(0, 3, shape).astype(np.int32)
    columns = np.squeeze(indices, vector)
    place = batch - (batch > vector)
    rows = np.broadcast_to(np.arange(2).reshape([2 if i == place else 1 for i in range(2)]), columns.shape)
    return indices, rows, columns


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
@pytest.mark.parametrize("place", PLACES, ids=str)
def test_the_vectors_of_indices_may_lie_along_any_dimension(place, run):
    indices, rows, columns = batched_indices(*place)
    np.testing.assert_array_equal(run(with_batches(GATHER, *place))(TABLE, indices), TABLE[rows, columns])
    updates = np.arange(1, columns.size + 1, dtype=np.int32).reshape(columns.shape)
    expected = TABLE.copy()
    np.add.at(expected, (rows, columns), updates)
    np.testing.assert_array_equal(run(with_batches(SCATTER, *place))(TABLE, indices, updates), expected)


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
@pytest.mark.parametrize("keys", KEYS, ids=" ".join)
@pytest.mark.parametrize("inside", [True, False], ids=["constants inside", "constants outside"])
def test_sorts_by_keys_like_those_of_jax_are_by_the_constants_that_they_have(inside, keys, run):
    found = np.asarray(run(sorted_by(*keys, CONSTANTS, inside=inside))(UNSORTED))
    np.testing.assert_array_equal(found, by_keys(*keys))
    np.testing.assert_array_equal(np.signbit(found), np.signbit(by_keys(*keys)))


@pytest.mark.parametrize("dtype", ["float32", "float16", "complex64", "int32"])
@pytest.mark.parametrize("sort", [jnp.sort, jnp.argsort, lambda x: lax.sort((x, -x), num_keys=2)[1]])
def test_sorts_of_jax_are_recognized(sort, dtype):
    exported = export(jax.jit(sort))(jax.ShapeDtypeStruct(symbolic_shape("n"), dtype))
    (sorts,) = (
        [operation for operation in operations_of(function.body) if operation.name == "stablehlo.sort"]
        for function in plan(parse(exported.mlir_module_serialized)).functions.values()
        if any(operation.name == "stablehlo.sort" for operation in operations_of(function.body))
    )
    assert all(KEYS_OF_SORT in operation.attributes for operation in sorts)
    assert "sort[" in str(jax.make_jaxpr(lift(exported))(np.ones(3, dtype)))


IF = """%p = stablehlo.compare GT, %l, %zero : (tensor<f32>, tensor<f32>) -> tensor<i1>
  %s = "stablehlo.if"(%p) ({ stablehlo.return %l : tensor<f32> },
    { %h = stablehlo.negate %l : tensor<f32>
      stablehlo.return %h : tensor<f32> }) : (tensor<i1>) -> tensor<f32>"""
CASE = """%p = stablehlo.convert %l : (tensor<f32>) -> tensor<i32>
  %s = "stablehlo.case"(%p) ({ stablehlo.return %zero : tensor<f32> }, { stablehlo.return %l : tensor<f32> },
    { %h = stablehlo.negate %l : tensor<f32>
      stablehlo.return %h : tensor<f32> }) : (tensor<i32>) -> tensor<f32>"""
X = np.array([1, -2, 3], np.float32)


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
@pytest.mark.parametrize(("body", "expected"), [(IF, [1, 2, 3]), (CASE, [1, 2, -3])], ids=["if", "case"])
def test_a_choice_by_each_element(body, expected, run):
    np.testing.assert_array_equal(run(mapped(body))(X), expected)


SUM = """%s = stablehlo.reduce(%b init: %zero) applies stablehlo.add across dimensions = [0]
  : (tensor<4xf32>, tensor<f32>) -> tensor<f32>"""
ARRAYS = {
    "broadcast": ("%b = stablehlo.broadcast_in_dim %l, dims = [] : (tensor<f32>) -> tensor<4xf32>\n" + SUM, 4 * X),
    "reshape": (
        """%b = stablehlo.reshape %l : (tensor<f32>) -> tensor<1xf32>
        %n = stablehlo.negate %b : tensor<1xf32>
        %c = stablehlo.concatenate %b, %n, dim = 0 : (tensor<1xf32>, tensor<1xf32>) -> tensor<2xf32>
        %d = stablehlo.slice %c [1:2] : (tensor<2xf32>) -> tensor<1xf32>
        %s = stablehlo.reshape %d : (tensor<1xf32>) -> tensor<f32>""",
        -X,
    ),
    "constant": (
        """%k = stablehlo.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
        %e = stablehlo.broadcast_in_dim %l, dims = [] : (tensor<f32>) -> tensor<4xf32>
        %b = stablehlo.add %k, %e : tensor<4xf32>\n"""
        + SUM,
        4 * X + 10,
    ),
    "bits": (
        """%b = stablehlo.bitcast_convert %l : (tensor<f32>) -> tensor<4xi8>
        %d = stablehlo.slice %b [3:4] : (tensor<4xi8>) -> tensor<1xi8>
        %e = stablehlo.reshape %d : (tensor<1xi8>) -> tensor<i8>
        %s = stablehlo.convert %e : (tensor<i8>) -> tensor<f32>""",
        [63, -64, 64],
    ),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_in_a_region_of_scalars_are_not_mixed_with_those_outside(name):
    body, expected = ARRAYS[name]
    np.testing.assert_array_equal(lift(mapped(body))(X), expected)
    for run in ("eager", "compiled"):
        with pytest.raises(GraphModeUnsupported, match="in a region that is applied to many elements at once"):
            RUNS[run](mapped(body))(X)


def test_a_loop_by_each_element_is_refused_in_graph_mode():
    loop = """%s = stablehlo.while(%i = %l) : tensor<f32>
      cond { %p = stablehlo.compare LT, %i, %zero : (tensor<f32>, tensor<f32>) -> tensor<i1>
             stablehlo.return %p : tensor<i1> }
      do { %n = stablehlo.negate %i : tensor<f32>
           stablehlo.return %n : tensor<f32> }"""
    with pytest.raises(GraphModeUnsupported, match="depends on the value of one of them"):
        convert_stablehlo(mapped(loop))(X)
    np.testing.assert_array_equal(lift(mapped(loop))(X), [1, 2, 3])


SEARCH = """%i = stablehlo.iota dim = 0 : tensor<5xi32>
  %w = stablehlo.constant dense<WORST> : tensor<f32>
  %f = stablehlo.constant dense<0> : tensor<i32>
  %s:2 = "stablehlo.reduce"(%x, %i, %w, %f) ({ ^bb0(%a: tensor<f32>, %p: tensor<i32>, %b: tensor<f32>, %q: tensor<i32>):
    %g = stablehlo.compare GT, %a, %b, FIRST : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %n = stablehlo.compare NE, %a, %a, SECOND : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %c = stablehlo.or %g, %n : tensor<i1>
    %e = stablehlo.compare EQ, %a, %b, THIRD : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %l = stablehlo.compare LT, %p, %q : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %t = stablehlo.and %e, %l : tensor<i1>
    %d = stablehlo.or %c, %t : tensor<i1>
    %v = stablehlo.select %c, %a, %b : tensor<i1>, tensor<f32>
    %o = stablehlo.select %d, %p, %q : tensor<i1>, tensor<i32>
    stablehlo.return %v, %o : tensor<f32>, tensor<i32> }) {dimensions = array<i64: 0>}
    : (tensor<5xf32>, tensor<5xi32>, tensor<f32>, tensor<i32>) -> (tensor<f32>, tensor<i32>)
  """


def search(first, second, third, worst, result):
    """A search of the greatest element as JAX writes it, with comparisons of these types; its value or its index."""
    text = SEARCH
    for name, value in (("FIRST", first), ("SECOND", second), ("THIRD", third), ("WORST", worst)):
        text = text.replace(name, value)
    number, type_ = ("0", "f32") if result == "value" else ("1", "i32")
    return module(text + f"%r = stablehlo.add %s#{number}, %minus : tensor<{type_}>", {"x": "5xf32"}, type_).replace(
        "%i = ", f"%minus = stablehlo.constant dense<{'-0.0' if result == 'value' else '0'}> : tensor<{type_}>\n%i = "
    )


NAN = np.float32(np.nan)
# The types of its comparisons, an array, and where XLA finds the greatest.
SEARCHES = [
    (("FLOAT", "FLOAT", "FLOAT"), [-0.0, 0.0, -1, 0.0, -3], 0),
    (("FLOAT", "FLOAT", "TOTALORDER"), [-0.0, 0.0, -1, 0.0, -3], 1),
    (("TOTALORDER", "TOTALORDER", "TOTALORDER"), [-0.0, 0.0, -1, 0.0, -3], 1),
    (("FLOAT", "FLOAT", "FLOAT"), [1, NAN, 2, -NAN, 0], 1),
    (("FLOAT", "TOTALORDER", "FLOAT"), [1, NAN, 2, -NAN, 0], 4),
]


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
@pytest.mark.parametrize(("types", "values", "expected"), SEARCHES)
def test_a_search_is_by_the_comparisons_that_it_has(types, values, expected, run):
    found = run(search(*types, "0xFF800000", "index"))(np.array(values, np.float32))
    assert int(found) == expected


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
@pytest.mark.parametrize("worst", ["0xFF800000", "-1.0"])
@pytest.mark.parametrize("values", [[-0.0, -1, -2, -3, -4], [-1, -0.0, 0.0, -2, -3], [0.0, -0.0, -1, -1, -1]], ids=str)
def test_of_several_zeros_a_search_gives_the_last(values, worst, run):
    x = np.array(values, np.float32)
    found = np.asarray(run(search("FLOAT", "FLOAT", "FLOAT", worst, "value"))(x))
    last = x[x == 0][-1]
    assert (float(found), bool(np.signbit(found))) == (0.0, bool(np.signbit(last)))


BYTES = np.array([100, 100, 100, 1], np.int8)
WIDER = {
    "reduce": (
        f'%r = "stablehlo.reduce"(%x, %z) {region("add", "i32")} {{dimensions = array<i64: 0>}}'
        " : (tensor<4xi8>, tensor<i8>) -> tensor<i32>",
        "i32",
        301,
    ),
    "reduce_window": (
        f'%r = "stablehlo.reduce_window"(%x, %z) {region("add", "i32")} {{window_dimensions = array<i64: 2>}}'
        " : (tensor<4xi8>, tensor<i8>) -> tensor<3xi32>",
        "3xi32",
        [200, 200, 101],
    ),
    "select_and_scatter": (
        """%r = "stablehlo.select_and_scatter"(%x, %x, %z) ({ ^bb0(%l: tensor<i8>, %m: tensor<i8>):
          %s = stablehlo.compare GE, %l, %m : (tensor<i8>, tensor<i8>) -> tensor<i1>
          stablehlo.return %s : tensor<i1> }, REGION) {window_dimensions = array<i64: 1>}
          : (tensor<4xi8>, tensor<4xi8>, tensor<i8>) -> tensor<4xi32>""".replace(
            "REGION", region("add", "i32").strip("()")
        ),
        "4xi32",
        [107, 107, 107, 8],
    ),
}


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
@pytest.mark.parametrize("name", WIDER)
def test_a_region_may_take_a_wider_type_than_the_arrays_have(name, run):
    body, result, expected = WIDER[name]
    start = 7 if name == "select_and_scatter" else 0
    np.testing.assert_array_equal(run(module(body, {"x": "4xi8", "z": "i8"}, result))(BYTES, np.int8(start)), expected)


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
def test_a_scatter_into_a_wider_type(run):
    body = f"""%r = "stablehlo.scatter"(%x, %i, %u) {region("add", "i32")} {{scatter_dimension_numbers =
      #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}}
      : (tensor<4xi8>, tensor<2x1xi32>, tensor<2xi8>) -> tensor<4xi32>"""
    text = module(body, {"x": "4xi8", "i": "2x1xi32", "u": "2xi8"}, "4xi32")
    found = run(text)(BYTES, np.zeros((2, 1), np.int32), np.array([100, 100], np.int8))
    np.testing.assert_array_equal(found, [300, 100, 100, 1])


SMALL = {
    "truth of complex numbers": (
        "%r = stablehlo.convert %x : (tensor<3xcomplex<f32>>) -> tensor<3xi1>",
        {"x": "3xcomplex<f32>"},
        "3xi1",
        [np.array([0, 2j, 1], np.complex64)],
        [False, False, True],
    ),
    "conj of a real": (
        '%r = "chlo.conj"(%x) : (tensor<3xf32>) -> tensor<3xf32>',
        {"x": "3xf32"},
        "3xf32",
        [X],
        X,
    ),
    "iota of 4 bits": (
        """%0 = stablehlo.iota dim = 0 : tensor<2x2xui4>
        %r = stablehlo.convert %0 : (tensor<2x2xui4>) -> tensor<2x2xi8>""",
        {},
        "2x2xi8",
        [],
        [[0, 0], [1, 1]],
    ),
    "iota of 8-bit floats": (
        "%0 = stablehlo.iota dim = 1 : tensor<2x2xf8E4M3FN>\n"
        "%r = stablehlo.convert %0 : (tensor<2x2xf8E4M3FN>) -> tensor<2x2xf32>",
        {},
        "2x2xf32",
        [],
        [[0, 1], [0, 1]],
    ),
    "gather of nothing": (
        """%r = "stablehlo.gather"(%x, %i) {dimension_numbers = #stablehlo.gather<offset_dims = [1],
          collapsed_slice_dims = [0, 1], start_index_map = [0, 1], index_vector_dim = 1>,
          slice_sizes = array<i64: 1, 1, 0>} : (tensor<3x4x0xf32>, tensor<2x2xi32>) -> tensor<2x0xf32>""",
        {"x": "3x4x0xf32", "i": "2x2xi32"},
        "2x0xf32",
        [np.zeros((3, 4, 0), np.float32), np.array([[0, 1], [1, 2]], np.int32)],
        np.zeros((2, 0)),
    ),
    "torch_index_select outside": (
        '%r = "stablehlo.torch_index_select"(%x, %i) {dim = 0 : i64, batch_dims = 0 : i64}'
        " : (tensor<3xf32>, tensor<2xi32>) -> tensor<2xf32>",
        {"x": "3xf32", "i": "2xi32"},
        "2xf32",
        [X, np.array([7, -1], np.int32)],
        [3, 1],
    ),
    "padding that is an argument": (
        """%r = "stablehlo.dynamic_conv"(%x, %k, %p) {feature_group_count = 1 : i64, batch_group_count = 1 : i64,
          dimension_numbers = #stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>}
          : (tensor<1x4x1xf32>, tensor<2x1x1xf32>, tensor<1x2xi32>) -> tensor<1x5x1xf32>""",
        {"x": "1x4x1xf32", "k": "2x1x1xf32", "p": "1x2xi32"},
        "1x5x1xf32",
        [np.ones((1, 4, 1), np.float32), np.ones((2, 1, 1), np.float32), np.array([[1, 1]], np.int32)],
        [[[1], [2], [2], [2], [1]]],
    ),
}


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
@pytest.mark.parametrize("name", SMALL)
def test_they_are_computed_as_xla_does(name, run):
    body, arguments, result, values, expected = SMALL[name]
    if name == "padding that is an argument" and run in (RUNS["lift"], RUNS["lift, jit"]):
        with pytest.raises(LiftUnsupported):
            run(module(body, arguments, result))(*values)
        return
    np.testing.assert_array_equal(run(module(body, arguments, result))(*values), expected)


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
def test_a_constant_of_64_bits_is_not_rounded(run):
    body = '%r = "chlo.constant_like"(%x) {value = 0.1 : f64} : (tensor<1xf64>) -> tensor<1xf64>'
    with jax.enable_x64(True):
        np.testing.assert_array_equal(run(module(body, {"x": "1xf64"}, "1xf64"))(np.ones(1)), [0.1])


def test_a_state_of_random_bits_that_jax_does_not_have_is_refused():
    body = """%0:2 = "stablehlo.rng_bit_generator"(%x) {rng_algorithm = #stablehlo<rng_algorithm PHILOX>}
      : (tensor<3xui64>) -> (tensor<3xui64>, tensor<2xui32>)
      %r = stablehlo.add %0#1, %0#1 : tensor<2xui32>"""
    with jax.enable_x64(True), pytest.raises(LiftUnsupported, match=r"a state of uint64\[3\]"):
        lift(module(body, {"x": "3xui64"}, "2xui32"))(np.array([1, 2, 3], np.uint64))


PRODUCT = """%0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (XS, WS) -> tensor<2xCOLUMNSxf32>
%1 = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<COLUMNSxf32>) -> tensor<2xCOLUMNSxf32>
%r = stablehlo.add %0, %1 : tensor<2xCOLUMNSxf32>"""
OPEN_PRODUCT = """%0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (XS, WS) -> tensor<2x?xf32>
%1 = stablehlo.reshape %0 : (tensor<2x?xf32>) -> tensor<2xCOLUMNSxf32>
%2 = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<COLUMNSxf32>) -> tensor<2xCOLUMNSxf32>
%r = stablehlo.add %1, %2 : tensor<2xCOLUMNSxf32>"""


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
@pytest.mark.parametrize("is_open", [False, True], ids=["known", "open"])
@pytest.mark.parametrize(("contracted", "columns"), [(0, 4), (3, 0), (0, 0)], ids=str)
def test_a_sum_with_a_product_of_nothing_is_the_other_term(contracted, columns, is_open, run):
    sizes = ("?", "?") if is_open else (contracted, columns)
    types = {"x": f"2x{sizes[0]}xf32", "w": f"{sizes[0]}x{sizes[1]}xf32", "b": f"{columns}xf32"}
    body = (OPEN_PRODUCT if is_open else PRODUCT).replace("COLUMNS", str(columns))
    for name in "xw":
        body = body.replace(f"{name.upper()}S", f"tensor<{types[name]}>")
    bias = np.arange(columns, dtype=np.float32)
    values = np.ones((2, contracted), np.float32), np.ones((contracted, columns), np.float32), bias
    np.testing.assert_array_equal(run(module(body, types, f"2x{columns}xf32"))(*values), [bias, bias])


SCALED_PRODUCT = """%0 = stablehlo.dot_general %x, %y, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2]
  : (tensor<1x2x3xSIZExf32>, tensor<1x2xSIZEx4xf32>) -> tensor<1x2x3x4xf32>
%1 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<f32>) -> tensor<1x2x3x4xf32>
%2 = stablehlo.multiply %0, %1 : tensor<1x2x3x4xf32>
%3 = stablehlo.broadcast_in_dim %z, dims = [0, 1, 2, 3] : (tensor<1x1x3x4xf32>) -> tensor<1x2x3x4xf32>
%r = stablehlo.add %2, %3 : tensor<1x2x3x4xf32>"""


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
@pytest.mark.parametrize("size", ["0", "?"])
def test_a_sum_with_a_scaled_product_of_nothing_is_the_other_term(size, run):
    types = {"x": f"1x2x3x{size}xf32", "y": f"1x2x{size}x4xf32", "c": "f32", "z": "1x1x3x4xf32"}
    shapes = (1, 2, 3, 0), (1, 2, 0, 4), (), (1, 1, 3, 4)
    found = run(module(SCALED_PRODUCT.replace("SIZE", size), types, "1x2x3x4xf32"))(
        *(np.ones(shape, np.float32) for shape in shapes)
    )
    np.testing.assert_array_equal(found, np.ones((1, 2, 3, 4)))


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
def test_a_constant_is_broadcast_along_dimensions_in_any_order(run):
    body = """%c = stablehlo.constant dense<[[1, 2, 3], [4, 5, 6]]> : tensor<2x3xi32>
      %b = stablehlo.broadcast_in_dim %c, dims = [1, 0] : (tensor<2x3xi32>) -> tensor<3x2xi32>
      %r = stablehlo.add %b, %x : tensor<3x2xi32>"""
    found = run(module(body, {"x": "3x2xi32"}, "3x2xi32"))(np.zeros((3, 2), np.int32))
    np.testing.assert_array_equal(found, [[1, 4], [2, 5], [3, 6]])


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
@pytest.mark.parametrize(("count", "size"), [(200, 200), (200, "?"), (100, 100)], ids=str)
@pytest.mark.parametrize("result", ["value", "index"])
def test_a_search_by_indices_that_wrap_is_by_the_least_of_them(result, count, size, run):
    text = search("FLOAT", "FLOAT", "FLOAT", "0xFF800000", result)
    narrow = (
        text.replace("i32", "i8").replace("stablehlo.iota dim = 0 : tensor<5xi8>", "IOTA").replace("<5x", f"<{size}x")
    )
    numbers = f"stablehlo.iota dim = 0 : tensor<{count}xi8>"
    if size == "?":
        sizes = f"%shape = stablehlo.constant dense<{count}> : tensor<1xi64>"
        numbers = "stablehlo.dynamic_iota %shape, dim = 0 : (tensor<1xi64>) -> tensor<?xi8>"
        narrow = narrow.replace("%i = IOTA", f"{sizes}\n%i = IOTA")
    x = np.zeros(count, np.float32)
    x[[5, 95, 150 % count]] = 1
    expected = 1 if result == "value" else np.arange(count).astype(np.int8)[x == 1].min()
    assert np.asarray(run(narrow.replace("IOTA", numbers))(x)) == expected


SEARCH_OF_TRUTH = SEARCH.replace("f32", "i1").replace("FIRST", "UNSIGNED").replace("SECOND", "UNSIGNED")


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
@pytest.mark.parametrize("worst", ["true", "false"])
@pytest.mark.parametrize("direction", ["GT", "LT"])
@pytest.mark.parametrize("result", ["value", "index"])
def test_a_search_of_truth_begins_with_its_initial_value(result, direction, worst, run):
    text = (
        SEARCH_OF_TRUTH.replace("THIRD", "UNSIGNED")
        .replace("WORST", worst)
        .replace("compare GT", f"compare {direction}")
    )
    number, type_ = ("0", "i1") if result == "value" else ("1", "i32")
    body = f"{text}%r = stablehlo.optimization_barrier %s#{number} : tensor<{type_}>"
    x = np.array([False, True, False, True, True])
    pairs = [(worst == "true", 0), *zip(x.tolist(), range(5), strict=True)]
    found = min(pairs, key=lambda pair: (pair[0] != (direction == "GT"), pair[1]))
    assert np.asarray(run(module(body, {"x": "5xi1"}, type_))(x)) == found[0 if result == "value" else 1]


OPEN_CONVOLUTION = """%r = "stablehlo.convolution"(%x, %k) {batch_group_count = 1 : i64, feature_group_count = 1 : i64,
  dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>,
  padding = dense<[[LOW, 1], [LOW, 1]]> : tensor<2x2xi64>, lhs_dilation = array<i64: 3, 2>,
  rhs_dilation = array<i64: 1, 2>, window_strides = array<i64: STRIDE, 1>}
  : (tensor<1xXx2xf32>, tensor<Kx2x3xf32>) -> tensor<1xRx3xf32>"""


def convolution_of(x, kernel, result, low, stride):
    text = OPEN_CONVOLUTION.replace("LOW", str(low)).replace("STRIDE", str(stride))
    for name, sizes in (("xXx", x), ("<Kx", kernel), ("xRx", result)):
        text = text.replace(name, name[0] + "x".join(map(str, sizes)) + name[-1])
    of_result = "x".join(map(str, result))
    types = {"x": f"1x{x[0]}x{x[1]}x2xf32", "k": f"{kernel[0]}x{kernel[1]}x2x3xf32"}
    return module(text, types, f"1x{of_result}x3xf32")


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
@pytest.mark.parametrize("extent", [(0, 2), (2, 0), (0, 0), (2, 1)], ids=str)
@pytest.mark.parametrize(("kernel", "low", "stride"), [((2, 2), 1, 1), ((1, 1), 2, 2), ((2, 1), -1, 1)], ids=str)
def test_a_convolution_of_open_sizes_has_as_many_places_as_of_known_ones(kernel, low, stride, extent, run):
    padded = [(n - 1) * d + 1 if n else 0 for n, d in zip(extent, (3, 2), strict=True)]
    reach = kernel[0], (kernel[1] - 1) * 2 + 1
    rooms = [size + low + 1 - span for size, span in zip(padded, reach, strict=True)]
    counts = [max(room // s + 1, 0) if room >= 0 else 0 for room, s in zip(rooms, (stride, 1), strict=True)]
    random = np.random.default_rng(0)
    x, k = (random.integers(-3, 4, shape).astype(np.float32) for shape in ((1, *extent, 2), (*kernel, 2, 3)))
    expected = lift(convolution_of(extent, kernel, counts, low, stride))(x, k)
    found = run(convolution_of("??", "??", "??", low, stride))(x, k)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
def test_a_complex_convolution_may_take_away_before_and_pad_after(run):
    body = """%r = "stablehlo.convolution"(%x, %k) {batch_group_count = 1 : i64, feature_group_count = 1 : i64,
      dimension_numbers = #stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>, padding = dense<[[-1, 1]]> : tensor<1x2xi64>}
      : (tensor<1x4x1xcomplex<f32>>, tensor<1x1x1xcomplex<f32>>) -> tensor<1x4x1xcomplex<f32>>"""
    x = np.arange(4).reshape(1, 4, 1).astype(np.complex64) * 1j
    found = run(module(body, {"x": "1x4x1xcomplex<f32>", "k": "1x1x1xcomplex<f32>"}, "1x4x1xcomplex<f32>"))(
        x, np.full((1, 1, 1), 1j, np.complex64)
    )
    np.testing.assert_array_equal(np.ravel(found), [-1, -2, -3, 0])


APPROXIMATE = """func.func private @compared(
    %a: tensor<f32>, %b: tensor<f32>, %p: tensor<INT>, %q: tensor<INT>) -> tensor<i1> {
    %0 = stablehlo.compare COMPARED : (tensor<f32>, tensor<f32>) -> tensor<i1>
    return %0 : tensor<i1>
  }
  func.func @main(%x: tensor<4xf32>) -> (tensor<2xf32>, tensor<2xINT>) {
    %i = stablehlo.iota dim = 0 : tensor<4xINT>
    %w = stablehlo.constant dense<WORST> : tensor<f32>
    %f = stablehlo.constant dense<-1> : tensor<INT>
    %r:2 = stablehlo.custom_call @ApproxTopK(%x, %i, %w, %f) {called_computations = [@compared], mhlo.backend_config =
      {aggregate_to_topk = true, is_fallback = true, recall_target = 0.95 : f32, reduction_dim = 0 : i64,
       reduction_input_size_override = -1 : i64, top_k = 2 : i64}}
      : (tensor<4xf32>, tensor<4xINT>, tensor<f32>, tensor<INT>) -> (tensor<2xf32>, tensor<2xINT>)
    return %r#0, %r#1 : tensor<2xf32>, tensor<2xINT>
  }"""


def approximate(compared, worst, integer):
    return APPROXIMATE.replace("COMPARED", compared).replace("WORST", worst).replace("INT", integer)


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
@pytest.mark.parametrize("integer", ["i32", "i64"])
@pytest.mark.parametrize("worst", ["0xFF800000", "0x7F800000", "0x7FC00000", "1.0"])
@pytest.mark.parametrize("direction", ["GT", "LT"])
def test_an_approximate_top_k_is_by_its_comparator(direction, worst, integer, run):
    with jax.enable_x64(True):
        found = run(approximate(f"{direction}, %a, %b", worst, integer))(np.array([3, 1, 4, 2], np.float32))
        values, places = ([4, 3], [2, 0]) if direction == "GT" else ([1, 2], [1, 3])
        np.testing.assert_array_equal(found[0], values)
        np.testing.assert_array_equal(found[1], places)
        assert np.asarray(found[1]).dtype == f"int{integer[1:]}"


@pytest.mark.parametrize("run", [RUNS["eager"], RUNS["lift"]], ids=["eager", "lift"])
@pytest.mark.parametrize("compared", ["GE, %a, %b", "GT, %b, %a", "GT, %a, %a", "GT, %a, %b, TOTALORDER"])
def test_an_approximate_top_k_by_another_comparator_is_refused(compared, run):
    with pytest.raises((GraphModeUnsupported, LiftUnsupported), match="a comparator of its own"):
        run(approximate(compared, "0xFF800000", "i32"))(np.array([3, 1, 4, 2], np.float32))


ROWS = """%z = stablehlo.constant dense<0> : tensor<i32>
  %n = stablehlo.constant dense<4> : tensor<i32>
  %k = stablehlo.constant dense<1> : tensor<i32>
  %s = stablehlo.constant dense<0> : tensor<2xi32>
  %o = stablehlo.constant dense<0> : tensor<4x2xi32>
  %0:4 = stablehlo.while(%i = %z, %c = %s, %x = %x0, %y = %o)
    : tensor<i32>, tensor<2xi32>, tensor<4x2xi32>, tensor<4x2xi32>
  cond { %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1> }
  do { %v = stablehlo.dynamic_slice %x, %i, %z, sizes = [1, 2] : (tensor<4x2xi32>, tensor<i32>, tensor<i32>)
      -> tensor<1x?xi32>
    %t = stablehlo.reshape %v : (tensor<1x?xi32>) -> tensor<2xi32>
    %d = stablehlo.add %c, %t : tensor<2xi32>
    %w = stablehlo.dynamic_update_slice %y, %v, %i, %z
      : (tensor<4x2xi32>, tensor<1x?xi32>, tensor<i32>, tensor<i32>) -> tensor<4x2xi32>
    %q = stablehlo.add %i, %k : tensor<i32>
    stablehlo.return %q, %d, %x, %w : tensor<i32>, tensor<2xi32>, tensor<4x2xi32>, tensor<4x2xi32> }
  %b = stablehlo.broadcast_in_dim %0#1, dims = [1] : (tensor<2xi32>) -> tensor<4x2xi32>
  %r = stablehlo.add %b, %0#3 : tensor<4x2xi32>"""


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
def test_rows_that_a_loop_reads_and_writes_may_have_open_sizes(run):
    x = np.arange(8, dtype=np.int32).reshape(4, 2)
    np.testing.assert_array_equal(run(module(ROWS, {"x0": "4x2xi32"}, "4x2xi32"))(x), x + np.array([12, 16]))


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
@pytest.mark.parametrize(("operation", "initial"), [("maximum", "0xFF800000"), ("add", "0.0")])
def test_a_pool_without_features_is_one(operation, initial, run):
    body = f"""%c = stablehlo.constant dense<{initial}> : tensor<f32>
      %r = "stablehlo.reduce_window"(%x, %c) {region(operation, "f32")}
        {{window_dimensions = array<i64: 1, 2, 2, 1>, window_strides = array<i64: 1, 2, 2, 1>}}
        : (tensor<1x4x4x0xf32>, tensor<f32>) -> tensor<1x2x2x0xf32>"""
    found = run(module(body, {"x": "1x4x4x0xf32"}, "1x2x2x0xf32"))(np.zeros((1, 4, 4, 0), np.float32))
    assert np.shape(found) == (1, 2, 2, 0)


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
@pytest.mark.parametrize("type_", ["f32", "f64"])
def test_the_inverse_of_erf_is_right_near_zero(type_, run):
    x = np.array([1e-300, 1e-30, 1e-8, 1e-5, 1e-3, 0.0199, 0.0201, 0.099, 0.101, 0.5, 1, 2, np.nan])
    x = np.concatenate([x, -x, [0.0, -0.0]]).astype(f"float{type_[1:]}")
    with jax.enable_x64(True):
        body = f"%r = chlo.erf_inv %x : tensor<{x.size}x{type_}> -> tensor<{x.size}x{type_}>"
        found = np.asarray(run(module(body, {"x": f"{x.size}x{type_}"}, f"{x.size}x{type_}"))(x))
    np.testing.assert_allclose(found, special.erfinv(x.astype(float)), rtol=16 * np.finfo(x.dtype).eps)
    np.testing.assert_array_equal(np.signbit(found[~np.isnan(found)]), np.signbit(x[~np.isnan(found)]))
