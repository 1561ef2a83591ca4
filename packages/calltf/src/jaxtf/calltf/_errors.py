"""One class per kind of failure, each derived from the built-in that callers already catch.

Messages keep the phrases that users of the earlier tool search for, say what was found in
the words of the caller (`args[0]['x']`, `result[1]`), and end with what to do.
"""

from __future__ import annotations

from jaxtf.serialization.interop import ArgumentTypeError

__all__ = [
    "LIMITATIONS",
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
]

LIMITATIONS = "jaxtf's page 'TensorFlow in JAX', section 'Limitations'"
"""Where a message sends its reader who wants to know more."""


class FunctionTypeError(TypeError):
    """What is not a TensorFlow function, where one is needed: not callable, or of JAX."""


class CallByNameError(ValueError):
    """A call by name (`call_tf_graph=True`) in a program that JAX is to run."""


class ResultError(ValueError):
    """A result that JAX has no value for, another one than the last call gave, or a gradient unlike its argument."""


class DeclarationError(ValueError):
    """The results differ from the declared `output_shape_dtype`, or it has a size that is not known."""


class DynamicShapeError(ValueError):
    """A result whose shape is not known, in a staged context."""


class CompilationError(ValueError):
    """TensorFlow could not compile the function, in a staged context."""


class VariableWriteError(ValueError):
    """The function writes to a `tf.Variable`, or creates one, in a staged context."""


class UnsupportedError(NotImplementedError):
    """What `call_tf` does not do; the message names the parameter and the remedy."""


class CaptureWarning(UserWarning):
    """The function captures variables or tensors, whose values become constants of the program."""
