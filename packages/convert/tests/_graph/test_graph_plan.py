"""What is done to a program before it is emitted: dead code, sizes, broadcasts, forms that consumers know by name."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax import lax

from jaxtf.convert import convert, convert_stablehlo
from jaxtf.convert._graph.parse import parse
from jaxtf.convert._graph.plan.plan import plan
from jaxtf.serialization.interop import export_for_graph, operations_of

from .graph_mode import same_as_jax

X = np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4)
EDGES = np.array([[np.nan, 1, 2, 3], [np.inf, 0, 1, -np.inf], [-np.inf] * 4, [0.0, -0.0, 88, 1e38]], np.float32)
X4 = np.linspace(-2, 2, 16, dtype=np.float32).reshape(4, 4)
EPS = np.finfo(np.float32).eps


def types_of(function, *args, shapes=None, enable_xla=True):
    converted = convert(function, native_serialization=False, polymorphic_shapes=shapes, enable_xla=enable_xla)
    specs = [tf.TensorSpec([None, *arg.shape[1:]] if shapes else arg.shape, arg.dtype) for arg in args]
    graph = tf.function(converted, autograph=False).get_concrete_function(*specs).graph
    unimportant = {"Placeholder", "Const", "Identity", "IdentityN", "NoOp"}
    return [operation.type for operation in graph.get_operations() if operation.type not in unimportant]


SUMS = {
    "three": (lambda x, y, z: z + (x + y), {"AddN": 1}),
    "of a sum": (lambda x, y, z: (x + y) + (z + x), {"AddN": 1, "AddV2": 1}),
    "of another sum, longer": (lambda x, y, z: (x + y) + ((z + x) + y), {"AddN": 1, "AddV2": 1}),
    "ten": (lambda x, y, z: x + y + z + x + y + z + x + y + z + x, {"AddN": 2}),
    "of what is used again": (lambda x, y, z: (s := x + y) * (s + z), {"AddV2": 2}),
    "twice the same": (lambda x, y, z: (s := x + y) + s, {"AddV2": 2}),
    "two": (lambda x, y, z: x + y, {"AddV2": 1}),
    "of what is broadcast": (lambda x, y, z: x + y + z.max(0), {"AddV2": 2}),
    "of a number": (lambda x, y, z: x + y + 1, {"AddV2": 2}),
}
LARGE = np.zeros((128, 128), np.float32)


@pytest.mark.parametrize("shapes", [None, "(b, _)"], ids=["static", "symbolic"])
@pytest.mark.parametrize("name", SUMS)
def test_sums_that_nothing_else_uses_become_one_operation(name, shapes):
    function, expected = SUMS[name]
    types = types_of(function, LARGE, LARGE, LARGE, shapes=shapes and [shapes] * 3)
    counts = {op: types.count(op) for op in ("AddN", "AddV2") if op in types}
    assert counts == expected
    assert "AddN" not in types_of(function, LARGE, LARGE, LARGE, shapes=shapes and [shapes] * 3, enable_xla=False)


def test_small_sums_and_those_of_integers_or_bfloat16_are_of_two():
    for x in (X, LARGE.astype(np.int32), LARGE.astype(jnp.bfloat16)):
        assert "AddN" not in types_of(lambda x, y, z: x + y + z, x, x, x)


def softmax_by_hand(x):
    exponentials = jnp.exp(x - x.max(axis=0))
    return exponentials / exponentials.sum(axis=0)


def over_sum(x):
    return x / x.sum(axis=1, keepdims=True)


FORMS = {
    "softmax": (jax.nn.softmax, "Softmax", False),
    "log_softmax": (jax.nn.log_softmax, "LogSoftmax", True),
    "relu": (jax.nn.relu, "Relu", True),
    "maximum": (lambda x: jnp.maximum(0, x), "Relu", True),
    "by hand": (softmax_by_hand, "Softmax", False),
}


@pytest.mark.parametrize("shapes", [None, ["(b, _)"]], ids=["static", "symbolic"])
@pytest.mark.parametrize("name", FORMS)
def test_a_form_becomes_the_operation_of_that_name(name, shapes):
    function, expected, also_of_nan = FORMS[name]
    types = types_of(function, X, shapes=shapes, enable_xla=False)
    assert (types.count(expected), {"Exp", "Sum", "Max", "Maximum"} & set(types)) == (1, set())
    converted = convert(function, native_serialization=False, polymorphic_shapes=shapes, enable_xla=False)
    for x in (X, EDGES) if also_of_nan else (X,):
        # Sums of four exponentials, each with an error of a few eps.
        np.testing.assert_allclose(converted(x), jax.jit(function)(x), rtol=16 * EPS, atol=16 * EPS)


def from_one(x):
    return lax.reduce(x, np.float32(1), lax.add, (1,)) / 4


MEANS = {  # a function, and whether it is a mean
    "all": (jnp.mean, True),
    "of columns": (lambda x: x.mean(0), True),
    "kept": (lambda x: x.mean(1, keepdims=True), True),
    "both kept": (lambda x: x.mean((0, 1), keepdims=True), True),
    "by hand": (lambda x: x.sum(1) / 4, True),
    "of squares, taken away": (lambda x: x - (x * x).mean(1, keepdims=True), True),
    "another number": (lambda x: x.sum(1) / 3, False),
    "repeated": (lambda x: jnp.broadcast_to(x.sum(1, keepdims=True), (4, 4)) / 4, False),
    "of the largest": (lambda x: lax.reduce(x, np.float32(0), lax.max, (1,)) / 4, False),
    "from one": (from_one, False),
    "of integers": (lambda x: x.astype(int).sum(1) // 4, False),
}


@pytest.mark.parametrize("name", MEANS)
def test_a_sum_divided_by_its_count_is_a_mean(name):
    function, is_mean = MEANS[name]
    types = types_of(function, X4)
    assert ("Mean" in types) == is_mean
    assert not is_mean or not {"Sum", "RealDiv"} & set(types)
    converted = convert(function, native_serialization=False)
    for values in (X4, EDGES) if is_mean else (X4,):
        for run in (converted, tf.function(converted, autograph=False, jit_compile=True)):
            np.testing.assert_allclose(run(values), jax.jit(function)(values), rtol=16 * EPS, atol=16 * EPS)


def test_a_sum_whose_dimensions_change_places_is_not_a_mean():
    module = """
        func.func @main(%x: tensor<2x3x2xf32>) -> tensor<2x1x2xf32> {
          %zero = stablehlo.constant dense<0.0> : tensor<f32>
          %three = stablehlo.constant dense<3.0> : tensor<2x1x2xf32>
          %sum = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1]
            : (tensor<2x3x2xf32>, tensor<f32>) -> tensor<2x2xf32>
          %turned = stablehlo.broadcast_in_dim %sum, dims = [2, 0] : (tensor<2x2xf32>) -> tensor<2x1x2xf32>
          %mean = stablehlo.divide %turned, %three : tensor<2x1x2xf32>
          return %mean : tensor<2x1x2xf32>
        }
    """
    x = np.arange(12, dtype=np.float32).reshape(2, 3, 2)
    (found,) = tf.nest.flatten(convert_stablehlo(module)(x))
    np.testing.assert_allclose(found, x.mean(1).T[:, None, :], rtol=16 * EPS)


def test_a_mean_over_a_symbolic_size_is_the_sum_divided():
    def function(x):
        return x.mean(1), x.mean(0)

    types = types_of(function, X, shapes=["(b, _)"])
    assert (types.count("Mean"), types.count("Sum")) == (1, 1)
    converted = convert(function, native_serialization=False, polymorphic_shapes=["(b, _)"])
    for found, expected in zip(converted(X), function(X), strict=True):
        np.testing.assert_allclose(found, expected, rtol=16 * EPS)


def names_erfc():
    """Whether the installed JAX leaves erfc by its name in a module; 0.10.2 writes its polynomials."""
    exported = export_for_graph(jax.jit(jax.lax.erfc))(X)
    operations = operations_of(parse(exported.mlir_module_serialized).functions["main"].body)
    return any(operation.attributes.get("name") == "chlo.erfc" for operation in operations)


needs_erfc = pytest.mark.skipif(not names_erfc(), reason="this JAX writes erfc as polynomials")


@needs_erfc
def test_exact_gelu_is_written_as_tensorflow_does_for_other_consumers():
    def gelu(x):
        return jax.nn.gelu(x, approximate=False)

    written = tf.function(lambda x: tf.nn.gelu(x, approximate=False)).get_concrete_function(tf.TensorSpec(X.shape))
    types = [operation.type for operation in written.graph.get_operations()]
    assert types_of(gelu, X, enable_xla=False) == [t for t in types if t not in ("Placeholder", "Const", "Identity")]
    assert types_of(gelu, X).count("Erfc") == 1
    wide = np.linspace(-9, 9, 64, dtype=np.float32)
    for enable_xla, tolerance in ((True, 0), (False, 9)):
        converted = convert(gelu, native_serialization=False, enable_xla=enable_xla)
        # Of 1 + erf(x) the rounding of 1 is lost, times x.
        np.testing.assert_allclose(converted(wide), gelu(wide), rtol=16 * EPS, atol=tolerance * EPS)


@needs_erfc
@pytest.mark.parametrize(
    ("half", "scale", "turned"),
    [(0.5, 0.5**0.5, False), (0.25, 0.5**0.5, False), (0.5, 0.7, False), (0.5, 0.5**0.5, True)],
)
def test_only_gelu_is_gelu(half, scale, turned):
    def function(x):
        return half * x * jax.lax.erfc(-(x[::-1] if turned else x) * np.float32(scale))

    exported = export_for_graph(jax.jit(function))(X)
    operations = operations_of(plan(parse(exported.mlir_module_serialized), False).functions["main"].body)
    found = "jaxtf.gelu" in {operation.name for operation in operations}
    assert found == ((half, scale, turned) == (0.5, 0.5**0.5, False))


def test_softmax_of_rows_with_nan_is_that_of_jax_unless_the_graph_is_for_other_consumers():
    converted = convert(jax.nn.softmax, native_serialization=False)
    np.testing.assert_allclose(converted(EDGES), jax.jit(jax.nn.softmax)(EDGES), rtol=16 * EPS, atol=16 * EPS)
    assert "Softmax" not in types_of(jax.nn.softmax, X)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: over_sum(jnp.exp(x - x.max())),  # another maximum
        lambda x: over_sum(jnp.exp(x - x.max(0))),  # along two dimensions
        lambda x: over_sum(jnp.exp(x - 2 * x.max(1, keepdims=True))),
        lambda x: jnp.exp(x - x.max(1, keepdims=True)) / jnp.exp(x).sum(1, keepdims=True),  # another sum
        lambda x: jnp.maximum(x, 1e-30),
        lambda x: jnp.minimum(x, 0),
        lambda x: jax.nn.softmax(x.astype(jnp.bfloat16)),
        lambda x: jnp.maximum(x.astype(jnp.int32), 0),
    ],
)
def test_what_only_looks_like_a_form_is_left(function):
    assert not {"Softmax", "LogSoftmax", "Relu"} & set(types_of(function, X, enable_xla=False))
    converted = convert(function, native_serialization=False)
    np.testing.assert_allclose(converted(X), np.asarray(jax.jit(function)(X)), rtol=16 * EPS)


BROADCASTS = {
    "scalar": lambda x: x * 2 + 1,
    "row": lambda x: x + np.arange(4, dtype=np.float32),
    "column": lambda x: x - x.mean(axis=1, keepdims=True),
    "column of a reduction": lambda x: x / jnp.sqrt((x**2).sum(axis=1))[:, None],
    "both": lambda x: x[:, :1] * x[:1],
    "both scalars": lambda x: jnp.full(x.shape, x.sum()) * jnp.full(x.shape, x.max()),
    "select": lambda x: jnp.where(x > 0, 1.0, x.sum(0)),
    "clamp": lambda x: jnp.clip(x, -1, 1),
    "equal elements": lambda x: x + np.full((3, 4), 2.5, np.float32),
    "outer": lambda x: x.sum(1)[:, None] + x.sum(0)[None, :],
}


# The constant of equal elements has a size of its own, and is not a program for all sizes.
@pytest.mark.parametrize(
    ("name", "shapes"),
    [*((name, None) for name in BROADCASTS), *((name, ["(b, _)"]) for name in BROADCASTS if name != "equal elements")],
)
def test_elementwise_operations_broadcast_by_themselves(name, shapes):
    function = BROADCASTS[name]
    types = types_of(function, X, shapes=shapes)
    # Of two operands that are both broadcast, or may be for all that is known, one has to be as large as the result.
    assert types.count("BroadcastTo") + types.count("Fill") <= (
        name in ("both", "outer", "both scalars") or shapes is not None
    )
    converted = convert(function, native_serialization=False, polymorphic_shapes=shapes)
    np.testing.assert_allclose(converted(X), function(X), rtol=1e-6, atol=1e-6)


def planned(text):
    return [operation.name for operation in operations_of(plan(parse(text)).functions["main"].body)]


def test_what_nobody_uses_is_left_out_and_assertions_are_not():
    assert planned(
        """
        func.func @main(%x: tensor<f32>, %p: tensor<i1>) -> tensor<f32> {
          %0 = stablehlo.sine %x : tensor<f32>
          %1 = stablehlo.cosine %0 : tensor<f32>
          stablehlo.custom_call @shape_assertion(%p) {error_message = "no"} : (tensor<i1>) -> ()
          %2 = stablehlo.negate %x : tensor<f32>
          return %2 : tensor<f32>
        }"""
    ) == ["custom_call.shape_assertion", "stablehlo.negate"]


def test_a_function_with_an_assertion_is_called_though_nobody_uses_its_result():
    assert planned(
        """
        func.func @main(%x: tensor<f32>, %p: tensor<i1>) -> tensor<f32> {
          %0 = func.call @checked(%x, %p) : (tensor<f32>, tensor<i1>) -> tensor<f32>
          %1 = func.call @unchecked(%x) : (tensor<f32>) -> tensor<f32>
          return %x : tensor<f32>
        }
        func.func private @checked(%x: tensor<f32>, %p: tensor<i1>) -> tensor<f32> {
          stablehlo.custom_call @shape_assertion(%p) {error_message = "no", has_side_effect = true} : (tensor<i1>) -> ()
          return %x : tensor<f32>
        }
        func.func private @unchecked(%x: tensor<f32>) -> tensor<f32> { return %x : tensor<f32> }"""
    ) == ["func.call"]


def test_sizes_that_types_know_are_constants():
    text = """
        func.func @main(%x: tensor<?x4xf32>) -> (tensor<i32>, tensor<i32>) {
          %0 = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x4xf32>) -> tensor<i32>
          %1 = stablehlo.get_dimension_size %x, dim = 1 : (tensor<?x4xf32>) -> tensor<i32>
          return %0, %1 : tensor<i32>, tensor<i32>
        }"""
    assert planned(text) == ["stablehlo.get_dimension_size", "stablehlo.constant"]
    assert [result.numpy() for result in convert_stablehlo(text)(X)] == [3, 4]


def test_forms_are_found_in_bodies_of_loops_with_constants_outside():
    types = convert(lambda x: lax.fori_loop(0, 3, lambda i, v: jax.nn.relu(v) - 1, x), native_serialization=False)
    definition = tf.function(types, autograph=False).get_concrete_function(X).graph.as_graph_def()
    bodies = [node.op for function in definition.library.function for node in function.node_def]
    assert "Relu" in bodies


W = np.cos(np.arange(40, dtype=np.float32)).reshape(4, 10)
Y = np.sin(np.arange(24, dtype=np.float32)).reshape(2, 3, 4)


def reduced_once(y):
    largest = y.max(2)
    return y - largest[:, :, None], largest


# How many reshapes there are.
RESHAPED = {
    "a chain": (lambda y: y.reshape(-1, 12).reshape(-1, 2, 6), 1),
    "back again": (lambda y: jnp.sin(y.reshape(-1, 12).reshape(-1, 3, 4)), 0),
    "twice the same": (lambda y: jnp.sin(y.reshape(-1, 12)) + jnp.cos(y.reshape(-1, 12)), 1),
    "two shapes": (lambda y: (y.reshape(-1, 12), y.reshape(-1, 2, 6)), 2),
    "a product": (lambda y: y @ W, 2),
    "three products": (lambda y: (y @ W, jnp.sin(y @ W[:, :5]), y @ W[:, 5:]), 4),
    "split heads": (lambda y: (y @ W).reshape(-1, 3, 2, 5), 2),
    "kept dimensions": (lambda y: y - y.max(2, keepdims=True), 0),
    "two kept dimensions": (lambda y: y * y.sum((1, 2), keepdims=True), 0),
    "kept and not": (reduced_once, 1),
    "softmax": (jax.nn.softmax, 0),
    "a choice": (lambda y: jnp.where(np.eye(3, 4) > 0, y, -1e9), 0),
}


@pytest.mark.parametrize("shapes", [None, ["(b, _, _)"]], ids=["static", "symbolic"])
@pytest.mark.parametrize("name", RESHAPED)
def test_reshapes_that_need_not_be_are_left_out(name, shapes):
    function, count = RESHAPED[name]
    types = types_of(function, Y, shapes=shapes)
    # An unknown size is asked for once, for the assertion that it is at least 1, which has two more.
    assert types.count("Reshape") == count + (2 if shapes else 0)
    assert types.count("Shape") == (1 if shapes else 0)
    assert types.count("ExpandDims") == types.count("Max")  # so that Grappler does not rewrite it
    assert not {"Pack", "ConcatV2", "BroadcastTo"} & set(types)
    converted = convert(function, native_serialization=False, polymorphic_shapes=shapes)
    for y in (Y, Y[:1]) if shapes else (Y,):
        found, expected = jax.tree.leaves(converted(y)), jax.tree.leaves(function(y))
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


def test_a_result_with_kept_dimensions_is_that_of_the_reduction():
    assert types_of(lambda y: jnp.sin(y.sum(1, keepdims=True)), Y) == ["Sum", "Sin"]


PRODUCTS = {
    "of nothing": ("abk,kn->abn", (2, 3, 0), (0, 4)),
    "without rows": ("abk,kn->abn", (2, 0, 3), (3, 4)),
    "a vector first": ("k,kn->n", (3,), (3, 4)),
    "a vector last": ("abk,k->ab", (2, 3, 4), (4,)),
    "of two dimensions": ("akl,kln->an", (2, 3, 4), (3, 4, 5)),
    "of the first dimensions": ("abk,abn->kn", (2, 3, 4), (2, 3, 5)),
    "by rows of the right": ("abk,nk->abn", (2, 3, 4), (5, 4)),
    "of a middle dimension": ("akb,kn->abn", (2, 3, 4), (3, 5)),
    "outer": ("ab,n->abn", (2, 3), (4,)),
    "in batches": ("akb,akn->abn", (2, 3, 4), (2, 3, 5)),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_products_of_arrays_are_those_of_jax(name):
    text, *shapes = PRODUCTS[name]
    arguments = [np.cos(np.arange(np.prod(shape), dtype=np.float32)).reshape(shape) for shape in shapes]
    converted = convert(lambda x, y: jnp.einsum(text, x, y), native_serialization=False)
    np.testing.assert_allclose(converted(*arguments), np.einsum(text, *arguments), rtol=1e-5, atol=1e-5)


def sines(*shape):
    return np.sin(np.arange(np.prod(shape), dtype=np.float32)).reshape(shape)


def swapped_by_hand(x):
    return lax.dot_general(x, x + 1, (((2,), (1,)), ((0,), (0,)))).transpose(0, 2, 1)


def batches_twice(x, w):
    y = x.swapaxes(0, 1)
    return y @ w, y


def product_twice(x, w):
    y = x @ w
    return y, y.T


def in_a_branch(x, w):
    t = w.T
    return lax.cond(x[0, 0] > 0, lambda: x, lambda: x @ t)


def around(x, w):
    return jnp.einsum("akb,kn->abn", x.transpose(2, 1, 0), w)


TRANSPOSED = {  # a function, the shapes of its arguments, and the transposes and products that are left
    "a right operand": (lambda x, w: x @ w.T, [(3, 4), (5, 4)], (0, 1)),
    "a left operand": (lambda x, w: x.T @ w, [(4, 3), (4, 5)], (0, 1)),
    "both operands": (lambda x, w: x.T @ w.T, [(4, 3), (5, 4)], (0, 1)),
    "an operand of arrays": (lambda x, w: x @ w.T, [(2, 3, 4), (5, 4)], (0, 1)),
    "an operand in batches": (lambda x, w: x @ w.swapaxes(1, 2), [(2, 3, 4), (2, 5, 4)], (0, 1)),
    "two contracted dimensions": (
        lambda x, w: jnp.einsum("alk,kln", x.swapaxes(1, 2), w),
        [(2, 3, 4), (3, 4, 5)],
        (0, 1),
    ),
    "a result": (lambda x, w: (x @ w).T, [(3, 4), (4, 5)], (0, 1)),
    "a result in batches": (swapped_by_hand, [(2, 3, 3)], (0, 1)),
    "an operand and a result": (lambda x, w: (x @ w.T).T, [(3, 4), (5, 4)], (0, 1)),
    "a product of products": (lambda x, w: (x @ w.T).T @ x, [(3, 4), (5, 4)], (0, 2)),
    "gradients": (jax.grad(lambda x, w: jnp.sin(x @ w).sum(), (0, 1)), [(3, 4), (4, 5)], (0, 3)),
    "a transpose": (lambda x: x.transpose(1, 2, 0).transpose(0, 2, 1), [(2, 3, 4)], (1, 0)),
    "itself": (lambda x: x.T.T, [(3, 4)], (0, 0)),
    "in a branch": (in_a_branch, [(4, 4), (4, 4)], (0, 0)),
    # These stay.
    "free dimensions": (lambda x, w: x.transpose(1, 0, 2) @ w, [(2, 3, 4), (4, 5)], (1, 1)),
    "dimensions around a contracted one": (around, [(2, 4, 3), (4, 5)], (2, 1)),
    "a result that is read as it is, too": (product_twice, [(3, 4), (4, 5)], (1, 1)),
    "batches": (lambda x, w: x.swapaxes(0, 1) @ w, [(3, 2, 4), (2, 4, 5)], (1, 1)),
    "batches that are read otherwise, too": (batches_twice, [(3, 2, 4), (2, 4, 5)], (1, 1)),
    "batches of a result": (lambda x, w: (x @ w).swapaxes(0, 1), [(2, 3, 4), (2, 4, 5)], (1, 1)),
}


@pytest.mark.parametrize("name", TRANSPOSED)
def test_products_take_and_give_what_is_transposed(name):
    function, shapes, expected = TRANSPOSED[name]
    arguments = [sines(*shape) for shape in shapes]
    types = types_of(function, *arguments)
    assert (types.count("Transpose"), types.count("MatMul") + types.count("BatchMatMulV2")) == expected
    converted = convert(function, native_serialization=False)
    for run in (converted, tf.function(converted, autograph=False, jit_compile=True)):
        found, right = jax.tree.leaves(run(*arguments)), jax.tree.leaves(function(*arguments))
        for one, other in zip(found, right, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


def test_products_of_unknown_sizes_take_what_is_transposed():
    def function(x, w):
        return jnp.tanh(x @ w.swapaxes(1, 2)).swapaxes(1, 2) @ x

    x, w = sines(2, 3, 4), sines(2, 5, 4)
    shapes = ["(b, n, 4)", "(b, m, 4)"]
    assert "Transpose" not in types_of(function, x, w, shapes=shapes)
    converted = convert(function, native_serialization=False, polymorphic_shapes=shapes)
    for size in (1, 2):
        np.testing.assert_allclose(converted(x[:size], w[:size]), function(x[:size], w[:size]), rtol=1e-5, atol=1e-5)


def test_a_product_of_two_unknown_sizes_asks_for_them():
    shapes, arguments = ["(a, b, 4)", None], (Y, W)
    converted = convert(jnp.matmul, native_serialization=False, polymorphic_shapes=shapes)
    for y in (Y, Y[:1, :2]):
        np.testing.assert_allclose(converted(y, W), y @ W, rtol=1e-5, atol=1e-5)
    assert converted(*arguments).shape == (2, 3, 10)


def test_a_reduction_that_is_read_in_a_loop_keeps_its_shape():
    def function(x):
        sums = x.sum(1)
        return lax.fori_loop(0, 2, lambda i, v: v + sums, sums) + sums[:, None].sum()

    np.testing.assert_allclose(convert(function, native_serialization=False)(X), function(X), rtol=1e-5)


def test_a_reduction_by_halves_keeps_its_dimensions_too():
    text = """
        func.func @main(%x: tensor<3x4xf32>) -> tensor<3x1xf32> {
          %c = stablehlo.constant dense<1.0> : tensor<f32>
          %0 = stablehlo.reduce(%x init: %c) across dimensions = [1] : (tensor<3x4xf32>, tensor<f32>) -> tensor<3xf32>
           reducer(%a: tensor<f32>, %b: tensor<f32>) {
            %s = stablehlo.add %a, %b : tensor<f32>
            %d = stablehlo.add %s, %c : tensor<f32>
            stablehlo.return %d : tensor<f32>
          }
          %1 = stablehlo.reshape %0 : (tensor<3xf32>) -> tensor<3x1xf32>
          return %1 : tensor<3x1xf32>
        }"""
    np.testing.assert_allclose(convert_stablehlo(text)(X), X.sum(1, keepdims=True) + 5, rtol=1e-6)


def test_the_maximum_with_minus_infinity_is_left_out_and_nan_stays():
    def function(x):
        return jnp.maximum(x, -np.inf) + 1

    x = np.array([np.nan, -np.inf, 2], np.float32)
    assert types_of(function, x) == ["AddV2"]
    np.testing.assert_array_equal(convert(function, native_serialization=False)(x), function(x))


@pytest.mark.parametrize("shape", [(1, 1, 3), (1, 1, 1, 3), (1, 3), (3,), (1, 4, 3), (5, 1, 3)])
def test_a_product_and_a_bias_of_more_dimensions_have_those_of_the_bias(shape):
    # Grappler fuses the two, and forgets dimensions of the bias; in a test that its result is looked at, in a graph.
    rank = max(len(shape), 2)
    bias = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)

    def biased(x, w, b):
        product = lax.broadcast_in_dim(x @ w, (1,) * (rank - 2) + (4, 3), (rank - 2, rank - 1))
        return [product + b, b + product, jax.nn.relu(product + b), product + bias]

    arguments = [np.ones((4, 2), np.float32), np.ones((2, 3), np.float32), bias]
    same_as_jax(biased, *arguments, mode="graph")


def test_the_bias_of_a_called_function_keeps_its_dimensions():
    @jax.jit
    def product(x, w):
        return x @ w

    def biased(x, w, b):
        return product(x, w)[None] + b

    same_as_jax(biased, np.ones((4, 2), np.float32), np.ones((2, 3), np.float32), np.ones((1, 1, 3), np.float32))


def pooled_relu(padding, k=None):
    def function(x):
        y = jax.nn.relu(x if k is None else x + k)
        return lax.reduce_window(y, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 1, 1), padding)

    return function


def test_a_relu_comes_after_a_max_pool_unless_it_is_a_result_too():
    x = np.zeros((2, 5, 4, 3), np.float32)
    function = pooled_relu("VALID", 1)
    assert "Relu" not in types_of(function, x)  # but in the branch of the pool
    assert "Relu" in types_of(lambda x: (function(x), jax.nn.relu(x + 1)), x)
    assert "Relu" in types_of(function, x, enable_xla=False)


@pytest.mark.parametrize("padding", ["VALID", "SAME", *(((0, 0), (n, 0), (0, 1), (0, 0)) for n in (1, 3))])
@pytest.mark.parametrize("special", [0, np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("mode", ["eager", "graph"])
def test_max_pools_of_a_relu_are_those_of_jax(mode, special, padding):
    x = np.random.RandomState(0).randint(-9, 3, (2, 5, 4, 3)).astype(np.float32)
    x[0, 1:3, 2] = special
    x[1, :, :3, 2] = -np.inf
    converted = convert(
        pooled_relu(padding), native_serialization=False, polymorphic_shapes=["(b, h, w, _)"] if special == 0 else None
    )
    if mode == "graph":
        converted = tf.function(converted, autograph=False)
    # Taken from relus by hand: JAX's own drops NaN in maxima.
    relus = np.where(x > 0, x, np.where(np.isnan(x), x, 0))
    edges = padding if isinstance(padding, tuple) else lax.padtype_to_pads(x.shape, (1, 2, 2, 1), (1, 2, 1, 1), padding)
    padded = np.pad(relus, edges, constant_values=-np.inf)
    height, width = padded.shape[1] // 2, padded.shape[2] - 1
    windows = [padded[:, i : 2 * height : 2, j : j + width] for i in (0, 1) for j in (0, 1)]
    np.testing.assert_array_equal(converted(x), np.max(windows, 0))
