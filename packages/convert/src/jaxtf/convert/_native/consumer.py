"""What the TensorFlow that is to run a module reads: the installed one, or another one by its version."""

from __future__ import annotations

from jaxtf.convert import _tf
from jaxtf.convert._errors import ConversionOptionError
from jaxtf.serialization import ModuleVersions, TensorFlowVersionError, negotiate, tensorflow_reads

__all__ = ["installed_reads", "versions_to_write"]


def installed_reads() -> ModuleVersions:
    """The newest that the installed TensorFlow reads."""
    return ModuleVersions(_tf.newest_calling_convention_version(), _tf.stablehlo_version())


def versions_to_write(tensorflow_version: str | None) -> ModuleVersions:
    """What a module is written in for the installed TensorFlow, or for an older one of this version.

    A module is written on the installed TensorFlow, which must read it too. Either TensorFlow may read more than the
    installed jaxlib writes.

    Raises:
      ConversionOptionError: Not a version, or one older than those known.
    """
    reads = installed_reads()
    if tensorflow_version is not None:
        try:
            reads = negotiate(tensorflow_reads(tensorflow_version), reads)
        except TensorFlowVersionError as error:
            raise ConversionOptionError(str(error)) from error
    return negotiate(reads)
