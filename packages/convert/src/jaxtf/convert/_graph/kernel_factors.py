"""Constant factors of a convolution, by which Grappler multiplies its kernel, kept apart where the kernel overflows.

Source: TensorFlow's constant_folding.cc.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import tensorflow as tf

from jaxtf.convert._graph.known import known_value
from jaxtf.convert._graph.optimizer import maker_of, may_be_constant, may_be_result
from jaxtf.convert._tf import is_left_by_grappler, left_by_grappler

__all__ = ["CONVOLUTIONS", "PRODUCTS", "before_convolution", "elements_of", "keep_kernel", "range_of"]

PRODUCTS = frozenset(("Mul", "RealDiv", "Div"))
CONVOLUTIONS = frozenset(("Conv2D", "Conv3D"))
_MOVES_ELEMENTS = frozenset(("Transpose", "Reshape", "Squeeze", "ExpandDims", "ReverseV2"))

_Factor = tuple[str, tf.Tensor]
"""The type of the operation that scales something, and what it scales by."""


def before_convolution(operand: tf.Tensor, kernel: tf.Tensor) -> None:
    """Has an operand be computed before the convolution with a kernel.

    Grappler multiplies a kernel that is constant by a constant that its operand, or its result, is multiplied by, or by
    the reciprocal of one that they are divided by. That is not rounded as without, and is kept from it only where such
    a product may be infinite or 0.
    """
    maker = maker_of(operand)
    factors = _factors(operand)
    if maker is not None and factors and _may_overflow(kernel, factors):
        left_by_grappler(maker)


def _factors(operand: tf.Tensor) -> list[_Factor]:
    """By what Grappler may multiply the kernel of a convolution of the operand."""
    found: list[_Factor] = []
    maker = maker_of(operand)
    while maker is not None and maker.type in PRODUCTS and not is_left_by_grappler(maker):
        pairs = [tuple(maker.inputs), *([tuple(reversed(maker.inputs))] if maker.type == "Mul" else [])]
        scaled = [pair for pair in pairs if may_be_constant(pair[1]) or may_be_result(pair[1])]
        if not scaled:
            break
        found.append((maker.type, scaled[0][1]))
        maker = maker_of(scaled[0][0])
    return found


def keep_kernel(maker: tf.Operation, factors: Sequence[_Factor]) -> None:
    """Keeps a convolution apart from factors of its result, where the kernel may overflow by them.

    Grappler multiplies it by each of several, also of those that are kept themselves.

    Args:
      maker: The convolution, or a product, or a quotient, of its result and of what may be a constant.
      factors: What scales what is made.
    """
    while maker.type in PRODUCTS:
        scaled = [
            (before, other)
            for operand, other in zip(maker.inputs, reversed(maker.inputs), strict=True)
            if (before := maker_of(operand)) is not None
            and before.type in PRODUCTS | CONVOLUTIONS
            and (may_be_constant(other) or may_be_result(other))
        ]
        if not scaled:
            return
        factors = [*factors, (maker.type, scaled[0][1])]
        maker = scaled[0][0]
    if maker.type in CONVOLUTIONS and _may_overflow(maker.inputs[1], [*factors, *_factors(maker.inputs[0])]):
        left_by_grappler(maker)


def _may_overflow(kernel: tf.Tensor, factors: Sequence[_Factor]) -> bool:
    """Whether Grappler may multiply a kernel by some of the factors so that a product is out of the dtype's range."""
    if not kernel.dtype.is_floating:
        return False
    tensors = [kernel, *(factor for _, factor in factors)]
    known = [elements for elements in map(elements_of, tensors) if elements is not None]
    if len(known) < len(tensors):
        return all(may_be_constant(tensor) or may_be_result(tensor) for tensor in tensors)
    if not all(elements.size for elements in known):
        return False
    sizes, *scales = (np.abs(elements.astype(np.float64)) for elements in known)
    with np.errstate(divide="ignore"):
        scales = [s if op_type == "Mul" else 1 / s for s, (op_type, _) in zip(scales, factors, strict=True)]
    greatest = np.max(sizes) * np.prod([max(np.max(scale), 1) for scale in scales])
    least = np.prod([min(np.min(scale, where=scale > 0, initial=np.inf), 1) for scale in scales])
    least *= np.min(sizes, where=sizes > 0, initial=np.inf)
    smallest, largest = range_of(kernel.dtype)
    return not (greatest <= largest and least >= smallest)


def elements_of(tensor: tf.Tensor, *, also: Collection[str] = ()) -> np.ndarray | None:
    """The elements of a tensor, in any order, where they are known; of operations that are `also` looked through."""
    while tf.is_symbolic_tensor(tensor) and (tensor.op.type in _MOVES_ELEMENTS or tensor.op.type in also):
        tensor = tensor.op.inputs[0]
    found: np.ndarray | None = known_value(tensor)
    return found


def range_of(dtype: tf.DType) -> tuple[float, float]:
    """The least positive number that is not subnormal, and the greatest."""
    limits: Any = ml_dtypes.finfo(dtype.as_numpy_dtype)  # type: ignore[no-untyped-call]
    return float(limits.tiny), float(limits.max)
