"""`lax.reduce_window` with a window as large as a symbolic size, by reducers that call functions."""

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

CUT_ALONE = """
import jax, jax.numpy as jnp, numpy as np
from jax import lax
from jaxtf.serialization import deserialize, export
from jaxtf.shapepoly import symbolic_shape
reducers = {
    "sum": (lax.add, 0), "sum from 5": (lax.add, 5), "least": (lax.min, np.inf), "greatest": (lax.max, -np.inf),
    "any": (lambda a, b: 2 * a + b, 1),
}
x = np.arange(12, dtype=np.float32).reshape(4, 3)
for name, (reducer, initial) in reducers.items():
    for padding in (((0, -1), (0, 0)), ((-1, 0), (0, -1)), ((-2, -1), (-1, -1)), ((-2, -2), (0, 0))):
        def function(*arrays):
            start = (np.float32(initial),) * len(arrays)
            if len(arrays) == 1:
                return lax.reduce_window(*arrays, *start, reducer, (1, 1), (1, 1), padding)
            by_both = lambda f, g: tuple(reducer(a, b) for a, b in zip(f, g))
            return lax.reduce_window(arrays, start, by_both, (1, 1), (1, 1), padding)

        (top, bottom), (left, right) = padding
        expected = reducer(np.float32(initial), jnp.asarray(x[-top:4 + bottom, -left:3 + right]))
        for shape in (x.shape, symbolic_shape("a, b", constraints=["a >= 4", "b >= 3"])):
            for count in (1, 2):
                exported = export(jax.jit(function))(*[jax.ShapeDtypeStruct(shape, np.float32)] * count)
                for result in jax.tree.leaves(jax.jit(deserialize(exported.serialize()).call)(*[x] * count)):
                    np.testing.assert_array_equal(result, expected, f"{name}, {padding}, {shape}")
"""


@pytest.mark.parametrize(
    "program",
    [REFUSED_BY_THE_VERIFIER, MORE_PADDING_THAN_ELEMENTS, CUT_ALONE],
    ids=["verifier", "padding", "cut alone"],
)
def test_the_process_survives(program):
    """A module that the verifier refuses damages the process, which ends some dozens of exports later; XLA ends it
    where padding takes away more than there is, or only takes away from windows of one element.
    """
    subprocess.run([sys.executable, "-c", program], check=True, timeout=300)
