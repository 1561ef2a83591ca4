"""Reductions along axes that are the same for all sizes."""

from __future__ import annotations

import operator
from typing import Any

from jaxtf.calltf._interpreter import Interpreter
from jaxtf.calltf._operations.conditions import is_within, not_negative
from jaxtf.calltf._operations.table import INTEGERS, rule
from jaxtf.calltf._symbolic_values import Value, array_of, larger, product, smaller


@rule("Sum", "Mean", "Max", "Min", "Prod", "All", "Any", "EuclideanNorm")
def reduction(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """Along axes that are the same for all sizes; a mean is divided by the number of elements."""
    x = inputs[0]
    axes = {axis % len(x.shape) for axis in i.integers(op, inputs, 1)} if x.shape else set()
    keep = op.get_attr("keep_dims")
    shape = [1 if axis in axes else size for axis, size in enumerate(x.shape) if keep or axis not in axes]
    i.remember([product(size for axis, size in enumerate(x.shape) if axis in axes)])
    [tensor] = i.compiled(op, inputs, (1,))
    known = None
    fold = {"Sum": operator.add, "Prod": operator.mul, "Max": larger, "Min": smaller}.get(op.type)
    if x.known is not None and fold is not None and x.known.ndim == 1 and axes and op.inputs[0].dtype in INTEGERS:
        elements = list(x.known)
        if op.type in ("Sum", "Prod") or all(is_within(i, element) for element in elements):
            total = elements[0] if elements else {"Sum": 0, "Prod": 1}.get(op.type)
            for element in elements[1:]:
                total = fold(total, element)
            known = None if total is None else array_of([total], (1,) * int(keep))
    return [i.value(tensor, shape, known)]


@rule("ArgMax", "ArgMin")
def arg_reduction(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """Along one axis, which has an element."""
    [axis] = i.integers(op, inputs, 1)
    shape = list(inputs[0].shape)
    i.require(
        op, shape.pop(axis), ">=", 1, f"takes the place of an element along axis {axis} of {list(inputs[0].shape)}"
    )
    [tensor] = i.compiled(op, inputs, (1,))
    return [i.value(tensor, shape)]


@rule("L2Loss")
def l2_loss(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """A number."""
    [tensor] = i.compiled(op, inputs)
    return [i.value(tensor, ())]


@rule("TopKV2", "TopK")
def top_k(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """Sorted, and cut: the same for all sizes, as compiled for a CPU by TensorFlow 2.21 for 7 and for 700,000."""
    count = i.known(op, inputs, 1).item() if op.type == "TopKV2" else op.get_attr("k")
    shape = inputs[0].shape
    not_negative(i, op, [count])
    i.require(op, shape[-1], ">=", count, f"takes {count} of {shape[-1]}")
    return [i.value(x, (*shape[:-1], count)) for x in i.compiled(op, inputs, (1,) if op.type == "TopKV2" else ())]
