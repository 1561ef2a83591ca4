"""What differs in one thing from a function of complex numbers is not taken for it, and has its own derivatives."""

import random
from dataclasses import replace

import jax
import numpy as np
import pytest

from jaxtf.serialization import lift
from jaxtf.serialization._lift.complex_functions import complex_function
from jaxtf.serialization._lift.evaluate import Evaluator
from jaxtf.serialization._lift.reading import READING
from jaxtf.serialization._program.module import load_module
from jaxtf.serialization._program.parse import read_program
from jaxtf.serialization._program.program import Function, Operation, Program, TensorType, Value

from .complex_functions_table import NAMES, exported

POINTS = np.array([[1 + 1j, 2 - 2j, 0.5], [-1.5 + 0.25j, 2j, -3 + 0.5j], [0.25 - 0.75j, -2, 3 + 2j]], np.complex64)
DIRECTIONS = ("EQ", "NE", "LT", "LE", "GT", "GE")
ALIKE = (
    ("abs", "negate", "sine", "cosine", "exponential", "log", "log_plus_one", "sqrt", "sign", "exponential_minus_one"),
    ("add", "subtract", "multiply", "divide", "maximum", "minimum", "atan2"),
    ("and", "or"),
    ("real", "imag"),
)
HIGHEST = "#stablehlo.result_accuracy<mode = #stablehlo.result_accuracy_mode<HIGHEST>>"
MOVED = (
    ("broadcast_in_dim", {"broadcast_dimensions": (1, 0)}),
    ("transpose", {"permutation": (1, 0)}),
    ("reverse", {"dimensions": (0,)}),
)
OTHERS = 3
# In a module they are one operation, or functions of complex numbers that are.
OF_ONE_OPERATION = ("cosh", "expm1", "rsqrt", "sign", "sinh", "tan", "tanh")


def body_of(name, dtype="complex64"):
    """The block in which a function is written out."""
    program = read_program(load_module(exported(name, dtype, POINTS.shape), is_read=True), READING)
    return list(program.functions.values())[-1].body


def mutated(block, rng):
    """Blocks in which one thing is another."""
    earlier = [*block.arguments]
    other = Value(block.arguments[0].type)
    for place, operation in enumerate(block.operations):
        for made in others(operation):
            yield with_operations(block, place, made)
        for index, operand in enumerate(operation.operands):
            alike = [value for value in earlier if value.type == operand.type and value is not operand]
            for value in rng.sample(alike, min(OTHERS, len(alike))):
                yield with_operations(block, place, with_operand(operation, index, value))
            if operand.type == other.type:
                yield replace(
                    with_operations(block, place, with_operand(operation, index, other)),
                    arguments=(*block.arguments, other),
                )
            for name, attributes in MOVED:
                if isinstance(operand.type, TensorType) and operand.type.rank == 2:
                    value = Value(operand.type)
                    moved = Operation(f"stablehlo.{name}", (operand,), (value,), attributes)
                    yield with_operations(block, place, moved, with_operand(operation, index, value))
        earlier += operation.results


def others(operation):
    """Operations that differ from one in its name, its attributes, its constant or the order of its operands."""
    kind, attributes = operation.name.removeprefix("stablehlo."), operation.attributes
    is_complex = "complex" in operation.results[0].type.dtype.name
    for names in ALIKE:
        for name in names if kind in names and not is_complex else ():
            if name != kind:
                yield replace(operation, name=f"stablehlo.{name}")
    if kind == "compare":
        for direction in DIRECTIONS:
            if direction != attributes["comparison_direction"]:
                yield replace(operation, attributes={**attributes, "comparison_direction": direction})
        yield replace(operation, attributes={**attributes, "compare_type": "TOTALORDER"})
    if kind in ("exponential", "log", "sqrt", "sine", "cosine", "log_plus_one"):
        yield replace(operation, attributes={"result_accuracy": HIGHEST})
    if kind == "constant":
        value = np.asarray(attributes["value"])
        if value.dtype != np.bool_:
            mixed = np.array(value)
            mixed.flat[-1] = 1.25
            with np.errstate(over="ignore"):
                changed = (value + value.dtype.type(0.5), -value, value * value.dtype.type(1.25), mixed)
            for each in changed:
                yield replace(operation, attributes={"value": each})
    if len(operation.operands) > 1:
        *first, second, last = operation.operands
        yield replace(operation, operands=(*first, last, second))


def with_operand(operation, index, value):
    return replace(operation, operands=(*operation.operands[:index], value, *operation.operands[index + 1 :]))


def with_operations(block, place, *made):
    return replace(block, operations=(*block.operations[:place], *made, *block.operations[place + 1 :]))


def recognized(block):
    """The argument, the result and the function of what is taken for one."""
    sources = {result: operation for operation in block.operations for result in operation.results}
    for operation in block.operations:
        found = complex_function(operation, sources, frozenset(block.operations))
        if found is not None:
            argument, _, function = found
            yield argument, operation.results[0], function


