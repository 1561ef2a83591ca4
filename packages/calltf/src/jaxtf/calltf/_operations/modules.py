"""Functions of JAX that were converted to TensorFlow."""

from __future__ import annotations

from typing import Any

from jaxtf.calltf._interpreter import Interpreter
from jaxtf.calltf._modules import NotFollowed, result_shapes
from jaxtf.calltf._operations.table import rule
from jaxtf.calltf._symbolic_values import Value


@rule("XlaCallModule")
def call_module(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """A function of JAX that was converted: what it does with sizes is followed in its own program."""
    if op.get_attr("has_token_input_output") or op.get_attr("function_list"):
        raise i.refused(op, "calls functions of TensorFlow,")
    shapes = [value.shape for value in inputs]
    try:
        results, sizes = result_shapes(op.get_attr("module"), shapes, len(op.get_attr("platforms")) > 1)
    except NotFollowed as error:
        raise i.refused(op, f"is a module with {error},") from error
    i.remember(sizes)
    tensors = i.compiled(op, inputs)
    for tensor, shape in zip(tensors, results, strict=True):
        tensor.set_shape([i.number(size) for size in shape])
    return [i.value(tensor, shape) for tensor, shape in zip(tensors, results, strict=True)]
