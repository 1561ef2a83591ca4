"""Avals and dtypes between JAX's form and ours. Imports JAX."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import jax
import jax.core
import jax.dtypes
import jax.random
import jax.sharding
import numpy as np

from jaxtf.serialization._errors import ArtifactError
from jaxtf.serialization._record.avals import Aval, ExtendedDtype, python_sizes

__all__ = [
    "from_dtype",
    "is_differentiable",
    "placement",
    "specification",
    "tangent_spec",
    "to_aval",
    "to_dtype",
    "to_shaped_array",
    "to_spec",
]


def to_aval(abstract: Any) -> Aval:
    """Our aval of a JAX aval, a `ShapeDtypeStruct` or an array."""
    weak_type = bool(getattr(abstract, "weak_type", False))
    space = getattr(abstract, "memory_space", None)
    memory_space = "device" if space is None else str(space.name).lower()
    return Aval(python_sizes(abstract.shape), to_dtype(abstract.dtype), weak_type, memory_space)


def to_dtype(dtype: Any) -> Any:
    """Our form of a dtype of JAX: an extended one by its name, which a user's own may share with one of JAX's."""
    if not jax.dtypes.issubdtype(dtype, jax.dtypes.extended):
        return np.dtype(dtype)
    named = ExtendedDtype(dtype.name)
    is_own = dtype.name not in _KEY_IMPLEMENTATIONS or from_dtype(named) == dtype
    return named if is_own else ExtendedDtype(f"{dtype.name} of another implementation than JAX's")


def to_shaped_array(aval: Aval, shape: Sequence[Any] | None = None) -> Any:
    """JAX's aval of ours, at `shape` if given."""
    return jax.core.ShapedArray(
        tuple(aval.shape if shape is None else shape),
        from_dtype(aval.dtype),
        weak_type=aval.weak_type,
        memory_space=getattr(jax.memory.Space, aval.memory_space.capitalize()),
    )


def to_spec(aval: Aval, sharding: Any = None) -> Any:
    """JAX's specification of an argument of this aval; a sharding other than a `NamedSharding` says nothing."""
    placed = sharding if isinstance(sharding, jax.sharding.NamedSharding) else None
    return specification(aval.shape, from_dtype(aval.dtype), placed, aval.weak_type)


def specification(shape: Sequence[Any], dtype: Any, placed: Any = None, weak_type: bool = False) -> Any:
    """JAX's specification of an argument of this dtype, which is found and not asked for.

    JAX takes the 64 bits of a `jax.ShapeDtypeStruct` for 32 where 64-bit types are off, as of what a user asks for.
    What a function computes may have them all the same (`jax.enable_x64(True)` inside, `jax_explicit_x64_dtypes`).
    """
    is_kept = jax.dtypes.canonicalize_dtype(dtype, allow_extended_dtype=True) == dtype
    if is_kept or placed is not None:
        return jax.ShapeDtypeStruct(tuple(shape), dtype, sharding=placed, weak_type=weak_type)
    return jax.core.ShapedArray(tuple(shape), dtype, weak_type=weak_type)


def placement(spec: Any) -> Any:
    """Where a specification has its argument; None where it says nothing."""
    return spec.sharding if isinstance(spec, jax.ShapeDtypeStruct) else None


_KEY_IMPLEMENTATIONS = {"key<fry>": "threefry2x32", "key<rbg>": "rbg", "key<urbg>": "unsafe_rbg"}


@functools.cache
def from_dtype(dtype: Any) -> Any:
    """JAX's form of a dtype of ours.

    Raises:
      ArtifactError: It is an extended dtype that this JAX does not have.
    """
    if not isinstance(dtype, ExtendedDtype):
        return dtype
    implementation = _KEY_IMPLEMENTATIONS.get(dtype.name)
    if implementation is None:
        raise ArtifactError(f"JAX {jax.__version__} has no dtype {dtype.name!r}, which the exported function uses")
    return jax.eval_shape(lambda: jax.random.key(0, impl=implementation)).dtype


@functools.cache
def is_differentiable(dtype: Any) -> bool:
    """Whether values of this dtype have tangents: floating point and complex."""
    return bool(jax.dtypes.issubdtype(dtype, np.inexact))


def _of_cotangent(sharding: Any) -> Any:
    spec = getattr(sharding, "spec", None)
    if spec is None or not (spec.reduced or spec.unreduced):
        return sharding
    spec = jax.sharding.PartitionSpec(*spec.partitions, reduced=spec.unreduced, unreduced=spec.reduced)
    return sharding.update(spec=spec)


def tangent_spec(spec: Any) -> Any:
    """The specification of a cotangent: the same for inexact dtypes, `float0` for the others.

    That of a value which is still to be reduced over some axes is the same on all of them, and the reverse.
    """
    if is_differentiable(spec.dtype):
        return specification(spec.shape, spec.dtype, _of_cotangent(placement(spec)))
    return jax.ShapeDtypeStruct(spec.shape, jax.dtypes.float0)