@pytest.mark.slow(1)
@pytest.mark.parametrize("name", NAMES.split())
def test_what_is_taken_for_a_function_has_its_values(name):
    block = body_of(name)
    arguments = [POINTS, np.ascontiguousarray(POINTS.T) * 0.5]
    assert any(recognized(block)) or name in OF_ONE_OPERATION
    for made in mutated(block, random.Random(0)):
        for argument, result, function in recognized(made):
            operations = {each for each in made.operations if each not in block.operations}
            if not operations & set(reached(result, made)):
                continue
            body = replace(made, returned=(argument, result))
            program = Program({"main": Function("main", body, True, ())}, {})
            given, found = Evaluator(program).main(arguments[: len(body.arguments)])
            np.testing.assert_allclose(found, function(given), rtol=1e-5, atol=1e-6)


def reached(result, block):
    """The operations that a result is computed by."""
    sources = {value: operation for operation in block.operations for value in operation.results}
    found, waiting = {}, [result]
    while waiting:
        operation = sources.get(waiting.pop())
        if operation is not None and operation not in found:
            found[operation] = None
            waiting += operation.operands
    return found


SQUARE = """
func.func @main(%z: tensor<{size}xcomplex<f64>>, %w: tensor<{size}xcomplex<f64>>) -> tensor<{to}xcomplex<f64>> {{
  %two = stablehlo.constant dense<2.0> : tensor<{to}xf64>
  %zero = stablehlo.constant dense<0.0> : tensor<{to}xf64>
  %a0 = stablehlo.real %z : (tensor<{size}xcomplex<f64>>) -> tensor<{size}xf64>
  %b0 = stablehlo.imag %{second} : (tensor<{size}xcomplex<f64>>) -> tensor<{size}xf64>
  %a = stablehlo.broadcast_in_dim %a0, dims = {dims} : (tensor<{size}xf64>) -> tensor<{to}xf64>
  %b = stablehlo.broadcast_in_dim %b0, dims = {dims2} : (tensor<{size}xf64>) -> tensor<{to}xf64>
  %1 = stablehlo.is_finite %a : (tensor<{to}xf64>) -> tensor<{to}xi1>
  %2 = stablehlo.abs %a : tensor<{to}xf64>
  %4 = stablehlo.abs %b : tensor<{to}xf64>
  %5 = stablehlo.compare EQ, %2, %4 : (tensor<{to}xf64>, tensor<{to}xf64>) -> tensor<{to}xi1>
  %6 = stablehlo.and %1, %5 : tensor<{to}xi1>
  %7 = stablehlo.subtract %a, %b : tensor<{to}xf64>
  %8 = stablehlo.add %a, %b : tensor<{to}xf64>
  %9 = stablehlo.multiply %7, %8 : tensor<{to}xf64>
  %10 = stablehlo.select %6, %zero, %9 : tensor<{to}xi1>, tensor<{to}xf64>
  %11 = stablehlo.multiply %a, %b : tensor<{to}xf64>
  %12 = stablehlo.multiply %two, %11 : tensor<{to}xf64>
  %13 = stablehlo.complex %10, %12 : tensor<{to}xcomplex<f64>>
  return %13 : tensor<{to}xcomplex<f64>>
}}"""
SQUARES = {
    "turned": {"size": "3x3", "to": "3x3", "dims": [1, 0], "dims2": [0, 1], "second": "z"},
    "both turned": {"size": "3x3", "to": "3x3", "dims": [1, 0], "dims2": [1, 0], "second": "z"},
    "of two arrays": {"size": "3x3", "to": "3x3", "dims": [0, 1], "dims2": [0, 1], "second": "w"},
    "to another shape": {"size": "3", "to": "2x3", "dims": [1], "dims2": [1], "second": "z"},
    "of a scalar": {"size": "", "to": "2x3", "dims": [], "dims2": [], "second": "z"},
    "along two dimensions": {"size": "3", "to": "3x3", "dims": [0], "dims2": [1], "second": "z"},
}


@pytest.mark.parametrize("name", SQUARES)
def test_parts_that_are_broadcast_have_the_derivatives_of_the_module(name):
    text = SQUARE.format(**SQUARES[name]).replace("tensor<x", "tensor<")
    size = tuple(map(int, filter(None, SQUARES[name]["size"].split("x"))))
    rng, step = np.random.default_rng(0), 1e-6
    with jax.enable_x64(True):
        z, w, dz, dw = (rng.normal(size=size) + 1j * rng.normal(size=size) for _ in range(4))
        function = lift(text)
        value, moved = jax.jvp(function, (z, w), (dz, dw))
        expected = (function(z + step * dz, w + step * dw) - function(z - step * dz, w - step * dw)) / (2 * step)
        np.testing.assert_allclose(moved, expected, rtol=1e-6, atol=1e-8)
        weights = rng.normal(size=np.shape(value)) + 1j * rng.normal(size=np.shape(value))
        gradients = jax.grad(lambda z, w: (function(z, w) * weights).real.sum(), (0, 1))(z, w)
        found = sum(
            (np.asarray(gradient) * along).real.sum() for gradient, along in zip(gradients, (dz, dw), strict=True)
        )
        np.testing.assert_allclose(found, (expected * weights).real.sum(), rtol=1e-6)
