"""Sizes of a lifted function: evaluated in Python at constant sizes, symbolic in a new export; Python decides."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jax import ShapeDtypeStruct

from jaxtf.serialization import ArgumentMismatch, ArtifactError, LiftUnsupported, deserialize, export, lift
from jaxtf.serialization._lift.folding import folded, known_constant
from jaxtf.serialization._lift.sizes import ELEMENTS, Known, compared, known_array, known_integers, settled
from jaxtf.serialization._program.program import Operation, TensorType, Value
from jaxtf.shapepoly import InconclusiveDimensionOperation, symbolic_shape

F32 = np.float32
INT32 = np.dtype(np.int32)


def polymorphic(function, *texts, constraints=()):
    scope = symbolic_shape("scope", constraints=constraints)[0].scope
    specs = [ShapeDtypeStruct(symbolic_shape(text, scope=scope), F32) for text in texts]
    return deserialize(export(function)(*specs).serialize())


def halves(x):
    n = x.shape[0]
    return x[: n // 2].sum() + x[-(-n // 3) :].mean(), jnp.reshape(x, (n * x.shape[1],)), jnp.arange(n) % 3, n % 4


@pytest.fixture(scope="module")
def exported():
    return polymorphic(halves, "n, m", constraints=("n >= 2",))


@pytest.mark.parametrize("shape", [(2, 1), (5, 3), (6, 2)])
def test_at_constant_sizes_values_and_gradients_are_those_of_jax(exported, shape):
    x = np.arange(np.prod(shape), dtype=F32).reshape(shape)
    lifted = exported.lift()
    for found, expected in zip(lifted(x), halves(x), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-6)
    gradient = jax.grad(lambda x: lifted(x)[0])(x)
    np.testing.assert_allclose(gradient, jax.grad(lambda x: halves(x)[0])(x), rtol=1e-6)


def test_no_arithmetic_of_sizes_is_left():
    lifted = polymorphic(lambda x: x[: x.shape[0] // 2] * 2, "n, m", constraints=("n >= 2",)).lift()
    jaxpr = jax.make_jaxpr(lifted)(np.ones((5, 3), F32)).eqns[0].params["jaxpr"]
    assert {equation.primitive.name for equation in jaxpr.eqns} <= {"slice", "gather", "broadcast_in_dim", "mul"}


def test_a_size_that_the_constraints_forbid_is_refused(exported):
    with pytest.raises(ArgumentMismatch, match="n >= 2"):
        exported.lift()(np.ones((1, 3), F32))
    with pytest.raises(ArgumentMismatch, match="Rank mismatch"):
        exported.lift()(np.ones(3, F32))


@pytest.mark.parametrize(
    ("shape", "constraints"), [("a, b", ("a >= 2",)), ("2*k + 2, 3", ()), ("4*c, c", ()), ("a*b + 2, a", ())]
)
def test_in_a_new_export_sizes_stay_symbolic_under_other_names(exported, shape, constraints):
    lifted = exported.lift()
    again = polymorphic(lambda x: lifted(x + 1), shape, constraints=constraints)
    assert again.uses_global_constants
    sizes = {"a": 3, "b": 2, "k": 2, "c": 2}
    x = np.cos(np.arange(np.prod(actual := eval(f"({shape},)", {}, sizes)))).astype(F32).reshape(actual)
    for found, expected in zip(again.call(x), halves(x + 1), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_sizes_that_may_not_fit_are_refused_in_a_new_export(exported):
    with pytest.raises((ArgumentMismatch, InconclusiveDimensionOperation)):
        polymorphic(exported.lift(), "a, b")  # not known to be 2 or more


def test_a_module_of_nobody_checks_its_own_assertions():
    text = """func.func @main(%x: tensor<?xf32>) -> tensor<?x2xf32> {
      %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?xf32>) -> tensor<i32>
      %two = stablehlo.constant dense<2> : tensor<i32>
      %zero = stablehlo.constant dense<0> : tensor<i32>
      %rest = stablehlo.remainder %n, %two : tensor<i32>
      %even = stablehlo.compare EQ, %rest, %zero : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.custom_call @shape_assertion(%even, %n) {
        error_message = "the size {0} is odd", has_side_effect = true} : (tensor<i1>, tensor<i32>) -> ()
      %half = stablehlo.divide %n, %two : tensor<i32>
      %h = stablehlo.reshape %half : (tensor<i32>) -> tensor<1xi32>
      %t = stablehlo.reshape %two : (tensor<i32>) -> tensor<1xi32>
      %shape = stablehlo.concatenate %h, %t, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
      %r = stablehlo.dynamic_reshape %x, %shape : (tensor<?xf32>, tensor<2xi32>) -> tensor<?x2xf32>
      return %r : tensor<?x2xf32> }"""
    x = np.arange(6, dtype=F32)
    np.testing.assert_array_equal(lift(text)(x), x.reshape(3, 2))
    with pytest.raises(ArgumentMismatch, match="the size 5 is odd"):
        lift(text)(x[:5])
    b = symbolic_shape("b")[0]
    assert jax.eval_shape(lift(text), ShapeDtypeStruct((2 * b,), F32)).shape == (b, 2)
    with pytest.raises(InconclusiveDimensionOperation):
        jax.eval_shape(lift(text), ShapeDtypeStruct((b,), F32))


def test_sizes_from_values_are_refused():
    text = """func.func @main(%n: tensor<1xi32>) -> tensor<?xf32> {
      %r = stablehlo.dynamic_iota %n, dim = 0 : (tensor<1xi32>) -> tensor<?xf32>
      return %r : tensor<?xf32> }"""
    with pytest.raises(LiftUnsupported, match="a size that is computed from values"):
        lift(text)(np.array([3], np.int32))


def test_a_result_of_another_size_than_the_module_says_is_refused():
    text = """func.func @main(%x: tensor<?xf32>) -> tensor<3xf32> {
      %shape = stablehlo.constant dense<4> : tensor<1xi32>
      %r = stablehlo.dynamic_reshape %x, %shape : (tensor<?xf32>, tensor<1xi32>) -> tensor<?xf32>
      %s = stablehlo.convert %r : (tensor<?xf32>) -> tensor<3xf32>
      return %s : tensor<3xf32> }"""
    with pytest.raises(ArtifactError, match=r"the module has float32\[3\] for a result of stablehlo.convert, and its"):
        lift(text)(np.ones(4, F32))


# --- arithmetic compared with Python ---

NAMES = ("add", "subtract", "multiply", "maximum", "minimum", "divide", "remainder")


def operation(name, dtype=INT32, **attributes):
    scalar = TensorType(dtype, ())
    return Operation(f"stablehlo.{name}", (), (Value(scalar),), attributes)


def by_jax(name, *values):
    """What XLA gives for the operation on int32."""
    functions = {"add": jax.lax.add, "subtract": jax.lax.sub, "multiply": jax.lax.mul, "maximum": jax.lax.max,
                 "minimum": jax.lax.min, "divide": jax.lax.div, "remainder": jax.lax.rem, "negate": jax.lax.neg,
                 "sign": jax.lax.sign, "abs": jax.lax.abs}  # fmt: skip
    return int(functions[name](*(np.int32(value) for value in values)))


INTEGERS = st.one_of(st.integers(-9, 9), st.integers(-(2**31), 2**31 - 1))


@given(st.sampled_from(NAMES), INTEGERS, INTEGERS)
@settings(max_examples=60, deadline=None)
def test_integers_are_those_of_xla(name, left, right):
    operands = [known_array(INT32, [value], ()) for value in (left, right)]
    found = folded(operation(name), operands)
    if name in ("divide", "remainder") and right == 0:
        return  # a term: XLA decides
    assert known_integers(found) == [by_jax(name, left, right)]


def floor_division(left, right, *, by_add):
    """`left // right` as JAX writes it in StableHLO."""
    quotient, remainder = ELEMENTS["divide"](left, right), ELEMENTS["remainder"](left, right)
    signs = compared("NE", ELEMENTS["sign"](left), ELEMENTS["sign"](right))
    wrong = ELEMENTS["and"](signs, compared("NE", remainder, 0))
    lower = ELEMENTS["add"](quotient, -1) if by_add else ELEMENTS["subtract"](quotient, 1)
    return ELEMENTS["select"](wrong, lower, quotient)


def floor_remainder(left, right):
    """`left % right` likewise."""
    remainder = ELEMENTS["remainder"](left, right)
    signs = compared("NE", compared("LT", remainder, 0), compared("LT", right, 0))
    wrong = ELEMENTS["and"](signs, compared("NE", remainder, 0))
    return ELEMENTS["select"](wrong, ELEMENTS["add"](remainder, right), remainder)


@given(st.integers(-5, 5), st.integers(-20, 20), st.integers(1, 6), st.booleans())
@settings(max_examples=80, deadline=None)
def test_symbolic_quotients_are_those_of_python_at_every_size(factor, offset, divisor, by_add):
    (n,) = symbolic_shape("n")
    left = factor * n + offset
    found = (floor_division(left, divisor, by_add=by_add), floor_remainder(left, divisor))
    for size in (1, 2, 5, 7, 12):
        value = factor * size + offset
        for element, expected in zip(found, (value // divisor, value % divisor), strict=True):
            decided = settled(element)
            at = decided if isinstance(decided, int) else decided._evaluate({"n": size})
            assert at == expected, (str(left), divisor)


def test_what_depends_on_a_sign_that_is_not_known_is_not_decided():
    (n,) = symbolic_shape("n")
    with pytest.raises(InconclusiveDimensionOperation, match="cannot decide the divide of"):
        settled(ELEMENTS["divide"](n - 5, 2))
    with pytest.raises(InconclusiveDimensionOperation):
        settled(compared("EQ", n, 3))
    assert settled(compared("NE", n, 0)) is True
    assert settled(ELEMENTS["sign"](n)) == 1


def test_only_what_is_small_is_known():
    assert known_constant(np.zeros(4, np.float32)) is None
    assert known_constant(np.zeros(10_000, np.int32)) is None
    assert isinstance(known_constant(np.zeros(4, np.int64)), Known)
    assert folded(operation("and"), [known_array(INT32, [6], ()), known_array(INT32, [3], ())]) is None


@pytest.mark.parametrize("shape", [(0,), (0, 0), (0, 3), (3, 0), (2, 0, 1)])
@pytest.mark.parametrize("dtype", [np.int32, np.bool_])
def test_constants_of_size_0_keep_their_shape(shape, dtype):
    def chosen(x):
        return jnp.where(jnp.full(shape, 1, dtype) == jnp.full(shape, 1, dtype), x, 0.0), jnp.full(shape, 1, dtype)

    x = jnp.zeros(shape)
    values, constant = export(chosen)(x).lift()(x)
    assert (values.shape, values.dtype, constant.shape, constant.dtype) == (shape, x.dtype, shape, dtype)
