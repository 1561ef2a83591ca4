"""`lax.reduce_window`: windows as large as a symbolic size, reducers that call functions, padding that takes away."""

import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from jaxtf.serialization import LoweringRuleMissing, deserialize, export
from jaxtf.shapepoly import symbolic_shape

twice_and = jax.jit(lambda a, b: 2 * a + b)


@jax.custom_jvp
def with_rule(a, b):
    return jnp.where(a > b, a - b, b)


with_rule.defjvp(lambda primals, tangents: (with_rule(*primals), tangents[0]))


def by_branch(a, b):
    return lax.cond(a < b, lambda: twice_and(a, b), lambda: jnp.where(b > 0, a, b))


def by_loop(a, b):
    return lax.while_loop(lambda x: jnp.abs(x) < 9, lambda x: jnp.where(x > 3, x - b, twice_and(x, b)), a)


def by_scan(a, b):
    return lax.fori_loop(0, 2, lambda _, x: 2 * x + b, a)


REDUCERS = {
    "where": lambda a, b: jnp.where(a > b, a, 2 * b),
    "jit": twice_and,
    "nested": jax.jit(lambda a, b: twice_and(a, jnp.clip(b, 0, 2))),
    "custom": with_rule,
    "checkpoint": jax.checkpoint(lambda a, b: jnp.where(a > b, a, jnp.sin(b))),
    "constant": lambda a, b: jnp.where(a > b, a, b * jnp.float32(np.float32(0.5))),
}


def windowed(reducer, padding):
    def function(x):
        return lax.reduce_window(x, np.float32(1), reducer, (x.shape[0], 2), (1, 1), padding)

    return function


@pytest.mark.parametrize("padding", ["VALID", "SAME"])
@pytest.mark.parametrize("name", REDUCERS)
def test_a_reducer_may_call_functions(name, padding):
    function = windowed(REDUCERS[name], padding)
    exported = export(jax.jit(function))(jax.ShapeDtypeStruct(symbolic_shape("n, 3"), np.float32))
    call = deserialize(exported.serialize()).call
    for n in (1, 2, 4):
        x = np.arange(3 * n, dtype=np.float32).reshape(n, 3) % 5
        np.testing.assert_allclose(call(x), jax.jit(function)(x), rtol=1e-6)


@pytest.mark.parametrize("reducer", [by_branch, by_loop])
def test_a_reducer_may_branch_and_loop(reducer):
    """XLA for CPU ends the process when it compiles such a reducer, also of a window of known size."""
    specs = jax.ShapeDtypeStruct(symbolic_shape("n, 3"), np.float32)
    exported = export(jax.jit(windowed(reducer, "VALID")))(specs)
    assert "func.call" not in exported.mlir_module().partition("generic_reduce_window_reducer")[2].partition("}\n")[0]


