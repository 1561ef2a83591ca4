"""A module read for `lift`: values have dtypes of NumPy and `ml_dtypes`, those that JAX has."""

from __future__ import annotations

import jax.numpy as jnp

from jaxtf.serialization._errors import LiftUnsupported
from jaxtf.serialization._program.program import TensorType
from jaxtf.serialization._program.reading import Reading
from jaxtf.serialization._record.avals import dtype_from_name

__all__ = ["READING"]


def _array_type(element: str, dtype: str | None, shape: tuple[int | None, ...]) -> TensorType:
    """The type of an array.

    Raises:
      LiftUnsupported: JAX has no such dtype.
    """
    if dtype is None or not hasattr(jnp, "bool_" if dtype == "bool" else dtype):
        raise LiftUnsupported(
            f"lift has no arrays of {element}: JAX has no such dtype\n  remedy: convert to another dtype in the module"
        )
    return TensorType(dtype_from_name(dtype), shape)


READING = Reading("lift", LiftUnsupported, _array_type)
