"""Parsing StableHLO: types, attributes of every kind, constants of every dtype, locations, all formats of a module."""

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf
from jax import lax

from jaxtf.convert._errors import GraphModeUnsupported
from jaxtf.convert._graph.parse import parse
from jaxtf.serialization import export
from jaxtf.serialization.interop import TensorType, TokenType, TupleType, operations_of, scope_of


def constant(text):
    """The array of a constant, written as in MLIR."""
    type_ = text.rpartition(" : ")[2]
    program = parse(f"func.func @main() -> {type_} {{ %0 = stablehlo.constant {text}\n return %0 : {type_} }}")
    return program.functions["main"].body.operations[0].attributes["value"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("dense<[true, false]> : tensor<2xi1>", np.array([True, False])),
        ("dense<true> : tensor<i1>", np.array(True)),
        pytest.param(
            "dense<[1, -2]> : tensor<2xi2>",
            np.array([1, -2], ml_dtypes.int2),
            marks=pytest.mark.skipif(tf.__version__.startswith("2.19."), reason="TensorFlow 2.19 has no int2"),
        ),
        ("dense<[7, -8]> : tensor<2xi4>", np.array([7, -8], ml_dtypes.int4)),
        ("dense<[7, 15]> : tensor<2xui4>", np.array([7, 15], ml_dtypes.uint4)),
        ("dense<[127, -128]> : tensor<2xi8>", np.array([127, -128], np.int8)),
        ("dense<-9223372036854775808> : tensor<i64>", np.array(-(2**63))),
        ("dense<18446744073709551615> : tensor<2xui64>", np.array([2**64 - 1] * 2, np.uint64)),
        ("dense<[1.5, 0xFF80]> : tensor<2xbf16>", np.array([1.5, -np.inf], ml_dtypes.bfloat16)),
        ("dense<3.140625> : tensor<2x3xbf16>", np.full((2, 3), 3.140625, ml_dtypes.bfloat16)),
        ("dense<[1.5, -0.0]> : tensor<2xf16>", np.array([1.5, -0.0], np.float16)),
        ("dense<1.1> : tensor<f64>", np.array(1.1)),
        ("dense<[1.5, 448.0]> : tensor<2xf8E4M3FN>", np.array([1.5, 448], ml_dtypes.float8_e4m3fn)),
        ("dense<[1.5, -2.0]> : tensor<2xf8E5M2>", np.array([1.5, -2], ml_dtypes.float8_e5m2)),
        ("dense<(1.5, -2.0)> : tensor<3xcomplex<f32>>", np.array([1.5 - 2j] * 3, np.complex64)),
        ("dense<[(1.5, -2.0), (-0.0, 1.0e-300)]> : tensor<2xcomplex<f64>>", [1.5 - 2j, complex(-0.0, 1e-300)]),
        ("dense<> : tensor<0x3xf32>", np.zeros((0, 3), np.float32)),
        ("dense<[[1, 2], [3, 4]]> : tensor<2x2xi32>", np.array([[1, 2], [3, 4]], np.int32)),
    ],
)
def test_a_constant_has_the_values_and_the_dtype_that_the_text_says(text, expected):
    found, expected = constant(text), np.asarray(expected)
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    assert found.tobytes() == expected.tobytes()


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn", "int4", "complex64", "float16", "bool", "int64"])
def test_a_large_constant_comes_back_bit_by_bit(dtype):
    dtype = tf.as_dtype(dtype).as_numpy_dtype
    random = np.random.default_rng(0)
    values = random.integers(-8, 8, 300).astype(dtype) if dtype != np.complex64 else random.normal(size=300) * 1j
    values = values.astype(dtype)
    with jax.enable_x64(True):
        exported = export(lambda: jnp.asarray(values))()
    program = parse(exported.mlir_module_serialized)
    (found,) = [o.attributes["value"] for o in program.functions["main"].body.operations if "value" in o.attributes]
    assert (found.dtype, found.tobytes()) == (np.dtype(dtype), values.tobytes())


def test_a_constant_of_equal_elements_holds_one():
    found = constant("dense<2.5> : tensor<1000x1000xf32>")
    assert (found.shape, found.strides, found[3, 4]) == ((1000, 1000), (0, 0), 2.5)


