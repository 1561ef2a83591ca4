"""Constants of any element type."""

from __future__ import annotations

from typing import Any

from jax.extend.mlir import ir

__all__ = ["zero_of"]


def zero_of(element_type: Any) -> Any:
    """A zero without dimensions, where the insertion point is."""
    text = "(0.0,0.0)" if isinstance(element_type, ir.ComplexType) else "0.0"
    if isinstance(element_type, ir.IntegerType):
        text = "false" if element_type.width == 1 else "0"
    type_ = f"tensor<{element_type}>"
    # As a text: jaxlib 0.10 has no attribute of complex numbers in Python.
    made = ir.Operation.parse(f'"stablehlo.constant"() {{value = dense<{text}> : {type_}}} : () -> {type_}')
    ir.InsertionPoint.current.insert(made)
    return made.operation.results[0]
