"""`jax.vmap` of a call: a call of the vectorized TensorFlow function, also in eager mode.

The function is traced for one element, so what cannot be staged cannot be vectorized. A batch of
no elements runs nothing. Stateful ops run once for each element, in the order of the batch.

`spmd_axis_name` is refused: TensorFlow's program has no place for the sharding of the batch axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.core import ShapedArray

from jaxtf.calltf._captures import Captures
from jaxtf.calltf._errors import UnsupportedError
from jaxtf.calltf._function import Function
from jaxtf.calltf._jax import Batch, register_batching
from jaxtf.calltf._primitive import call_tf_linear_p, call_tf_p
from jaxtf.calltf._recorded import Recorded
from jaxtf.calltf._traced import Traced
from jaxtf.calltf._vectorized import Vectorized

Rule = tuple[Sequence[Any], Sequence[int | None]]


def _call_batched(
    batch: Batch, args: Sequence[Any], dims: Sequence[int | None], *, traced: Traced, captures: Captures | None
) -> Rule:
    if all(dim is None for dim in dims):
        results = call_tf_p.bind(*args, traced=traced, captures=captures)
        return results, [None] * len(results)
    _refuse_spmd_axis(batch, traced.function)
    _refuse_order(traced.function)
    if batch.size == 0:
        return _no_elements(traced.function, traced.avals)
    whole = [_leading(arg, dim) for arg, dim in zip(args, dims, strict=True)]
    function = traced.function.derived(Vectorized, tuple(dim is not None for dim in dims))
    results = call_tf_p.bind(*whole, traced=function.trace([jax.typeof(arg) for arg in whole]), captures=captures)
    return results, [0] * len(results)


def _linear_batched(
    batch: Batch,
    operands: Sequence[Any],
    dims: Sequence[int | None],
    *,
    function: Function,
    arguments: tuple[int, ...],
    results: tuple[int, ...],
    avals: tuple[ShapedArray, ...],
    recorded: Recorded | None,
    captures: Captures | None,
) -> Rule:
    params = {"arguments": arguments, "results": results, "captures": captures}
    if all(dim is None for dim in dims):
        found = call_tf_linear_p.bind(*operands, function=function, avals=avals, recorded=recorded, **params)
        return found, [None] * len(found)
    _refuse_spmd_axis(batch, function)
    if batch.size == 0:
        return _no_elements(function, avals)
    num_args = len(operands) - len(arguments)
    owners = [*range(num_args), *arguments]  # the argument that an operand is, or is the tangent of
    batched = {owner for owner, dim in zip(owners, dims, strict=True) if dim is not None}
    whole = [
        jnp.broadcast_to(operand, (batch.size, *jnp.shape(operand)))
        if dim is None and owner in batched
        else _leading(operand, dim)
        for operand, dim, owner in zip(operands, dims, owners, strict=True)
    ]
    found = call_tf_linear_p.bind(
        *whole,
        function=function.derived(Vectorized, tuple(i in batched for i in range(num_args))),
        avals=tuple(ShapedArray((batch.size, *aval.shape), aval.dtype) for aval in avals),
        recorded=None,
        **params,
    )
    return found, [0] * len(found)


def _leading(operand: Any, dim: int | None) -> Any:
    return operand if dim is None else jnp.moveaxis(operand, dim, 0)


def _no_elements(function: Function, avals: Sequence[ShapedArray]) -> Rule:
    with function.configuration.entered():  # which may have dtypes that JAX does not make now
        return [jnp.zeros((0, *aval.shape), aval.dtype) for aval in avals], [0] * len(avals)


def _refuse_order(function: Function) -> None:
    if function.staging.ordered:
        raise UnsupportedError(
            f"call_tf: jax.vmap of {function} with ordered=True is not supported: the elements of a batch have no "
            "order\n  remedy: use jax.lax.map, or leave ordered=True out"
        )


def _refuse_spmd_axis(batch: Batch, function: Function) -> None:
    if batch.spmd_axis_name is not None:
        raise UnsupportedError(
            f"call_tf: jax.vmap of {function} with spmd_axis_name={batch.spmd_axis_name!r} is not supported: the batch "
            "axis inside of TensorFlow's program cannot be sharded\n"
            "  remedy: leave spmd_axis_name out, or use jax.shard_map over that axis"
        )


register_batching(call_tf_p, _call_batched)
register_batching(call_tf_linear_p, _linear_batched)
