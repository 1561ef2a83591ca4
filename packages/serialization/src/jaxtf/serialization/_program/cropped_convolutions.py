"""Convolutions whose padding takes elements away before the array and adds some after it, written as a pad before.

XLA for CPU reads memory that is not the array's for such a convolution of a kernel of three elements or more, as jaxlib
0.10 and TensorFlow 2.21 have it (that of jaxlib 0.12 does not): numbers that may differ at each call.
`crop_before_convolutions(module)` has the elements taken away first, in place, so that each of them computes what the
module says.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from jax.extend.mlir import ir
from jax.extend.mlir.dialects import stablehlo

__all__ = ["crop_before_convolutions"]


def crop_before_convolutions(module: ir.Module) -> None:
    """Gives such a convolution, in place, an operand without what its padding takes away; others are left as they are.

    Those of dilated operands are right as they are.
    """
    found: list[tuple[Any, np.ndarray]] = []

    def visit(operation: Any) -> Any:
        op = operation.operation
        if op.name == "stablehlo.convolution" and "padding" in op.attributes:
            padding = np.array(ir.DenseIntElementsAttr(op.attributes["padding"])).reshape(-1, 2)
            is_dilated = "lhs_dilation" in op.attributes and set(
                ir.DenseI64ArrayAttr(op.attributes["lhs_dilation"])
            ) != {1}
            if not is_dilated and ((padding[:, 0] < 0) & (padding[:, 1] > 0)).any():
                found.append((op, padding))
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    with module.context:
        for op, padding in found:
            _crop(op, padding)


def _is_dilated(convolution: Any) -> bool:
    """Whether there are holes between the elements of the operand."""
    if "lhs_dilation" not in convolution.attributes:
        return False
    return set(ir.DenseI64ArrayAttr(convolution.attributes["lhs_dilation"])) != {1}


def _crop(convolution: Any, padding: np.ndarray) -> None:
    operand = convolution.operands[0]
    type_ = ir.RankedTensorType(operand.type)
    numbers = stablehlo.ConvDimensionNumbers(convolution.attributes["dimension_numbers"])
    low = np.zeros(type_.rank, np.int64)
    low[list(numbers.input_spatial_dimensions)] = np.minimum(padding[:, 0], 0)
    nothing = [0] * type_.rank
    with ir.InsertionPoint(convolution), convolution.location:
        cropped = stablehlo.pad(operand, _zero(type_.element_type), low, nothing, nothing)
        convolution.operands[0] = cropped
        left = np.stack([np.maximum(padding[:, 0], 0), padding[:, 1]], 1)
        convolution.attributes["padding"] = ir.DenseIntElementsAttr.get(left)


def _zero(element_type: Any) -> Any:
    """A constant of that type, of any kind that a convolution may have."""
    text = "(0.0,0.0)" if isinstance(element_type, ir.ComplexType) else "0.0"
    if isinstance(element_type, ir.IntegerType):
        text = "false" if element_type.width == 1 else "0"
    return stablehlo.constant(ir.Attribute.parse(f"dense<{text}> : tensor<{element_type}>"))
