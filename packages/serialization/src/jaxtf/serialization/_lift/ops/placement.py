"""Where values are: over which devices, in which memory. That changes no value, and is left to the caller.

A lifted function is sharded as any other: by `jax.jit(in_shardings=)`, by its arguments, in `jax.shard_map`.
"""

from __future__ import annotations

from typing import Any

from jaxtf.serialization._lift.registry import Bound, lifts


@lifts(
    "custom_call.Sharding",
    "custom_call.xla.sdy.FuncResultSharding",
    "custom_call.annotate_device_placement",
    "sdy.sharding_constraint",
    "sdy.propagation_barrier",
    "sdy.reshard",
    "sdy.data_flow_edge",
    differs="the placement of values over devices or in memory, as the module asks for it, is not kept",
)
def placed(bound: Bound, operand: Any, *sizes: Any) -> Any:
    """The operand; its sizes follow it where they are not known."""
    return operand
