"""The door to JAX: the only module here that uses its private names.

Imported when a JAX function is converted; an `Exported` runs without it. Each private name
stands once, with why it is needed and the versions it was seen in:

- `jax._src.config.trace_context` (0.10.2, 0.12.0.1): everything in JAX's configuration that
  changes what tracing gives (x64, matmul precision, random implementation, ...), as `jax.jit`
  keys its own cache. There is no public list of those settings.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import jax
import jax.dtypes
import numpy as np
from jax._src.config import trace_context

__all__ = ["canonical_dtype", "float0", "is_tracer", "python_scalar_dtype", "tracing_configuration"]

float0: np.dtype[Any] = jax.dtypes.float0


def tracing_configuration() -> Hashable:
    """A hashable value that differs whenever JAX would trace or lower differently."""
    context: Hashable = trace_context()
    return context


def canonical_dtype(dtype: Any) -> np.dtype[Any]:
    """The dtype that JAX computes in for values of `dtype`: 32-bit unless x64 is on."""
    return np.dtype(jax.dtypes.canonicalize_dtype(dtype))


def python_scalar_dtype(value: Any) -> np.dtype[Any]:
    """The dtype that JAX gives to a Python scalar."""
    return np.dtype(jax.dtypes.result_type(type(value)))


def is_tracer(value: Any) -> bool:
    """Whether `value` belongs to a JAX transformation in progress."""
    return isinstance(value, jax.core.Tracer)
