"""Reductions over windows: pools and cumulative sums where TensorFlow has them, else by `windowed`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import gcd, prod

import numpy as np
import tensorflow as tf

from jaxtf.convert._graph._support import (
    MOVED,
    Size,
    as_shape,
    at_least_zero,
    is_empty,
    is_identity_of,
    pad,
    sizes,
    sliced,
    smallest,
    typed,
)
from jaxtf.convert._graph.derivatives import differentiated_as, differentiated_when_saved, slope_of
from jaxtf.convert._graph.grappler import relu
from jaxtf.convert._graph.ops.cumulative import CUMULATIVE, CUMULATIVE_DTYPES, cumulated
from jaxtf.convert._graph.ops.windowed import Window, count_of, kind_of, windowed
from jaxtf.convert._graph.optimizer import computed_by_xla
from jaxtf.convert._graph.plan.pools import POOL_AND_RELU
from jaxtf.convert._graph.registry import Bound, translates
from jaxtf.convert._tf import is_compiled_for_cpu, left_by_grappler, traces_compiled

POOLED_DTYPES = (tf.bfloat16, tf.float16, tf.float32, tf.float64)


def window_of(bound: Bound, rank: int) -> Window:
    """The windows that the attributes of the operation describe; those left out are 1, or 0 for padding."""
    ones = (1,) * rank
    padding = np.zeros((rank, 2), int) if bound.get("padding") is None else np.asarray(bound["padding"]).reshape(-1, 2)

    def integers(name: str) -> tuple[int, ...]:
        return tuple(int(n) for n in bound.get(name) or ones)

    return Window(
        integers("window_dimensions"),
        integers("window_strides"),
        integers("base_dilations"),
        integers("window_dilations"),
        tuple(int(n) for n in padding[:, 0]),
        tuple(int(n) for n in padding[:, 1]),
    )


@translates("stablehlo.reduce_window", computed_in=MOVED)
def reduce_window(bound: Bound, *operands_and_initial: tf.Tensor) -> list[tf.Tensor]:
    """The reduction by a region of each window of one or several arrays.

    The initial values come first, then the elements of the window in row-major order, without its padding. What is
    combined first is not promised, for a region that is known to be associative (`combining`), and for scans of more
    than 16 elements, as with XLA for CPU; any other region combines one element after the other.

    Differs: the order of combining, as between any two backends: of padded windows over several dimensions XLA for CPU
    combines the elements in another order than row-major; a sum of nothing but -0 may be 0 or -0; a sum over two
    dimensions in windows of 2, 4, 8, ... elements, not compiled, may be 0 where their mean is subnormal; with
    `enable_xla=False` a MaxPool that is not compiled loses NaN, and its maximum of nothing but -inf is finite.
    Source: StableHLO specification, `reduce_window`.
    """
    count = len(operands_and_initial) // 2
    operands, initial = operands_and_initial[:count], operands_and_initial[count:]
    window = window_of(bound, operands[0].shape.rank)
    kind = kind_of(bound, operands[0].dtype)
    special = None if kind is None else special_form(bound, kind, operands[0], initial[0], window)
    return [special] if special is not None else windowed(bound, operands, initial, window)


@translates(POOL_AND_RELU, computed_in=MOVED)
def max_pool_and_relu(bound: Bound, operand: tf.Tensor, initial: tf.Tensor) -> tf.Tensor:
    """The maxima of windows of a relu: its relu comes after them, or before where TensorFlow has no pool for them."""
    window = window_of(bound, operand.shape.rank)
    found = None if _is_loop(window) else _max_pool(bound, "maximum", operand, initial, window, function=relu)
    return windowed(bound, [relu(operand)], [initial], window)[0] if found is None else found


def special_form(bound: Bound, kind: str, operand: tf.Tensor, initial: tf.Tensor, window: Window) -> tf.Tensor | None:
    """By an operation of TensorFlow's; None if it has none, or a slower one."""
    special = None if bound.scans else _cumulative(bound, kind, operand, initial, window)
    if special is not None or _is_loop(window):
        return special
    special = _max_pool(bound, kind, operand, initial, window)
    return _sum_pool(bound, kind, operand, initial, window) if special is None else special


