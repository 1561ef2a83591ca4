"""The door to JAX's private names: each stands here once, under a name of ours.

Everything else of the package uses `jax`, `jax.core`, `jax.extend` and `jax.interpreters`
only. Knows JAX; nothing of TensorFlow.
"""

from __future__ import annotations

import functools
from typing import Any

import jax
import numpy as np

# The trace that is active now, and the two traces that end a stack of them: evaluation and
# staging. `jax.extend.core.find_top_trace` is public but marked for deletion. Seen in JAX
# 0.10.2 and 0.12.0.1.
from jax._src.core import EvalTrace as _EvalTrace
from jax._src.core import to_concrete_value as _to_concrete_value
from jax._src.core import unsafe_get_current_trace as _current_trace

# The sets of effect types that may be lowered, stand in control flow, in `jax.checkpoint` and
# under custom derivatives. Only `lowerable_effects` has a public route. Seen in JAX 0.10.2
# and 0.12.0.1.
from jax._src.effects import (
    control_flow_allowed_effects,
    custom_derivatives_allowed_effects,
    lowerable_effects,
    remat_allowed_effects,
)
from jax._src.interpreters.partial_eval import DynamicJaxprTrace as _StagingTrace

# HLO, which TensorFlow writes, to StableHLO bytes; jaxlib has no public route. Seen in jaxlib
# 0.10.2 and 0.12.0.
from jax._src.lib import _jax as _jaxlib

# What `jax.device_put` of one NumPy array ends in: 4 us instead of 38. Seen in JAX 0.10.2 and 0.12.0.1.
from jax._src.lib import xla_client as _xla_client
from jax.core import ShapedArray


def evaluating() -> bool:
    """Whether an operation met now is executed at once, not staged into a program.

    True outside of any transformation and directly under `jax.grad`, `jax.jvp` and
    `jax.vmap`; False inside `jax.jit` and control flow, also for constant arguments.
    """
    trace: Any = _current_trace()
    while not isinstance(trace, _EvalTrace):
        if isinstance(trace, _StagingTrace):
            return False
        trace = getattr(trace, "parent_trace", None)
        if trace is None:
            return False
    return True


def concrete_value(value: Any) -> Any:
    """The value that a tracer stands for, itself for anything else, None if it is not known."""
    return _to_concrete_value(value)


def allow_effect(effect_type: type) -> None:
    """Lets effects of this type be lowered and stand inside control flow, checkpoints and custom derivatives."""
    for allowed in (
        lowerable_effects,
        control_flow_allowed_effects,
        remat_allowed_effects,
        custom_derivatives_allowed_effects,
    ):
        allowed.add_type(effect_type)


def hlo_to_stablehlo(hlo: bytes) -> bytes:
    """The StableHLO module, as MLIR bytes, of a serialized HLO module."""
    stablehlo: bytes = _jaxlib.mlir.hlo_to_stablehlo(hlo)
    return stablehlo


def array_over(view: np.ndarray[Any, Any]) -> jax.Array:
    """The array on the default device, not committed to it, with the elements of a NumPy array.

    On a CPU an aligned array shares the memory, which must not change as long as either lives.
    """
    device = jax.config.jax_default_device or jax.devices()[0]
    if isinstance(device, str) or device.platform != "cpu":
        array: jax.Array = jax.device_put(view)
        return array
    aval, sharding = _placement(view.shape, view.dtype, device)
    shared: jax.Array = _xla_client.batched_device_put(aval, sharding, [view], [device], False)
    return shared


@functools.lru_cache(1024)
def _placement(shape: tuple[int, ...], dtype: np.dtype[Any], device: jax.Device) -> tuple[ShapedArray, Any]:
    return ShapedArray(shape, dtype), jax.sharding.SingleDeviceSharding(device)