def test_of_two_arrays():
    def largest(f, g):
        keeps = f[0] >= g[0]
        return jnp.where(keeps, f[0], g[0]), jnp.where(keeps, f[1], g[1])

    def function(x, y):
        starts = np.float32(-np.inf), np.int32(0)
        return lax.reduce_window((x, y), starts, largest, (x.shape[0],), (1,), "SAME")

    (n,) = symbolic_shape("n")
    specs = jax.ShapeDtypeStruct((n,), np.float32), jax.ShapeDtypeStruct((n,), np.int32)
    exported = export(jax.jit(function))(*specs)
    x, y = np.float32([3, 1, 3, 2]), np.arange(4, dtype=np.int32)
    for found, expected in zip(exported.call(x, y), function(x, y), strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("form", ["size", "called"])
def test_a_reducer_that_computes_with_a_symbolic_size_is_refused(form):
    def function(x):
        def reducer(a, b):
            scaled = jax.jit(lambda a: a * x.shape[0]) if form == "called" else lambda a: a * jnp.asarray(x.shape[0])
            return scaled(a) + b

        return lax.reduce_window(x, np.float32(0), reducer, (x.shape[0],), (1,), "VALID")

    with pytest.raises(LoweringRuleMissing, match=r"(?s)reducer that computes with a symbolic size.*remedy"):
        export(jax.jit(function))(jax.ShapeDtypeStruct(symbolic_shape("n"), np.float32))


def test_a_reducer_that_scans_is_refused():
    with pytest.raises(LoweringRuleMissing, match=r"(?s)calls a function by scan.*remedy"):
        export(jax.jit(windowed(by_scan, "VALID")))(jax.ShapeDtypeStruct(symbolic_shape("n, 3"), np.float32))


REFUSED_BY_THE_VERIFIER = """
import jax, jax.numpy as jnp, numpy as np
from jax import lax
from jaxtf.serialization import export
from jaxtf.shapepoly import symbolic_shape
spec = jax.ShapeDtypeStruct(symbolic_shape("n"), np.float32)
for turn in range(30):
    function = lambda x: lax.reduce_window(x, 0., lambda a, b: jnp.where(a > b, a, b), x.shape, (1,), "SAME")
    export(jax.jit(function))(spec)
    jax.clear_caches()
"""
MORE_PADDING_THAN_ELEMENTS = """
import jax, jax.numpy as jnp, numpy as np
from jax import lax
from jaxtf.serialization import export
from jaxtf.shapepoly import symbolic_shape
larger = lambda f, g: (jnp.where(f[0] >= g[0], f[0], g[0]), jnp.where(f[0] >= g[0], f[1], g[1]))
starts, padding = (np.float32(0), np.float32(0)), ((-1, -1), (0, 0))
function = lambda x: lax.reduce_window((x, x), starts, larger, (1, 2), (1, 1), padding)
for texts, shape in (((1, 3), (1, 3)), (symbolic_shape("1, b"), (1, 4)), (symbolic_shape("a, b"), (1, 4))):
    results = export(jax.jit(function))(jax.ShapeDtypeStruct(texts, np.float32)).call(np.ones(shape, np.float32))
    assert [(y.shape, y.dtype) for y in results] == [((0, shape[1] - 1), np.float32)] * 2
"""


@pytest.mark.slow(1)
@pytest.mark.parametrize("program", [REFUSED_BY_THE_VERIFIER, MORE_PADDING_THAN_ELEMENTS], ids=["verifier", "padding"])
def test_the_process_survives(program):
    """A module that the verifier refuses damages the process, which ends some dozens of exports later; XLA ends it
    where padding takes away more than there is.
    """
    subprocess.run([sys.executable, "-c", program], check=True, timeout=300)


# Reducer, initial value, and what NumPy computes of the initial value and the elements of the operand.
OF_ONE = {
    "sum": (lax.add, np.float32(0), np.add),
    "sum from 2": (lax.add, np.float32(2), np.add),
    "integers": (lax.add, np.int8(0), np.add),
    "max": (lax.max, np.float32(-np.inf), np.maximum),
    "min": (lax.min, np.float32(np.inf), np.minimum),
    "bool max": (lax.max, np.bool_(False), np.logical_or),
    "bool min": (lax.min, np.bool_(True), np.logical_and),
    "bool and": (lax.bitwise_and, np.bool_(True), np.logical_and),
    "general": (lambda a, b: a + b * 2, np.float32(1), lambda a, b: a + b * 2),
}
CUTTING = [((0, -1), (0, 0)), ((-1, 0), (0, 0)), ((-1, -1), (-1, 0)), ((-2, -2), (0, 0)), ((0, -5), (0, -1))]


def cut(x, padding):
    """The elements that negative padding leaves, by slices of Python."""
    return x[tuple(slice(-low, max(size + high, 0)) for (low, high), size in zip(padding, x.shape, strict=True))]


def assert_identical(found, expected):
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


def called(function, *specs):
    return jax.jit(deserialize(export(jax.jit(function))(*specs).serialize()).call)


@pytest.mark.parametrize("padding", CUTTING)
@pytest.mark.parametrize("shape", ["4, 3", "n, m", "n, 3"])
@pytest.mark.parametrize("name", OF_ONE)
def test_padding_takes_elements_from_windows_of_one(name, shape, padding):
    reducer, start, expected = OF_ONE[name]

    def function(x):
        return lax.reduce_window(x, start, reducer, (1, 1), (1, 1), padding)

    call = called(function, jax.ShapeDtypeStruct(symbolic_shape(shape), start.dtype))
    for size in (4,) if shape == "4, 3" else (4, 1):
        x = (np.arange(3 * size).reshape(size, 3) % 5 - 1).astype(start.dtype)
        assert_identical(call(x), expected(start, cut(x, padding)))


@pytest.mark.parametrize("padding", CUTTING)
@pytest.mark.parametrize("shape", ["4, 3", "n, m"])
def test_padding_takes_elements_from_windows_of_one_of_two_arrays(shape, padding):
    def function(x, y):
        starts = np.float32(1), np.int32(2)
        return lax.reduce_window((x, y), starts, lambda a, b: (a[0] + b[0], a[1] * b[1]), (1, 1), (1, 1), padding)

    sizes = symbolic_shape(shape)
    specs = [jax.ShapeDtypeStruct(sizes, dtype) for dtype in (np.float32, np.int32)]
    x, y = np.arange(12, dtype=np.float32).reshape(4, 3), np.arange(12, dtype=np.int32).reshape(4, 3)
    sums, products = called(function, *specs)(x, y)
    assert_identical(sums, 1 + cut(x, padding))
    assert_identical(products, 2 * cut(y, padding))


@pytest.mark.parametrize("reducer", [lax.add, lambda a, b: jnp.where(a >= 0, a + b, 0)], ids=["sum", "where"])
def test_a_window_of_symbolic_size_may_be_of_one(reducer):
    def function(x):
        return lax.reduce_window(x, np.float32(0), reducer, (x.shape[0], 1), (1, 1), ((0, 0), (-1, -1)))

    call = called(function, jax.ShapeDtypeStruct(symbolic_shape("n, m"), np.float32))
    for n in (1, 2):
        x = np.arange(4 * n, dtype=np.float32).reshape(n, 4)
        assert_identical(call(x), x[:, 1:-1].sum(0, keepdims=True))


def test_derivatives_where_padding_takes_elements_from_windows_of_one():
    def largest(x):
        return lax.reduce_window(x, -np.inf, lax.max, (1,), (1,), ((-1, -1),))

    def total(x):
        return lax.reduce_window(x, np.float32(0), lax.add, (1,), (1,), ((-1, -1),)).sum()

    x, spec = np.float32([3, 1, 2, 5]), jax.ShapeDtypeStruct(symbolic_shape("n"), np.float32)
    values, tangents = called(lambda x: jax.jvp(largest, (x,), (2 * x,)), spec)(x)
    assert_identical(values, x[1:-1])
    assert_identical(tangents, 2 * x[1:-1])
    assert_identical(called(jax.grad(total), jax.ShapeDtypeStruct((4,), np.float32))(x), np.float32([0, 1, 1, 0]))


@pytest.mark.parametrize("edges", [lambda n: (0, 1 - n), lambda n: (-n, 0), lambda n: (1 - n, -n)])
def test_symbolic_padding_takes_elements_from_windows_of_one(edges):
    def function(x):
        return lax.reduce_window(x, np.float32(0), lax.add, (1,), (1,), (edges(x.shape[0]),))

    call = called(function, jax.ShapeDtypeStruct(symbolic_shape("n"), np.float32))
    for n in (1, 3):
        x = np.arange(n, dtype=np.float32)
        assert_identical(call(x), cut(x, (edges(n),)))
