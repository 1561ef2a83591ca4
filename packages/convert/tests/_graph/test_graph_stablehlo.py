"""`convert_stablehlo`: modules of any producer, in every format that they come in."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax import lax

from jaxtf.convert import ArgumentTypeError, ConversionOptionError, GraphModeUnsupported, convert_stablehlo
from jaxtf.serialization import export, lift

from .graph_mode import run_module

ADD = """
func.func @main(%x: tensor<?xf32>, %y: tensor<?xf32>) -> tensor<?xf32> {
  %0 = stablehlo.add %x, %y : tensor<?xf32>
  return %0 : tensor<?xf32>
}"""
X = np.linspace(0, 1, 12, dtype=np.float32).reshape(3, 4)


class Printed:
    """A module of somebody's bindings."""

    def __str__(self):
        return ADD


@pytest.mark.parametrize("form", [ADD, ADD.encode(), Printed()], ids=["text", "bytes", "printed"])
def test_a_text_is_a_function_of_tensors(form):
    add = convert_stablehlo(form)
    np.testing.assert_array_equal(add(tf.constant([1.0]), np.float32([2])), [3])
    traced = tf.function(add, autograph=False).get_concrete_function(tf.TensorSpec([None]), tf.TensorSpec([None]))
    np.testing.assert_array_equal(traced(tf.constant([1.0, 2.0]), tf.constant([3.0, 4.0])), [4, 6])
    assert "AddV2" in [operation.type for operation in traced.graph.get_operations()]


@pytest.mark.parametrize("form", ["exported", "artifact", "portable", "bytecode", "memory", "module"])
def test_every_format_of_a_module_is_read(form):
    exported = export(lambda x: (jnp.sin(x), x.sum()))(X)
    lowered = jax.jit(lambda x: (jnp.sin(x), x.sum())).lower(X).compiler_ir()
    module = {
        "exported": exported,
        "artifact": exported.serialize(),
        "portable": exported.mlir_module_serialized,
        "memory": memoryview(exported.mlir_module_serialized),
        "bytecode": bytecode(lowered),
        "module": lowered,
    }[form]
    sine, total = convert_stablehlo(module)(X)
    np.testing.assert_allclose(sine, np.sin(X), atol=1e-6)
    np.testing.assert_allclose(total, X.sum(), rtol=1e-6)


def bytecode(module):
    import io

    stream = io.BytesIO()
    module.operation.write_bytecode(stream)
    return stream.getvalue()


def test_tensorflow_differentiates_it():
    square = convert_stablehlo(ADD.replace("add", "multiply"))
    x = tf.Variable([2.0, 3.0])
    with tf.GradientTape() as tape:
        y = square(x, x)
    np.testing.assert_array_equal(tape.gradient(y, x), [4, 6])


