"""The same function for a consumer that reads another StableHLO version.

The module is parsed and written again; its VJPs likewise, when they are asked for. Imports JAX,
whose jaxlib does the translation.
"""

from __future__ import annotations

import functools
from dataclasses import replace

from jaxtf.serialization._errors import CallingConventionError
from jaxtf.serialization._program.module import load_module
from jaxtf.serialization._program.portable_artifact import (
    current_stablehlo_version,
    expand_chlo,
    minimum_stablehlo_version,
    serialize_module,
    written_here,
)
from jaxtf.serialization._record.exported import EndlessVjp, Exported
from jaxtf.serialization._record.negotiation import lower_of
from jaxtf.serialization._record.stablehlo import check_stablehlo_version, refines_composites
from jaxtf.serialization._record.tensorflow import tensorflow_reads

__all__ = ["retarget", "retarget_for_tensorflow"]


def retarget(exported: Exported, stablehlo_version: str) -> Exported:
    """The function with its module written for another StableHLO version; see `Exported.with_stablehlo_version`."""
    target = check_stablehlo_version(
        stablehlo_version, oldest=minimum_stablehlo_version(), newest=current_stablehlo_version()
    )
    module = load_module(exported)
    if exported.uses_global_constants and not refines_composites(target):
        expand_chlo(module)
    keep = EndlessVjp if isinstance(exported._make_vjp, EndlessVjp) else functools.cache
    return replace(
        exported,
        mlir_module_serialized=serialize_module(module, target),
        stablehlo_version=target,
        _make_vjp=keep(lambda: retarget(exported.vjp(), target)) if exported.has_vjp() else None,
    )


def retarget_for_tensorflow(exported: Exported, tensorflow_version: str) -> Exported:
    """The function with its module written for a TensorFlow; see `Exported.with_tensorflow_version`."""
    reads = tensorflow_reads(tensorflow_version)
    # For one device, what version 10 adds to 9 is not used, and `jaxtf.convert` gives TensorFlow 2.19 such modules.
    if exported.calling_convention_version > reads.calling_convention_version and exported.nr_devices > 1:
        raise CallingConventionError(
            f"'{exported.fun_name}', for {exported.nr_devices} devices, is exported in calling convention version "
            f"{exported.calling_convention_version}; TensorFlow {tensorflow_version} reads up to "
            f"{reads.calling_convention_version}\n"
            f"  remedy: export it anew with tensorflow_version={tensorflow_version!r}"
        )
    return retarget(exported, lower_of(reads, written_here()).stablehlo_version)
