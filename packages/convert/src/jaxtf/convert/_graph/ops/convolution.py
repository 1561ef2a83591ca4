"""Convolutions by TensorFlow's, which take 1 to 3 spatial dimensions, channels last and kernels as they are.

What those lack is prepared: the operand is padded or cut, dilated operands are interior-padded or become a transposed
convolution, batch groups become feature groups, spatial dimensions beyond three become features, and complex numbers
four real convolutions. Integers are convolved in int32, or in float64 in parts so small that every sum is exact there,
and put together modulo 2**bits.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import prod
from typing import Any

import numpy as np
import tensorflow as tf

from jaxtf.convert._graph._support import MOVED, Size, as_shape, is_empty, pad, product, refuse, sizes, typed
from jaxtf.convert._graph.derivatives import differentiated_when_saved, slope_of
from jaxtf.convert._graph.grappler import apart_from_pads
from jaxtf.convert._graph.kernel_factors import before_convolution
from jaxtf.convert._graph.ops.conversion import cast, summed_in, width
from jaxtf.convert._graph.ops.dilated_kernels import in_phases
from jaxtf.convert._graph.ops.dynamic import listed
from jaxtf.convert._graph.ops.kernel_windows import Integers, Windows, padded, spanned
from jaxtf.convert._graph.ops.no_features import with_some_features
from jaxtf.convert._graph.ops.sums_of_halves import stays_bfloat16, sums_round, widened
from jaxtf.convert._graph.ops.sums_of_products import by_elements, by_places
from jaxtf.convert._graph.ops.whole_terms import with_whole_features
from jaxtf.convert._graph.optimizer import computed_by_xla
from jaxtf.convert._graph.plan.empty_batches import MAY_BE_EMPTY
from jaxtf.convert._graph.registry import Bound, translates
from jaxtf.convert._graph.strided import strided
from jaxtf.convert._tf import has_only_cpu, is_compiled_for_cpu, traces_compiled
from jaxtf.serialization.interop import TensorType

# Whole numbers up to 2**53 are exact in float64.
_EXACT = 53
# A depthwise kernel of more places, holes among them, takes longer than phases of the operand do.
_FEW_PLACES = 49


@translates("stablehlo.convolution", computed_in=MOVED)
def convolution(bound: Bound, operand: tf.Tensor, kernel: tf.Tensor) -> tf.Tensor:
    """The convolution (correlation) of the operand with the kernel, with any strides, dilations, groups and padding.

    Integers are exact, modulo 2**bits. Sums of 16-bit floats are sums in float32, rounded once.

    Differs: `precision_config` is not heeded; not compiled, padding is not multiplied by what is infinite or NaN in the
    kernel, and a constant kernel may be multiplied by a constant that the operand or the result is; a sum of nothing
    but -0 may be 0 or -0; not compiled, sums of bfloat16 are rounded more than once by a TensorFlow without oneDNN, and
    of two constants by any; a complex sum whose real part an integer does not hold becomes the nearest, and in XLA
    nothing that is defined.
    Source: StableHLO specification, `convolution`.
    """
    spatial = operand.shape.rank - 2
    padding = bound.get("padding")
    edges = np.zeros((spatial, 2), int) if padding is None else np.asarray(padding).reshape(spatial, 2)
    return _convolved(bound, operand, kernel, [int(n) for n in edges[:, 0]], [int(n) for n in edges[:, 1]])


@translates("stablehlo.dynamic_conv", computed_in=MOVED)
def dynamic_convolution(bound: Bound, operand: tf.Tensor, kernel: tf.Tensor, padding: tf.Tensor) -> tf.Tensor:
    """As `convolution`, with padding that is an operand.

    Source: StableHLO specification, `dynamic_conv`.
    """
    edges = [edge for dimension in range(operand.shape.rank - 2) for edge in listed(padding[dimension])]
    return _convolved(bound, operand, kernel, edges[0::2], edges[1::2])


def _convolved(
    bound: Bound, operand: tf.Tensor, kernel: tf.Tensor, low: Sequence[Size], high: Sequence[Size]
) -> tf.Tensor:
    """Brings arrays to channels last, convolves, and brings the result to the requested layout."""
    spatial = operand.shape.rank - 2
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
    if spatial - 3 > sum(size is not None for size in kernel.shape.as_list()[:-2]):
        refuse(
            bound, f"{spatial} spatial dimensions, of which the kernel has more than 3 that are known only at run time"
        )
    groups = int(bound.get("feature_group_count", 1))
    batches = int(bound.get("batch_group_count", 1))
    if batches > 1:
        operand, groups = _batches_as_features(operand, batches), batches
    if traces_compiled():
        operand, kernel = with_some_features(operand, kernel, groups)
    result_dtype = bound.result_type.dtype
    types = [value.type for value in bound.operation.operands[:2]]
    summed = summed_in(result_dtype, *(type_.dtype for type_ in types if isinstance(type_, TensorType)))
    operand, kernel = (cast(cast(x, summed), MOVED.get(summed, summed)) for x in (operand, kernel))
    dtype = MOVED.get(summed, summed)
    if sums_round(dtype, is_differentiated=bound.is_differentiated):
        operand, kernel, dtype = tf.cast(operand, tf.float32), tf.cast(kernel, tf.float32), tf.float32

    def convolved() -> tf.Tensor:
        result = _by_holes(bound, operand, kernel, windows, groups=groups, dtype=dtype) if bound.allows_xla else None
        return _by_dtype(operand, kernel, windows, groups, dtype) if result is None else result

    if bound.get(MAY_BE_EMPTY) and not traces_compiled():
        # Of no batch the result of TensorFlow's kernel has the shape of the operand; of no features it raises.
        is_some = tf.size(operand, tf.int64) * tf.size(kernel, tf.int64) > 0
        result = tf.cond(is_some, convolved, lambda: _zeros(operand, kernel, windows, dtype))

        def gradient(upwards: tf.Tensor, _: tf.Tensor, *given: tf.Tensor) -> Any:
            slope = slope_of(partial(_by_dtype, windows=windows, groups=groups, dtype=dtype))
            return tf.cond(is_some, lambda: slope(upwards, *given), lambda: [tf.zeros_like(x) for x in given])

        result = differentiated_when_saved(bound, result, gradient, operand, kernel)
    else:
        result = convolved()
    made = [
        numbers["output_batch_dimension"],
        *numbers["output_spatial_dimensions"],
        numbers["output_feature_dimension"],
    ]
    result = cast(cast(cast(result, summed), result_dtype), MOVED.get(result_dtype, result_dtype))
    # Before the last cast: TensorFlow transposes no integers of 4 bits.
    return cast(_transposed(result, [made.index(i) for i in range(len(made))]), result_dtype)


def _transposed(operand: tf.Tensor, order: Sequence[int]) -> tf.Tensor:
    return operand if list(order) == sorted(order) else tf.transpose(operand, order)


def _batches_as_features(operand: tf.Tensor, batches: int) -> tf.Tensor:
    """Groups of the batch next to each other as features: output features of a group see only that group."""
    batch, *spatial, features = sizes(operand)
    rank = len(spatial) + 2
    split = tf.reshape(operand, as_shape([batches, batch // batches, *spatial, features]))
    beside = tf.transpose(split, [*range(1, rank), 0, rank])
    return tf.reshape(beside, as_shape([batch // batches, *spatial, features * batches]))


def _by_holes(
    bound: Bound, operand: tf.Tensor, kernel: tf.Tensor, windows: Windows, *, groups: int, dtype: tf.DType
) -> tf.Tensor | None:
    """By a kernel with zeros between its elements, where no element of the operand is infinite or NaN.

    So a small depthwise one takes half of the time for CPU (TensorFlow 2.21); None for others, and in other dtypes.
    """
    is_depthwise = groups > 1 and kernel.shape.as_list()[-2] == 1 and operand.shape.rank == 4
    is_dilated = set(windows.kernel_dilation) != {1} and set(windows.dilation) == {1}
    dtypes = {operand.dtype, kernel.dtype, dtype}
    if not (is_depthwise and is_dilated) or dtypes != {tf.float32} or traces_compiled() or not has_only_cpu():
        return None
    reach = windows.reach(kernel)
    if not all(isinstance(size, int) and size > 0 for size in reach) or prod(reach) > _FEW_PLACES:
        return None
    between = [*(n - 1 for n in windows.kernel_dilation), 0, 0]
    with_holes = pad(kernel, None, [0] * 4, [0] * 4, between)
    by_holes = partial(_by_dtype, windows=replace(windows, kernel_dilation=(1, 1)), groups=groups, dtype=dtype)
    by_itself = partial(_by_dtype, windows=windows, groups=groups, dtype=dtype)
    is_finite = tf.math.is_finite(tf.reduce_sum(operand))
    result = tf.cond(is_finite, lambda: by_holes(operand, with_holes), lambda: by_itself(operand, kernel))

    def gradient(upwards: tf.Tensor, _: tf.Tensor, *given: tf.Tensor) -> Any:
        of_holes = slope_of(lambda x, y: by_holes(x, pad(y, None, [0] * 4, [0] * 4, between)))
        return tf.cond(is_finite, lambda: of_holes(upwards, *given), lambda: slope_of(by_itself)(upwards, *given))

    return differentiated_when_saved(bound, result, gradient, operand, kernel)


def _by_dtype(operand: tf.Tensor, kernel: tf.Tensor, windows: Windows, groups: int, dtype: tf.DType) -> tf.Tensor:
    """In a dtype that TensorFlow convolves."""
    if dtype.is_complex:
        a, b = ((tf.math.real(x), tf.math.imag(x)) for x in (cast(operand, dtype), cast(kernel, dtype)))
        products = [[_by_dtype(x, y, windows, groups, dtype.real_dtype) for y in b] for x in a]
        return tf.complex(products[0][0] - products[1][1], products[0][1] + products[1][0])
    if dtype.is_integer:
        return _of_integers(operand, kernel, windows, groups, dtype)
    computed = tf.float64 if dtype == tf.bool else tf.float32 if dtype.size < 2 else dtype
    return cast(_prepared(cast(operand, computed), cast(kernel, computed), windows, groups), dtype)


def _of_integers(operand: tf.Tensor, kernel: tf.Tensor, windows: Windows, groups: int, dtype: tf.DType) -> tf.Tensor:
    """Modulo 2**bits: one convolution in float64 where its sums are exact, or in int32 where there is a kernel for it.

    Else one for each pair of parts.
    """
    bits = width(dtype)
    used = min(width(operand.dtype), bits)
    terms = kernel.shape[:-1].num_elements()
    # More elements than 2**31 no kernel has.
    of_sum = 31 if terms is None else max(terms - 1, 0).bit_length()
    if 2 * used + of_sum <= _EXACT:
        result = _prepared(cast(operand, tf.float64), cast(kernel, tf.float64), windows, groups)
        return cast(tf.cast(result, tf.int64), dtype)
    is_plain = groups == 1 and operand.shape.rank <= 4 and set(windows.dilation) == {1}
    if dtype in (tf.int32, tf.uint32) and is_plain and has_only_cpu():
        a, b = (tf.bitcast(cast(x, dtype), tf.int32) for x in (operand, kernel))
        result = _prepared(a, b, windows, groups)
        return tf.bitcast(result, dtype)
    part = (_EXACT - of_sum) // 2
    lefts, rights = _parts(operand, part, used), _parts(kernel, part, used)
    result = tf.zeros([], tf.int64)
    for (i, left), (j, right) in itertools.product(enumerate(lefts), enumerate(rights)):
        if (i + j) * part < bits:
            sums = tf.cast(_prepared(left, right, windows, groups), tf.int64)
            result += tf.bitwise.left_shift(sums, typed((i + j) * part, tf.int64))
    return tf.bitcast(result, dtype) if dtype == tf.uint64 else tf.cast(result, dtype)


def _parts(integers: tf.Tensor, part: int, bits: int) -> list[tf.Tensor]:
    """Whole numbers in float64, the lowest first, each of `part` bits but the last, which has the sign."""
    wide = tf.bitcast(integers, tf.int64) if integers.dtype == tf.uint64 else cast(integers, tf.int64)
    mask = typed((1 << part) - 1, tf.int64)
    parts = []
    for begin in range(0, bits, part):
        rest = tf.bitwise.right_shift(wide, typed(begin, tf.int64)) if begin else wide
        parts.append(rest if begin + part >= bits else tf.bitwise.bitwise_and(rest, mask))
    return [tf.cast(x, tf.float64) for x in parts]


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
    kernel, windows = _with_an_element(kernel, windows)
    if spatial > 3:
        return _with_fewer(operand, kernel, windows, groups)
    if _is_transposed(operand, kernel, windows, groups):
        return _transposed_convolution(operand, kernel, windows)
    windows, columns = _strided_columns(operand, kernel, windows)
    windows, counts = _with_a_window(operand, kernel, windows)
    padding = _named_padding(operand, kernel, windows)
    if padding is None:
        between = [0, *(n - 1 for n in windows.dilation), 0]
        apart = _may_be_larger(operand, kernel, windows)
        operand = pad(operand, None, [0, *windows.low, 0], [0, *windows.high, 0], between, apart=apart)
        padding = "VALID"
    result = _grouped(operand, kernel, windows, groups, padding)
    if counts:
        result = result[(slice(None), *(slice(counts.get(i)) for i in range(spatial)))]
    return result if columns is None else result[..., :columns, :]


def _with_an_element(kernel: tf.Tensor, windows: Windows) -> tuple[tf.Tensor, Windows]:
    """A kernel of one element at least, a zero if it has none, and windows that leave as many places as before.

    Such is the cotangent of a convolution without windows, where the gradient for its kernel is computed.
    """
    extent = sizes(kernel)[:-2]
    missing = [0 if isinstance(size, int) else tf.maximum(1 - size, 0) for size in extent]
    if all(isinstance(size, int) for size in extent):
        return kernel, windows
    high = tuple(edge + more for edge, more in zip(windows.high, missing, strict=True))
    return pad(kernel, None, [0] * kernel.shape.rank, [*missing, 0, 0]), replace(windows, high=high)


def _with_a_window(operand: tf.Tensor, kernel: tf.Tensor, windows: Windows) -> tuple[Windows, dict[int, Size]]:
    """Windows of which there is one at least, and how many to keep along dimensions where that was not known.

    TensorFlow's kernels (2.21) give one where none fits, or raise; compiled, they raise where the kernel
    is larger than the operand by more than a stride.
    """
    high, counts = list(windows.high), {}
    extent, kernel_extent = sizes(operand)[1:-1], sizes(kernel)[:-2]
    for i, (size, length, reach) in enumerate(zip(extent, kernel_extent, windows.reach(kernel), strict=True)):
        padding = windows.low[i] + windows.high[i]
        count = windows.count(i, size, length)
        if isinstance(count, int) or (isinstance(padding, int) and isinstance(reach, int) and padding >= reach):
            continue
        high[i] = high[i] + tf.maximum(reach - (spanned(size, windows.dilation[i]) + padding), 0)
        counts[i] = count
    return replace(windows, high=tuple(high)), counts


def _may_be_larger(operand: tf.Tensor, kernel: tf.Tensor, windows: Windows) -> bool:
    """Whether the kernel is larger than the operand, or may be by its holes.

    A kernel of TensorFlow for CPU with AVX-512 (2.19 to 2.21) ends the process for some of these if it pads itself.
    """
    extent = operand.shape.as_list()[1:-1]
    return any(
        apart > 1 if size is None or not isinstance(reach, int) else reach > size
        for size, reach, apart in zip(extent, windows.reach(kernel), windows.kernel_dilation, strict=True)
    )


def _strided_columns(operand: tf.Tensor, kernel: tf.Tensor, windows: Windows) -> tuple[Windows, Size]:
    """Windows of which a result of one column has no stride, and how many columns to keep of the result; None for all.

    TensorFlow's kernels for CPU with AVX-512 (2.19 to 2.21) give other numbers, and memory that is not theirs, for
    results of one column and several rows with a horizontal stride. Where it is not known whether there will be one
    column, that one gets a neighbour, which is taken off.
    """
    stride = windows.stride[-1]
    if stride == 1 or operand.dtype in (tf.float64, tf.int32):
        return windows, None
    last, size, kernel_size = len(windows.stride) - 1, sizes(operand)[-2], sizes(kernel)[-3]
    count = windows.count(last, size, kernel_size)
    if isinstance(count, int):
        if count != 1:
            return windows, None
        reach, spread = windows.reach(kernel)[-1], (size - 1) * windows.dilation[-1] + 1
        high = (*windows.high[:-1], reach - spread - windows.low[-1])
        return replace(windows, high=high, stride=(*windows.stride[:-1], 1)), None
    if is_compiled_for_cpu():
        return windows, None
    more = tf.where(tf.equal(count, 1), stride, 0)
    return replace(windows, high=(*windows.high[:-1], windows.high[-1] + more)), count


def _with_fewer(operand: tf.Tensor, kernel: tf.Tensor, windows: Windows, groups: int) -> tf.Tensor:
    """With one spatial dimension less: its positions are in the batch, the elements under each window as features."""
    spans = kernel.shape.as_list()[:-2]
    axis = min((i for i, size in enumerate(spans) if size is not None), key=lambda i: spans[i])
    span, stride, apart = spans[axis], windows.stride[axis], windows.kernel_dilation[axis]
    edges = [[0] * (operand.shape.rank - 2) for _ in range(3)]
    amounts = windows.low[axis], windows.high[axis], windows.dilation[axis] - 1
    for edge, amount in zip(edges, amounts, strict=True):
        edge[axis] = amount
    operand = pad(operand, None, *([0, *edge, 0] for edge in edges))
    batch, *extent, features = sizes(operand)
    count = (extent[axis] - ((span - 1) * apart + 1)) // stride + 1
    # As [batch, before, along, after, features], so that no array has more dimensions than TensorFlow's kernels take.
    before, after = product(extent[:axis]), product(extent[axis + 1 :])
    operand = tf.reshape(operand, as_shape([batch, before, extent[axis], after, features]))
    whole, reach = slice(None), (count - 1) * stride + 1
    parts = [slice(i * apart, i * apart + reach, stride) for i in range(span)]
    met = [strided(operand, [whole, whole, part, whole, whole]) for part in parts]
    stacked = tf.stack([tf.reshape(x, as_shape([batch, before, count, after, groups, -1])) for x in met], -2)
    stacked = tf.transpose(stacked, [0, 2, 1, 3, 4, 5, 6])
    rest = [*extent[:axis], *extent[axis + 1 :]]
    operand = tf.reshape(stacked, as_shape([batch * count, *rest, span * features]))
    *extent, inputs, outputs = sizes(kernel)
    kernel = tf.reshape(kernel, as_shape([product(extent[:axis]), span, product(extent[axis + 1 :]), inputs, outputs]))
    kernel = tf.transpose(kernel, [0, 2, 1, 3, 4])
    kernel = tf.reshape(kernel, as_shape([*extent[:axis], *extent[axis + 1 :], span * inputs, outputs]))
    result = _prepared(operand, kernel, windows.without(axis), groups)
    _, *made, _ = sizes(result)
    before, after = product(made[:axis]), product(made[axis:])
    result = tf.transpose(tf.reshape(result, as_shape([batch, count, before, after, outputs])), [0, 2, 1, 3, 4])
    return tf.reshape(result, as_shape([batch, *made[:axis], count, *made[axis:], outputs]))


def _empty(operand: tf.Tensor, kernel: tf.Tensor, windows: Windows) -> tf.Tensor | None:
    """Zeros where the result, or what is summed, is known to have no elements; kernels do not take such."""
    operand_sizes, kernel_sizes = operand.shape.as_list(), kernel.shape.as_list()
    counts = list(map(windows.count, range(len(kernel_sizes) - 2), operand_sizes[1:-1], kernel_sizes[:-2]))
    if not (is_empty(counts) or is_empty(kernel_sizes) or is_empty(operand_sizes)):
        return None
    return _zeros(operand, kernel, windows, operand.dtype)


def _zeros(operand: tf.Tensor, kernel: tf.Tensor, windows: Windows, dtype: tf.DType) -> tf.Tensor:
    """Zeros in the shape of a result."""
    batch, *extent, _ = sizes(operand)
    *kernel_extent, _, outputs = sizes(kernel)
    counts = [windows.count(i, *pair) for i, pair in enumerate(zip(extent, kernel_extent, strict=True))]
    return tf.zeros(as_shape([batch, *counts, outputs]), dtype)


def _named_padding(operand: tf.Tensor, kernel: tf.Tensor, windows: Windows) -> str | None:
    """VALID or SAME where the padding is that; None otherwise.

    Not SAME where the kernel is larger than the operand, or smaller than its stride: kernels of TensorFlow for CPU
    (2.19 to 2.21) give other numbers for some of these, or end the process.
    """
    if set(windows.dilation) != {1}:
        return None
    edges = list(zip(windows.low, windows.high, strict=True))
    if not all(isinstance(size, int) for edge in edges for size in edge):
        return None
    if all(edge == (0, 0) for edge in edges):
        return "VALID"
    extents = windows.reach(kernel), operand.shape.as_list()[1:-1], kernel.shape.as_list()[:-2]
    for i, (reach, size, span) in enumerate(zip(*extents, strict=False)):
        if size is None or not isinstance(reach, int) or not (windows.stride[i] <= span and reach <= size):
            return None
        total = max((-(-size // windows.stride[i]) - 1) * windows.stride[i] + reach - size, 0)
        if edges[i] != (total // 2, total - total // 2):
            return None
    return "SAME"


def _grouped(operand: tf.Tensor, kernel: tf.Tensor, windows: Windows, groups: int, padding: str) -> tf.Tensor:
    """Depthwise where each group is one feature; other groups one by one. Sums of products where those are faster."""
    is_depthwise = groups > 1 and kernel.shape.as_list()[-2] == 1
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
    before_convolution(operand, kernel)
    operand, kernel = with_whole_features(operand, kernel, -2, extent=sizes(kernel)[:-2])
    if operand.shape.rank == 4:
        if operand.dtype == tf.float64 and set(windows.kernel_dilation) != {1} and not traces_compiled():
            return in_phases(operand, kernel, windows, padding, lambda x, k: tf.nn.conv2d(x, k, [1, 1], "VALID"))
        operand, kernel = apart_from_pads(operand, kernel, padding)
        return tf.nn.conv2d(operand, kernel, windows.stride, padding, dilations=windows.kernel_dilation)
    operand, kernel = widened(operand, kernel)
    if set(windows.kernel_dilation) != {1}:
        return in_phases(operand, kernel, windows, padding, lambda x, k: tf.nn.conv3d(x, k, [1] * 5, "VALID"))
    operand, kernel = apart_from_pads(operand, kernel, padding)
    return tf.nn.conv3d(operand, kernel, [1, *windows.stride, 1], padding)


def _depthwise(operand: tf.Tensor, kernel: tf.Tensor, windows: Windows, padding: str) -> tf.Tensor:
    """Each feature on its own; strides that differ are taken out of a result of stride 1."""
    operand, kernel = widened(operand, kernel)
    features = sizes(operand)[-1]
    height, width, _, outputs = sizes(kernel)
    if operand.dtype == tf.bfloat16 and not computed_by_xla(operand, kernel) and not stays_bfloat16(kernel, features):
        operand, kernel = tf.cast(operand, tf.float32), tf.cast(kernel, tf.float32)
    kernel = tf.reshape(kernel, as_shape([height, width, features, outputs // features]))
    vertical, horizontal = windows.stride
    ones = [1] * 4
    if set(windows.kernel_dilation) != {1}:
        return in_phases(operand, kernel, windows, padding, lambda x, k: tf.nn.depthwise_conv2d(x, k, ones, "VALID"))
    if vertical == horizontal:
        return tf.nn.depthwise_conv2d(operand, kernel, [1, vertical, horizontal, 1], padding)
    operand = padded(operand, windows, padding)
    return tf.nn.depthwise_conv2d(operand, kernel, ones, "VALID")[:, ::vertical, ::horizontal]


def _is_transposed(operand: tf.Tensor, kernel: tf.Tensor, windows: Windows, groups: int) -> bool:
    """Whether it is a transposed convolution as TensorFlow has it."""
    dilated = set(windows.dilation) != {1} and set(windows.stride) == {1} and set(windows.kernel_dilation) == {1}
    numbers = [*operand.shape.as_list()[1:], *kernel.shape.as_list(), *windows.low, *windows.high]
    if not (dilated and all(isinstance(n, int) for n in numbers) and groups == 1 and operand.shape.rank == 4):
        return False
    return all(d <= k for d, k in zip(windows.dilation, kernel.shape.as_list(), strict=False))


def _transposed_convolution(operand: tf.Tensor, kernel: tf.Tensor, windows: Windows) -> tf.Tensor:
    """All places where the kernel meets the operand, then padded or cut to those that are asked for."""
    operand, kernel = widened(operand, kernel)
    batch, *extent, _ = sizes(operand)
    reach = windows.reach(kernel)
    full = [(n - 1) * d + k for n, d, k in zip(extent, windows.dilation, reach, strict=True)]
    flipped = tf.transpose(tf.reverse(kernel, [0, 1]), [0, 1, 3, 2])
    operand, flipped = with_whole_features(operand, flipped, -1)
    shape = as_shape([batch, *full, kernel.shape.as_list()[-1]])
    result = tf.nn.conv2d_transpose(operand, flipped, shape, windows.dilation, "VALID")
    low, high = (
        [0, *(e - (k - 1) for e, k in zip(edge, reach, strict=True)), 0] for edge in (windows.low, windows.high)
    )
    return pad(result, None, low, high)
