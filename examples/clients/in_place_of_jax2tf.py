"""Puts jaxtf where libraries look for jax2tf: Keras and orbax-export run unmodified. Import it before they convert.

They say `from jax.experimental import jax2tf`, and ask `jax.export.is_symbolic_dim` whether a size is unknown.
"""

import sys

import jax.export

import jaxtf.convert
import jaxtf.shapepoly

_is_symbolic_for_jax = jax.export.is_symbolic_dim


def is_symbolic_dim(size) -> bool:
    """Whether a size is a dimension expression, of jaxtf or of JAX."""
    return jaxtf.shapepoly.is_symbolic_dim(size) or _is_symbolic_for_jax(size)


sys.modules["jax.experimental.jax2tf"] = jaxtf.convert
jax.export.is_symbolic_dim = is_symbolic_dim
