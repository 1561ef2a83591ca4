"""What TFLite's converter leaves over, from its errors: operations that it has no builtin operation for."""

from __future__ import annotations

import re
from typing import Any

from jaxtf.convert import _tf

__all__ = ["left_over", "left_over_in", "nodes_of"]

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
    types: dict[str, str] = {}
    for name, taken, given in _LEFT_OVER.findall(str(error)):
        types.setdefault(name, f"({taken}) -> ({given})")
    return [(name, of, [node.name for node in nodes_of(graph) if node.op == name]) for name, of in types.items()]


def nodes_of(graph: Any) -> list[Any]:
    """The operations of a graph and of the functions in it."""
    return [*graph.node, *(node for function in graph.library.function for node in function.node_def)]
