"""Arrays whose sizes depend on values, beside arrays of which the type has the size of their buffer."""

import numpy as np
import pytest
import tensorflow as tf

from jaxtf.convert import GraphModeUnsupported, convert_stablehlo
from jaxtf.convert._graph.parse import parse
from jaxtf.convert._graph.plan.plan import plan
from jaxtf.serialization.interop import operations_of

from .graph_mode import MODES, run_module

X = np.float32([[1, 2], [3, 5], [7, 11], [13, 17]])
Y = np.float32([[2, 1], [-1, 4], [3, -2], [0.5, 6]])
ROWS = "tensor<?x2xf32, #stablehlo.bounds<4, ?>>"

MODULE = """
func.func @main(%x: tensor<4x2xf32>, %y: tensor<4x2xf32>, %n: tensor<i32>, %m: tensor<i32>) -> (RESULT) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %none = stablehlo.constant dense<0> : tensor<i32>
  %most = stablehlo.constant dense<4> : tensor<i32>
  %r = stablehlo.set_dimension_size %x, %n, dim = 0 : (tensor<4x2xf32>, tensor<i32>) -> ROWS
BODY
}"""
SUM = (
    "\n  %s = stablehlo.reduce(%z init: %zero) applies stablehlo.add across dimensions = [0] : (ROWS, tensor<f32>) -> "
)
SUM += "tensor<2xf32>\n  return %s : tensor<2xf32>"


def module_of(body, result):
    return MODULE.replace("BODY", body).replace("ROWS", ROWS).replace("RESULT", result)


def run(body, result, n, m=0, mode="graph"):
    found = run_module(module_of(body, result), X, Y, np.int32(n), np.int32(m), mode=mode)
    return found[0] if isinstance(found, list | tuple) and len(found) == 1 else found


TYPES = "(ROWS, tensor<4x2xf32>) -> ROWS"
TRUTH = "tensor<?x2xi1, #stablehlo.bounds<4, ?>>"
BESIDE = {
    "multiply": (f"%z = stablehlo.multiply %r, %y : {TYPES}", lambda x, y: (x * y).sum(0)),
    "the other first": (
        "%z = stablehlo.subtract %y, %r : (tensor<4x2xf32>, ROWS) -> ROWS",
        lambda x, y: (y - x).sum(0),
    ),
    "a constant": (
        "%c = stablehlo.broadcast_in_dim %zero, dims = [] : (tensor<f32>) -> tensor<4x2xf32>\n"
        "  %e = stablehlo.exponential %c : tensor<4x2xf32>\n"
        f"  %z = stablehlo.add %r, %e : {TYPES}",
        lambda x, y: (x + 1).sum(0),
    ),
    "an iota": (
        f"%i = stablehlo.iota dim = 0 : tensor<4x2xf32>\n  %z = stablehlo.multiply %r, %i : {TYPES}",
        lambda x, y: (x * np.arange(len(x))[:, None]).sum(0),
    ),
    "select": (
        f"%t = stablehlo.compare GT, %r, %y : (ROWS, tensor<4x2xf32>) -> {TRUTH}\n"
        f"  %z = stablehlo.select %t, %r, %y : ({TRUTH}, ROWS, tensor<4x2xf32>) -> ROWS",
        lambda x, y: np.maximum(x, y).sum(0),
    ),
    "clamp": (
        "%z = stablehlo.clamp %zero, %y, %r : (tensor<f32>, tensor<4x2xf32>, ROWS) -> ROWS",
        lambda x, y: np.minimum(np.maximum(y, 0), x).sum(0),
    ),
    "three in a sum": (
        f"%a = stablehlo.add %r, %y : {TYPES}\n  %z = stablehlo.add %a, %x : {TYPES}",
        lambda x, y: (x + y + x).sum(0),
    ),
    "concatenate": (
        '%c = "stablehlo.concatenate"(%r, %y) <{dimension = 1 : i64}> : (ROWS, tensor<4x2xf32>) -> '
        "tensor<?x4xf32, #stablehlo.bounds<4, ?>>\n"
        "  %z = stablehlo.slice %c [0:4, 1:3] : (tensor<?x4xf32, #stablehlo.bounds<4, ?>>) -> ROWS",
        lambda x, y: np.concatenate([x, y], 1)[:, 1:3].sum(0),
    ),
    "rows of one each": (
        "%o = stablehlo.slice %y [0:1, 0:2] : (tensor<4x2xf32>) -> tensor<1x2xf32>\n"
        "  %l = stablehlo.reshape %o : (tensor<1x2xf32>) -> tensor<2xf32>\n"
        "  %b = stablehlo.broadcast_in_dim %l, dims = [1] : (tensor<2xf32>) -> tensor<4x2xf32>\n"
        f"  %z = stablehlo.divide %r, %b : {TYPES}",
        lambda x, y: (x / Y[:1]).sum(0),
    ),
}


