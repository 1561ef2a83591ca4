"""What can go wrong in exporting and calling, one class per kind of failure.

Each class derives from the built-in that callers of `jax.export` already catch. Knows nothing
of JAX: the texts are made where the failure is found.
"""

from __future__ import annotations

__all__ = [
    "ArgumentMismatch",
    "CallingConventionError",
    "HostCallbackError",
    "PlatformError",
    "StablehloVersionError",
    "UnstableCustomCall",
    "VjpUnavailable",
]


class PlatformError(ValueError):
    """A lowering platform that does not exist, or that a module was not lowered for."""


class CallingConventionError(ValueError):
    """A calling convention version outside the range that is written and read."""


class StablehloVersionError(ValueError):
    """A StableHLO version that cannot be written by the installed jaxlib."""


class ArgumentMismatch(ValueError):
    """Arguments whose structure, rank, dtype or shape differ from those exported."""


class UnstableCustomCall(ValueError):
    """A custom call whose target is not known to keep its meaning over releases."""


class HostCallbackError(NotImplementedError):
    """A function that calls back into the Python process that traced it."""


class VjpUnavailable(ValueError):
    """An exported function that carries no way to make its VJP."""
