"""TensorFlow functions in JAX: eager, under jit, differentiable."""

from jaxtf.calltf._call import call_tf
from jaxtf.calltf._errors import (
    ArgumentTypeError,
    CaptureWarning,
    CompilationError,
    DeclarationError,
    DynamicShapeError,
    ResultError,
    UnsupportedError,
    VariableWriteError,
)
from jaxtf.calltf._version import __version__ as __version__

__all__ = [
    "ArgumentTypeError",
    "CaptureWarning",
    "CompilationError",
    "DeclarationError",
    "DynamicShapeError",
    "ResultError",
    "UnsupportedError",
    "VariableWriteError",
    "call_tf",
]
