"""Shape and dtype of a value, without the value: ours, so that no JAX is needed to hold one.

Knows dimensions as integers or symbolic dimensions, dtypes as NumPy dtypes (with those of
`ml_dtypes`) or as JAX's extended dtypes, which pass through untouched.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["Aval", "Shape"]

Shape = tuple[Any, ...]


@dataclass(frozen=True)
class Aval:
    """Shape and dtype of one flat argument or result.

    Attributes:
      shape: Integers and dimension expressions.
      dtype: A NumPy dtype, or one of JAX's extended dtypes (such as that of random keys).
      weak_type: Whether JAX lets the other operand choose the dtype, as for Python scalars.
    """

    shape: Shape
    dtype: Any
    weak_type: bool = False

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    def __str__(self) -> str:
        name = getattr(self.dtype, "name", str(self.dtype))
        return f"{name}[{','.join(str(size) for size in self.shape)}]"
