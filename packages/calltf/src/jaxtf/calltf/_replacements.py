"""Operations that TensorFlow's compiler computes wrongly or not at all, written with others that it computes rightly.

A bilinear resize takes neighbouring rows at some sizes; a mean of integers overflows before it is divided; the place of
the largest number is that of a NaN; `-0.` is less than `0.`; `tf.debugging.enable_check_numerics` adds what does not
compile. A trace that has them is written again. What writes to
variables stays as it is, to be refused.

Source: what TensorFlow 2.21 computes where it does not compile.
Knows graphs of TensorFlow; nothing of JAX.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from jaxtf.calltf._graph import nodes, stateful_ops, variable_writes
from jaxtf.calltf._tf import outside_of_graphs
from jaxtf.calltf._walk import constant_array, emitted
from jaxtf.calltf._writer import Writer

__all__ = ["with_replacements"]


def with_replacements(concrete: Any) -> Callable[[Sequence[Any]], list[Any]] | None:
    """What computes the results of a trace, and asserts, rightly when compiled; None if the trace itself does."""
    if not any(_is_wrong(node.op, node.attr["T"].type) for node in nodes(concrete)):
        return None
    if variable_writes(stateful_ops(concrete)):
        return None
    return Writer(concrete, _replaced)


def _is_wrong(op_type: str, dtype: int) -> bool:
    return op_type in _REPLACEMENTS and dtype in _REPLACEMENTS[op_type][0]


def _replaced(writer: Writer, op: Any, operands: list[Any]) -> Sequence[Any] | None:
    if not op.inputs or not _is_wrong(op.type, op.inputs[0].dtype.as_datatype_enum):
        return None
    return _REPLACEMENTS[op.type][1](op, operands)


def _resize(op: Any, operands: list[Any]) -> Sequence[Any]:
    """Between the two nearest rows, then columns: columns first, as TensorFlow rounds it."""
    images, size = operands
    static = constant_array(size.op) if size.op.type == "Const" else None
    found = tf.cast(images, tf.float32)
    for axis in (2, 1):
        wanted = size[axis - 1] if static is None else int(static[axis - 1])
        before, after, weight = _places(op, _size(images, axis), wanted)
        first, last = (tf.gather(found, places, axis=axis) for places in (before, after))
        found = first + (last - first) * tf.reshape(weight, [-1] + [1] * (3 - axis))
    found.set_shape(op.outputs[0].shape)
    return [found]


def _resize_gradient(op: Any, operands: list[Any]) -> Sequence[Any]:
    """The transpose of `_resize`."""
    slopes, images = operands
    for axis in (1, 2):
        count, order = _size(images, axis), [1, 0, 2, 3] if axis == 1 else [2, 1, 0, 3]
        before, after, weight = _places(op, count, _size(slopes, axis))
        moved = tf.transpose(slopes, order)
        weight = tf.reshape(weight, [-1, 1, 1, 1])
        first = tf.math.unsorted_segment_sum(moved * (1 - weight), before, count)
        slopes = tf.transpose(first + tf.math.unsorted_segment_sum(moved * weight, after, count), order)
    slopes = tf.cast(slopes, op.outputs[0].dtype)
    slopes.set_shape(op.outputs[0].shape)
    return [slopes]


def _size(tensor: Any, axis: int) -> Any:
    size = None if tensor.shape.rank is None else tensor.shape[axis]
    return tf.shape(tensor)[axis] if size is None else size


def _places(op: Any, count: Any, wanted: Any) -> list[Any]:
    """Of each element of an axis of the result: the elements before and after it, and the weight of the latter."""
    if isinstance(count, int) and isinstance(wanted, int):  # constants of the program
        with outside_of_graphs():
            places = _places(op, tf.constant(count), tf.constant(wanted))
        return [tf.constant(place.numpy()) for place in places]
    old, new = tf.cast(count, tf.float32), tf.cast(wanted, tf.float32)
    at = tf.range(wanted)
    scale = old / new
    if op.get_attr("align_corners"):
        scale = tf.where(wanted > 1, (old - 1) / tf.maximum(new - 1, 1), scale)
    place = tf.cast(at, tf.float32)
    place = (place + 0.5) * scale - 0.5 if op.get_attr("half_pixel_centers") else place * scale
    before = tf.floor(place)
    limit = tf.maximum(count - 1, 0)
    lower = tf.clip_by_value(tf.cast(before, tf.int32), 0, limit)
    upper = tf.clip_by_value(tf.cast(tf.math.ceil(place), tf.int32), 0, limit)
    return [lower, upper, place - before]


def _mean(op: Any, operands: list[Any]) -> Sequence[Any]:
    """Summed in 64 bits."""
    values, axes = operands
    mean = tf.raw_ops.Mean(input=tf.cast(values, tf.int64), axis=axes, keep_dims=op.get_attr("keep_dims"))
    return [tf.cast(mean, values.dtype)]


def _place(op: Any, operands: list[Any]) -> Sequence[Any]:
    """A NaN is neither the largest nor the smallest."""
    values, *axes = operands
    least = tf.constant(float("-inf" if op.type == "ArgMax" else "inf"), values.dtype)
    return emitted(op, [tf.where(tf.not_equal(values, values), least, values), *axes])


def _order(op: Any, operands: list[Any]) -> Sequence[Any]:
    """Places are those of numbers among which `-0.` is `0.`; the numbers keep their signs."""
    values, *others = operands
    numbers, *_ = emitted(op, operands)
    _, *places = emitted(op, [tf.where(tf.equal(values, 0), tf.zeros([], values.dtype), values), *others])
    return [numbers, *places]


def _unique(op: Any, operands: list[Any]) -> Sequence[Any]:
    """Of numbers among which `-0.` is `0.`."""
    values, *others = operands
    return emitted(op, [tf.where(tf.equal(values, 0), tf.zeros([], values.dtype), values), *others])


def _no_summary(op: Any, operands: list[Any]) -> Sequence[Any]:
    """That there is no NaN: what `enable_check_numerics` adds asserts it, and assertions are left out."""
    return [tf.zeros([3], op.outputs[0].dtype)]


def _enums(*dtypes: Any) -> frozenset[int]:
    return frozenset(dtype.as_datatype_enum for dtype in dtypes)


_FLOATING = _enums(tf.float16, tf.bfloat16, tf.float32, tf.float64)
# Of which dtypes of their first operand.
_REPLACEMENTS: Mapping[str, tuple[frozenset[int], Callable[[Any, list[Any]], Sequence[Any]]]] = {
    **dict.fromkeys(("ArgMax", "ArgMin"), (_FLOATING, _place)),
    "DebugNumericSummaryV2": (_FLOATING, _no_summary),
    "Mean": (_enums(tf.int32, tf.uint32), _mean),
    "ResizeBilinear": (_FLOATING | _enums(tf.int8, tf.uint8, tf.int16, tf.uint16, tf.int32, tf.int64), _resize),
    "ResizeBilinearGrad": (_FLOATING, _resize_gradient),
    **dict.fromkeys(("TopKV2", "TopK"), (_FLOATING, _order)),
    **dict.fromkeys(("Unique", "UniqueV2"), (_FLOATING, _unique)),
}
