"""Convolutions by TensorFlow's, which take 1 to 3 spatial dimensions, channels last and kernels as they are.

What those lack is prepared: the operand is padded or cut, dilated operands are interior-padded or become a transposed
convolution, batch groups become feature groups, integers become float64 and complex numbers four real convolutions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from jaxtf.convert._graph._support import Size, as_shape, pad, refuse, sizes
from jaxtf.convert._graph.ops.conversion import cast
from jaxtf.convert._graph.ops.dynamic import listed
from jaxtf.convert._graph.ops.kernel_windows import Integers, Windows, padded, with_holes
from jaxtf.convert._graph.ops.sums_of_products import by_elements, by_places
from jaxtf.convert._graph.registry import Bound, translates


@translates("stablehlo.convolution")
def convolution(bound: Bound, operand: tf.Tensor, kernel: tf.Tensor) -> tf.Tensor:
    """The convolution (correlation) of the operand with the kernel, with any strides, dilations, groups and padding.

    Differs: 64-bit integers are exact up to 2**53; `precision_config` is not heeded.
    Source: StableHLO specification, `convolution`.
    """
    spatial = operand.shape.rank - 2
    padding = bound.get("padding")
    edges = np.zeros((spatial, 2), int) if padding is None else np.asarray(padding).reshape(spatial, 2)
    return _convolved(bound, operand, kernel, [int(n) for n in edges[:, 0]], [int(n) for n in edges[:, 1]])


@translates("stablehlo.dynamic_conv")
def dynamic_convolution(bound: Bound, operand: tf.Tensor, kernel: tf.Tensor, padding: tf.Tensor) -> tf.Tensor:
    """As `convolution`, with padding that is an operand.

    Source: StableHLO specification, `dynamic_conv`.
    """
    edges = listed(tf.reshape(padding, [-1]))
    return _convolved(bound, operand, kernel, edges[0::2], edges[1::2])


def _convolved(
    bound: Bound, operand: tf.Tensor, kernel: tf.Tensor, low: Sequence[Size], high: Sequence[Size]
) -> tf.Tensor:
    """Brings arrays to channels last, convolves, and brings the result to the layout that is asked for."""
    spatial = operand.shape.rank - 2
    if spatial > 3:
        refuse(bound, f"{spatial} spatial dimensions; TensorFlow's convolutions have up to 3")
    numbers: Mapping[str, Any] = bound["dimension_numbers"]
    ones = (1,) * spatial

    def integers(name: str) -> Integers:
        return tuple(int(n) for n in bound.get(name) or ones)

    windows = Windows(
        integers("window_strides"), tuple(low), tuple(high), integers("lhs_dilation"), integers("rhs_dilation")
    )
    operand = _transposed(
        operand,
        [
            numbers["input_batch_dimension"],
            *numbers["input_spatial_dimensions"],
            numbers["input_feature_dimension"],
        ],
    )
    kernel = _transposed(
        kernel,
        [
            *numbers["kernel_spatial_dimensions"],
            numbers["kernel_input_feature_dimension"],
            numbers["kernel_output_feature_dimension"],
        ],
    )
    reversed_axes = [i for i, turned in enumerate(bound.get("window_reversal") or ()) if turned]
    if reversed_axes:
        kernel = tf.reverse(kernel, reversed_axes)
    groups = int(bound.get("feature_group_count", 1))
    batches = int(bound.get("batch_group_count", 1))
    if batches > 1:
        operand, groups = _batches_as_features(operand, batches), batches
    result = _by_dtype(operand, kernel, windows, groups, bound.result_type.dtype)
    made = [
        numbers["output_batch_dimension"],
        *numbers["output_spatial_dimensions"],
        numbers["output_feature_dimension"],
    ]
    return _transposed(result, [made.index(i) for i in range(len(made))])


def _transposed(operand: tf.Tensor, order: Sequence[int]) -> tf.Tensor:
    return operand if list(order) == sorted(order) else tf.transpose(operand, order)


def _batches_as_features(operand: tf.Tensor, batches: int) -> tf.Tensor:
    """Groups of the batch beside each other as features: output features of a group see only that group."""
    batch, *spatial, features = sizes(operand)
    rank = len(spatial) + 2
    split = tf.reshape(operand, as_shape([batches, batch // batches, *spatial, features]))
    beside = tf.transpose(split, [*range(1, rank), 0, rank])
    return tf.reshape(beside, as_shape([batch // batches, *spatial, features * batches]))


def _by_dtype(operand: tf.Tensor, kernel: tf.Tensor, windows: Windows, groups: int, dtype: tf.DType) -> tf.Tensor:
    """In a dtype that TensorFlow convolves."""
    if dtype.is_complex:
        a, b = ((tf.math.real(x), tf.math.imag(x)) for x in (cast(operand, dtype), cast(kernel, dtype)))
        products = [[_by_dtype(x, y, windows, groups, dtype.real_dtype) for y in b] for x in a]
        return tf.complex(products[0][0] - products[1][1], products[0][1] + products[1][0])
    computed = tf.float64 if dtype.is_integer or dtype == tf.bool else tf.float32 if dtype.size < 2 else dtype
    result = _prepared(cast(operand, computed), cast(kernel, computed), windows, groups)
    if dtype.is_integer and computed != dtype:
        return _wrapped(result, dtype)
    return cast(result, dtype)


def _wrapped(result: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
    """Whole numbers in float64 as integers modulo 2**bits."""
    return tf.cast(tf.cast(result, tf.int64), dtype)


def _prepared(operand: tf.Tensor, kernel: tf.Tensor, windows: Windows, groups: int) -> tf.Tensor:
    """With at least two spatial dimensions, nothing empty, and no dilation that kernels do not know."""
    spatial = operand.shape.rank - 2
    if spatial < 2:
        missing = 2 - spatial
        for _ in range(missing):
            operand, kernel = tf.expand_dims(operand, 1), tf.expand_dims(kernel, 0)
        ones, zeros = (1,) * missing, (0,) * missing
        windows = Windows(
            ones + windows.stride,
            zeros + windows.low,
            zeros + windows.high,
            ones + windows.dilation,
            ones + windows.kernel_dilation,
        )
        return tf.squeeze(_prepared(operand, kernel, windows, groups), list(range(1, 1 + missing)))
    empty = _empty(operand, kernel, windows)
    if empty is not None:
        return empty
    if _is_transposed(operand, kernel, windows, groups):
        return _transposed_convolution(operand, kernel, windows)
    zero = tf.zeros([], operand.dtype)
    padding = _named_padding(operand, kernel, windows)
    if padding is None:
        between = [0, *(n - 1 for n in windows.dilation), 0]
        operand = pad(operand, zero, [0, *windows.low, 0], [0, *windows.high, 0], between)
        padding = "VALID"
    return _grouped(operand, kernel, windows, groups, padding)


def _empty(operand: tf.Tensor, kernel: tf.Tensor, windows: Windows) -> tf.Tensor | None:
    """Zeros where the result, or what is summed, has no elements; kernels do not take such."""
    known = [*operand.shape, *kernel.shape, *windows.low, *windows.high]
    if not all(isinstance(size, int) for size in known):
        return None
    batch, *extent, _ = operand.shape
    places = []
    for i, reach in enumerate(windows.reach(kernel)):
        size = max((extent[i] - 1) * windows.dilation[i] + 1, 0) + windows.low[i] + windows.high[i]
        places.append(max((size - reach) // windows.stride[i] + 1, 0) if size >= reach else 0)
    shape = [batch, *places, kernel.shape[-1]]
    if 0 in shape or 0 in kernel.shape or 0 in operand.shape:
        return tf.zeros(shape, operand.dtype)
    return None


def _named_padding(operand: tf.Tensor, kernel: tf.Tensor, windows: Windows) -> str | None:
    """VALID or SAME where the padding is that; None otherwise."""
    if set(windows.dilation) != {1}:
        return None
    edges = list(zip(windows.low, windows.high, strict=True))
    if not all(isinstance(size, int) for edge in edges for size in edge):
        return None
    if all(edge == (0, 0) for edge in edges):
        return "VALID"
    for i, reach in enumerate(windows.reach(kernel)):
        size = operand.shape[i + 1]
        if size is None:
            return None
        total = max((-(-size // windows.stride[i]) - 1) * windows.stride[i] + reach - size, 0)
        if edges[i] != (total // 2, total - total // 2):
            return None
    return "SAME"


def _grouped(operand: tf.Tensor, kernel: tf.Tensor, windows: Windows, groups: int, padding: str) -> tf.Tensor:
    """Depthwise where each group is one feature; other groups one by one. Sums of products where those are faster."""
    is_depthwise = groups > 1 and kernel.shape[-2] == 1
    if operand.shape.rank == 4:
        instead = by_elements if groups == 1 or is_depthwise else by_places
        result = instead(operand, kernel, windows, groups, padding)
        if result is not None:
            return result
    if groups == 1:
        return _plain(operand, kernel, windows, padding)
    if is_depthwise and operand.shape.rank == 4:
        return _depthwise(operand, kernel, windows, padding)
    operands, kernels = tf.split(operand, groups, -1), tf.split(kernel, groups, -1)
    parts = [_plain(x, k, windows, padding) for x, k in zip(operands, kernels, strict=True)]
    return tf.concat(parts, -1)


def _plain(operand: tf.Tensor, kernel: tf.Tensor, windows: Windows, padding: str) -> tf.Tensor:
    if operand.shape.rank == 4:
        return tf.nn.conv2d(operand, kernel, windows.stride, padding, dilations=windows.kernel_dilation)
    kernel = with_holes(kernel, windows.kernel_dilation)
    return tf.nn.conv3d(operand, kernel, [1, *windows.stride, 1], padding)


def _depthwise(operand: tf.Tensor, kernel: tf.Tensor, windows: Windows, padding: str) -> tf.Tensor:
    """Each feature on its own; strides that differ are taken out of a result of stride 1."""
    features = operand.shape[-1]
    kernel = with_holes(kernel, windows.kernel_dilation)
    height, width, _, outputs = kernel.shape
    kernel = tf.reshape(kernel, [height, width, features, outputs // features])
    vertical, horizontal = windows.stride
    if vertical == horizontal:
        return tf.nn.depthwise_conv2d(operand, kernel, [1, vertical, horizontal, 1], padding)
    operand = padded(operand, windows, padding)
    return tf.nn.depthwise_conv2d(operand, kernel, [1, 1, 1, 1], "VALID")[:, ::vertical, ::horizontal]


def _is_transposed(operand: tf.Tensor, kernel: tf.Tensor, windows: Windows, groups: int) -> bool:
    """Whether it is a transposed convolution as TensorFlow has it."""
    dilated = set(windows.dilation) != {1} and set(windows.stride) == {1} and set(windows.kernel_dilation) == {1}
    fits = all(d <= k for d, k in zip(windows.dilation, kernel.shape, strict=False))
    known = all(isinstance(size, int) for size in [*operand.shape[1:], *windows.low, *windows.high])
    return dilated and groups == 1 and operand.shape.rank == 4 and fits and known


def _transposed_convolution(operand: tf.Tensor, kernel: tf.Tensor, windows: Windows) -> tf.Tensor:
    """All places where the kernel meets the operand, then padded or cut to those that are asked for."""
    batch, *extent, _ = sizes(operand)
    reach = windows.reach(kernel)
    full = [(n - 1) * d + k for n, d, k in zip(extent, windows.dilation, reach, strict=True)]
    flipped = tf.transpose(tf.reverse(kernel, [0, 1]), [0, 1, 3, 2])
    shape = as_shape([batch, *full, kernel.shape[-1]])
    result = tf.nn.conv2d_transpose(operand, flipped, shape, windows.dilation, "VALID")
    low, high = (
        [0, *(e - (k - 1) for e, k in zip(edge, reach, strict=True)), 0] for edge in (windows.low, windows.high)
    )
    return pad(result, tf.zeros([], result.dtype), low, high)
