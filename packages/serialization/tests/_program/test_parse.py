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
