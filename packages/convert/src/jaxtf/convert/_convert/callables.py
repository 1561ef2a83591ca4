"""What is given in place of a JAX function. Needs no JAX."""

from __future__ import annotations

import os
from typing import Any

import tensorflow as tf

from jaxtf.convert._errors import FunctionTypeError
from jaxtf.serialization import Exported

__all__ = ["AS_TENSORFLOW", "check_function"]

AS_TENSORFLOW = (
    "it runs in TensorFlow as it is; to call TensorFlow from JAX, use jaxtf.calltf.call_tf, which makes a JAX function"
)


def check_function(fun: Any, user: str) -> None:
    """Refuses what is not a JAX function.

    Args:
      fun: What the caller gave.
      user: The function that it was given to.

    Raises:
      FunctionTypeError: It is not callable, or is a function of TensorFlow.
    """
    if isinstance(fun, tf.types.experimental.PolymorphicFunction | tf.types.experimental.ConcreteFunction):
        name = getattr(fun, "__name__", None) or type(fun).__name__
        raise FunctionTypeError(
            f"{user} needs a JAX function, found the TensorFlow function '{name}'\n  remedy: {AS_TENSORFLOW}"
        )
    if callable(fun):
        return
    if isinstance(fun, Exported | bytes | bytearray | memoryview):
        found, remedy = "an exported function", "use convert_exported"
    elif isinstance(fun, str | os.PathLike):
        found, remedy = f"{fun!r:.60}", "for an artifact in a file, convert_exported(path)"
    else:
        found, remedy = f"{type(fun).__name__}: {fun!r:.60}", ""
    raise FunctionTypeError(f"{user} needs a function, found {found}" + (f"\n  remedy: {remedy}" if remedy else ""))
