"""Arrays of NumPy in jaxprs that are in tuples, named tuples, lists and dictionaries among the parameters."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend.core import Primitive, jaxpr_as_fun
from jax.interpreters import mlir
from jax.scipy.sparse import linalg

from jaxtf.serialization import export
from jaxtf.serialization._export.frozen import frozen
from jaxtf.serialization._export.jaxprs import equations

SPEC = jax.ShapeDtypeStruct((3,), jnp.float32)


def root(a):
    def function(b):
        def solve(f, x):
            return jax.lax.fori_loop(0, 30, lambda _, y: y - f(y) / (2 * y), x)

        def tangent_solve(g, y):
            return jax.lax.custom_linear_solve(g, y, lambda matvec, r: r / matvec(jnp.ones(3)), symmetric=True)

        return jax.lax.custom_root(lambda x: x * x - a * b, b, solve, tangent_solve)

    return function


SOLVES = {
    "cg": lambda a: lambda b: linalg.cg(lambda v: a * v, b)[0],
    "gmres": lambda a: lambda b: linalg.gmres(lambda v: a * v, b)[0],
    "bicgstab": lambda a: lambda b: linalg.bicgstab(lambda v: a * v, b)[0],
    "custom_root": root,
    "in a scan": lambda a: (
        lambda b: jax.lax.scan(lambda c, _: (linalg.cg(lambda v: a * v, c)[0], None), b, length=2)[0]
    ),
}


@pytest.mark.parametrize("shape", [(), (3,)])
@pytest.mark.parametrize("name", SOLVES)
def test_solves_are_exported_with_the_numbers_at_the_time_of_export(name, shape):
    held = np.full(shape, 2, np.float32)
    function, x = SOLVES[name](held), jnp.array([1.0, 2.0, 3.0])
    expected = function(x)
    exported = export(function)(SPEC)
    held[...] = 5
    np.testing.assert_allclose(exported.call(x), expected, rtol=1e-6)


class Two(NamedTuple):
    first: object
    second: object


# JAX takes parameters only that are hashable.
class OwnList(list):
    __hash__ = object.__hash__


class Own(dict):
    __hash__ = object.__hash__


CONTAINERS = {
    "tuple": lambda f, g: (f, g),
    "list": lambda f, g: OwnList([f, g]),
    "named tuple": Two,
    "dictionary": lambda f, g: Own(f=f, g=g),
    "nested": lambda f, g: (1, OwnList([Two(f, Own(g=g))])),
}


def both(value):
    """The jaxprs in a container, in order."""
    if hasattr(value, "eqns"):
        return [value]
    items = value.values() if isinstance(value, dict) else value if isinstance(value, tuple | list) else ()
    return [jaxpr for item in items for jaxpr in both(item)]


holds_p = Primitive("holds_jaxprs")
holds_p.def_abstract_eval(lambda x, jaxprs: x)


def evaluated(x, jaxprs):
    for jaxpr in both(jaxprs):
        (x,) = jaxpr_as_fun(jaxpr)(x)
    return x


mlir.register_lowering(holds_p, mlir.lower_fun(evaluated, multiple_results=False))


@pytest.mark.parametrize("name", CONTAINERS)
def test_containers_of_jaxprs_keep_their_type(name):
    held = np.array(2, np.float32)
    traced = jax.make_jaxpr(lambda x: x * held)(SPEC)
    container = CONTAINERS[name](traced, jax.make_jaxpr(lambda x: x + 1)(SPEC))

    def function(x):
        return holds_p.bind(x, jaxprs=container)

    (equation,) = frozen(jax.jit(function).trace(SPEC)).jaxpr.eqns
    found = equation.params["jaxprs"]
    assert type(found) is type(container)
    assert len(both(found)) == 2
    assert {e.primitive.name for e in equations(jax.jit(function).trace(SPEC).jaxpr)} >= {"mul", "add"}
    exported = export(function)(SPEC)
    held[...] = 5
    np.testing.assert_array_equal(exported.call(np.ones(3, np.float32)), np.full(3, 3.0))