def _is_loop(window: Window) -> bool:
    """Whether it is compiled for CPU, and no element lies in more than four windows.

    XLA makes one loop of such and of what they take, in less time than it has for a pool. What lies in more windows it
    would compute again for each.
    """
    return is_compiled_for_cpu() and bool(
        prod(-(-length // stride) for length, stride in zip(window.size, window.stride, strict=True)) <= 4
    )


def _cumulative(bound: Bound, kind: str, operand: tf.Tensor, initial: tf.Tensor, window: Window) -> tf.Tensor | None:
    """A cumulative sum or product: windows as long as one dimension that all start, or all end, outside.

    Where only running tells whether they are, a `tf.cond` asks; plain operations for other consumers are without one.
    """
    axes = [i for i, length in enumerate(window.size) if not _is(length, 1)]
    if kind not in CUMULATIVE or operand.dtype not in CUMULATIVE_DTYPES or len(axes) != 1 or not window.is_plain():
        return None
    (axis,) = axes
    others = [_is(window.low[i], 0) and _is(window.high[i], 0) for i in range(len(window.size)) if i != axis]
    length, low, high = window.size[axis], window.low[axis], window.high[axis]
    reverse = _is(low, 0)
    if reverse == _is(high, 0) or set(window.stride) != {1} or not all(others) or not is_identity_of(kind, initial):
        return None

    def scanned() -> tf.Tensor:
        return cumulated(kind, operand, axis, reverse=reverse, conditions=bound.allows_xla)

    def otherwise(operand: tf.Tensor) -> tf.Tensor:
        return windowed(bound, [operand], [initial], window)[0]

    def with_gradient(result: tf.Tensor) -> tf.Tensor:
        """TensorFlow's gradient of a cumulative product divides by the elements, and gives 0 for what is NaN then."""
        if kind != "multiply" or not (operand.dtype.is_floating or operand.dtype.is_complex):
            return result
        return differentiated_as(bound, result, otherwise, operand)

    size, outside = sizes(operand)[axis], high if reverse else low
    if all(isinstance(n, int) for n in (length, size, outside)):
        return with_gradient(scanned()) if length == size == outside + 1 else None
    if not bound.allows_xla:
        return None
    is_scan = tf.equal(length, size) & tf.equal(outside, length - 1)
    result = tf.cond(is_scan, scanned, lambda: otherwise(operand))
    if kind == "multiply":
        return with_gradient(result)

    def gradient(upwards: tf.Tensor, _: tf.Tensor, operand: tf.Tensor) -> tuple[tf.Tensor | None]:
        def of_sums() -> tf.Tensor:
            return cumulated(kind, upwards, axis, reverse=not reverse, conditions=True)

        def of_windows() -> tf.Tensor:  # of what reaches as far before as each reached after: no loop is differentiated
            low, high = (
                [n - 1 - m for n, m in zip(window.size, edges, strict=True)] for edges in (window.low, window.high)
            )
            return windowed(bound, [upwards], [initial], replace(window, low=tuple(low), high=tuple(high)))[0]

        return (tf.cond(is_scan, of_sums, of_windows),)

    return differentiated_when_saved(bound, result, gradient, operand)


def _is(size: Size, number: int) -> bool:
    """Whether a size is known to be that number."""
    return isinstance(size, int) and size == number


def _pooled_dimensions(operand: tf.Tensor, window: Window) -> tuple[int, int] | None:
    """The two dimensions of an array of four that windows extend over, where the others are untouched.

    None where there are no windows, or nothing in them: TensorFlow's pools do not take such.
    """
    if (
        operand.shape.rank != 4
        or is_empty(operand.shape.as_list())
        or not window.is_plain()
        or operand.dtype not in POOLED_DTYPES
    ):
        return None
    placed = list(zip(window.size, window.stride, window.low, window.high, strict=True))
    touched = [i for i in range(4) if not all(map(_is, placed[i], (1, 1, 0, 0)))]
    if len(touched) != 2 or any(not isinstance(n, int) or n < step for n, step, *_ in placed):
        return None
    for i in touched:
        length, _, *edges = placed[i]
        if any(isinstance(edge, int) and edge < 0 for edge in edges):
            return None
        size = operand.shape.as_list()[i]
        if all(isinstance(n, int) for n in (size, *edges)) and size + sum(edges) < length:
            return None
    return touched[0], touched[1]


def _pool_layout(pooled: tuple[int, int]) -> tuple[list[int], list[int]]:
    """The order that puts the pooled dimensions second and third, and its inverse."""
    first, last = (i for i in range(4) if i not in pooled)
    order = [first, *pooled, last]
    return order, [order.index(i) for i in range(4)]


def _as_same(operand: tf.Tensor, window: Window, pooled: tuple[int, int]) -> bool:
    """Whether the padding is what TensorFlow calls SAME."""
    for axis in pooled:
        size = operand.shape.as_list()[axis]
        if not all(isinstance(n, int) for n in (size, window.low[axis], window.high[axis])):
            return False
        total = max((-(-size // window.stride[axis]) - 1) * window.stride[axis] + window.size[axis] - size, 0)
        if (window.low[axis], window.high[axis]) != (total // 2, total - total // 2):
            return False
    return True


def _max_pool(
    bound: Bound,
    kind: str,
    operand: tf.Tensor,
    initial: tf.Tensor,
    window: Window,
    *,
    function: Callable[[tf.Tensor], tf.Tensor] = tf.identity,
) -> tf.Tensor | None:
    """A maximum over two dimensions of four, from the least value: MaxPool, which has the least finite one for -inf.

    It is the maximum of what a function gives, which may as well be applied to the maxima; not to what pads an array.

    Not compiled, MaxPool loses NaN: if there is one, or a window of nothing but -inf, windows are combined otherwise,
    which takes ten times as long. Other consumers than TensorFlow have MaxPool alone. No window may lie outside.
    """
    pooled = _pooled_dimensions(operand, window)
    if kind != "maximum" or pooled is None or not is_identity_of(kind, initial):
        return None
    if any(isinstance(n, int) and n >= window.size[i] for i in pooled for n in (window.low[i], window.high[i])):
        return None
    order, back = _pool_layout(pooled)
    size, stride = ([lengths[i] for i in pooled] for lengths in (window.size, window.stride))
    is_padded = not all(_is(n, 0) for n in window.low + window.high)
    padding = "SAME" if is_padded and _as_same(operand, window, pooled) else "VALID"
    least = typed(smallest(operand.dtype), operand.dtype)

    def pool(padded: tf.Tensor) -> tf.Tensor:
        return _in_layout(lambda x: tf.nn.max_pool2d(x, size, stride, padding), padded, order, back)

    if computed_by_xla(operand) or not bound.allows_xla:
        operand = function(operand)
        if padding == "SAME":
            return pool(operand)
        return _least_outside(_with_windows(pool, operand, least, window, pooled), operand, window, pooled)
    padded = operand if padding == "SAME" else pad(operand, least, window.low, window.high)

    def made() -> tf.Tensor:
        total = tf.reduce_sum(operand)  # the cheapest that is finite only if all elements are

        def unless_lost() -> tf.Tensor:
            found = pool(padded)
            least_finite = typed(operand.dtype.min, operand.dtype)
            is_lost = tf.math.is_nan(total) | tf.reduce_any(found <= least_finite)
            return tf.cond(is_lost, otherwise, lambda: function(found))

        return tf.cond(tf.math.is_finite(total), lambda: function(pool(padded)), unless_lost)

    def otherwise() -> tf.Tensor:
        return windowed(bound, [function(operand)], [initial], window)[0]

    def gradient(upwards: tf.Tensor, _: tf.Tensor, operand: tf.Tensor) -> tuple[tf.Tensor | None]:
        def pooled_of(operand: tf.Tensor) -> tf.Tensor:
            return function(pool(operand if padding == "SAME" else pad(operand, least, window.low, window.high)))

        def windowed_of(operand: tf.Tensor) -> tf.Tensor:
            return windowed(bound, [function(operand)], [initial], window)[0]

        def of_pool() -> tf.Tensor:
            return slope_of(pooled_of)(upwards, operand)[0]

        def of_windows() -> tf.Tensor:
            return slope_of(windowed_of)(upwards, operand)[0]

        conditions = _conditions(sizes(padded), window, pooled)
        if _has_none(padded, window, pooled):
            return (of_windows(),)
        holds = tf.reduce_all([tf.math.is_finite(tf.reduce_sum(operand)), *conditions])
        return (tf.cond(holds, of_pool, of_windows),)

    result = _if_windows(made, otherwise, padded, window, pooled)
    return differentiated_when_saved(bound, result, gradient, operand)


def _if_windows(
    made: Callable[[], tf.Tensor],
    otherwise: Callable[[], tf.Tensor],
    padded: tf.Tensor,
    window: Window,
    pooled: tuple[int, int],
) -> tf.Tensor:
    """What one function makes where there are windows and none is outside, and another where that is not so."""
    conditions = _conditions(sizes(padded), window, pooled)
    if _has_none(padded, window, pooled):  # TensorFlow traces no pool of it, in a branch either
        return otherwise()
    return tf.cond(tf.reduce_all(conditions), made, otherwise) if conditions else made()


def _has_none(padded: tf.Tensor, window: Window, pooled: tuple[int, int]) -> bool:
    """Whether there is no window with an element in an array that is padded already, as far as its sizes are known."""
    shape = padded.shape.as_list()
    return any(shape[i] is not None and shape[i] < _least_size(window, i) for i in pooled)


def _least_size(window: Window, axis: int) -> int:
    """That of a padded array with a window, and with an element: without one, padding may be as long as a window."""
    low, high = window.low[axis], window.high[axis]
    around = low + high if isinstance(low, int) and isinstance(high, int) else 0
    size: int = window.size[axis]
    return max(size, around + 1)


def _conditions(shape: Sequence[Size], window: Window, pooled: tuple[int, int]) -> list[tf.Tensor]:
    """Those that only running tells."""
    conditions = [shape[i] >= _least_size(window, i) for i in pooled if not isinstance(shape[i], int)]
    for i in pooled:
        if not (isinstance(window.low[i], int) and isinstance(window.high[i], int)):
            conditions.append(shape[i] > window.low[i] + window.high[i])
        edges = [n for n in (window.low[i], window.high[i]) if not isinstance(n, int)]
        conditions += [condition for n in edges for condition in (n >= 0, n < window.size[i])]
    return conditions


def _with_windows(
    pool: Callable[[tf.Tensor], tf.Tensor],
    operand: tf.Tensor,
    filler: tf.Tensor,
    window: Window,
    pooled: tuple[int, int],
) -> tf.Tensor:
    """A pool of the padded array, made as large as one window at least, without the windows that are so made.

    A MaxPool by oneDNN that leaves nothing ends the process (TensorFlow 2.21). Where the array is large enough and not
    padded, neither padding nor slicing copies it.
    """
    high = list(window.high)
    placed = zip(sizes(operand), window.low, window.high, strict=True)
    shape = [size if _is(before, 0) and _is(after, 0) else size + before + after for size, before, after in placed]
    unknown = [i for i in pooled if not isinstance(shape[i], int)]
    for i in unknown:
        high[i] += at_least_zero(window.size[i] - shape[i])
    found = pool(pad(operand, filler, window.low, high))
    if not unknown:
        return found
    counts = [count_of(shape[i], window.size[i], 1, window.stride[i]) if i in pooled else shape[i] for i in range(4)]
    return sliced(found, [0] * 4, counts)


def _least_outside(found: tf.Tensor, operand: tf.Tensor, window: Window, pooled: tuple[int, int]) -> tf.Tensor:
    """The maxima of a pool, -inf in windows of nothing but padding, where MaxPool has the least finite value.

    Only padding known at run time may hold a whole window.
    """
    for i in pooled:
        if isinstance(window.low[i], int) and isinstance(window.high[i], int):
            continue
        first = tf.range(sizes(found)[i]) * window.stride[i] - window.low[i]
        is_inside = (first + window.size[i] > 0) & (first < sizes(operand)[i])
        most = tf.where(is_inside, *(typed(bound, found.dtype) for bound in (np.inf, -np.inf)))
        found = tf.minimum(found, tf.reshape(most, [-1 if j == i else 1 for j in range(4)]))
    return found


def _sum_pool(bound: Bound, kind: str, operand: tf.Tensor, initial: tf.Tensor, window: Window) -> tf.Tensor | None:
    """A sum over two dimensions of four, of 32 bits; XLA, where it compiles, is faster with sums of shifted arrays."""
    pooled = _pooled_dimensions(operand, window)
    if kind != "add" or pooled is None or operand.dtype != tf.float32 or not is_identity_of(kind, initial):
        return None
    if traces_compiled():
        return None
    order, back = _pool_layout(pooled)
    size, stride = ([int(lengths[i]) for i in pooled] for lengths in (window.size, window.stride))

    def pool(padded: tf.Tensor) -> tf.Tensor:
        return _in_layout(lambda x: _summed(x, size, stride), padded, order, back)

    if not bound.allows_xla:
        return _with_windows(pool, operand, initial, window, pooled)
    padded, inside = pad(operand, initial, window.low, window.high), replace(window, low=(0,) * 4, high=(0,) * 4)
    return _if_windows(
        # With a window at least, for XLA compiles what is not taken too, and has no convolution without.
        lambda: _with_windows(pool, padded, initial, inside, pooled),
        lambda: windowed(bound, [operand], [initial], window)[0],
        padded,
        window,
        pooled,
    )


def _summed(images: tf.Tensor, size: list[int], stride: list[int]) -> tf.Tensor:
    """Sums over windows of images with features last: of whole numbers exact, as far as the dtype has them.

    A mean times the number of elements is a sum if that number is a power of two, else it may be rounded; a convolution
    of each feature with ones is one, and takes no longer.
    """
    count, (batch, *extent, features) = prod(size), sizes(images)
    if count & (count - 1) == 0 or is_empty(images.shape.as_list()):
        return tf.nn.avg_pool2d(images, size, stride, "VALID") * typed(count, images.dtype)
    ones = tf.ones(as_shape([*size, features, 1]), images.dtype)
    step = gcd(*stride)  # TensorFlow's has one stride for both dimensions
    found = tf.nn.depthwise_conv2d(images, ones, [1, step, step, 1], "VALID")
    if not all(isinstance(n, int) for n in (batch, features)):  # of nothing TensorFlow's has the shape of the operand
        counts = [count_of(n, length, 1, step) for n, length in zip(extent, size, strict=True)]
        found = tf.reshape(found, as_shape([batch, *counts, features]))
        left_by_grappler(found.op)  # which infers the shape that it should have
    vertical, horizontal = (length // step for length in stride)
    return found if vertical == horizontal else found[:, ::vertical, ::horizontal]


def _in_layout(
    pool: Callable[[tf.Tensor], tf.Tensor], operand: tf.Tensor, order: list[int], back: list[int]
) -> tf.Tensor:
    if order == [0, 1, 2, 3]:
        return pool(operand)
    return tf.transpose(pool(tf.transpose(operand, order)), back)
