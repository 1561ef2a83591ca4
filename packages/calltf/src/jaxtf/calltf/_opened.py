"""A trace whose captures are arguments: what TensorFlow calls in a program that has values for them.

What reads a variable is written as what reads a tensor. So a graph of TensorFlow operations has the same values of
variables as a program that XLA compiles, whose parameters are the arguments, then the captures.

Knows graphs of TensorFlow; nothing of values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from jaxtf.calltf._tf import hidden_from_debuggers, outside_of_graphs
from jaxtf.calltf._writer import Writer

__all__ = ["opened"]


def opened(name: str, concrete: Any, captured: Sequence[Any], specs: Sequence[Any]) -> Any:
    """A concrete function of the arguments of a trace and, after these, of its captures; it captures nothing.

    Args:
      name: Of what is made.
      concrete: A trace that does no more than compute its results.
      captured: What it captures: variables and tensors.
      specs: The shapes and dtypes of its arguments.
    """
    writer = Writer(concrete, _read)

    def body(*tensors: Any) -> list[Any]:
        return writer.with_captures(tensors)

    body.__name__ = name
    own = [tf.TensorSpec(each.shape, each.dtype) for each in captured]
    with outside_of_graphs(), hidden_from_debuggers():
        return tf.function(body, autograph=False, jit_compile=True).get_concrete_function(*specs, *own)


def _read(writer: Writer, op: Any, operands: list[Any]) -> Sequence[Any] | None:
    """The results of an operation on variables, on their values."""
    if not any(x.dtype == tf.resource and y.dtype != tf.resource for x, y in zip(op.inputs, operands, strict=True)):
        return None
    assert op.type in _READS, f"{op.type} does more than read variables, which a trace that is staged does not"
    return _READS[op.type](writer, op, operands)


def _branch(writer: Writer, op: Any, operands: list[Any]) -> Sequence[Any]:
    condition, *tensors = operands
    then, otherwise = (op.get_attr(name).name for name in ("then_branch", "else_branch"))
    return _flat(tf.cond(condition, lambda: writer.body(then, tensors), lambda: writer.body(otherwise, tensors)))


def _switch(writer: Writer, op: Any, operands: list[Any]) -> Sequence[Any]:
    index, *tensors = operands
    branches = [lambda name=branch.name: writer.body(name, tensors) for branch in op.get_attr("branches")]
    return _flat(tf.switch_case(index, branches))


def _loop(writer: Writer, op: Any, operands: list[Any]) -> Sequence[Any]:
    condition, turn = op.get_attr("cond").name, op.get_attr("body").name
    shapes = [y.shape if x.dtype == tf.resource else x.shape for x, y in zip(op.outputs, operands, strict=True)]
    return _flat(
        tf.while_loop(
            lambda *tensors: writer.body(condition, tensors)[0],
            lambda *tensors: tuple(writer.body(turn, tensors)),
            tuple(operands),
            shape_invariants=tuple(shapes),
            parallel_iterations=op.get_attr("parallel_iterations"),
        )
    )


def _flat(results: Any) -> Sequence[Any]:
    found: Sequence[Any] = tf.nest.flatten(results)
    return found


_READS: Mapping[str, Callable[[Writer, Any, list[Any]], Sequence[Any]]] = {
    "Identity": lambda writer, op, operands: operands,
    "IdentityN": lambda writer, op, operands: operands,
    "ReadVariableOp": lambda writer, op, operands: operands,
    "ResourceGather": lambda writer, op, operands: [
        tf.gather(operands[0], operands[1], batch_dims=op.get_attr("batch_dims"))
    ],
    "VariableShape": lambda writer, op, operands: [tf.shape(operands[0], op.get_attr("out_type"))],
    "VarIsInitializedOp": lambda writer, op, operands: [tf.constant(True)],
    **dict.fromkeys(["If", "StatelessIf"], _branch),
    **dict.fromkeys(["Case", "StatelessCase"], _switch),
    **dict.fromkeys(["While", "StatelessWhile"], _loop),
}
