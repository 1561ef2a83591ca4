"""The error about a module that jaxlib does not read. Its frame and its functions may be sound all the same."""

from __future__ import annotations

from jaxtf.serialization._errors import ArtifactError

__all__ = ["damaged"]


def damaged(error: Exception) -> ArtifactError:
    """The error for one of jaxlib's, which prints its reasons to standard error."""
    return ArtifactError(
        f"the module is damaged: jaxlib does not read it ({error})\n"
        "  remedy: copy the artifact again, in binary mode, from where it was written, or export the function again"
    )
