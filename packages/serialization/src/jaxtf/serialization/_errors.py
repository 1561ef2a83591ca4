"""What can go wrong in exporting, calling and reading, one class per kind of failure.

Each class derives from the built-in that callers of `jax.export` already catch. Knows nothing
of JAX: the texts are made where the failure is found.
"""

from __future__ import annotations

__all__ = [
    "ArgumentMismatch",
    "ArgumentTypeError",
    "ArtifactError",
    "CalledFunctionsRefused",
    "CallingConventionError",
    "DeviceCountError",
    "DictionaryKeyError",
    "DisabledCheckError",
    "EffectsRefused",
    "HostCallbackError",
    "LapackNeeded",
    "LiftUnsupported",
    "LoweringRuleMissing",
    "PartitionerError",
    "PlatformError",
    "ReferenceRefused",
    "SerializationError",
    "StablehloVersionError",
    "TensorFlowVersionError",
    "UnstableCustomCall",
    "UnstableDialect",
    "VersionError",
    "VjpUnavailable",
]


class PlatformError(ValueError):
    """A lowering platform that does not exist, or that a module was not lowered for."""


class CallingConventionError(ValueError):
    """A calling convention version outside the range that is written and read."""


class StablehloVersionError(ValueError):
    """A StableHLO version that cannot be written by the installed jaxlib."""


class TensorFlowVersionError(ValueError):
    """A malformed version of TensorFlow, or one that modules cannot be written for."""


class ArgumentTypeError(TypeError):
    """An argument that is not an array, or of a dtype that JAX or TensorFlow does not have: of jaxtf-convert and
    jaxtf-calltf, which pass values between the two."""


class ArgumentMismatch(ValueError):
    """Arguments whose structure, rank, dtype or shape differ from those exported."""


class UnstableCustomCall(ValueError):
    """A custom call whose target is not known to keep its meaning over releases."""


class DisabledCheckError(TypeError):
    """A value among disabled checks that is not a safety check."""


class UnstableDialect(ValueError):
    """An operation of an MLIR dialect without compatibility guarantees."""


class HostCallbackError(NotImplementedError):
    """A function that calls back into the Python process that traced it."""


class CalledFunctionsRefused(NotImplementedError):
    """A use of a function that calls others by name, in a process without them."""


class LapackNeeded(NotImplementedError):
    """Linear algebra that calls LAPACK, for a process that has none."""


class LiftUnsupported(NotImplementedError):
    """An operation of a module, or a use of one, that `lift` has no JAX function for."""


class LoweringRuleMissing(NotImplementedError):
    """An operation that cannot be lowered: for particular platforms only, in graph mode, which lowers for none; or a
    reducer of a symbolic window that computes with a symbolic size or calls functions that cannot be written out."""


class ReferenceRefused(NotImplementedError):
    """A function that takes or closes over a mutable reference of JAX (`jax.Ref`)."""


class DeviceCountError(ValueError):
    """A call in a program for another number of devices than the function was exported for, or where devices that
    compute the function together compute each for itself."""


class PartitionerError(ValueError):
    """A call of a function whose shardings are for a partitioner that is disabled in this process."""


class EffectsRefused(NotImplementedError):
    """A use of a function with ordered effects that gives these no order."""


class VjpUnavailable(ValueError):
    """An exported function that has no VJP and cannot make one."""


class SerializationError(ValueError):
    """An exported function that holds something the artifact format has no form for."""


class DictionaryKeyError(TypeError):
    """A dictionary among arguments or results with keys that the artifact format has no form for."""


class ArtifactError(ValueError):
    """Bytes that are not an artifact, or a damaged one.

    Attributes:
      offset: Where in the bytes it was found, from their start; None where no single place can be named.
    """

    def __init__(self, message: str, offset: int | None = None) -> None:
        super().__init__(message if offset is None else f"{message}\n  at byte:  {offset}")
        self.offset = offset


class VersionError(ValueError):
    """An artifact of a format, calling convention or StableHLO version outside the range that is read."""
