"""The error about a module that jaxlib does not read. Its frame and its functions may be sound all the same."""

from __future__ import annotations

from jaxtf.serialization._bytecode.portable import stablehlo_facts
from jaxtf.serialization._errors import ArtifactError, VersionError
from jaxtf.serialization._jaxlib import newest_stablehlo_version
from jaxtf.serialization._record.stablehlo import parse_stablehlo_version

__all__ = ["unread"]


def unread(error: Exception, module: bytes) -> ArtifactError | VersionError:
    """The error for one of jaxlib's, which prints its reasons to standard error.

    Args:
      error: Jaxlib's.
      module: The module, whose frame may be damaged, too.
    """
    newest = newest_stablehlo_version()
    try:
        written = stablehlo_facts(module).stablehlo_version
    except (ArtifactError, VersionError):
        written = newest
    if parse_stablehlo_version(written) > parse_stablehlo_version(newest):
        return VersionError(
            f"the module is written for StableHLO {written}; the installed jaxlib reads up to {newest}\n"
            "  remedy: install a newer jaxlib, or export the function again with that version"
        )
    return ArtifactError(
        f"the module is damaged: jaxlib does not read it ({error})\n"
        "  remedy: copy the artifact again, in binary mode, from where it was written, or export the function again"
    )