def test_a_tape_inside_a_graph_differentiates_it():
    converted = convert_stablehlo(export(lambda x: (jnp.sin(x) @ x.T).sum())(X).mlir_module_serialized)

    @tf.function(autograph=False)
    def gradient(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = converted(x)
        return tape.gradient(y, x)

    expected = jax.grad(lambda x: (jnp.sin(x) @ x.T).sum())(X)
    np.testing.assert_allclose(gradient(tf.constant(X)), expected, rtol=1e-5, atol=1e-6)


def test_tuples_and_maps_are_translated():
    text = """
    func.func @main(%x: tensor<3xf32>, %y: tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>) {
      %0 = stablehlo.tuple %x, %y : tuple<tensor<3xf32>, tensor<3xf32>>
      %1 = stablehlo.get_tuple_element %0[1] : (tuple<tensor<3xf32>, tensor<3xf32>>) -> tensor<3xf32>
      %2 = "stablehlo.map"(%x, %1) ({
        ^bb0(%a: tensor<f32>, %b: tensor<f32>):
          %c = stablehlo.constant dense<2.0> : tensor<f32>
          %3 = stablehlo.multiply %a, %c : tensor<f32>
          %4 = stablehlo.subtract %3, %b : tensor<f32>
          stablehlo.return %4 : tensor<f32>
      }) {dimensions = array<i64: 0>} : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
      %5:2 = stablehlo.optimization_barrier %2, %1 : tensor<3xf32>, tensor<3xf32>
      return %5#0, %5#1 : tensor<3xf32>, tensor<3xf32>
    }"""
    for compiled in (False, True):
        run = tf.function(convert_stablehlo(text), autograph=False, jit_compile=compiled)
        first, second = run(tf.constant([1.0, 2.0, 3.0]), tf.constant([4.0, 5.0, 6.0]))
        assert (first.numpy().tolist(), second.numpy().tolist()) == ([-2, -1, 0], [4, 5, 6])


def test_a_call_of_a_library_may_have_one_tuple_for_its_results():
    """As TensorFlow writes it; graph mode and `lift` compute it as JAX's several results."""
    of_several = """
    func.func @main(%x: tensor<3x3xf32>) -> (tensor<3x3xf32>, tensor<3xf32>) {
      %0:2 = stablehlo.custom_call @Qr(%x) : (tensor<3x3xf32>) -> (tensor<3x3xf32>, tensor<3xf32>)
      return %0#0, %0#1 : tensor<3x3xf32>, tensor<3xf32>
    }"""
    of_one = """
    func.func @main(%x: tensor<3x3xf32>) -> (tensor<3x3xf32>, tensor<3xf32>) {
      %0 = stablehlo.custom_call @Qr(%x) : (tensor<3x3xf32>) -> tuple<tensor<3x3xf32>, tensor<3xf32>>
      %1 = stablehlo.get_tuple_element %0[0] : (tuple<tensor<3x3xf32>, tensor<3xf32>>) -> tensor<3x3xf32>
      %2 = stablehlo.get_tuple_element %0[1] : (tuple<tensor<3x3xf32>, tensor<3xf32>>) -> tensor<3xf32>
      return %1, %2 : tensor<3x3xf32>, tensor<3xf32>
    }"""
    x = np.float32([[4, 1, 2], [1, 5, 3], [0, -2, 6]])
    expected = lift(of_several)(x)
    for found in (lift(of_one)(x), convert_stablehlo(of_one)(x), convert_stablehlo(of_several)(x)):
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


BIASED = """
func.func @main(%x: tensor<RxCxf32>, %b: tensor<Sxf32>) -> tensor<KxLxf32> {
  %0 = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<Sxf32>) -> tensor<3x4xf32>
  %1 = stablehlo.multiply %0, %0 : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<MxNxf32>
  %2 = stablehlo.add %1, %x : (tensor<MxNxf32>, tensor<RxCxf32>) -> tensor<PxQxf32>
  %3 = stablehlo.subtract %2, %0 : (tensor<PxQxf32>, tensor<3x4xf32>) -> tensor<KxLxf32>
  return %3 : tensor<KxLxf32>
}"""
SIZES = dict(zip("RCSMNPQKL", (3, 4, 4, 3, 4, 3, 4, 3, 4), strict=True))


@pytest.mark.parametrize("open_ones", ["", *SIZES, "RC", "MN", "PQ", "KL", "SMQ", "RCMNPQ", "".join(SIZES)])
def test_a_row_is_added_whatever_sizes_the_types_know(open_ones):
    text = BIASED
    for name, size in SIZES.items():
        text = re.sub(rf"(?<=[<x]){name}x", "?x" if name in open_ones else f"{size}x", text)
    row = np.float32([1, 2, 3, 5])
    add = convert_stablehlo(text)
    for run in in_three_ways(add):
        np.testing.assert_array_equal(run(X, row), row * row + X - row)


def test_rows_of_another_size_are_refused():
    """Where a type leaves the size of the row open, which becomes one row of three."""
    for name in ("S", "SMN"):
        text = BIASED
        for size_name, size in SIZES.items():
            text = re.sub(rf"(?<=[<x]){size_name}x", "?x" if size_name in name else f"{size}x", text)
        with pytest.raises((ArgumentTypeError, tf.errors.InvalidArgumentError)):
            convert_stablehlo(text)(X, np.float32([1, 2, 3]))


@pytest.mark.parametrize("groups", [1, 2, 4])
@pytest.mark.parametrize("knows", ["kernel", "operand", "result", "nothing"])
def test_a_convolution_of_features_that_a_type_leaves_open(knows, groups):
    inner, rest = 4 // groups, "xf32"
    operand, kernel = f"tensor<2x5x5x{4 if knows == 'operand' else '?'}{rest}>", f"tensor<3x3x?x?{rest}>"
    made = f"tensor<2x3x3x{4 if knows == 'result' else '?'}{rest}>"
    if knows == "kernel":
        kernel = f"tensor<3x3x{inner}x4{rest}>"
    text = f"""
func.func @main(%x: {operand}, %k: {kernel}) -> {made} {{
  %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {{}}
    {{batch_group_count = 1 : i64, feature_group_count = {groups} : i64}} : ({operand}, {kernel}) -> {made}
  return %0 : {made}
}}"""
    drawn = np.random.default_rng(0)
    x, k = (drawn.integers(-3, 4, shape).astype(np.float32) for shape in ((2, 5, 5, 4), (3, 3, inner, 4)))
    numbers = "NHWC", "HWIO", "NHWC"
    expected = lax.conv_general_dilated(x, k, (1, 1), "VALID", None, None, numbers, groups)
    for run in in_three_ways(convert_stablehlo(text)):
        np.testing.assert_array_equal(run(x, k), expected)


def test_rows_are_read_one_by_one_in_a_loop():
    """Compiled too, where XLA does not know the place when it compiles."""
    text = """
func.func @main(%x: tensor<?x4xf32>) -> tensor<1x4xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %first = stablehlo.constant dense<0.0> : tensor<1x4xf32>
  %steps = stablehlo.constant dense<1> : tensor<2xi32>
  %0:2 = stablehlo.while(%i = %zero, %sum = %first) : tensor<i32>, tensor<1x4xf32>
    cond {
      %three = stablehlo.constant dense<3> : tensor<i32>
      %c = stablehlo.compare LT, %i, %three, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    } do {
      %one = stablehlo.constant dense<1> : tensor<i32>
      %next = stablehlo.add %i, %one : tensor<i32>
      %parts = stablehlo.constant dense<[0]> : tensor<1xi32>
      %whole = stablehlo.constant dense<[4]> : tensor<1xi32>
      %r = stablehlo.reshape %i : (tensor<i32>) -> tensor<1xi32>
      %s = stablehlo.reshape %next : (tensor<i32>) -> tensor<1xi32>
      %from = stablehlo.concatenate %r, %parts, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
      %to = stablehlo.concatenate %s, %whole, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
      %row = stablehlo.real_dynamic_slice %x, %from, %to, %steps :
        (tensor<?x4xf32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<1x4xf32>
      %more = stablehlo.add %sum, %row : tensor<1x4xf32>
      stablehlo.return %next, %more : tensor<i32>, tensor<1x4xf32>
    }
  return %0#1 : tensor<1x4xf32>
}"""
    for run in in_three_ways(convert_stablehlo(text)):
        np.testing.assert_array_equal(run(np.float32([[1, 2, 3, 4]] * 3)), [[3, 6, 9, 12]])


def in_three_ways(function):
    return function, tf.function(function, autograph=False), tf.function(function, autograph=False, jit_compile=True)


def test_if_takes_one_region():
    text = """
    func.func @main(%p: tensor<i1>, %x: tensor<f32>) -> tensor<f32> {
      %0 = "stablehlo.if"(%p) ({
        %1 = stablehlo.negate %x : tensor<f32>
        stablehlo.return %1 : tensor<f32>
      }, { stablehlo.return %x : tensor<f32> }) : (tensor<i1>) -> tensor<f32>
      return %0 : tensor<f32>
    }"""
    negated_if = convert_stablehlo(text)
    assert [negated_if(p, np.float32(3)).numpy() for p in (True, False)] == [-3, 3]


def test_a_composite_without_an_entry_is_its_decomposition():
    text = """
    func.func @main(%x: tensor<f32>) -> tensor<f32> {
      %0 = stablehlo.composite "mine.double" %x {decomposition = @double} : (tensor<f32>) -> tensor<f32>
      return %0 : tensor<f32>
    }
    func.func private @double(%x: tensor<f32>) -> tensor<f32> {
      %0 = stablehlo.add %x, %x : tensor<f32>
      return %0 : tensor<f32>
    }"""
    assert convert_stablehlo(text)(np.float32(3)).numpy() == 6


def test_shardings_change_no_value():
    text = """
    sdy.mesh @mesh = <["a"=2]>
    func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
      %0 = stablehlo.custom_call @Sharding(%x) {mhlo.sharding = "{devices=[2]<=[2]}"} : (tensor<4xf32>) -> tensor<4xf32>
      %1 = sdy.sharding_constraint %0 <@mesh, [{"a"}]> : tensor<4xf32>
      return %1 : tensor<4xf32>
    }"""
    assert convert_stablehlo(text)(tf.ones(4)).numpy().tolist() == [1] * 4


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ((np.float32([1]),), "'main' takes 2 arguments, found 1"),
        ((np.float32([1]), np.int32([1])), "argument 1 of 'main' must be float32(None,), found int32"),
        ((np.float32([1]), np.float32(1)), "argument 1 of 'main' must be float32(None,), found float32()"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(args, message):
    with pytest.raises(ArgumentTypeError) as caught:
        convert_stablehlo(ADD)(*args)
    assert str(caught.value) == message


@pytest.mark.parametrize(("dtype", "value"), [("ui8", 300), ("ui8", -1), ("i32", 2**40), ("i32", 2**31)])
def test_an_integer_that_the_dtype_does_not_have_is_refused(dtype, value):
    text = f"func.func @main(%x: tensor<{dtype}>) -> tensor<{dtype}> {{ return %x : tensor<{dtype}> }}"
    with pytest.raises(ArgumentTypeError, match=f"^argument 0 of 'main' is {value}, and u?int"):
        convert_stablehlo(text)(value)


def test_what_is_not_a_module_is_refused():
    with pytest.raises(ConversionOptionError, match="convert_stablehlo needs a StableHLO module: Unable to parse"):
        convert_stablehlo("def f(): pass")
    with pytest.raises(ConversionOptionError, match="a module whose function 'main' takes only arrays"):
        convert_stablehlo("func.func @main(%t: !stablehlo.token) -> () { return }")


def test_a_module_that_calls_a_function_it_does_not_hold_is_refused():
    module = """
    func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = stablehlo.custom_call @tf.call_tf_function(%x) {
        tf.backend_config = {called_index = 0 : i64, has_token_input_output = false}, api_version = 2 : i32
      } : (tensor<2xf32>) -> tensor<2xf32>
      return %0 : tensor<2xf32>
    }"""
    with pytest.raises(GraphModeUnsupported, match="it calls a TensorFlow function that the module does not hold"):
        convert_stablehlo(module)(tf.ones(2))


def test_a_file_what_jax_lowers_and_what_jax_export_gives_are_read(tmp_path):
    import jax.export

    path = tmp_path / "add.mlir"
    path.write_text(ADD)
    np.testing.assert_array_equal(convert_stablehlo(path)(np.float32([1]), np.float32([2])), [3])
    lowered = jax.jit(lambda x: x.sum(0)).lower(X)
    np.testing.assert_allclose(convert_stablehlo(lowered)(X), X.sum(0))
    np.testing.assert_allclose(convert_stablehlo(jax.export.export(jax.jit(lambda x: x.T))(X))(X), X.T)
    with pytest.raises(ConversionOptionError, match=r"remedy: to read a file, pass pathlib.Path"):
        convert_stablehlo(str(path))


IDENTITY = "func.func {} @{}(%x: tensor<2xf32>) -> tensor<2xf32> {{ return %x : tensor<2xf32> }}\n"


def test_which_function_is_the_main_one_is_never_guessed():
    for text in (IDENTITY.format("public", "a") + IDENTITY.format("public", "b"), IDENTITY.format("private", "a") * 0):
        with pytest.raises(ConversionOptionError, match=r"which of its functions to take|no function with a body"):
            convert_stablehlo(text)
    for text in (
        IDENTITY.format("public", "a") + IDENTITY.format("private", "b"),
        IDENTITY.format("public", "a") + IDENTITY.format("public", "main"),
    ):
        np.testing.assert_array_equal(convert_stablehlo(text)(np.float32([1, 2])), [1, 2])


def test_blocks_beside_each_other_are_refused():
    text = """func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
      cf.br ^bb1(%x : tensor<2xf32>)
    ^bb1(%y: tensor<2xf32>):
      return %y : tensor<2xf32>
    }"""
    with pytest.raises(GraphModeUnsupported, match=r"'main' has 2 blocks; .*\n  remedy: lift the control flow"):
        convert_stablehlo(text)


def test_recursion_is_refused_and_functions_that_nobody_calls_are_not_looked_at():
    call = "%0 = func.call @{}(%x) : (tensor<2xf32>) -> tensor<2xf32>\n return %0 : tensor<2xf32>"
    text = IDENTITY.replace("return %x : tensor<2xf32>", call)
    recursive = text.format("public", "main", "a") + text.format("private", "a", "b") + text.format("private", "b", "a")
    with pytest.raises(GraphModeUnsupported, match=r"'a' calls itself \(a -> b -> a\)"):
        convert_stablehlo(recursive)
    gathers = """func.func private @b(%x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = "stablehlo.all_gather"(%x) {all_gather_dim = 0 : i64, replica_groups = dense<[[0]]> : tensor<1x1xi64>}
        : (tensor<2xf32>) -> tensor<2xf32>
      return %0 : tensor<2xf32>
    }"""
    np.testing.assert_array_equal(
        convert_stablehlo(IDENTITY.format("public", "main") + gathers)(np.ones(2, "f")), [1, 1]
    )
    with pytest.raises(GraphModeUnsupported, match="all_gather"):
        convert_stablehlo(text.format("public", "main", "b") + gathers)


@pytest.mark.parametrize("compiled", [False, True])
def test_sizes_that_must_be_equal_are_not_broadcast(compiled):
    products = """func.func @main(%x: tensor<?x2xf32>, %y: tensor<?x2xf32>) -> tensor<?xf32> {
      %0 = stablehlo.dot_general %x, %y, batching_dims = [0] x [0], contracting_dims = [1] x [1]
        : (tensor<?x2xf32>, tensor<?x2xf32>) -> tensor<?xf32>
      return %0 : tensor<?xf32>
    }"""
    ones = np.ones((4, 2), np.float32)
    for text in (ADD.replace("tensor<?xf32>", "tensor<?x2xf32>"), products):
        function = tf.function(convert_stablehlo(text), autograph=False, jit_compile=compiled)
        np.testing.assert_array_equal(function(ones, ones), np.full(function(ones, ones).shape, 2))
        specifications = [tf.TensorSpec([None, 2])] * 2
        for traced in (function, tf.function(function, specifications, autograph=False, jit_compile=compiled)):
            with pytest.raises((ArgumentTypeError, tf.errors.InvalidArgumentError)):
                traced(ones[:1], ones)
    with pytest.raises(tf.errors.InvalidArgumentError, match="another size"):
        convert_stablehlo(products)(ones[:1], ones)


FORMS = {
    "a relu": """func.func @main(%x: tensor<?xf32>, %like: tensor<?xf32>) -> tensor<?xf32> {
      %zero = stablehlo.constant dense<0.0> : tensor<f32>
      %n = stablehlo.get_dimension_size %like, dim = 0 : (tensor<?xf32>) -> tensor<i32>
      %shape = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
      %zeros = stablehlo.dynamic_broadcast_in_dim %zero, %shape, dims = []
        : (tensor<f32>, tensor<1xi32>) -> tensor<?xf32>
      %0 = stablehlo.maximum %x, %zeros : tensor<?xf32>
      return %0 : tensor<?xf32>
    }""",
    "a softmax": """func.func @main(%x: tensor<?x4xf32>, %like: tensor<?x4xf32>) -> tensor<?x4xf32> {
      %zero = stablehlo.constant dense<0.0> : tensor<f32>
      %lowest = stablehlo.constant dense<0xFF800000> : tensor<f32>
      %four = stablehlo.constant dense<4> : tensor<1xi32>
      %n = stablehlo.get_dimension_size %like, dim = 0 : (tensor<?x4xf32>) -> tensor<i32>
      %n1 = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
      %shape = stablehlo.concatenate %n1, %four, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
      %max = stablehlo.reduce(%x init: %lowest) applies stablehlo.maximum across dimensions = [1]
        : (tensor<?x4xf32>, tensor<f32>) -> tensor<?xf32>
      %maxima = stablehlo.dynamic_broadcast_in_dim %max, %shape, dims = [0]
        : (tensor<?xf32>, tensor<2xi32>) -> tensor<?x4xf32>
      %shifted = stablehlo.subtract %x, %maxima : tensor<?x4xf32>
      %e = stablehlo.exponential %shifted : tensor<?x4xf32>
      %sum = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1]
        : (tensor<?x4xf32>, tensor<f32>) -> tensor<?xf32>
      %sums = stablehlo.dynamic_broadcast_in_dim %sum, %shape, dims = [0]
        : (tensor<?xf32>, tensor<2xi32>) -> tensor<?x4xf32>
      %0 = stablehlo.divide %e, %sums : tensor<?x4xf32>
      return %0 : tensor<?x4xf32>
    }""",
}


@pytest.mark.parametrize("enable_xla", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_sizes_within_a_form_that_is_known_by_a_name_are_compared(form, enable_xla):
    function = convert_stablehlo(FORMS[form], enable_xla=enable_xla)
    x = X if form == "a softmax" else X[0]
    expected = jax.nn.softmax(x) if form == "a softmax" else jax.nn.relu(x)
    np.testing.assert_allclose(function(x, x), expected, rtol=1e-6)
    for called in (function, tf.function(function, autograph=False)):
        with pytest.raises((ArgumentTypeError, tf.errors.InvalidArgumentError)):
            called(x[:1], x)


def test_what_is_broadcast_before_a_mean_is_taken_has_its_size():
    text = """func.func @main(%x: tensor<?x4xf32>, %like: tensor<?xf32>) -> tensor<?x1xf32> {
      %zero = stablehlo.constant dense<0.0> : tensor<f32>
      %one = stablehlo.constant dense<1> : tensor<1xi32>
      %four = stablehlo.constant dense<4.0> : tensor<f32>
      %n = stablehlo.get_dimension_size %like, dim = 0 : (tensor<?xf32>) -> tensor<i32>
      %n1 = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
      %shape = stablehlo.concatenate %n1, %one, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
      %sum = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1]
        : (tensor<?x4xf32>, tensor<f32>) -> tensor<?xf32>
      %sums = stablehlo.dynamic_broadcast_in_dim %sum, %shape, dims = [0]
        : (tensor<?xf32>, tensor<2xi32>) -> tensor<?x1xf32>
      %counts = stablehlo.dynamic_broadcast_in_dim %four, %shape, dims = []
        : (tensor<f32>, tensor<2xi32>) -> tensor<?x1xf32>
      %0 = stablehlo.divide %sums, %counts : tensor<?x1xf32>
      return %0 : tensor<?x1xf32>
    }"""
    for rows, n in ((1, 3), (3, 3), (1, 1)):
        expected = np.broadcast_to(X[:rows].mean(1, keepdims=True), (n, 1))
        np.testing.assert_allclose(convert_stablehlo(text)(X[:rows], np.ones(n, "f")), expected, rtol=1e-6)


def test_a_broadcast_that_the_module_writes_is_one():
    text = """func.func @main(%x: tensor<?xf32>, %y: tensor<?x2xf32>) -> tensor<?x2xf32> {
      %two = stablehlo.constant dense<2> : tensor<1xi32>
      %n = stablehlo.get_dimension_size %y, dim = 0 : (tensor<?x2xf32>) -> tensor<i32>
      %r = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
      %shape = stablehlo.concatenate %r, %two, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
      %b = stablehlo.dynamic_broadcast_in_dim %x, %shape, dims = [0]
        : (tensor<?xf32>, tensor<2xi32>) -> tensor<?x2xf32>
      %0 = stablehlo.add %b, %y : tensor<?x2xf32>
      return %0 : tensor<?x2xf32>
    }"""
    ones = np.ones((3, 2), np.float32)
    np.testing.assert_array_equal(convert_stablehlo(text)(ones[:1, 0], ones), ones * 2)


CONVOLUTION = """
func.func @main(%x: tensor<?x8x8x3xf32>) -> tensor<?x6x6x5xf32> {
  %kernel = stablehlo.constant dense<1.0> : tensor<3x3x3x5xf32>
  %0 = stablehlo.convolution(%x, %kernel) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {}
    {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<?x8x8x3xf32>, tensor<3x3x3x5xf32>) -> tensor<?x6x6x5xf32>
  return %0 : tensor<?x6x6x5xf32>
}"""


def test_a_convolution_of_an_empty_batch_has_its_shape_or_is_refused():
    """TensorFlow's, where it is not compiled, has the shape of its operand."""
    function = convert_stablehlo(CONVOLUTION)
    for compiled in (None, True):
        assert tf.function(function, jit_compile=compiled)(tf.zeros((0, 8, 8, 3))).shape == (0, 6, 6, 5)
    for run in (function, tf.function(function, [tf.TensorSpec([None, 8, 8, 3])])):
        assert run(tf.ones((2, 8, 8, 3))).shape == (2, 6, 6, 5)
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"stablehlo\.convolution: the batch is empty"):
            run(tf.zeros((0, 8, 8, 3)))


def test_a_mistake_of_an_entry_is_not_a_refusal(monkeypatch):
    from jaxtf.convert._graph import emit
    from jaxtf.convert._graph.registry import Entry

    def fails(bound, *operands):
        raise ValueError("a mistake")

    def not_taken(bound, left, right):
        return tf.matmul(left, right)

    def entry(function):
        return lambda operation: Entry(operation.name, function, {})

    monkeypatch.setattr(emit, "entry_of", entry(fails))
    with pytest.raises(ValueError, match=r"^a mistake$"):
        convert_stablehlo(ADD)(np.float32([1]), np.float32([2]))
    monkeypatch.setattr(emit, "entry_of", entry(not_taken))
    with pytest.raises(GraphModeUnsupported, match="TensorFlow does not take it"):
        convert_stablehlo(ADD)(np.float32([1]), np.float32([2]))


SET_SIZE = """func.func @main(%x: tensor<2x5xf32>, %n: tensor<i32>) -> RESULT {
  %whole = stablehlo.constant dense<5> : tensor<i32>
  %y = stablehlo.set_dimension_size %x, SIZE, dim = 1 : (tensor<2x5xf32>, tensor<i32>) -> RESULT
  return %y : RESULT
}"""


@pytest.mark.parametrize("mode", ["eager", "graph", "compiled"])
def test_a_dimension_that_is_set_to_its_size_is_as_it_was(mode):
    x = np.arange(10, dtype=np.float32).reshape(2, 5)
    module = SET_SIZE.replace("RESULT", "tensor<2x5xf32>").replace("SIZE", "%whole")
    np.testing.assert_array_equal(run_module(module, x, np.int32(3), mode=mode)[0], x)


def test_a_dimension_that_is_set_to_another_size_is_cut_where_the_type_is_open_and_refused_where_not():
    x = np.arange(10, dtype=np.float32).reshape(2, 5)
    module = SET_SIZE.replace("SIZE", "%n")
    bounded = module.replace("RESULT", "tensor<2x?xf32, #stablehlo.bounds<?, 5>>")
    np.testing.assert_array_equal(run_module(bounded, x, np.int32(3))[0], x[:, :3])
    with pytest.raises(GraphModeUnsupported, match="set_dimension_size: not the whole of dimension 1"):
        run_module(module.replace("RESULT", "tensor<2x5xf32>"), x, np.int32(3))


def test_the_module_that_tensorflow_writes_of_top_k_gives_its_numbers():
    x = np.array([[3, 1, 2, 5, 4], [0, 9, 8, 9, 1]], np.float32)
    compiled = tf.function(lambda x: tf.math.top_k(x, 3), jit_compile=True)
    module = compiled.experimental_get_compiler_ir(x)(stage="stablehlo")
    for found, expected in zip(run_module(module, x), compiled(x), strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    "where",
    [': tensor<f32> loc("caf\\E9")', ': tensor<f32> loc("caf\\E9.py":3:1)', '{a = "\\FF"} : tensor<f32>'],
    ids=["name", "file", "value"],
)
def test_texts_that_are_not_utf_8_are_read(where):
    text = (
        f"func.func @main(%x: tensor<f32>) -> tensor<f32> {{ %0 = stablehlo.sine %x {where} return %0 : tensor<f32> }}"
    )
    np.testing.assert_allclose(convert_stablehlo(text)(tf.constant(1.0)), np.sin(1.0), rtol=1e-6)
