"""Scatters of several updates without an index, of which a release of XLA combines the last one only."""

import jax
import numpy as np
import pytest
from jax import lax

from jaxtf.serialization import deserialize, export, lift
from jaxtf.shapepoly import symbolic_shape

NUMBERS = lax.ScatterDimensionNumbers((1,), (), ())
POINT = lax.ScatterDimensionNumbers((), (0,), ())
BATCHED = lax.ScatterDimensionNumbers((), (), (), (0,), (0,))
NO_INDEX = np.zeros((3, 0), np.int32)
# A function of an array and updates, these, and the result.
X, UPDATES = np.array([1, 2, 3], np.float32), np.array([[10], [20], [40]], np.float32)
CASES = {
    "sum": (lambda x, u: lax.scatter_add(x, NO_INDEX, u, NUMBERS), X, UPDATES, [71, 2, 3]),
    "largest": (lambda x, u: lax.scatter_max(x, NO_INDEX, u, NUMBERS), X, -UPDATES, [1, 2, 3]),
    "whole": (lambda x, u: lax.scatter_add(x, NO_INDEX, u, NUMBERS), X, np.repeat(UPDATES, 3, 1), [71, 72, 73]),
    "an element": (lambda x, u: lax.scatter_add(x, NO_INDEX, u, POINT), X[:1], UPDATES[:, 0], [71]),
    "complex": (lambda x, u: lax.scatter_add(x, NO_INDEX, u, NUMBERS), X * 1j, UPDATES * 1j, [71j, 2j, 3j]),
}


@pytest.mark.parametrize("name", CASES)
def test_all_updates_are_combined(name):
    function, x, updates, expected = CASES[name]
    x, updates = (a.astype(np.complex64 if name == "complex" else np.float32) for a in (x, updates))
    exported = export(jax.jit(function))(x, updates)
    np.testing.assert_array_equal(exported.call(x, updates), expected)
    written = jax.export.export(jax.jit(function))(x, updates)
    np.testing.assert_array_equal(deserialize(bytes(written.serialize())).call(x, updates), expected)
    np.testing.assert_array_equal(lift(exported)(x, updates), expected)


def test_sizes_and_the_number_of_updates_may_be_symbolic():
    def function(x, indices, updates):
        return lax.scatter_add(x, indices, updates, NUMBERS)

    n, k, m = symbolic_shape("n, k, m", constraints=["n >= m"])
    specs = [jax.ShapeDtypeStruct(s, d) for s, d in (((n,), "float32"), ((k, 0), "int32"), ((k, m), "float32"))]
    exported = export(jax.jit(function))(*specs)
    for count in (1, 3):
        found = exported.call(X, NO_INDEX[:count], UPDATES[:count])
        np.testing.assert_array_equal(found, [1 + UPDATES[:count].sum(), 2, 3])


def test_the_gradient_of_a_gather_without_an_index_sums_all():
    numbers = lax.GatherDimensionNumbers((1,), (), ())
    exported = export(jax.jit(lambda x: lax.gather(x, NO_INDEX, numbers, (2,))))(X)
    (found,) = exported.vjp().call(X, np.repeat(UPDATES, 2, 1))
    np.testing.assert_array_equal(found, [70, 70, 0])


def test_others_are_left_as_they_are():
    def indexed(function, *arguments):
        text = export(jax.jit(function))(*arguments).mlir_module()
        return "stablehlo.pad" in text

    assert indexed(CASES["sum"][0], X, UPDATES)
    assert not indexed(lambda x, u: lax.scatter_add(x, NO_INDEX[:1], u, NUMBERS), X, UPDATES[:1])
    assert not indexed(lambda x, u: x.at[np.array([0, 0, 2])].add(u), X, UPDATES[:, 0])
    assert not indexed(lambda x, u: x.at[:].add(u), X, X)
    assert not indexed(lambda x, u: x.at[()].add(u), X[0], X[1])
    assert not indexed(lambda x, u: lax.scatter_add(x, NO_INDEX, u, BATCHED), X, X)
