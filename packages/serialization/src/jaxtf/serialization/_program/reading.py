"""Whoever has a module read: under which name it refuses what it does not take, and which dtypes its values have."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from jaxtf.serialization._program.program import TensorType

__all__ = ["Reading"]


@dataclass(frozen=True)
class Reading:
    """For whom a module is read.

    Attributes:
      name: At the start of messages: `graph mode`.
      error: The class of errors about what it does not take.
      array_type: From the name of an element type in MLIR (`f32`), that of NumPy or `ml_dtypes` (`float32`; None if
        they have none) and a shape to the type of such arrays; raises `error` for what it does not take.
    """

    name: str
    error: type[Exception]
    array_type: Callable[[str, str | None, tuple[int | None, ...]], TensorType]
