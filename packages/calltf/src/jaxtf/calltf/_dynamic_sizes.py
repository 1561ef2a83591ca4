"""Arrays whose sizes depend on values, in what TensorFlow compiles: computed rightly, or refused.

Of `tf.boolean_mask`, or a slice up to a computed index, XLA keeps an array of the largest size that the result may
have and, beside it, its actual one. That is lost in silence by some operations of TensorFlow (`tf.ones_like` makes as
many ones as there may be, `x[-1]` takes the last place of the array), by some of XLA (`tf.cumsum`), and where XLA
folds what is constant (`tf.logical_or(x, True)`; `tf.bitwise.bitwise_and(x, 0)` ends the process of JAX 0.10.2).
Programs of the operations here are right as far as `test_dynamic_sizes.py` draws them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any

from jaxtf.calltf._vectorizations import ELEMENTWISE
from jaxtf.calltf._walk import CALLS, Walk, constant_array, left_out

__all__ = ["unsafe_operations"]

_SAME_ELEMENTS = frozenset(("Cast", "Identity", "IdentityN", "LogicalNot", "StopGradient"))
_REDUCTIONS = frozenset(("All", "Any", "ArgMax", "ArgMin", "L2Loss", "Max", "Mean", "Min", "Prod", "Sum"))
_OF_SHAPES = frozenset(("Rank", "Shape", "Size"))
_MOVES = frozenset(
    ("BroadcastTo", "ExpandDims", "Fill", "GatherNd", "GatherV2", "Squeeze", "Tile", "Transpose", "Where")
)
_OF_ANY_DTYPE = _SAME_ELEMENTS | _REDUCTIONS | _OF_SHAPES | _MOVES | {"LogSoftmax", "Softmax"}
# Of two operands, the only ones whose result depends on one of unknown sizes whatever the other is.
_ARITHMETIC = frozenset(
    (
        *("Add", "AddV2", "Div", "Equal", "Greater", "GreaterEqual", "Less", "LessEqual", "Maximum", "Minimum", "Mul"),
        *("NotEqual", "Pow", "RealDiv", "Select", "SelectV2", "SquaredDifference", "Sub"),
    )
)
_BY_ROWS = frozenset(("SoftmaxCrossEntropyWithLogits", "SparseSoftmaxCrossEntropyWithLogits", "UnsortedSegmentSum"))
_OF_CONSTANT_SIZES = _OF_SHAPES | {"L2Loss", "Unique", "UnsortedSegmentSum"}


def unsafe_operations(concrete: Any) -> list[str]:
    """Types of the operations on arrays of sizes that TensorFlow does not know, but for those known to be right.

    Args:
      concrete: A trace. If its arguments are of constant sizes, those that TensorFlow does not know depend on values.
    """
    library = {function.signature.name for function in concrete.graph.as_graph_def().library.function}
    walk = Walk(concrete) if library else None
    found, met, waiting = set[str](), set[str](), [concrete.graph]
    while waiting:
        for op in _needed(waiting.pop()):
            if not _is_safe(op):
                found.add(op.type)
            names = (_functions(op) & library) - met
            met |= names
            waiting += [walk.body(name) for name in names] if walk is not None else []
    return sorted(found)


def _needed(graph: Any) -> list[Any]:
    skipped = set(left_out(graph))
    return [op for op in graph.get_operations() if op not in skipped]


def _functions(op: Any) -> set[str]:
    attributes = op.node_def.attr.values()
    called = {op.type} | {x.func.name for x in attributes}
    return called | {function.name for x in attributes for function in x.list.func}


def _is_safe(op: Any) -> bool:
    tensors = [*op.inputs, *op.outputs]
    if all(x.shape.is_fully_defined() for x in tensors) or op.type in CALLS:
        return True
    if any(x.shape.rank is None for x in tensors):
        return False
    if any(x.shape.is_fully_defined() for x in op.outputs) and not _makes_constant(op):
        return False  # by `set_shape`, or because it is the size of another operand
    if op.type in _CHECKED:
        return _CHECKED[op.type](op)
    if op.type in _BY_ROWS:
        rows = [x.shape.as_list()[0] if x.shape.rank else None for x in op.inputs[:2]]
        return rows == [None, None]
    return op.type in _OF_ANY_DTYPE or (op.type in ELEMENTWISE and _is_safe_elementwise(op))


def _makes_constant(op: Any) -> bool:
    """Whether results are of constant sizes whatever those of the operands are."""
    if op.type in _REDUCTIONS and len(op.inputs) == 2:
        sizes, axes = op.inputs[0].shape.as_list(), _known_numbers(op.inputs[1]) or []
        return None not in {size for i, size in enumerate(sizes) if i not in axes and i - len(sizes) not in axes}
    if op.type in ("GatherNd", "GatherV2"):
        return bool(op.inputs[1].shape.is_fully_defined())
    if op.type == "MatMul":
        left, right = (x.shape.as_list() for x in op.inputs)
        return None not in (left[op.get_attr("transpose_a")], right[not op.get_attr("transpose_b")])
    return op.type in _OF_CONSTANT_SIZES or all(x.shape.is_fully_defined() for x in op.inputs)


def _is_safe_elementwise(op: Any) -> bool:
    """Whether sizes that are not known meet none but 1 and such, and what may be folded is not of such sizes."""
    shapes = [x.shape.as_list() for x in op.inputs]
    for sizes in zip_longest(*(shape[::-1] for shape in shapes), fillvalue=1):
        if None in sizes and any(size not in (None, 1) for size in sizes):
            return False
    is_alike = all(None in shape for shape in shapes)
    if op.type in ("LogicalAnd", "LogicalOr"):
        return is_alike
    if not (is_alike or op.type in _ARITHMETIC):
        return False  # `tf.math.divide_no_nan(x, 0.0)` is folded
    operands = op.inputs
    if op.type in ("Select", "SelectV2"):
        operands = op.inputs[1:]
        if all(None not in shape for shape in shapes[1:]):
            return False
    return all(x.dtype.is_floating or x.dtype.is_complex for x in operands)


def _is_safe_product(op: Any) -> bool:
    """Whether sizes that meet are both known, or both not."""
    left, right = (x.shape for x in op.inputs)
    return (left[not op.get_attr("transpose_a")] is None) == (right[op.get_attr("transpose_b")] is None)


def _is_safe_reshape(op: Any) -> bool:
    """Whether a size that is not known stays what it is."""
    before, after = (x.shape.as_list() for x in (op.inputs[0], op.outputs[0]))
    known = [math.prod(size for size in shape if size is not None) for shape in (before, after)]
    return bool(before.count(None) == after.count(None) and known[0] == known[1])


def _is_safe_slice(op: Any) -> bool:
    """Whether all is of constant sizes that it slices, or it takes whole what is not; no steps, nothing backwards."""
    operand, steps = op.inputs[0].shape, _known_numbers(op.inputs[3])
    if steps is None:
        return False
    if operand.is_fully_defined():
        return all(step == 1 for step in steps)
    return all(is_whole or size is not None for size, is_whole in _sliced(op, steps))


def _known_numbers(tensor: Any) -> list[int] | None:
    """The numbers of a vector, or of one number, if they are constants."""
    if tensor.op.type == "Pack":
        each = [_known_numbers(x) for x in tensor.op.inputs]
        return [number for numbers in each if numbers for number in numbers] if None not in each else None
    return [int(number) for number in constant_array(tensor.op).flat] if tensor.op.type == "Const" else None


def _sliced(op: Any, steps: Sequence[int]) -> Iterator[tuple[int | None, bool]]:
    """Of each dimension that a StridedSlice slices: its size, and whether it is taken whole."""
    sizes = op.inputs[0].shape.as_list()
    bits = {name: op.get_attr(f"{name}_mask") for name in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")}
    masks = [{name: bool(mask >> i & 1) for name, mask in bits.items()} for i in range(len(steps))]
    for i, (mask, step) in enumerate(zip(masks, steps, strict=True)):
        if mask["ellipsis"]:
            after = sum(not other["new_axis"] for other in masks[i + 1 :])
            sizes = sizes[len(sizes) - after :]
        elif not mask["new_axis"]:
            yield sizes.pop(0), mask["begin"] and mask["end"] and step == 1 and not mask["shrink_axis"]


_CHECKED: Mapping[str, Callable[[Any], bool]] = {
    "MatMul": _is_safe_product,
    "Reshape": _is_safe_reshape,
    "StridedSlice": _is_safe_slice,
    "Unique": lambda op: bool(op.inputs[0].shape.is_fully_defined()),
}