def test_a_constant_in_a_resource_is_read():
    program = parse(
        "func.func @main() -> tensor<2xf32> { %0 = stablehlo.constant dense_resource<a> : tensor<2xf32>\n"
        ' return %0 : tensor<2xf32> }\n{-# dialect_resources: { builtin: { a: "0x040000000000803F00000040" } } #-}'
    )
    assert program.functions["main"].body.operations[0].attributes["value"].tolist() == [1, 2]


def test_types_are_dtype_and_sizes():
    program = parse(
        "func.func @main(%a: tensor<?x4xbf16>, %b: !stablehlo.token, %c: tuple<tensor<i1>, tensor<2xui4>>,"
        " %d: tensor<complex<f64>>) -> () { return }"
    )
    types = [argument.type for argument in program.functions["main"].body.arguments]
    assert types == [
        TensorType(tf.bfloat16, (None, 4)),
        TokenType(),
        TupleType((TensorType(tf.bool, ()), TensorType(tf.as_dtype("uint4"), (2,)))),
        TensorType(tf.complex128, ()),
    ]


def test_a_dtype_that_tensorflow_does_not_have_is_refused():
    with pytest.raises(GraphModeUnsupported) as caught:
        parse("func.func @main(%a: tensor<2xf8E3M4>) -> () { return }")
    assert str(caught.value) == ("graph mode has no arrays of f8E3M4 (tensor<2xf8E3M4>): TensorFlow has no such dtype")


def test_more_dimensions_than_tensorflow_has_are_refused():
    with pytest.raises(GraphModeUnsupported) as caught:
        parse(f"func.func @main(%a: tensor<{'1x' * 255}f32>) -> () {{ return }}")
    assert str(caught.value) == "graph mode has no arrays of 255 dimensions: TensorFlow's have up to 254"


def operations(function, *args, **options):
    exported = export(function, **options)(*args)
    program = parse(exported.mlir_module_serialized)
    found = (o for function in program.functions.values() for o in operations_of(function.body))
    return {operation.name: operation for operation in found}


IMAGE, KERNEL = np.ones((2, 5, 5, 3), np.float32), np.ones((3, 3, 3, 8), np.float32)


def test_structures_have_the_names_of_the_specification():
    def convolve(x, kernel):
        return lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))

    convolution = operations(convolve, IMAGE, KERNEL)["stablehlo.convolution"].attributes
    assert convolution["dimension_numbers"] == {
        "input_batch_dimension": 0,
        "input_feature_dimension": 3,
        "input_spatial_dimensions": (1, 2),
        "kernel_input_feature_dimension": 2,
        "kernel_output_feature_dimension": 3,
        "kernel_spatial_dimensions": (0, 1),
        "output_batch_dimension": 0,
        "output_feature_dimension": 3,
        "output_spatial_dimensions": (1, 2),
    }
    assert convolution["padding"].tolist() == [[1, 1], [1, 1]]
    assert convolution["feature_group_count"] == 1

    added = operations(lambda x, i: x.at[i].add(1.0), np.ones((4, 3), np.float32), np.array([0, 2]))
    assert added["stablehlo.scatter"].attributes["scatter_dimension_numbers"] == {
        "update_window_dims": (1,),
        "inserted_window_dims": (0,),
        "input_batching_dims": (),
        "scatter_indices_batching_dims": (),
        "scatter_dims_to_operand_dims": (0,),
        "index_vector_dim": 1,
    }
    dot = operations(lambda x: jnp.einsum("bij,bkj->bik", x, x), np.ones((2, 3, 4), np.float32))
    assert dot["stablehlo.dot_general"].attributes["dot_dimension_numbers"] == {
        "lhs_batching_dimensions": (0,),
        "rhs_batching_dimensions": (0,),
        "lhs_contracting_dimensions": (2,),
        "rhs_contracting_dimensions": (2,),
    }
    exact = operations(lambda x: jnp.matmul(x, x, precision="highest"), np.ones((3, 3), np.float32))
    assert exact["stablehlo.dot_general"].attributes["precision_config"] == ("HIGHEST", "HIGHEST")


def test_enumerations_are_words_and_flags_are_booleans():
    found = operations(lambda x: (lax.sort(x), x > 1, jnp.fft.fft(x)), np.ones(4, np.float32))
    assert found["stablehlo.compare"].attributes["comparison_direction"] in ("GT", "LT")
    assert found["stablehlo.sort"].attributes["is_stable"] is True
    assert found["stablehlo.sort"].attributes["dimension"] == 0
    assert found["stablehlo.fft"].attributes["fft_type"] == "FFT"
    assert found["stablehlo.fft"].attributes["fft_length"] == (4,)


