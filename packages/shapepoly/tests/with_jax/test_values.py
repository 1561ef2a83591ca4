"""Dimensions as JAX values and with NumPy; values computed by JAX against Python's integers."""

import operator
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from jax import lax

import jaxtf.shapepoly
from jaxtf.shapepoly import symbolic_shape

# Under pytest's importlib mode tests have no absolute name.
from ..strategies import NAMES, SYMBOLIC, all_sizes, expressions, value  # noqa: TID252


def in_trace(function):
    """The type of what a function of a dimension returns while JAX traces."""
    b, d = symbolic_shape("b, d")
    (result,) = jax.tree.leaves(jax.eval_shape(lambda x: function(x.shape[0]), jax.ShapeDtypeStruct((b, d), "float32")))
    return result


@pytest.mark.parametrize("kind", [np.int8, np.int32, np.int64, np.uint8])
def test_numpy_integers_are_operands_on_both_sides(kind):
    (a,) = symbolic_shape("a")
    for operation in (operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod):
        assert operation(a, kind(7)) == operation(a, 7)
        assert operation(kind(7), a) == operation(7, a)
    assert a >= kind(1)
    assert kind(0) < a
    assert kind(3) != a
    assert a != kind(3)


def test_numpy_sum_and_prod_compute_with_dimensions():
    a, b = symbolic_shape("a, b")
    assert np.sum([a, b, 2]) == a + b + 2
    assert np.prod([a, b, 2]) == 2 * a * b


def test_numpy_max_and_min_choose_where_the_answer_is_the_same_for_all_sizes():
    a, b = symbolic_shape("a, b")
    assert np.max([a, a + 2, 1]) == a + 2
    assert np.min([a + b, b]) == b
    with pytest.raises(jax.errors.InconclusiveDimensionOperation, match="is inconclusive"):
        np.max([a, b])


@pytest.mark.parametrize(
    ("function", "dtype"),
    [
        (lambda d: d + 1.5, "float32"),
        (lambda d: 1.5 - d, "float32"),
        (lambda d: d / 2, "float32"),
        (lambda d: 2 / d, "float32"),
        (lambda d: d * np.float32(2), "float32"),
        (lambda d: np.float32(2) * d, "float32"),
        (lambda d: np.ones(3, np.float32) * d, "float32"),
        (lambda d: d - np.ones(3, np.int32), "int32"),
        (lambda d: d + jnp.ones(3, jnp.bfloat16), "bfloat16"),
        (jnp.sin, "float32"),
        (jnp.array, "int32"),
        (lambda d: jnp.array([d, 2 * d]), "int32"),
        (lambda d: jnp.asarray(d, jnp.int8), "int8"),
        (lambda d: d >= np.ones(3, np.int32), "bool"),
        (lambda d: d == jnp.ones(3, jnp.int32), "bool"),
        (lambda d: d**2.0, "float32"),
        (lambda d: 2.0**d, "float32"),
        (lambda d: 2**d, "int32"),
        (lambda d: (-2) ** d, "int32"),
        (lambda d: d**d, "int32"),
        (lambda d: (d + 1) ** (2 * d), "int32"),
        (lambda d: jnp.full(3, d), "int32"),
    ],
)
def test_with_floats_and_arrays_a_dimension_becomes_an_array_as_an_integer_would(function, dtype):
    symbolic = in_trace(function)
    concrete = jax.eval_shape(lambda x: function(5), jnp.zeros(3))
    assert symbolic.dtype == dtype
    assert symbolic.dtype == concrete.dtype
    assert symbolic.shape == concrete.shape