@pytest.mark.parametrize("n", [0, 1, 3, 4])
@pytest.mark.parametrize("name", BESIDE)
def test_an_operand_beside_one_of_such_a_size_is_cut_to_it(name, n):
    body, expected = BESIDE[name]
    for mode in MODES:
        found = run("  " + body + SUM, "tensor<2xf32>", n, mode=mode)
        np.testing.assert_allclose(found, expected(X[:n], Y[:n]), rtol=1e-6, err_msg=mode)


def test_a_module_of_anyone_is_cut_too():
    """Of which sizes that are to be equal are compared when it runs."""
    run_stablehlo = convert_stablehlo(module_of("  " + BESIDE["multiply"][0] + SUM, "tensor<2xf32>"))
    found = tf.function(run_stablehlo, autograph=False)(X, Y, np.int32(1), np.int32(0))
    np.testing.assert_array_equal(found, X[0] * Y[0])


@pytest.mark.parametrize("n", [0, 1, 3, 4])
def test_a_contracted_dimension_is_cut(n):
    body = (
        "  %z = stablehlo.dot_general %y, %r, contracting_dims = [0] x [0] : (tensor<4x2xf32>, ROWS) -> tensor<2x2xf32>"
        "\n  return %z : tensor<2x2xf32>"
    )
    np.testing.assert_allclose(run(body, "tensor<2x2xf32>", n), Y[:n].T @ X[:n], rtol=1e-6)


@pytest.mark.parametrize("n", [1, 3, 4])
def test_arrays_that_are_reduced_together_are_cut(n):
    body = """
  %lowest = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %i = stablehlo.iota dim = 0 : tensor<4x2xi32>
  %z:2 = stablehlo.reduce(%i init: %none), (%r init: %lowest) across dimensions = [0] :
    (tensor<4x2xi32>, ROWS, tensor<i32>, tensor<f32>) -> (tensor<2xi32>, tensor<2xf32>)
    reducer(%a: tensor<i32>, %b: tensor<i32>) (%c: tensor<f32>, %d: tensor<f32>) {
      %t = stablehlo.compare GT, %c, %d : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %u = stablehlo.select %t, %a, %b : tensor<i1>, tensor<i32>
      %v = stablehlo.select %t, %c, %d : tensor<i1>, tensor<f32>
      stablehlo.return %u, %v : tensor<i32>, tensor<f32>
    }
  return %z#0, %z#1 : tensor<2xi32>, tensor<2xf32>"""
    places, largest = run(body, "tensor<2xi32>, tensor<2xf32>", n)
    np.testing.assert_array_equal(places, X[:n].argmax(0))
    np.testing.assert_array_equal(largest, X[:n].max(0))


@pytest.mark.parametrize("n", [0, 1, 3])
def test_updates_are_as_many_as_places(n):
    body = """
  %i = stablehlo.iota dim = 0 : tensor<4x1xi32>
  %p = stablehlo.set_dimension_size %i, %n, dim = 0 : (tensor<4x1xi32>, tensor<i32>) ->
    tensor<?x1xi32, #stablehlo.bounds<4, ?>>
  %z = "stablehlo.scatter"(%y, %p, %x) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1],
    inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %c : tensor<f32>
  }) : (tensor<4x2xf32>, tensor<?x1xi32, #stablehlo.bounds<4, ?>>, tensor<4x2xf32>) -> tensor<4x2xf32>
  return %z : tensor<4x2xf32>"""
    expected = Y.copy()
    expected[:n] += X[:n]
    np.testing.assert_array_equal(run(body, "tensor<4x2xf32>", n), expected)


# --- two of them ---

