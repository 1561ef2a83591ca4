"""Calls inside of `jax.shard_map`, where a type says over which axes of the mesh a value varies.

A call varies over all axes over which one of its arguments does. Arguments that are the same on all devices are made
varying before the call, as JAX does for its own operations: the transpose of that sums cotangents over the devices.
For the primitives of this package and of jaxtf-calltf.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax

from jaxtf.serialization._jax import vary_as, varying_axes

__all__ = ["vary_alike", "varying_like"]


def vary_alike(args: Sequence[Any]) -> list[Any]:
    """The operands of one call, each varying over the axes over which any of them does; elsewhere as they are.

    Args:
      args: Arrays or tracers.
    """
    own = [varying_axes(jax.typeof(arg)) for arg in args]
    axes = frozenset().union(*own)
    return [
        jax.lax.pcast(arg, tuple(sorted(axes - varying)), to="varying") if axes - varying else arg
        for arg, varying in zip(args, own, strict=True)
    ]


def varying_like(results: Sequence[Any], operands: Sequence[Any]) -> tuple[Any, ...]:
    """The avals of the results of a call, which vary as its operands do.

    Args:
      results: Their shapes and dtypes.
      operands: The avals of what `vary_alike` gave.
    """
    varying = [aval for aval in operands if varying_axes(aval)]
    if not varying:
        return tuple(results)
    widest = max(varying, key=lambda aval: len(varying_axes(aval)))
    mesh = widest.sharding.mesh
    return tuple(
        vary_as(aval, widest, jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(*[None] * aval.ndim)))
        for aval in results
    )
