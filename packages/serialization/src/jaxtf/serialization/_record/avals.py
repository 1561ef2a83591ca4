"""Shape and dtype of a value, without the value: ours, so that no JAX is needed to hold one.

Knows dimensions as integers or symbolic dimensions, dtypes as NumPy dtypes (with those of
`ml_dtypes`), or as an `ExtendedDtype`, the name of one that only JAX knows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from operator import index
from typing import Any

import ml_dtypes
import numpy as np

from jaxtf.serialization._record.shardings import OWN_MEMORY, NamedSharding
from jaxtf.shapepoly import is_symbolic_dim

__all__ = [
    "DOES_NOT_FIT",
    "LARGEST_SIZE",
    "Aval",
    "ExtendedDtype",
    "Shape",
    "dtype_from_name",
    "dtype_name",
    "in_memory",
    "python_sizes",
]

Shape = tuple[Any, ...]

LARGEST_SIZE = 2**31 - 2**21
"""Of a symbolic axis: sizes are integers of 32 bits, and small numbers are added to them."""

DOES_NOT_FIT = "which the program computes with, is not an integer of"
"""In the text of each assertion of a module that a size fits; a number of bits follows."""

EXTENDED_PREFIX = "key<"


@dataclass(frozen=True)
class ExtendedDtype:
    """A dtype of JAX's own, such as that of random keys, by its name: `key<fry>`."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Aval:
    """Shape and dtype of one flat argument or result.

    Attributes:
      shape: Integers and dimension expressions.
      dtype: A NumPy dtype, or an `ExtendedDtype`.
      weak_type: Whether JAX lets the other operand choose the dtype, as for Python scalars.
      memory_space: Where it lives: `device`, `host` or `any`.
    """

    shape: Shape
    dtype: Any
    weak_type: bool = False
    memory_space: str = "device"

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    def __str__(self) -> str:
        return f"{dtype_name(self.dtype)}[{','.join(map(str, self.shape))}]"


def python_sizes(shape: Sequence[Any]) -> Shape:
    """A shape with its integers, which may be NumPy's, as those of Python, which do not wrap."""
    return tuple(index(size) if hasattr(size, "__index__") and not is_symbolic_dim(size) else size for size in shape)


def dtype_name(dtype: Any) -> str:
    """The name of a dtype: `float32`, `bfloat16`, `float0`, `key<fry>`."""
    if isinstance(dtype, ExtendedDtype):
        return dtype.name
    return "float0" if dtype.names == ("float0",) else str(dtype.name)


@cache
def dtype_from_name(name: str) -> Any:
    """The dtype of a name that `dtype_name` gave.

    Raises:
      TypeError: There is no dtype of this name.
    """
    if name.startswith(EXTENDED_PREFIX):
        return ExtendedDtype(name)
    if name == "float0":
        return np.dtype([("float0", np.void, 0)])
    return np.dtype(getattr(ml_dtypes, name, name))


def in_memory(avals: Sequence[Aval], shardings: Sequence[NamedSharding | None]) -> tuple[Aval, ...]:
    """The avals, each in the memory that its sharding names."""
    kinds = [None if sharding is None else sharding.memory_kind for sharding in shardings]
    return tuple(
        aval if kind is None or kind in OWN_MEMORY or not kind.endswith("_host") else replace(aval, memory_space="host")
        for aval, kind in zip(avals, kinds, strict=True)
    )
