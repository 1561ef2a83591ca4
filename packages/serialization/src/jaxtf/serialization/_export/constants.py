"""The large arrays in jaxprs: those that a function closes over, at any depth. Imports JAX.

JAX has them as constants of the jaxpr, or of the jaxpr of a `jit` inside, which may be in the body of any operation.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any

import jax
import numpy as np
from jax.core import Tracer

__all__ = ["inner_jaxprs", "is_large", "items_of", "large_constants", "large_in", "memory_of"]


def memory_of(array: Any) -> Hashable:
    """Equal for arrays that are the same memory."""
    value = np.asarray(array)
    return value.__array_interface__["data"][0], value.shape, value.strides, value.dtype


def is_large(array: Any, least_bytes: int) -> bool:
    """Whether it is an array of so many bytes that can be an argument: with 64-bit types off, none of 64 bits is."""
    dtype = None if isinstance(array, Tracer) else getattr(array, "dtype", None)
    if not isinstance(dtype, np.dtype) or dtype.itemsize * int(np.prod(array.shape)) < least_bytes:
        return False
    return jax.dtypes.canonicalize_dtype(dtype) == dtype


def large_constants(jaxpr: Any, least_bytes: int) -> Iterator[Any]:
    """The large arrays of a jaxpr and of all in it, over and over if used so."""
    yield from (array for array in getattr(jaxpr, "consts", ()) if is_large(array, least_bytes))
    for equation in jaxpr.eqns:
        yield from large_in(equation, least_bytes)


def large_in(equation: Any, least_bytes: int) -> Iterator[Any]:
    """The large arrays among the parameters of an equation, and in the jaxprs among them."""
    for item in items_of(equation.params):
        if hasattr(item, "eqns"):
            yield from large_constants(item, least_bytes)
        elif isinstance(item, np.ndarray | jax.Array) and is_large(item, least_bytes):
            yield item


def inner_jaxprs(equation: Any) -> list[Any]:
    """The jaxprs among the parameters of an equation, open or closed."""
    return [item for item in items_of(equation.params) if hasattr(item, "eqns")]


def items_of(value: Any) -> Iterator[Any]:
    """What is in tuples, lists and dictionaries, and in such of them."""
    if isinstance(value, dict):
        value = tuple(value.values())
    if isinstance(value, tuple | list):
        for item in value:
            yield from items_of(item)
    else:
        yield value
