"""Reads graphs as TensorFlow writes them down: their operations, and constants among these."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

__all__ = ["constant_of", "nodes_of"]


def nodes_of(graph: Any) -> list[Any]:
    """The operations of a graph and of the functions in it."""
    return [*graph.node, *(node for function in graph.library.function for node in function.node_def)]


def constant_of(node: Any) -> Any:
    """The array that an operation is, of any dtype; None for another operation, or none."""
    if node is None or node.op != "Const":
        return None
    value = node.attr["value"].tensor
    return tf.io.parse_tensor(value.SerializeToString(), tf.dtypes.as_dtype(value.dtype)).numpy()
