"""The StableHLO module of an exported function: ready to be lowered into a program, or written for another consumer.

A portable artifact is parsed; custom calls that jaxlib no longer has become those that it has; the
others are checked: a target that was stable when the function was exported, or that its exporter
vouched for, may be unknown to this process. For a consumer that reads another StableHLO version a module is parsed and
written again; its VJPs likewise, when they are asked for. Imports JAX, whose jaxlib does the translation.
"""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

from jaxtf.serialization._bytecode.texts import in_utf8, is_utf8
from jaxtf.serialization._errors import CallingConventionError, VersionError
from jaxtf.serialization._program.for_xla import rewrite_for_xla
from jaxtf.serialization._program.one_device import rewrite_for_one_device
from jaxtf.serialization._program.operations import custom_calls
from jaxtf.serialization._program.portable_artifact import (
    current_stablehlo_version,
    deserialize_module,
    expand_chlo,
    minimum_stablehlo_version,
    serialize_module,
    written_here,
)
from jaxtf.serialization._program.removed_calls import OPERATIONS_OF_XLA
from jaxtf.serialization._program.replaced_calls import rewrite_removed_custom_calls
from jaxtf.serialization._program.utf8 import check_names
from jaxtf.serialization._record.checks import check_custom_calls
from jaxtf.serialization._record.exported import EndlessVjp, Exported
from jaxtf.serialization._record.negotiation import lower_of
from jaxtf.serialization._record.stablehlo import (
    check_stablehlo_version,
    parse_stablehlo_version,
    refines_composites,
)
from jaxtf.serialization._record.tensorflow import tensorflow_reads

__all__ = ["load_module", "retarget", "retarget_for_tensorflow"]


def load_module(exported: Exported, context: Any = None, *, is_read: bool = False) -> Any:
    """The module of an exported function, in an MLIR context or in a new one.

    Args:
      exported: The function.
      context: Of MLIR.
      is_read: Whether its texts are read, in Python; those that are not UTF-8 have question marks then.

    Raises:
      ArtifactError: It is not the module that the record describes.
      VersionError: It is written for a StableHLO version that the installed jaxlib does not read yet.
      UnstableCustomCall: It calls a target that is neither stable nor allowed by the exporter.
    """
    exported.check_module()
    newest = current_stablehlo_version()
    if parse_stablehlo_version(exported.stablehlo_version) > parse_stablehlo_version(newest):
        raise VersionError(
            f"the module of '{exported.fun_name}' is written for StableHLO {exported.stablehlo_version}; the installed "
            f"jaxlib reads up to {newest}\n"
            f"  remedy: install a newer jaxlib, or export it with stablehlo_version={newest!r}"
        )
    serialized = exported.mlir_module_serialized
    if is_read:
        module = deserialize_module(in_utf8(serialized), context)
    else:
        module = deserialize_module(serialized, context)
        if not is_utf8(serialized):
            check_names(module)
    rewrite_removed_custom_calls(module)
    rewrite_for_one_device(module)
    rewrite_for_xla(module)
    # Operations that StableHLO did not have yet are in old modules as calls by XLA's own names for them.
    calls = [call for call in custom_calls(module) if call[0] not in OPERATIONS_OF_XLA]
    check_custom_calls(calls, exported.disabled_safety_checks)
    return module


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
            f"  remedy: export it again with tensorflow_version={tensorflow_version!r}"
        )
    return retarget(exported, lower_of(reads, written_here()).stablehlo_version)
