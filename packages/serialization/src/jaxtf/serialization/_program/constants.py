"""Constants of any element type."""

from __future__ import annotations

from typing import Any

from jax.extend.mlir import ir
from jax.extend.mlir.dialects import stablehlo

__all__ = ["zero_of"]


def zero_of(element_type: Any) -> Any:
    """A zero without dimensions, where the insertion point is."""
    text = "(0.0,0.0)" if isinstance(element_type, ir.ComplexType) else "0.0"
    if isinstance(element_type, ir.IntegerType):
        text = "false" if element_type.width == 1 else "0"
    return stablehlo.constant(ir.Attribute.parse(f"dense<{text}> : tensor<{element_type}>"))
