"""What TFLite's converter leaves over, from its errors: operations that it has no builtin operation for."""

from __future__ import annotations

import re
from typing import Any

import tensorflow as tf

from jaxtf.convert import _tf
from jaxtf.convert._tflite.graphs import nodes_of

__all__ = ["left_over", "left_over_in"]

# Of MLIR's element types, those that TensorFlow has an enumeration for.
_DTYPES = {
    **{f"i{bits}": tf.dtypes.as_dtype(f"int{bits}").as_datatype_enum for bits in (8, 16, 32, 64)},
    **{f"ui{bits}": tf.dtypes.as_dtype(f"uint{bits}").as_datatype_enum for bits in (8, 16, 32, 64)},
    **{f"f{bits}": tf.dtypes.as_dtype(f"float{bits}").as_datatype_enum for bits in (16, 32, 64)},
    "i1": tf.bool.as_datatype_enum,
    "bf16": tf.bfloat16.as_datatype_enum,
    "complex<f32>": tf.complex64.as_datatype_enum,
    "complex<f64>": tf.complex128.as_datatype_enum,
}

_LEFT_OVER = re.compile(r"^\s*tf\.(\w+)\((.*?)\) -> \((.*?)\)", re.MULTILINE)


def left_over(converter: Any, graph: Any) -> list[tuple[str, str, list[str]]]:
    """The operations of a graph that its converter leaves over: name, types, and the nodes of that name.

    Raises:
      Exception: The converter's own, if it names none.
    """
    try:
        converter.convert()
    except _tf.tflite_converter_error() as error:
        found = left_over_in(error, graph)
        if not found:
            raise
        return found
    return []


def left_over_in(error: Exception, graph: Any) -> list[tuple[str, str, list[str]]]:
    """The operations that an error of the converter names."""
    types: dict[tuple[str, str], str] = {}
    for name, taken, given in _LEFT_OVER.findall(str(error)):
        types.setdefault((name, _element(taken)), f"({taken}) -> ({given})")
    return [(name, text, _places(graph, name, element)) for (name, element), text in types.items()]


def _element(types: str) -> str:
    """The element type of the first operand, in MLIR's syntax: of `tensor<8x?xui32>, tensor<i32>`, `ui32`."""
    first = re.match(r"tensor<(?:[\d?]+x|\*x)*(.+?)>(?:,|$)", types)
    return first[1] if first else ""


def _places(graph: Any, name: str, element: str) -> list[str]:
    """The nodes of an operation whose dtype is an element type; where one is not known, all of that operation."""
    dtype = _DTYPES.get(element)
    nodes = [node for node in nodes_of(graph) if node.op == name]
    return [node.name for node in nodes if dtype is None or "T" not in node.attr or node.attr["T"].type == dtype]