SECOND = "  %k = stablehlo.set_dimension_size %y, SIZE, dim = 0 : (tensor<4x2xf32>, tensor<i32>) -> ROWS\n"
ADDED = "  %z = stablehlo.add %r, %k : ROWS" + SUM
THROUGH = {
    "the same": ("", "%n"),
    "its own": ("  %g = stablehlo.get_dimension_size %r, dim = 0 : (ROWS) -> tensor<i32>\n", "%g"),
    "at most all": (
        "  %g = stablehlo.get_dimension_size %r, dim = 0 : (ROWS) -> tensor<i32>\n"
        "  %h = stablehlo.minimum %g, %most : tensor<i32>\n  %l = stablehlo.subtract %h, %none : tensor<i32>\n",
        "%l",
    ),
    "in another dtype": (
        "  %w = stablehlo.convert %n : (tensor<i32>) -> tensor<i64>\n"
        "  %l = stablehlo.convert %w : (tensor<i64>) -> tensor<i32>\n",
        "%l",
    ),
}


@pytest.mark.parametrize("n", [0, 1, 3])
@pytest.mark.parametrize("name", THROUGH)
def test_two_sizes_that_are_one_are_taken(name, n):
    made, size = THROUGH[name]
    found = run(made + SECOND.replace("SIZE", size) + ADDED, "tensor<2xf32>", n)
    np.testing.assert_array_equal(found, (X[:n] + Y[:n]).sum(0))


@pytest.mark.parametrize("name", ["add", "subtract"])
def test_sizes_that_are_computed_alike_are_one(name):
    computed = "".join(
        f"  %a{i} = stablehlo.{name} %n, %m : tensor<i32>\n"
        f"  %b{i} = stablehlo.set_dimension_size %{v}, %a{i}, dim = 0 : (tensor<4x2xf32>, tensor<i32>) -> ROWS\n"
        for i, v in enumerate("xy")
    )
    body = computed + "  %z = stablehlo.multiply %b0, %b1 : ROWS" + SUM
    count = {"add": 3, "subtract": 1}[name]
    np.testing.assert_array_equal(run(body, "tensor<2xf32>", 2, 1), (X[:count] * Y[:count]).sum(0))


DIFFERENT = {
    "another number": ("", "%m"),
    "one more": (
        "  %one = stablehlo.constant dense<1> : tensor<i32>\n  %l = stablehlo.add %n, %one : tensor<i32>\n",
        "%l",
    ),
    "a truth value": (
        "  %w = stablehlo.convert %n : (tensor<i32>) -> tensor<i1>\n"
        "  %l = stablehlo.convert %w : (tensor<i1>) -> tensor<i32>\n",
        "%l",
    ),
    "bytes": (
        "  %w = stablehlo.convert %n : (tensor<i32>) -> tensor<i8>\n"
        "  %l = stablehlo.convert %w : (tensor<i8>) -> tensor<i32>\n",
        "%l",
    ),
    "at most two": (
        "  %two = stablehlo.constant dense<2> : tensor<i32>\n  %l = stablehlo.minimum %n, %two : tensor<i32>\n",
        "%l",
    ),
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_two_sizes_that_may_differ_are_refused(name):
    made, size = DIFFERENT[name]
    body = made + SECOND.replace("SIZE", size) + ADDED
    with pytest.raises(GraphModeUnsupported, match=r"stablehlo\.add: it combines arrays whose sizes depend on values"):
        run(body, "tensor<2xf32>", 1, 2)


def test_parts_of_one_array_have_different_sizes():
    """As XLA sums in blocks: of three elements the first part has two, the second one, which would be broadcast."""
    part = "tensor<?x2xf32, #stablehlo.bounds<2, ?>>"
    body = (
        f"  %a = stablehlo.slice %r [0:4:2, 0:2] : (ROWS) -> {part}\n"
        f"  %b = stablehlo.slice %r [1:4:2, 0:2] : (ROWS) -> {part}\n"
        f"  %z = stablehlo.add %a, %b : {part}" + SUM.replace("ROWS", part)
    )
    with pytest.raises(GraphModeUnsupported, match="are not known to be equal"):
        run(body, "tensor<2xf32>", 3)


def test_a_program_without_such_sizes_is_as_it_was():
    program = parse("""
func.func @main(%x: tensor<?xf32>, %y: tensor<?xf32>) -> tensor<?xf32> {
  %0 = stablehlo.add %x, %y : tensor<?xf32>
  return %0 : tensor<?xf32>
}""")
    names = [operation.name for operation in operations_of(plan(program).functions["main"].body)]
    assert names == ["stablehlo.add"]
