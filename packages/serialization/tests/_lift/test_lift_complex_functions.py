"""Functions of complex numbers have JAX's derivatives, also where their parts are equal or 0."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from jaxtf.serialization import deserialize, export
from jaxtf.serialization._program.complex_functions import is_known
from jaxtf.shapepoly import symbolic_shape

from .complex_functions_table import DTYPES, NAMES, found

POINTS = [1 + 1j, 2 - 2j, -0.5 + 0.5j, 1.5 + 0.3j, 4, -4, 2j, -2j, 0.3, 0.7j, 1e10 + 1j, 1 - 1j, 0.5]
FUNCTIONS = {
    **{name: getattr(lax, name) for name in NAMES.split()},
    "power of 2": lambda z: z**2,
    "power of 3": lambda z: z**3,
    "power of 0.5": lambda z: z**0.5,
    "power": lambda z: z ** (1.5 + 0.5j),
    "quotient": lambda z: (1 + 2j) / z,
    "several": lambda z: jnp.sin(lax.square(z + 1j)) * jnp.sqrt(z),
}
OF_SECOND = ("square", "sin", "cos", "sqrt", "several")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", NAMES.split())
def test_what_jax_writes_out_is_known(name, dtype):
    digest = found(name, dtype)
    assert digest is None or is_known(digest), "add what tests/_lift/complex_functions_table.py prints"


CASES = [*((name, "complex64") for name in FUNCTIONS), *((name, "complex128") for name in OF_SECOND)]


@pytest.mark.slow(1)
@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_derivatives_are_those_of_jax(name, dtype):
    function = FUNCTIONS[name]
    with jax.enable_x64(dtype == "complex128"):
        z = np.array(POINTS, dtype)
        lifted = deserialize(export(jax.jit(function))(z).serialize()).lift()
        derivatives = [
            lambda f: jax.jvp(f, (z,), (np.full_like(z, 1 + 0.5j),))[1],
            lambda f: jax.grad(lambda z: f(z).real.sum())(z),
            lambda f: jax.vmap(jax.grad(lambda z: f(z).imag.sum()))(np.stack([z, z])),
        ]
        if name in OF_SECOND:
            derivatives.append(lambda f: jax.grad(lambda z: jax.grad(lambda z: f(z).real.sum())(z).real.sum())(z))
        np.testing.assert_array_equal(lifted(z), jax.jit(function)(z))
        for derivative in derivatives:
            np.testing.assert_allclose(derivative(lifted), derivative(function), rtol=1e-4, atol=1e-6)


def test_open_sizes_have_the_derivatives():
    exported = export(jax.jit(lambda z: jnp.sin(lax.square(z))))
    lifted = deserialize(exported(jax.ShapeDtypeStruct(symbolic_shape("n"), np.complex64)).serialize()).lift()
    z = np.array(POINTS[:4], np.complex64)
    expected = jax.grad(lambda z: jnp.sin(lax.square(z)).real.sum())(z)
    np.testing.assert_allclose(jax.grad(lambda z: lifted(z).real.sum())(z), expected, rtol=1e-5)
