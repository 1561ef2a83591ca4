"""Mistakes that callers make, where a function cannot be converted and JAX's own error does not name them.

In: what was given. Out: the error of ours, or a note on JAX's.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import jax

from jaxtf.convert._convert.callables import AS_TENSORFLOW
from jaxtf.convert._convert.containers import note_of_containers
from jaxtf.convert._errors import FunctionTypeError
from jaxtf.convert._graph.errors import is_of_tensorflow
from jaxtf.serialization import LapackNeeded, UnstableCustomCall
from jaxtf.serialization.interop import users_line
from jaxtf.shapepoly import PolyShape

__all__ = ["explained"]

# What Keras says of a symbolic size that is not of jax.export.
_OF_KERAS = "Found invalid dimension"

_AS_JAX2TF = (
    "Keras on JAX, like any library that asks jax.export whether a size is symbolic, does not know jaxtf's sizes\n"
    "  remedy: jaxtf.convert.install_as_jax2tf() before the model is converted, once, or around it: with "
    "install_as_jax2tf(): ..."
)

_OF_CALLS = (
    "TensorFlow has none of these calls: native_serialization_disabled_checks is for a process that registers them\n"
    "  remedy: graph mode (native_serialization=False) has operations for some: eig, sparse products"
)


@contextmanager
def explained(fun: Callable[..., Any], polymorphic_shapes: Any, arguments: Sequence[Any]) -> Iterator[None]:
    """Around the tracing of a function: its errors say what the caller may have got wrong.

    Args:
      fun: What is traced.
      polymorphic_shapes: As the caller wrote them.
      arguments: The positional arguments that they were applied to, as specifications.

    Raises:
      FunctionTypeError: The function calls TensorFlow.
    """
    try:
        yield
    except jax.errors.TracerArrayConversionError as error:
        if not is_of_tensorflow(error):
            raise
        name = getattr(fun, "__name__", type(fun).__name__)
        raise FunctionTypeError(
            f"'{name}' calls TensorFlow with a value that JAX traces; convert needs a JAX function\n"
            f"  called at: {_users_line(error)}\n"
            f"  remedy:    if all of it is TensorFlow, {AS_TENSORFLOW}; call a part of it through call_tf, or "
            "write it with jax.numpy"
        ) from error
    except Exception as error:
        if _OF_KERAS in str(error):
            error.add_note(_AS_JAX2TF)
        if isinstance(error, LapackNeeded | UnstableCustomCall):
            error.add_note(_OF_CALLS)
        if note := note_of_containers(error):
            error.add_note(note)
        if isinstance(polymorphic_shapes, str | PolyShape) and len(arguments) > 1:
            error.add_note(_of_one_text(polymorphic_shapes, arguments))
        raise


def _users_line(error: BaseException) -> str:
    frames = [(frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    return users_line(reversed(frames)) or "an unknown line"


def _of_one_text(text: object, arguments: Sequence[Any]) -> str:
    """What one text for all arguments made of them."""
    entries = [str(text), *("None" for _ in arguments[1:])]
    listed = ", ".join(
        f"args[{index}] has shape {spec.shape}" for index, spec in enumerate(arguments) if hasattr(spec, "shape")
    )
    shown = ", ".join(repr(entry) if index == 0 else entry for index, entry in enumerate(entries))
    return (
        f"polymorphic_shapes={str(text)!r} is one text for all {len(arguments)} arguments: {listed}\n"
        f"  remedy: if it is meant for one of them, give a list with an entry for each: [{shown}]"
    )
