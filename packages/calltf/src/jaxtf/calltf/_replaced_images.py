"""Operations on images that TensorFlow's compiler computes wrongly, written with others that it computes rightly.

A bilinear resize takes neighbouring rows at some sizes; patches are sums of products with zeros and ones, so that an
infinity spreads; a hue is not turned where no channel is positive.

Source: what TensorFlow 2.21 computes where it does not compile.
Knows TensorFlow; nothing of JAX.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from jaxtf.calltf._tf import outside_of_graphs
from jaxtf.calltf._walk import constant_array

__all__ = ["patches", "resize_slopes", "resized", "turned_hue"]


def resized(op: Any, operands: list[Any]) -> Sequence[Any]:
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


def resize_slopes(op: Any, operands: list[Any]) -> Sequence[Any]:
    """The transpose of `resized`."""
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


def patches(op: Any, operands: list[Any]) -> Sequence[Any]:
    """Moved: rows of each row of patches, then columns."""
    [images] = operands
    window, steps, rates = (op.get_attr(name) for name in ("ksizes", "strides", "rates"))
    found, counts = images, []
    for axis, at in ((1, 1), (2, 3)):  # the first adds an axis before the second
        reach, size = (window[axis] - 1) * rates[axis] + 1, _size(images, axis)
        count, edges = _not_negative((size - reach + steps[axis]) // steps[axis]), [0, 0]
        if op.get_attr("padding") == b"SAME":
            count = (size + steps[axis] - 1) // steps[axis]
            edge = _not_negative((count - 1) * steps[axis] + reach - size)
            edges = [edge // 2, edge - edge // 2]
        found = tf.pad(found, [[0, 0] if i != at else edges for i in range(len(found.shape))])
        places = tf.range(count)[:, None] * steps[axis] + tf.range(window[axis]) * rates[axis]
        found = tf.gather(found, places, axis=at)
        counts.append(count)
    sizes = [_size(images, 0), *counts, window[1] * window[2] * _size(images, 3)]
    found = tf.reshape(tf.transpose(found, [0, 1, 3, 2, 4, 5]), sizes)
    found.set_shape(op.outputs[0].shape)
    return [found]


def _not_negative(size: Any) -> Any:
    return max(size, 0) if isinstance(size, int) else tf.maximum(size, 0)


def turned_hue(op: Any, operands: list[Any]) -> Sequence[Any]:
    """Where no channel is positive, the smallest is taken for 0: a hue depends on differences alone."""
    images, delta = operands
    values = tf.cast(images, tf.float32)
    smallest = tf.reduce_min(values, axis=-1, keepdims=True)
    moved = tf.where(tf.reduce_max(values, axis=-1, keepdims=True) > 0, tf.zeros_like(smallest), smallest)
    turned = tf.raw_ops.AdjustHue(images=values - moved, delta=delta) + moved
    return [tf.cast(turned, images.dtype)]
