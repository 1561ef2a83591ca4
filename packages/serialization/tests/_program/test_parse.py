"""A module read as plain data, for a reader with dtypes and errors of its own; no framework is needed but jaxlib."""

import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest

pytest.importorskip("jax")

from jaxtf.serialization.interop import Reading, TensorType, TokenType, operations_of, read_program

SCALED = """
func.func @main(%x: tensor<?x2xbf16>, %t: !stablehlo.token) -> tensor<?x2xbf16> {
  %0 = stablehlo.constant dense<[[1.5, 2.0]]> : tensor<1x2xbf16>
  %1 = call @scaled(%x) : (tensor<?x2xbf16>) -> tensor<?x2xbf16>
  return %1 : tensor<?x2xbf16>
}
func.func private @scaled(%x: tensor<?x2xbf16>) -> tensor<?x2xbf16> {
  %0 = stablehlo.tanh %x : tensor<?x2xbf16>
  return %0 : tensor<?x2xbf16>
}
func.func private @unused() { return }
"""


class Refused(Exception):
    pass


def array_type(element, dtype, shape):
    if dtype is None or len(shape) > 3:
        raise Refused(f"no {element} of {len(shape)} dimensions")
    return TensorType(dtype, shape)


READING = Reading("the test", Refused, array_type)


def test_types_are_those_that_the_reader_makes_and_constants_are_of_numpy():
    program = read_program(SCALED, READING)
    assert list(program.functions) == ["main", "scaled"]
    main = program.functions["main"].body
    assert [value.type for value in main.arguments] == [TensorType("bfloat16", (None, 2)), TokenType()]
    constant = main.operations[0].attributes["value"]
    assert constant.dtype == ml_dtypes.bfloat16
    np.testing.assert_array_equal(constant.astype(np.float32), [[1.5, 2.0]])


OTHERS = {
    "of the same type": "a = dense<[(3.0,1.0),(4.0,5.0)]> : tensor<2xcomplex<f32>>",
    "of another dtype": "a = dense<7> : tensor<i32>",
    "of a longer name": "values = dense<[(3.0,1.0),(4.0,5.0)]> : tensor<2xcomplex<f32>>",
    "of text": 'a = "<{value = dense<(3.0,1.0)>", "<{value = dense<7>" = 1 : i32',
}


@pytest.mark.parametrize("others", OTHERS.values(), ids=OTHERS)
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_a_complex_constant_is_its_value_whatever_other_attributes_it_has(dtype, others):
    type_ = f"tensor<2xcomplex<f{4 * np.dtype(dtype).itemsize}>>"
    constant = f"stablehlo.constant {{{others}}} dense<[(1.0,2.0),(5.0,6.0)]> : {type_}"
    text = f"func.func @main() -> {type_} {{ %0 = {constant} return %0 : {type_} }}"
    [operation] = read_program(text, READING).functions["main"].body.operations
    assert operation.attributes["value"].dtype == dtype
    np.testing.assert_array_equal(operation.attributes["value"], [1 + 2j, 5 + 6j])


def test_an_attribute_of_complex_numbers_that_no_operation_of_stablehlo_has_is_its_text():
    numbers = "dense<(1.000000e+00,2.000000e+00)> : tensor<complex<f32>>"
    text = f"""func.func @main(%x: tensor<f32>) -> tensor<f32> {{
      %0 = stablehlo.sine %x {{a = {numbers}, b = [{numbers}]}} : tensor<f32> return %0 : tensor<f32> }}"""
    [operation] = read_program(text, READING).functions["main"].body.operations
    assert operation.attributes["a"] == numbers
    assert operation.attributes["b"] == f"[{numbers}]"


@pytest.mark.parametrize("name", ["abc", '"a b"', '"a>b"', '"a\\22b"', '"{-#"'])
@pytest.mark.parametrize("type_", ["2xf32", "1xcomplex<f32>"])
def test_a_constant_is_in_the_resource_that_it_names(name, type_):
    text = f"""module {{ func.func @main() -> tensor<{type_}> {{
      %0 = stablehlo.constant dense_resource<{name}> : tensor<{type_}> return %0 : tensor<{type_}> }} }}
      {{-# dialect_resources: {{ builtin: {{ {name}: "0x040000000000803F00000040" }} }} #-}}"""
    [operation] = read_program(text, READING).functions["main"].body.operations
    np.testing.assert_array_equal(operation.attributes["value"], [1, 2] if type_ == "2xf32" else [1 + 2j])


def test_a_constant_without_its_resource_is_refused():
    text = """func.func @main() -> tensor<2xf32> {
      %0 = stablehlo.constant dense_resource<abc> : tensor<2xf32> return %0 : tensor<2xf32> }"""
    with pytest.raises(ValueError, match="the module has no resource 'abc', of which a constant is made"):
        read_program(text, READING)


def test_another_function_than_main_is_read_by_its_name():
    program = read_program(SCALED, READING, "scaled")
    assert list(program.functions) == ["scaled"]
    assert [operation.name for operation in operations_of(program.functions["scaled"].body)] == ["stablehlo.tanh"]
    with pytest.raises(ValueError, match="the module has no function 'other', but main, scaled, unused"):
        read_program(SCALED, READING, "other")


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("tensor<2xi3>", "no i3 of 1 dimensions"),
        ("tensor<1x1x1x1xf32>", "no f32 of 4 dimensions"),
        ("tensor<*xf32>", "the test has no values of type"),
    ],
)
def test_what_the_reader_does_not_take_is_refused_with_its_error(argument, message):
    with pytest.raises(Refused, match=message):
        read_program(f"func.func @main(%x: {argument}) {{ return }}", READING)


def test_recursion_and_blocks_are_refused_with_its_error():
    circle = "func.func @main() { call @f() : () -> () return } func.func private @f() { call @f() : () -> () return }"
    with pytest.raises(Refused, match=r"'f' calls itself \(f -> f\), which the test does not translate"):
        read_program(circle, READING)
    blocks = "func.func @main() { cf.br ^next ^next: return }"
    with pytest.raises((Refused, ValueError), match=r"has 2 blocks|Dialect `cf' not found|cf"):
        read_program(blocks, READING)


def test_reading_imports_neither_jax_nor_tensorflow():
    program = (
        "import sys; sys.modules['jax'] = None; sys.modules['tensorflow'] = None\n"
        "from jaxtf.serialization.interop import Reading, TensorType, read_program\n"
        "reading = Reading('me', ValueError, lambda element, dtype, shape: TensorType(dtype, shape))\n"
        "print(list(read_program('func.func @main() { return }', reading).functions))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "['main']\n"
