"""The fast path of eager calls: arrays on a CPU for arguments, one tensor for the result.

What `call_tf` asks of any call (which pytree, which trace, which dtypes) is answered here by exact types and
cached tables, or not at all: then the call takes the slow path, which gives the same result. In between runs the
user's function, whose side effects happen once; so its result is examined afterwards, separately.
"""

from __future__ import annotations

import functools
from typing import Any

import jax
import numpy as np
import tensorflow as tf

from jaxtf.calltf._jax import ArrayImpl, evaluating, is_one_cpu
from jaxtf.calltf._tf import eager_type, executing_eagerly
from jaxtf.calltf._transfer import canonical_dtype_for, has_dlpack_code, has_elements_of_jax, over_memory, to_array

__all__ = ["plain_array", "plain_tensors"]


def plain_tensors(args: tuple[Any, ...]) -> list[Any] | None:
    """The arguments as tensors over their memory; None unless this is an eager call where all can be that."""
    if not (evaluating() and executing_eagerly()):
        return None
    x64 = jax.config.jax_enable_x64
    tensors = []
    for arg in args:
        if type(arg) is not ArrayImpl or not _is_shared(arg.dtype, arg.sharding, x64):
            return None
        tensor = over_memory(arg)
        if tensor is None:
            return None
        tensors.append(tensor)
    return tensors


def plain_array(value: Any) -> jax.Array | None:
    """The array over the memory of a result, if that is one tensor of a type that JAX has."""
    return to_array(value) if _is_type_of_jax(eager_type(value), jax.config.jax_enable_x64) else None


@functools.lru_cache(1024)
def _is_shared(dtype: np.dtype[Any], sharding: jax.sharding.Sharding, x64: bool) -> bool:
    """Whether arrays of this dtype, lying so, are taken as they are."""
    return has_dlpack_code(dtype) and canonical_dtype_for(dtype, x64) == dtype and is_one_cpu(sharding)


@functools.cache
def _is_type_of_jax(number: int | None, x64: bool) -> bool:
    """Whether tensors of this type, given by its number, can be arrays as they are."""
    return number is not None and has_elements_of_jax(tf.as_dtype(number), x64)
