"""What can go wrong in converting, one class per kind of failure."""

from __future__ import annotations

__all__ = ["ArgumentTypeError", "ConversionOptionError", "ConversionStateError", "TensorFlowTooOld"]


class ArgumentTypeError(TypeError):
    """An argument that JAX cannot take: not numeric, or not an array at all."""


class ConversionOptionError(ValueError):
    """An option of `convert` that has no such value."""


class ConversionStateError(ValueError):
    """A converted function used inside a JAX transformation."""


class TensorFlowTooOld(NotImplementedError):
    """A module that the installed TensorFlow does not read."""
