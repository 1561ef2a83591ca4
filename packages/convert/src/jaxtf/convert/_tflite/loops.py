"""Loops of a graph whose bodies give an operand back as it came: TFLite's converter ends the process for 8 bits then.

It does so (TensorFlow 2.21) where such an operand is of floats and the body computes with it: what a loop closes over,
the rows that a scan reads. The maximum of it and itself is no operand to the converter. Which results it finds to be
one (`x + 0` is), the graph does not show; so all have a maximum.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from jaxtf.convert._tflite.graphs import nodes_of

__all__ = ["has_loops", "keep_nothing"]

_LOOPS = frozenset(("While", "StatelessWhile"))
_FLOAT = tf.float32.as_datatype_enum


def has_loops(graph: Any) -> bool:
    """Whether there is a loop in a graph, or in a function in it."""
    return any(node.op in _LOOPS for node in nodes_of(graph))


def keep_nothing(graph: Any) -> None:
    """Makes the bodies of a graph's loops give no operand of floats back as it came."""
    bodies = {node.attr["body"].func.name for node in nodes_of(graph) if node.op in _LOOPS}
    for function in graph.library.function:
        if function.signature.name in bodies:
            _keep_nothing(function)


def _keep_nothing(function: Any) -> None:
    types = {argument.name: argument.type for argument in function.signature.output_arg}
    for result, name in list(function.ret.items()):
        if types[result] == _FLOAT:
            made = f"jaxtf_tflite_kept_{result}"
            node = function.node_def.add(name=made, op="Maximum", input=[name, name])
            node.attr["T"].type = _FLOAT
            function.ret[result] = f"{made}:z:0"
