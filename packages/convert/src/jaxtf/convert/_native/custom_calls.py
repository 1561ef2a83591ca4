"""Custom calls that TensorFlow has no code for: refused when a module is converted, not when it runs.

A custom call runs code that its process has registered under a name. TensorFlow registers none of
jaxlib's, neither LAPACK nor kernels for GPUs; it resolves those of dynamic shapes, and its XLA knows those of
partitioners, and of TPUs. What else a process registers, the caller says.
Knows the module's bytes and names, nothing of JAX.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from jaxtf.convert._errors import REMEDY_FOR_LAPACK, ConversionOptionError, UnknownCustomCall
from jaxtf.serialization import DisabledSafetyCheck, Exported
from jaxtf.serialization.interop import custom_call_targets, lapack_function

__all__ = ["IN_TENSORFLOW", "check_custom_calls", "checked_checks", "only_computes"]

IN_TENSORFLOW = frozenset(
    (
        # Dynamic shapes: resolved by refinement before compilation.
        *(f"stablehlo.dynamic_{name}" for name in ("approx_top_k", "reduce_window", "rng_bit_generator", "top_k")),
        "shape_assertion",
        # Sharding, and placement in memory.
        *("Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape", "xla.sdy.FuncResultSharding"),
        "annotate_device_placement",
        # Operations that StableHLO did not have yet when the module was written.
        *(f"mhlo.{name}" for name in ("acosh", "asinh", "atanh", "erf", "sinh", "tan", "topk")),
        # Of every platform: approximate top-k where it is not an aggregation, jax.lax.empty, functions by name.
        *("ApproxTopK", "AllocateBuffer", "tf.call_tf_function"),
        # Of TPUs.
        *("Eigh", "Qr", "ProductOfElementaryHouseholderReflectors", "LuDecomposition", "tpu_custom_call"),
    )
)
"""Targets that XLA in TensorFlow 2.21 resolves itself."""

# Its XLA resolves it for accelerators alone; that of JAX for CPU too, where JAX writes it under an explicit mesh.
_PLACEMENT = "annotate_device_placement"

_OF_GPU = ("cu", "hip", "mosaic_gpu")


def checked_checks(disabled_checks: Any) -> tuple[DisabledSafetyCheck, ...]:
    """The checks of a caller, those of `jax.export` by their text.

    Raises:
      ConversionOptionError: They are none.
    """
    try:
        return tuple(map(DisabledSafetyCheck.of, disabled_checks))
    except TypeError as error:  # DisabledCheckError, or nothing that has items
        raise ConversionOptionError(
            "disabled_checks must be a list of DisabledSafetyCheck, such as [DisabledSafetyCheck.platform()]. "
            f"Got: {disabled_checks!r:.60}"
        ) from error


def check_custom_calls(exported: Exported, disabled_checks: Iterable[DisabledSafetyCheck] = ()) -> None:
    """Refuses a module that calls what TensorFlow does not have, unless the caller disables the check of that target.

    What an artifact says of its own checks is of no account: only the process that runs it knows what it registers.
    Kernels for GPUs are let through in a module that is for other platforms as well.

    Args:
      exported: What is to become a TensorFlow op.
      disabled_checks: What the caller allows; `custom_call("ALL")` allows every target.

    Raises:
      UnknownCustomCall: Names each target, and the function of LAPACK that it is.
    """
    own = () if exported.is_read else exported.disabled_safety_checks
    allowed = {check.is_custom_call() for check in (*disabled_checks, *own)}
    if "ALL" in allowed:
        return
    elsewhere = _OF_GPU if set(exported.platforms) - {"cuda", "rocm", "gpu"} else ()
    refused = [
        target
        for target in custom_call_targets(exported.mlir_module_serialized)
        if not _is_resolved(target, exported.platforms) and target not in allowed and not target.startswith(elsewhere)
    ]
    if not refused:
        return
    if _PLACEMENT in refused:
        raise UnknownCustomCall(
            f"'{exported.fun_name}' says in which memory a value is to be, as jax.device_put with a memory kind under "
            "a mesh does; TensorFlow's XLA does not compile that for CPU\n"
            "  remedy: convert it with native_serialization=False, which leaves values where they are; or leave such "
            "jax.device_put out"
        )
    lapack = {target: function for target in refused if (function := lapack_function(target))}
    if lapack:
        names = ", ".join(f"{function} ({target})" for target, function in lapack.items())
        raise UnknownCustomCall(
            f"'{exported.fun_name}' calls LAPACK of jaxlib, which TensorFlow does not have: {names}\n"
            f"  remedy: {REMEDY_FOR_LAPACK}"
        )
    checks = ", ".join(f"DisabledSafetyCheck.custom_call({target!r})" for target in refused)
    raise UnknownCustomCall(
        f"'{exported.fun_name}' calls by name what TensorFlow does not have: {', '.join(refused)}\n"
        f"  remedy: where the process that runs it registers these targets, pass disabled_checks=[{checks}]"
    )


def only_computes(exported: Exported) -> bool:
    """Whether nothing is missing where the module does not run: no effects, and no code of which we know nothing."""
    if exported.ordered_effects or exported.unordered_effects:
        return False
    return IN_TENSORFLOW.issuperset(custom_call_targets(exported.mlir_module_serialized))


def _is_resolved(target: str, platforms: Iterable[str]) -> bool:
    """Whether TensorFlow has what a module for some platforms calls by that name, on one of them at least."""
    return target in IN_TENSORFLOW and (target != _PLACEMENT or set(platforms) != {"cpu"})
