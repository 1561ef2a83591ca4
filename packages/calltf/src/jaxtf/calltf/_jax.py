"""The door to JAX's private names: each stands here once, under a name of ours.

Everything else of the package uses `jax`, `jax.core`, `jax.extend` and `jax.interpreters`
only. Knows JAX; nothing of TensorFlow.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np

# Seen in JAX 0.10.2 and 0.12.0.1.
from jax._src.array import ArrayImpl as _ArrayImpl

# The trace that is active now, and the two traces that end a stack of them: evaluation and
# staging. `jax.extend.core.find_top_trace` is public but marked for deletion. Seen in JAX
# 0.10.2 and 0.12.0.1.
from jax._src.core import EvalTrace as _EvalTrace
from jax._src.core import to_concrete_value as _to_concrete_value
from jax._src.core import unsafe_get_current_trace as _current_trace

# The sets of effect types that keep their order, may be lowered, stand in control flow, in `jax.checkpoint` and
# under custom derivatives. Only `lowerable_effects` has a public route. Seen in JAX 0.10.2
# and 0.12.0.1.
from jax._src.effects import (
    control_flow_allowed_effects,
    custom_derivatives_allowed_effects,
    lowerable_effects,
    ordered_effects,
    remat_allowed_effects,
)
from jax._src.interpreters.mlir import TokenSet as _TokenSet
from jax._src.interpreters.mlir import eval_dynamic_shape as _eval_dynamic_shape
from jax._src.interpreters.mlir import token_type as _token_type
from jax._src.interpreters.partial_eval import DynamicJaxprTrace as _StagingTrace

# HLO, which TensorFlow writes, to StableHLO bytes: no public route. And the DLPack capsule of an array, which
# costs 3 us by `jax.Array.__dlpack__`, 0.7 here. Seen in jaxlib 0.10.2 and 0.12.0.
from jax._src.lib import _jax as _jaxlib

# What `jax.device_put` of one NumPy array ends in: 4 us instead of 38. Seen in JAX 0.10.2 and 0.12.0.1.
from jax._src.lib import xla_client as _xla_client
from jax.core import ShapedArray
from jax.extend.mlir import ir
from jax.interpreters import mlir

from jaxtf.shapepoly import SymbolicScope, symbolic_shape

# The class of every array that has a value: a look at a type is cheaper than at what a value is an instance of.
ArrayImpl: type[jax.Array] = _ArrayImpl


def evaluating() -> bool:
    """Whether an operation met now is executed at once, not staged into a program.

    True outside of any transformation and directly under `jax.grad`, `jax.jvp` and
    `jax.vmap`; False inside `jax.jit` and control flow, also for constant arguments.
    """
    trace: Any = _current_trace()
    if type(trace) is _EvalTrace:
        return True
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


def allow_effect(effect_type: type, ordered: bool = False) -> None:
    """Lets effects of this type be lowered and stand inside control flow, checkpoints and custom derivatives."""
    if ordered:
        ordered_effects.add_type(effect_type)
    for allowed in (
        lowerable_effects,
        control_flow_allowed_effects,
        remat_allowed_effects,
        custom_derivatives_allowed_effects,
    ):
        allowed.add_type(effect_type)


def result_types(hlo: bytes) -> list[tuple[int, ...] | None]:
    """The shapes of the results of a serialized HLO module; None for one that is not constant."""
    with mlir.make_ir_context():
        functions = ir.Module.parse(hlo_to_stablehlo(hlo)).body.operations
        [main] = [function for function in functions if function.name.value == "main"]
        static = [result.has_static_shape and result.encoding is None for result in main.type.results]
        return [tuple(result.shape) if ok else None for result, ok in zip(main.type.results, static, strict=True)]


def is_symbolic(size: Any) -> bool:
    """Whether a size of a shape is a symbolic dimension, of jaxtf or of JAX."""
    return hasattr(size, "_get_vars") and hasattr(size, "_evaluate")


def dimension_variables(size: Any) -> set[str]:
    """The names of the dimension variables in a symbolic size."""
    return set(size._get_vars())


def evaluated_dimension(size: Any, variables: Mapping[str, int]) -> int:
    """The value of a symbolic size; `KeyError` for a variable that is not given."""
    if missing := dimension_variables(size) - variables.keys():
        raise KeyError(*missing)
    return int(size._evaluate(dict(variables)))


def constraints_hold(sizes: Sequence[Any], variables: Mapping[str, int]) -> bool:
    """Whether the constraints of the scope that the sizes live in allow these values, as far as these tell."""
    scope = sizes[0].scope
    if isinstance(scope, SymbolicScope):
        differences = [
            (symbolic_shape(constraint.difference_text, scope=scope)[0], constraint.relation == "==")
            for constraint in scope.constraints
        ]
    else:  # of JAX itself
        differences = [(c.diff, c.cmp.name == "EQ") for c in scope._explicit_constraints]
    for difference, is_equality in differences:
        if is_symbolic(difference) and dimension_variables(difference) <= variables.keys():
            value = evaluated_dimension(difference, variables)
            if value < 0 or (is_equality and value):
                return False
    return True


def dimension_values(ctx: mlir.LoweringRuleContext, sizes: Sequence[Any]) -> Sequence[Any]:
    """The values of symbolic sizes in the program being lowered: integer scalars."""
    values: Sequence[Any] = _eval_dynamic_shape(ctx, tuple(sizes))
    return values


def is_for_export(ctx: mlir.LoweringRuleContext) -> bool:
    """Whether the program being lowered is to be exported, and not run in this process."""
    return bool(ctx.module_context.lowering_parameters.for_export)


def token_of(ctx: mlir.LoweringRuleContext, effect: Any) -> Any:
    """The token of an ordered effect, before this call."""
    return ctx.tokens_in.get(effect)


def set_token(ctx: mlir.LoweringRuleContext, effect: Any, token: Any) -> None:
    """Sets the token of an ordered effect, after this call."""
    ctx.set_tokens_out(ctx.tokens_in.update_tokens(_TokenSet({effect: token})))


def token_type() -> Any:
    """The type of a token."""
    return _token_type()


def hlo_to_stablehlo(hlo: bytes) -> bytes:
    """The StableHLO module, as MLIR bytes, of a serialized HLO module."""
    stablehlo: bytes = _jaxlib.mlir.hlo_to_stablehlo(hlo)
    return stablehlo


# A DLPack capsule over the memory of an array on one CPU device, waiting until it is computed.
dlpack_capsule = _jaxlib.buffer_to_dlpack_managed_tensor


@functools.lru_cache(1024)
def is_one_cpu(sharding: jax.sharding.Sharding) -> bool:
    """Whether arrays of this sharding are on one CPU device, all of them."""
    devices: set[Any] = sharding.device_set
    return [device.platform for device in devices] == ["cpu"]


def array_over(view: np.ndarray[Any, Any]) -> jax.Array:
    """The array on the default device, not committed to it, with the elements of a NumPy array.

    On a CPU an aligned array shares the memory, which must not change as long as either lives.
    """
    placement = _placement(view.shape, view.dtype, jax.config.jax_default_device or jax.devices()[0])
    if placement is None:
        array: jax.Array = jax.device_put(view)
        return array
    aval, sharding, devices = placement
    shared: jax.Array = _xla_client.batched_device_put(aval, sharding, [view], devices, False)
    return shared


@functools.lru_cache(1024)
def _placement(
    shape: tuple[int, ...], dtype: np.dtype[Any], device: jax.Device | str
) -> tuple[ShapedArray, Any, list[jax.Device]] | None:
    """What puts an array on a CPU; None for any other device."""
    if isinstance(device, str) or device.platform != "cpu":
        return None
    return ShapedArray(shape, dtype), jax.sharding.SingleDeviceSharding(device), [device]