def test_a_custom_call_is_named_by_its_target_and_its_configuration_is_a_mapping():
    program = parse(
        "func.func @main(%x: tensor<f32>) -> tensor<f32> {\n"
        "%0 = stablehlo.custom_call @target(%x) {api_version = 4 : i32,"
        " backend_config = {a = 1 : i64, b = [true, 2.5]}, has_side_effect = true} : (tensor<f32>) -> tensor<f32>\n"
        " return %0 : tensor<f32> }"
    )
    (call,) = program.functions["main"].body.operations
    assert call.name == "custom_call.target"
    assert call.attributes["backend_config"] == {"a": 1, "b": (True, 2.5)}
    assert call.attributes["has_side_effect"] is True


TEXT = """
module @named attributes {jax.uses_shape_polymorphism = true} {
  func.func private @helper(%x: tensor<f32>) -> tensor<f32> {
    return %x : tensor<f32>
  }
  func.func public @main(%x: tensor<f32> {mhlo.sharding = "{replicated}"}) -> (tensor<f32> {jax.result_info = "r"}) {
    %0 = func.call @helper(%x) : (tensor<f32>) -> tensor<f32>
    return %0 : tensor<f32>
  }
}"""


def test_the_main_function_comes_first_with_attributes_of_arguments():
    program = parse(TEXT)
    assert list(program.functions) == ["main", "helper"]
    main = program.functions["main"]
    assert (main.is_public, program.functions["helper"].is_public) == (True, False)
    assert main.argument_attributes == ({"mhlo.sharding": "{replicated}"},)
    assert main.body.operations[0].attributes == {"callee": "helper"}
    assert program.attributes["jax.uses_shape_polymorphism"] is True


def test_what_is_not_a_module_is_an_error_of_mlir():
    with pytest.raises(ValueError, match="Unable to parse module assembly"):
        parse("func.func @main( {")
    with pytest.raises(ValueError, match="the module has no function with a body"):
        parse("func.func private @main()")


@pytest.mark.parametrize(
    ("name", "scope"),
    [
        ("jit(loss)/dense/mul", "dense/mul"),
        ("jit(loss)/transpose(jvp(dense))/mul", "dense/mul"),
        ("jit(f)/jvp()/while/body/add", "while/body/add"),
        ("jit(f)/jit(relu)/max", "max"),
        ("jit(<lambda>)/a b/sin:", "a_b/sin"),
        ("jit(f)/vmap(a/b)/sin", "a/b/sin"),
        ("jit(f)", ""),
        ("", ""),
    ],
)
def test_a_scope_is_the_users_names_without_transformations(name, scope):
    assert scope_of(name) == scope


def test_an_operation_knows_the_scope_and_the_line_of_the_user():
    def function(x):
        with jax.named_scope("encoder"):
            return jnp.sin(x)

    sine = operations(function, np.float32(1))["stablehlo.sine"]
    assert sine.location == "encoder/sin"
    line = function.__code__.co_firstlineno + 2
    assert sine.source.endswith(f"test_graph_parse.py:{line}")


@pytest.mark.parametrize(
    ("frames", "line"),
    [
        (("/home/jax/model.py", "/home/main.py"), "/home/jax/model.py:1"),
        (("/v/lib/python3.12/dist-packages/flax/linen.py", "/home/main.py"), "/home/main.py:2"),
        (("/v/lib/python3.12/site-packages/flax/linen.py",), "/v/lib/python3.12/site-packages/flax/linen.py:1"),
        ((f"{jax.__path__[0]}/_src/lax/lax.py", "/usr/lib/python3.12/runpy.py"), ""),
    ],
)
def test_the_line_of_the_user_is_that_of_no_library(frames, line):
    outer = [f'"{path}":{number}:1' for number, path in enumerate(frames, 1)]
    location = outer.pop()
    for frame in reversed(outer):
        location = f"callsite({frame} at {location})"
    program = parse(
        "func.func @main(%x: tensor<f32>) -> tensor<f32> {\n"
        f'%0 = stablehlo.sine %x : tensor<f32> loc("jit(f)/sin"({location}))\n return %0 : tensor<f32> }}'
    )
    (sine,) = program.functions["main"].body.operations
    assert (sine.location, sine.source) == ("sin", line)