@pytest.mark.parametrize(
    "function",
    [
        lambda x, d: lax.full((3,), d),
        lambda x, d: jnp.zeros(3, jnp.result_type(jnp.int8(1), d)),
        lambda x, d: lax.fori_loop(jnp.int8(0), d, lambda i, total: total + i, jnp.int8(0)),
        lambda x, d: jnp.where(x > 0, x, d),
        lambda x, d: lax.add(x, lax.convert_element_type(d, "float32")),
        lambda x, d: x.sum(initial=d),
        jnp.maximum,
    ],
)
def test_a_dimension_passed_to_jax_is_typed_as_an_integer_is(function):
    n, _ = symbolic_shape("n, m")
    x = jax.ShapeDtypeStruct((3,), "float32")
    symbolic = jax.eval_shape(lambda x, y: function(x, y.shape[0]), x, jax.ShapeDtypeStruct((n,), "float32"))
    concrete = jax.eval_shape(lambda x, y: function(x, y.shape[0]), x, jax.ShapeDtypeStruct((5,), "float32"))
    assert (symbolic.shape, symbolic.dtype, symbolic.weak_type) == (
        concrete.shape,
        concrete.dtype,
        concrete.weak_type,
    )


@pytest.mark.parametrize("dividend", [7, -7, 8, -8])
@pytest.mark.parametrize("divisor", [4, -4])
def test_quotients_and_remainders_of_jax_round_down_as_pythons_do(dividend, divisor):
    a, b, c = symbolic_shape("a, b, c", constraints=["c >= 12"])
    sizes = {"a": dividend + 20, "b": 20, "c": divisor + 10}
    env = {name: jnp.int32(size) for name, size in sizes.items()}
    ten = c - 10
    assert int(((a - b) // ten)._evaluate(env)) == dividend // divisor
    assert int(((a - b) % ten)._evaluate(env)) == dividend % divisor


def test_the_value_has_the_default_integer_type():
    assert in_trace(lambda d: d.dimension_as_value()).dtype == jnp.int32
    with jax.enable_x64(True):
        assert in_trace(lambda d: d.dimension_as_value()).dtype == jnp.int64


def test_a_value_outside_of_tracing_is_refused():
    (b,) = symbolic_shape("b")
    with pytest.raises(jax.errors.InconclusiveDimensionOperation, match="its value exists only inside a\n  function"):
        b + 1.5


def test_an_array_from_a_dimension_is_not_a_shape():
    with pytest.raises(TypeError, match="Shapes must be 1D sequences of concrete values of integer type"):
        in_trace(lambda d: jnp.ones(jnp.array(d)))


@settings(max_examples=30)
@given(text=expressions)
def test_jax_evaluates_what_python_computes(text):
    dimension = value(text, dict(zip(NAMES, symbolic_shape("a, b, c"), strict=True)), SYMBOLIC)
    if isinstance(dimension, int):
        return
    for sizes in list(all_sizes(NAMES, 2))[::3]:
        env = {name: jnp.int32(size) for name, size in sizes.items()}
        assert int(dimension._evaluate(env)) == value(text, sizes)


def test_errors_are_those_that_jax_catches():
    a, b = symbolic_shape("a, b")
    with pytest.raises(jax.errors.InconclusiveDimensionOperation) as caught:
        a >= b  # noqa: B015
    assert isinstance(caught.value, jaxtf.shapepoly.InconclusiveDimensionOperation)


def test_the_error_tells_the_line_of_the_user_and_not_of_jax():
    def crop(x):
        return x[:16] if x.shape[0] >= 16 else x

    (shape,) = symbolic_shape("b")
    with pytest.raises(jax.errors.InconclusiveDimensionOperation) as caught:
        jax.jit(crop).trace(jax.ShapeDtypeStruct((shape,), "float32"))
    assert f"asked at: {__file__}:" in str(caught.value)
    assert ", in crop\n" in str(caught.value)


@pytest.mark.parametrize(
    "first", ["import jax", "from jaxtf.shapepoly import symbolic_shape; s = symbolic_shape('b, 2*d')"]
)
def test_jax_traces_whichever_is_imported_first_and_nothing_is_registered_by_the_user(first):
    program = (
        f"{first}\n"
        "from jaxtf.shapepoly import symbolic_shape\n"
        "shape = symbolic_shape('b, 2*d')\n"
        "import jax\n"
        "spec = jax.ShapeDtypeStruct(globals().get('s', shape), 'float32')\n"
        "jax.jit(lambda x: x @ x.T / x.shape[0]).trace(spec).lower()\n"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", program], check=True)
