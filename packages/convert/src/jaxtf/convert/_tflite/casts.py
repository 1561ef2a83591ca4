"""Casts that TFLite's converter writes and that no interpreter runs: those of int4 (TensorFlow 2.21)."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from jaxtf.convert._tflite.graphs import nodes_of
from jaxtf.convert._tflite.reordered import constants

__all__ = ["casts_of_int4"]

_INT4 = tf.as_dtype("int4").as_datatype_enum


def casts_of_int4(graph: Any) -> list[tuple[str, str, list[str]]]:
    """The casts of a graph to and from int4, but of constants: name, types, and the nodes of those."""
    if not any(map(_is_of_int4, nodes_of(graph))):
        return []
    known = constants(graph)
    found: dict[str, list[str]] = {}
    bodies = {"": graph.node, **{each.signature.name: each.node_def for each in graph.library.function}}
    for body, nodes in bodies.items():
        for node in nodes:
            if _is_of_int4(node) and node.name not in known[body]:
                source, made = (tf.as_dtype(node.attr[name].type).name for name in ("SrcT", "DstT"))
                found.setdefault(f"({source}) -> ({made})", []).append(node.name)
    return [("Cast", types, places) for types, places in found.items()]


def _is_of_int4(node: Any) -> bool:
    return node.op == "Cast" and _INT4 in (node.attr["SrcT"].type, node.attr["DstT"].type)
