"""The StableHLO module of an exported function, ready to be lowered into a program.

A portable artifact is parsed; custom calls that jaxlib no longer has become those that it has; the
others are checked: a target that was stable when the function was exported, or that its exporter
vouched for, may be unknown to this process.
Imports JAX.
"""

from __future__ import annotations

from typing import Any

from jaxtf.serialization._errors import VersionError
from jaxtf.serialization._program.operations import custom_calls
from jaxtf.serialization._program.portable_artifact import current_stablehlo_version, deserialize_module
from jaxtf.serialization._program.removed_calls import OPERATIONS_OF_XLA
from jaxtf.serialization._program.replaced_calls import rewrite_removed_custom_calls
from jaxtf.serialization._record.checks import check_custom_calls
from jaxtf.serialization._record.exported import Exported
from jaxtf.serialization._record.stablehlo import parse_stablehlo_version

__all__ = ["load_module"]


def load_module(exported: Exported, context: Any = None) -> Any:
    """The module of an exported function, in an MLIR context or in a new one.

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
    module = deserialize_module(exported.mlir_module_serialized, context)
    rewrite_removed_custom_calls(module)
    # Operations that StableHLO did not have yet stand in old modules as calls by XLA's own names for them.
    calls = [call for call in custom_calls(module) if call[0] not in OPERATIONS_OF_XLA]
    check_custom_calls(calls, exported.disabled_safety_checks)
    return module
