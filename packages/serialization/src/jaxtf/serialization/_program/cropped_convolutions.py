"""Convolutions whose padding takes elements away before the array and adds some after it, written as a pad before.

XLA for CPU reads memory that is not the array's for such a convolution of a kernel of three elements or more, as jaxlib
0.10 and TensorFlow 2.21 have it (that of jaxlib 0.12 does not): numbers that may differ at each call.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from jax.extend.mlir import ir
from jax.extend.mlir.dialects import stablehlo

from jaxtf.serialization._program.constants import zero_of

__all__ = ["crop_before", "takes_and_adds"]


def takes_and_adds(convolution: Any) -> bool:
    """Whether a convolution has such a padding; those of operands with holes are right as they are."""
    padding = _padding(convolution)
    return bool(((padding[:, 0] < 0) & (padding[:, 1] > 0)).any()) and not _is_dilated(convolution)


def crop_before(convolution: Any) -> None:
    """Gives a convolution, in place, an operand without what its padding takes away before it."""
    padding, operand = _padding(convolution), convolution.operands[0]
    type_ = ir.RankedTensorType(operand.type)
    numbers = stablehlo.ConvDimensionNumbers(convolution.attributes["dimension_numbers"])
    low, high = np.zeros((2, type_.rank), np.int64)
    for axis, pair in zip(numbers.input_spatial_dimensions, padding, strict=True):
        if pair[0] < 0:
            low[axis] = pair[0]
            if type_.is_dynamic_dim(axis) or type_.get_dim_size(axis) + pair[0] < 0:  # more is taken than there is
                high[axis] = pair[1]
                pair[1] = 0
            pair[0] = 0
    with ir.InsertionPoint(convolution), convolution.location:
        convolution.operands[0] = stablehlo.pad(operand, zero_of(type_.element_type), low, high, [0] * type_.rank)
        convolution.attributes["padding"] = ir.DenseIntElementsAttr.get(padding)


def _padding(convolution: Any) -> np.ndarray:
    """Of each spatial dimension, before and after; of none if it is not said."""
    if "padding" not in convolution.attributes:
        return np.zeros((0, 2), np.int64)
    return np.array(ir.DenseIntElementsAttr(convolution.attributes["padding"])).reshape(-1, 2)


def _is_dilated(convolution: Any) -> bool:
    """Whether there are holes between the elements of the operand."""
    if "lhs_dilation" not in convolution.attributes:
        return False
    return set(ir.DenseI64ArrayAttr(convolution.attributes["lhs_dilation"])) != {1}
