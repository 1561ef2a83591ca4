"""What call_tf adds to errors of the TensorFlow function that it called and to warnings: what these cannot know."""

from __future__ import annotations

import re
import sys
import traceback
from collections.abc import Iterable
from typing import Any

import jax

from jaxtf.calltf._transfer import as_array
from jaxtf.serialization.interop import users_files

__all__ = ["note_causes", "users_level", "without_libraries"]

# A line of the stack that TensorFlow prints for an operation.
_FRAME = re.compile(r'File "([^"]*)"')

# What TensorFlow says of a tracer that it was to make a tensor of; for NumPy, JAX has an error of its own.
_OF_A_TRACER = re.compile(r"of type '\w*Tracer'|called on traced array")


# What JAX says of a tensor that it was to make an array of.
_OF_A_TENSOR = re.compile(r"problematic value is of type <class 'tensorflow\.")


def note_causes(error: Exception, arguments: Iterable[tuple[str, Any]] = ()) -> None:
    """Notes on an error what may have caused it: arguments made narrower, or a tracer within the function.

    Args:
      error: What the TensorFlow function raised.
      arguments: The arguments as the user gave them, each with its address.
    """
    given = [
        (address, getattr(leaf.dtype, "name", leaf.dtype), as_array(leaf, address).dtype.name)  # of Keras, a name
        for address, leaf in arguments
        if hasattr(leaf, "dtype")
    ]
    narrowed = [f"{address} as {taken}, not {wide}" for address, wide, taken in given if wide != taken]
    if narrowed:
        error.add_note(
            f"call_tf passed {', '.join(narrowed)}: JAX's 64-bit types are off\n"
            "  remedy: tf.cast it in the function that call_tf calls, or jax.config.update('jax_enable_x64', True)"
        )
    if isinstance(error, TypeError) and _OF_A_TENSOR.search(str(error)):
        error.add_note(
            "the function that call_tf called passes a tensor to a JAX function: call_tf needs a TensorFlow function\n"
            "  remedy: write it with TensorFlow's functions; call a JAX function without call_tf"
        )
    if isinstance(error, jax.errors.TracerArrayConversionError) or _OF_A_TRACER.search(str(error)):
        error.add_note(
            "the function that call_tf called uses a value which JAX traces (in jax.jit, jax.grad, jax.vmap, ...): one "
            "that it closes over, or that it computes by JAX\n"
            "  remedy: make that value an argument of the function"
        )


def users_level(least: int) -> int:
    """The `stacklevel` of a warning that is to point to the innermost line of the user's program.

    Args:
      least: That of the caller of the function that warns; the result where no line is the user's.
    """
    frames = [frame for frame, _ in traceback.walk_stack(sys._getframe(1))]
    files = users_files(frame.f_code.co_filename for frame in frames)
    return next((level for level, frame in enumerate(frames, 1) if frame.f_code.co_filename in files), least)


def without_libraries(text: str) -> str:
    """An error of TensorFlow's compiler without the lines of its stacks that are in libraries.

    >>> print(without_libraries('why\\nFile "model.py", line 3\\nFile "v/site-packages/jax/api.py", line 4\\nwhere'))
    why
    File "model.py", line 3
    where
    """
    lines = [(line, _FRAME.match(line)) for line in text.splitlines()]
    files = users_files(frame[1] for _, frame in lines if frame)
    return "\n".join(line for line, frame in lines if frame is None or frame[1] in files)
