"""Convolutions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from jax import lax

from jaxtf.serialization._lift.arrays import as_array
from jaxtf.serialization._lift.errors import unsupported
from jaxtf.serialization._lift.ops.conversion import converted
from jaxtf.serialization._lift.ops.dot import in_summed_dtype, precision_of
from jaxtf.serialization._lift.registry import Bound, lifts
from jaxtf.serialization._lift.sizes import Known, known_integers


@lifts("stablehlo.convolution")
def convolution(bound: Bound, operand: Any, kernel: Any) -> Any:
    """The convolution of an array with a kernel, in the dtype that XLA sums in.

    Source: StableHLO specification, `convolution`.
    """
    padding = bound.get("padding")
    pairs = None if padding is None else np.asarray(padding).reshape(-1, 2).tolist()
    return convolved(bound, operand, kernel, pairs)


@lifts("stablehlo.dynamic_conv", takes_sizes=True)
def dynamic_conv(bound: Bound, operand: Any, kernel: Any, padding: Any) -> Any:
    """As `convolution`, with padding that is an operand.

    Source: StableHLO specification, `dynamic_conv`.
    """
    if not isinstance(padding, Known):
        raise unsupported(bound.operation, "padding that does not follow from sizes")
    flat = known_integers(padding)
    pairs = list(zip(flat[0::2], flat[1::2], strict=True))
    return convolved(bound, *_cropped_before(bound, as_array(operand), pairs, as_array(kernel)))


def _cropped_before(bound: Bound, operand: Any, pairs: list[Any], kernel: Any) -> tuple[Any, Any, list[Any]]:
    """Operand, kernel and padding of what XLA misreads otherwise; see `_program.cropped_convolutions`."""
    cropped = [isinstance(low, int) and low < 0 for low, _ in pairs]
    if not any(cropped) or set(bound.get("lhs_dilation") or (1,)) != {1}:
        return operand, kernel, pairs
    config = [(0, 0, 0)] * operand.ndim
    axes = bound["dimension_numbers"]["input_spatial_dimensions"]
    for axis, pair, is_cropped in zip(axes, pairs, cropped, strict=True):
        config[axis] = (*pair, 0) if is_cropped else (0, 0, 0)
    left = [(0, 0) if is_cropped else pair for pair, is_cropped in zip(pairs, cropped, strict=True)]
    return lax.pad(operand, np.zeros((), operand.dtype), config), kernel, left


def convolved(bound: Bound, operand: Any, kernel: Any, padding: Any) -> Any:
    """The convolution with padding given as pairs, or none."""
    numbers: Mapping[str, Any] = bound["dimension_numbers"]
    spatial = len(numbers["input_spatial_dimensions"])

    def integers(name: str) -> tuple[int, ...]:
        given = bound.get(name)
        return (1,) * spatial if given is None else tuple(int(n) for n in given)

    turned = [
        axis
        for axis, flag in zip(numbers["kernel_spatial_dimensions"], bound.get("window_reversal") or (), strict=False)
        if flag
    ]
    operand, kernel, summed = in_summed_dtype(bound, operand, kernel)
    result = lax.conv_general_dilated(
        operand,
        lax.rev(kernel, turned) if turned else kernel,
        window_strides=integers("window_strides"),
        padding=[(0, 0)] * spatial if padding is None else [tuple(pair) for pair in padding],
        lhs_dilation=integers("lhs_dilation"),
        rhs_dilation=integers("rhs_dilation"),
        dimension_numbers=lax.ConvDimensionNumbers(
            (
                numbers["input_batch_dimension"],
                numbers["input_feature_dimension"],
                *numbers["input_spatial_dimensions"],
            ),
            (
                numbers["kernel_output_feature_dimension"],
                numbers["kernel_input_feature_dimension"],
                *numbers["kernel_spatial_dimensions"],
            ),
            (
                numbers["output_batch_dimension"],
                numbers["output_feature_dimension"],
                *numbers["output_spatial_dimensions"],
            ),
        ),
        feature_group_count=int(bound.get("feature_group_count", 1)),
        batch_group_count=int(bound.get("batch_group_count", 1)),
        precision=precision_of(bound),
        preferred_element_type=summed,
    )
    return converted(result, bound.result_type.dtype)
