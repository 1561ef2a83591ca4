"""Products of matrices, and operations used with them in networks: biases, losses."""

from __future__ import annotations

from typing import Any

from jaxtf.calltf._interpreter import Interpreter
from jaxtf.calltf._operations.conditions import broadcast, indices_within, require_same
from jaxtf.calltf._operations.table import rule
from jaxtf.calltf._symbolic_values import Value, product


@rule("MatMul", "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3")
def matmul(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """Any sizes; those of the batch are broadcast."""
    names = ("transpose_a", "transpose_b") if op.type == "MatMul" else ("adj_x", "adj_y")
    (*x_batch, x0, x1), (*y_batch, y0, y1) = (value.shape for value in inputs)
    if op.get_attr(names[0]):
        x0, x1 = x1, x0
    if op.get_attr(names[1]):
        y0, y1 = y1, y0
    require_same(i, op, (x1,), (y0,))
    [tensor] = i.compiled(op, inputs)
    return [i.value(tensor, (*broadcast(i, op, [tuple(x_batch), tuple(y_batch)]), x0, y1))]


@rule("Einsum")
def einsum(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """Without ellipsis; each letter has one size."""
    equation = op.get_attr("equation").decode()
    if "." in equation:
        raise i.refused(op, f"has the equation {equation},")
    left, right = equation.replace(" ", "").split("->")
    sizes: dict[str, Any] = {}
    for letters, value in zip(left.split(","), inputs, strict=True):
        for letter, size in zip(letters, value.shape, strict=True):
            require_same(i, op, (sizes.setdefault(letter, size),), (size,))
    for letters in left.split(","):
        i.remember(product(sizes[letter] for letter in group) for group in (letters, set(letters) & set(right)))
        i.remember(product(sizes[letter] for letter in set(letters) - set(right)) for _ in (0,))
    [tensor] = i.compiled(op, inputs)
    return [i.value(tensor, [sizes[letter] for letter in right])]


@rule("BiasAdd")
def bias_add(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """The shape is that of the first operand."""
    axis = 1 if op.get_attr("data_format") == b"NCHW" else -1
    require_same(i, op, inputs[1].shape, (inputs[0].shape[axis],))
    [tensor] = i.compiled(op, inputs)
    return [i.value(tensor, inputs[0].shape)]


@rule("BiasAddGrad")
def bias_add_grad(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """A sum over all axes but one."""
    axis = 1 if op.get_attr("data_format") == b"NCHW" else -1
    [tensor] = i.compiled(op, inputs)
    return [i.value(tensor, (inputs[0].shape[axis],))]


@rule("SparseSoftmaxCrossEntropyWithLogits", "SoftmaxCrossEntropyWithLogits")
def cross_entropy(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """The loss of each row, and its gradient; labels that are constants require so many classes."""
    features, labels = (value.shape for value in inputs)
    require_same(i, op, features[: len(labels)], labels)
    if op.type.startswith("Sparse"):
        indices_within(i, op, inputs[1], features[1:])
    loss, gradient = i.compiled(op, inputs)
    return [i.value(loss, features[:1]), i.value(gradient, features)]


@rule("MatrixBandPart")
def band_part(i: Interpreter, op: Any, inputs: list[Value]) -> list[Value]:
    """The shape stays; diagonals whose number is known must be there."""
    for value, size in zip(inputs[1:], inputs[0].shape[-2:], strict=True):
        if value.known is not None:
            count = value.known.item()
            i.require(op, size, ">=", count, f"keeps {count} diagonals of {size}")
    [tensor] = i.compiled(op, inputs)
    return [i.value(tensor, inputs[0].shape)]
