"""What can go wrong in converting, one class per kind of failure."""

from __future__ import annotations

from jaxtf.serialization.interop import ArgumentTypeError

__all__ = [
    "REMEDY_FOR_LAPACK",
    "ArgumentTypeError",
    "CalltfRequiredError",
    "ConstantsTooLarge",
    "ConversionOptionError",
    "ConversionStateError",
    "FunctionTypeError",
    "GradientNotSaved",
    "GraphModeUnsupported",
    "NativeModeUnsupported",
    "ParameterError",
    "ResultTypeError",
    "TFLiteUnsupported",
    "TensorFlowTooOld",
    "UnknownCustomCall",
]

REMEDY_FOR_LAPACK = (
    "export it with expand_linear_algebra=True, which writes linear algebra out in StableHLO (all but eig, schur, "
    "hessenberg, tridiagonal and qr with pivoting), convert(exported.lift()) where it cannot be exported again, "
    "or run it in JAX"
)


class CalltfRequiredError(ImportError):
    """`call_tf` of `install_as_jax2tf()`, where jaxtf.calltf is not installed."""


class ConstantsTooLarge(ValueError):
    """Arrays that a function closes over, larger than the graph of a SavedModel can be."""


class ConversionOptionError(ValueError):
    """An invalid value of an option of `convert`."""


class ConversionStateError(ValueError):
    """A converted function used inside a JAX transformation."""


class FunctionTypeError(TypeError):
    """Something other than a JAX function where one is needed: not callable, or of TensorFlow."""


class GradientNotSaved(ValueError):
    """A gradient for a SavedModel that JAX cannot make."""


class GraphModeUnsupported(NotImplementedError):
    """An operation, or a use of one, that graph mode has no TensorFlow operations for."""


class NativeModeUnsupported(NotImplementedError):
    """A module that TensorFlow does not run as one op: its sizes depend on values, or it is for several devices."""


class ParameterError(TypeError):
    """A parameter that `convert` does not have, such as one of an earlier jax2tf."""


class ResultTypeError(TypeError):
    """A result of a dtype that TensorFlow does not have: a JAX random key."""


class TFLiteUnsupported(NotImplementedError):
    """An operation that TFLite has no builtin operation for."""


class TensorFlowTooOld(NotImplementedError):
    """A module that the installed TensorFlow does not read."""


class UnknownCustomCall(NotImplementedError):
    """A module with a custom call whose target TensorFlow does not have."""
