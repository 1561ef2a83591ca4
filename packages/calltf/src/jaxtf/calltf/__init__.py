"""TensorFlow functions in JAX: eager, under jit, differentiable."""

from jaxtf.calltf._call import call_tf
from jaxtf.calltf._errors import (
    ArgumentTypeError,
    CallByNameError,
    CaptureWarning,
    CompilationError,
    DeclarationError,
    DynamicShapeError,
    FunctionTypeError,
    ResultError,
    UnsupportedError,
    VariableWriteError,
)
from jaxtf.calltf._version import __version__ as __version__

__all__ = [
    "ArgumentTypeError",
    "CallByNameError",
    "CaptureWarning",
    "CompilationError",
    "DeclarationError",
    "DynamicShapeError",
    "FunctionTypeError",
    "ResultError",
    "UnsupportedError",
    "VariableWriteError",
    "call_tf",
]


def __dir__() -> list[str]:
    """The public names, without the modules that they are in."""
    return sorted([*__all__, *(name for name in globals() if name.startswith("__"))])
