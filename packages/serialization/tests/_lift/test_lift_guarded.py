"""The branches of `jax.vmap(jax.lax.cond)` that are not taken leave the derivatives of a lifted function alone."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from jaxtf.serialization import deserialize, export

X = np.array([-1.0, -2.0, 3.0, -0.5, 0.0], np.float32)
INDEX = np.array([0, 0, 1, 0, 0], np.int32)


def of_each(branches):
    return jax.vmap(lambda i, x: lax.switch(i, branches, x))


def nested(i, x):
    def of_negative(x):
        return lax.cond(x > -1, jnp.log1p, jnp.cos, x)

    return lax.switch(i, [of_negative, lambda x: lax.cond(x > 0, jnp.log, jnp.sin, x)], x)


FUNCTIONS = {
    "cond": of_each([jnp.sin, jnp.sqrt]),
    "switch": lambda index, x: of_each([jnp.sin, jnp.log, jnp.sqrt])(2 * index, x),
    "of complex numbers": lambda index, x: of_each([lambda z: z * z, lambda z: 1 / (z + 1)])(index, x + 0j).real,
    "a scalar for all": lambda index, x: jax.vmap(lambda i: lax.cond(i == 1, jnp.sqrt, jnp.sin, x[0]))(index),
    "nested": jax.vmap(nested),
    "in a loop": lambda index, x: lax.fori_loop(0, 3, lambda _, y: of_each([jnp.sin, jnp.sqrt])(index, y), x),
    "in vmap": lambda index, x: jax.vmap(of_each([jnp.sin, jnp.sqrt]), (None, 0))(index, jnp.stack([x, x + 0.1])),
    "an array or itself": lambda index, x: jnp.where(index == 1, x, x) ** 3,
    "nan itself": lambda index, x: jnp.where(index == 1, x, x) * jnp.where(index == 1, jnp.nan, 1),
}


def summed(function):
    return lambda x: function(INDEX, x).sum()


DERIVATIVES = {
    "grad": lambda f: jax.grad(summed(f)),
    "jit": lambda f: jax.jit(jax.grad(summed(f))),
    "hessian": lambda f: jax.hessian(summed(f)),
    "jvp": lambda f: lambda x: jax.jvp(summed(f), (x,), (np.ones_like(x),))[1],
    "vmap": lambda f: lambda x: jax.vmap(jax.grad(summed(f)))(jnp.stack([x, x + 0.25])),
    "vmap of the index": lambda f: (
        lambda x: jax.vmap(jax.grad(lambda x, i: f(i, x).sum()), (None, 1), 1)(x, np.stack([INDEX, 1 - INDEX], 1))
    ),
    "checkpoint": lambda f: jax.grad(jax.checkpoint(summed(f))),
}


@pytest.fixture(scope="module", params=FUNCTIONS)
def functions(request):
    function = FUNCTIONS[request.param]
    return function, deserialize(export(jax.jit(function))(INDEX, X).serialize()).lift()


@pytest.mark.parametrize("name", DERIVATIVES)
def test_derivatives_of_choices_are_those_of_jax(functions, name):
    expected, found = (DERIVATIVES[name](function)(X) for function in functions)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
