"""The same function for a consumer that reads another StableHLO version.

The module is parsed and written again; its VJPs likewise, when they are asked for. Imports JAX,
whose jaxlib does the translation.
"""

from __future__ import annotations

import functools
from dataclasses import replace

from jaxtf.serialization._exported import Exported
from jaxtf.serialization._module import load_module
from jaxtf.serialization._portable_artifact import (
    current_stablehlo_version,
    expand_chlo,
    minimum_stablehlo_version,
    serialize_module,
)
from jaxtf.serialization._stablehlo import check_stablehlo_version, refines_composites

__all__ = ["retarget"]


def retarget(exported: Exported, stablehlo_version: str) -> Exported:
    """The function with its module written for another StableHLO version; see `Exported.with_stablehlo_version`."""
    target = check_stablehlo_version(
        stablehlo_version, oldest=minimum_stablehlo_version(), newest=current_stablehlo_version()
    )
    module = load_module(exported)
    if exported.uses_global_constants and not refines_composites(target):
        expand_chlo(module)
    return replace(
        exported,
        mlir_module_serialized=serialize_module(module, target),
        stablehlo_version=target,
        _make_vjp=functools.cache(lambda: retarget(exported.vjp(), target)) if exported.has_vjp() else None,
    )
