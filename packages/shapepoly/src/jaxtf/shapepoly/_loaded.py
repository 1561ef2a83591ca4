"""Whether JAX is in this process, found out without importing it."""

import sys


def jax_is_loaded() -> bool:
    """Returns whether JAX was imported; False also where its import is blocked."""
    return sys.modules.get("jax") is not None
