"""JAX as the tests use it: on the CPU, without implicit promotion between dtypes of arrays."""

import jax
import pytest

jax.config.update("jax_platforms", "cpu")


@pytest.fixture(autouse=True)
def strict_promotion():
    with jax.numpy_dtype_promotion("strict"):
        yield
