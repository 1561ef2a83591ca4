"""A StableHLO module of any producer, as a `Program` of TensorFlow's dtypes. Needs jaxlib, not JAX."""

from __future__ import annotations

import tensorflow as tf

from jaxtf.convert._errors import GraphModeUnsupported
from jaxtf.serialization.interop import Program, Reading, TensorType, read_program

__all__ = ["parse"]

# More of them abort the process (TensorFlow 2.21).
_MOST_DIMENSIONS = 254


def parse(module: bytes | str) -> Program:
    """Reads a module.

    Args:
      module: A portable artifact, or a module in MLIR's bytecode or text.

    Returns:
      The main function, which is the one named `main`, else the only public one, and those that it reaches by calls.

    Raises:
      ValueError: It is none of these, or it is not known which function is the main one, or one that is called is not
        there; the message says where.
      GraphModeUnsupported: Values of a type that TensorFlow does not have, several blocks, or recursion.
    """
    return read_program(module, _READING)


def _array_type(element: str, dtype: str | None, shape: tuple[int | None, ...]) -> TensorType:
    """The type of an array, of a dtype of TensorFlow.

    Raises:
      GraphModeUnsupported: TensorFlow has no such dtype, or not as many dimensions.
    """
    if len(shape) > _MOST_DIMENSIONS:
        raise GraphModeUnsupported(
            f"graph mode has no arrays of {len(shape)} dimensions: TensorFlow's have up to {_MOST_DIMENSIONS}"
        )
    try:
        return TensorType(tf.as_dtype(dtype), shape)
    except TypeError:
        sizes = "".join("?x" if size is None else f"{size}x" for size in shape)
        raise GraphModeUnsupported(
            f"graph mode has no arrays of {element} (tensor<{sizes}{element}>): TensorFlow has no such dtype"
        ) from None


_READING = Reading("graph mode", GraphModeUnsupported, _array_type)
