"""Pads of a graph with the least float, for maxima of windows alone: in 8 bits its scale would be all arrays'.

Where every window holds an element of the array, elements at its edges may pad it in place of the least: those are in
each window that reaches over the edge.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import tensorflow as tf

from jaxtf.convert._tflite.graphs import constant_of

__all__ = ["padded_pools", "with_edges"]

_LEAST = float(np.finfo(np.float32).min)


def padded_pools(nodes: Iterable[Any], results: Iterable[str] = ()) -> dict[str, list[tuple[int, int]]]:
    """Of the PadV2 that only max pools take, and whose windows all hold an element: by their names, the paddings.

    Args:
      nodes: Of a graph, or of a function in it.
      results: The names of those of the function.
    """
    by_name = {node.name: node for node in nodes}
    users: dict[str, list[Any]] = {_node_name(name): [None] for name in results}
    for node in by_name.values():
        for name in {_node_name(name) for name in node.input}:
            users.setdefault(name, []).append(node)

    def constant(name: str) -> Any:
        return constant_of(by_name.get(_node_name(name)))

    def windows(name: str, order: list[int]) -> list[list[int] | None]:
        """The sizes of the windows of each user, by dimension of the array that a node was made of by a Transpose."""
        found: list[list[int] | None] = []
        for node in users.get(name, []):
            if node is None:
                found.append(None)
            elif node.op == "Transpose" and (moved := constant(node.input[1])) is not None:
                found += windows(node.name, [order[i] for i in moved])
            elif node.op == "MaxPool" and node.attr["padding"].s == b"VALID":
                sizes = dict(zip(order, node.attr["ksize"].list.i, strict=True))
                found.append([sizes[i] for i in range(len(order))])
            else:
                found.append(None)
        return found

    pads = {}
    for node in by_name.values():
        if node.op != "PadV2" or node.attr["T"].type != tf.float32.as_datatype_enum:
            continue
        paddings, value = map(constant, node.input[1:3])
        if paddings is None or value is None or not value <= _LEAST:
            continue
        edges = [(int(low), int(high)) for low, high in paddings]
        found = windows(node.name, list(range(len(edges))))
        if found and all(
            sizes is not None and all(max(edge) < size for edge, size in zip(edges, sizes, strict=True))
            for sizes in found
        ):
            pads[node.name] = edges
    return pads


def with_edges(edges: Iterable[tuple[int, int]]) -> Callable[..., tf.Tensor]:
    """A function in the place of a PadV2: its first operand, with its own elements at its edges around it."""

    def padded(array: tf.Tensor, *_: tf.Tensor) -> tf.Tensor:
        for axis, (low, high) in enumerate(edges):
            if low or high:
                last = tf.shape(array)[axis] - 1
                array = tf.gather(array, tf.clip_by_value(tf.range(-low, last + high + 1), 0, last), axis=axis)
        return array

    return padded


def _node_name(name: str) -> str:
    return name.partition(":")[0]
