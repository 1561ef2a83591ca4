"""Casts of floats to integers in models of 8 bits, where what graph mode compares a float with has its own scale.

Graph mode compares with the bounds of the integers before it casts. In 8 bits the scale of a bound such as 2**31 is all
arrays', and TFLite's kernels give another truth value without an error. So there the float is cast to 64 bits, and the
integer is compared: TFLite makes none of those an array of 8 bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import tensorflow as tf

from jaxtf.convert._tflite.graphs import constant_of

__all__ = ["SaturatingCast", "saturating_casts"]

_DTYPES = (tf.int8, tf.uint8, tf.int16, tf.uint16, tf.int32, tf.uint32, tf.int64, tf.uint64)
_LARGEST = int(tf.int64.max)


class SaturatingCast(NamedTuple):
    """What a node casts, and to what.

    Attributes:
      operand: The input that is cast, of float32, as nodes name it.
      dtype: That of the result.
      bounds: The least and the largest integer.
    """

    operand: str
    dtype: tf.DType
    bounds: tuple[int, int]

    def function(self) -> Callable[[tf.Tensor], tf.Tensor]:
        """What is computed in its place."""

        def saturated(x: tf.Tensor) -> tf.Tensor:
            wide = tf.cast(x, tf.int64)
            if self.dtype == tf.int64:
                return wide
            low, high = (tf.constant(min(bound, _LARGEST), tf.int64) for bound in self.bounds)
            return tf.cast(tf.maximum(tf.minimum(wide, high), low), self.dtype)

        return saturated


def saturating_casts(nodes: Iterable[Any]) -> dict[str, SaturatingCast]:
    """The casts of floats to the nearest integers among some nodes, by the name of the last of each.

    Args:
      nodes: Of a graph, or of a function in it.
    """
    by_name = {node.name: node for node in nodes}

    def made(name: str, op: str) -> Any:
        node = by_name.get(name.partition(":")[0])
        return node if node is not None and node.op == op else None

    def of_float(node: Any) -> Any:
        """A cast of float32, which TFLite may make one of 8 bits; None for another one."""
        is_one = node is not None and node.op == "Cast" and node.attr["SrcT"].type == tf.float32.as_datatype_enum
        return node if is_one else None

    def constant(name: str) -> Any:
        array = constant_of(made(name, "Const"))
        return None if array is None or array.size != 1 else array.item()

    def by_choice(node: Any, dtype: tf.DType) -> str | None:
        """What is cast where both bounds are chosen among the integers."""
        inner = made(node.input[2], "SelectV2")
        cast = inner and of_float(made(inner.input[2], "Cast"))
        inside = cast and made(cast.input[0], "SelectV2")
        if inside is None or (constant(inner.input[1]), constant(node.input[1])) != (int(dtype.min), int(dtype.max)):
            return None
        too_low, too_high = made(inner.input[0], "LessEqual"), made(node.input[0], "GreaterEqual")
        compared = {None if each is None else each.input[0] for each in (too_low, too_high)}
        return str(inside.input[1]) if compared == {inside.input[1]} else None

    def by_clipping(node: Any) -> tuple[str, tuple[int, int]] | None:
        """What is cast where a float is held between both bounds, and them."""
        number = made(node.input[0], "SelectV2")
        is_nan = number and made(number.input[0], "IsNan")
        upper = is_nan and made(number.input[2], "Maximum")
        lower = upper and made(upper.input[0], "Minimum")
        if lower is None or lower.input[0] != is_nan.input[0]:
            return None
        low, high = constant(upper.input[1]), constant(lower.input[1])
        if low is None or high is None or not (math.isfinite(low) and math.isfinite(high)):
            return None
        return str(lower.input[0]), (int(low), int(high))

    found = {}
    for node in by_name.values():
        if node.op == "SelectV2":
            dtype = tf.dtypes.as_dtype(node.attr["T"].type)
            operand = by_choice(node, dtype) if dtype in _DTYPES else None
            bounds = (int(dtype.min), int(dtype.max)) if operand else None
        elif of_float(node) is not None:
            dtype = tf.dtypes.as_dtype(node.attr["DstT"].type)
            operand, bounds = (dtype in _DTYPES and by_clipping(node)) or (None, None)
        else:
            continue
        if operand is not None and bounds is not None:
            found[node.name] = SaturatingCast(operand, dtype, bounds)
    return found
