"""The portable artifact of a StableHLO module: written for a StableHLO version, read back, printed. Imports JAX.

jaxlib does all of it; `_bytecode/portable.py` reads what can be read of the bytes without it.
"""

from __future__ import annotations

import io
import re
from typing import Any

import jax
from jax.extend import mlir as jax_mlir
from jax.extend.mlir import ir, passmanager
from jax.extend.mlir.dialects import stablehlo
from jax.interpreters import mlir

from jaxtf.serialization._errors import StablehloVersionError
from jaxtf.serialization._jax_values import settings
from jaxtf.serialization._program.unread import unread
from jaxtf.serialization._record.negotiation import ModuleVersions
from jaxtf.serialization._record.versions import check_calling_convention_version

__all__ = [
    "current_stablehlo_version",
    "deserialize_module",
    "expand_chlo",
    "minimum_stablehlo_version",
    "module_text",
    "month_old_stablehlo_version",
    "serialize_module",
    "written_here",
]


def written_here() -> ModuleVersions:
    """The newest that this process writes: the calling convention of JAX's flag, the StableHLO version of its jaxlib.

    Raises:
      CallingConventionError: The flag has a version that is not written.
    """
    return ModuleVersions(
        check_calling_convention_version(settings.default_calling_convention_version()), current_stablehlo_version()
    )


def expand_chlo(module: ir.Module) -> None:
    """Replaces operations of the CHLO dialect (erf, sinh, top_k, ...), in place, by StableHLO ones.

    Written to an artifact they would become composites, which older consumers do not refine to
    known sizes.
    """
    stablehlo.register_stablehlo_passes()
    with module.context:
        passes = passmanager.PassManager.parse("builtin.module(func.func(chlo-legalize-to-stablehlo))")
        passes.run(module.operation)


def serialize_module(module: ir.Module, target: str) -> bytes:
    """The portable artifact of `module` for consumers that read StableHLO `target`.

    The Shardy dialect has no versioned form: its operations are carried as they are.

    Raises:
      StablehloVersionError: An operation of the module has no form in that version.
    """
    try:
        with module.context:
            return bytes(jax_mlir.serialize_portable_artifact(module, target, True))
    except jax.errors.JaxRuntimeError as error:
        # The text that follows is the whole module.
        refused = re.search(r"error: (?:loc\((.*?)\): )?failed to legalize operation '([\w.]+)'", str(error))
        if refused is None:
            raise
        where, operation = refused.groups()
        raise StablehloVersionError(
            f"StableHLO {target} has no form for the operation {operation}"
            f"{f' at {where}' if where else ''}, which is newer\n"
            "  remedy: write for a newer StableHLO version, or do without that operation"
        ) from None


def deserialize_module(portable_artifact: bytes, context: Any = None) -> ir.Module:
    """The StableHLO module of a portable artifact, in `context` or in a new one.

    Raises:
      ArtifactError: It is damaged.
      VersionError: It is written for a StableHLO version that the installed jaxlib does not read yet.
    """
    with context or mlir.make_ir_context():
        try:
            module = jax_mlir.deserialize_portable_artifact(portable_artifact)
        except jax.errors.JaxRuntimeError as error:
            raise unread(error, portable_artifact) from error
        # JAX before 0.10 answers with text.
        return ir.Module.parse(module) if isinstance(module, str | bytes) else module


def module_text(module: ir.Module) -> str:
    """The textual form of a module, with source locations."""
    text = io.StringIO()
    module.operation.print(file=text, enable_debug_info=True, large_elements_limit=None)
    return text.getvalue()


def current_stablehlo_version() -> str:
    """The newest StableHLO version that the installed jaxlib writes."""
    return str(stablehlo.get_current_version())


def minimum_stablehlo_version() -> str:
    """The oldest StableHLO version that the installed jaxlib writes."""
    return str(stablehlo.get_minimum_version())


def month_old_stablehlo_version() -> str:
    """A StableHLO version that consumers built in the last month read."""
    requirement = stablehlo.StablehloCompatibilityRequirement.WEEK_4
    return str(stablehlo.get_version_from_compatibility_requirement(requirement))
