"""What TensorFlow's graph optimizer, Grappler, may know of a tensor: that all its elements are one number, or products.

It looks through functions, which it puts where they are called, and so do those who ask here as they emit operations.
"""

from __future__ import annotations

import math

import tensorflow as tf

from jaxtf.convert._graph.known import known_value
from jaxtf.convert._tf import is_left_by_grappler, traces_compiled

__all__ = [
    "MOST_ELEMENTS_LOOKED_AT",
    "computed_before_xla",
    "computed_by_xla",
    "is_part_of",
    "maker_of",
    "may_be_constant",
    "may_be_one_of_several",
    "may_be_product",
    "may_be_result",
    "uniform_of",
]

_LEFT_OUT = frozenset(("Identity", "IdentityN", "StopGradient", "Reshape", "Squeeze", "ExpandDims", "BroadcastTo"))
# Left out if there are two, or, of a reversal, if it is of dimensions of size 1.
_SOMETIMES_LEFT_OUT = frozenset(("Neg", "Conj", "Bitcast", "Transpose", "ReverseV2"))
# Left out if all elements stay, as of a sum over dimensions of size 1.
_LEFT_OUT_IF_ALL_STAY = frozenset(
    (
        *("Sum", "Mean", "Prod", "Max", "Min", "Slice", "StridedSlice"),
        *("Pad", "PadV2", "MirrorPad", "Tile", "Pack", "ConcatV2"),
    )
)
# An operation from which more than these are reached counts as one of constants.
_MOST_LOOKED_AT = 32
# Looked at to find that an operation is one of constants.
_MOST_OF_CONSTANTS = 1024
# They give sizes, which are known when a function is compiled.
_OF_SIZES = frozenset(("Rank", "Shape", "ShapeN", "Size"))
# More elements of a constant are not looked at.
MOST_ELEMENTS_LOOKED_AT = 4096
# The second operand with which the first is the result.
_NEUTRAL = {"Mul": 1, "RealDiv": 1, "Div": 1, "Pow": 1, "Add": 0, "AddV2": 0, "Sub": 0}
_COMMUTATIVE = frozenset(("Mul", "Add", "AddV2"))
_CHOICES = frozenset(("Select", "SelectV2"))
# What gives results of a function, and what a function takes.
_OF_FUNCTIONS = frozenset(
    (
        *("Placeholder", "PartitionedCall", "StatefulPartitionedCall"),
        *("If", "StatelessIf", "Case", "StatelessCase"),
    )
)
_MAY_BE_PRODUCTS = frozenset(("Mul", "RealDiv", "Div")) | _OF_FUNCTIONS


def uniform_of(tensor: tf.Tensor) -> complex | None:
    """The number that all elements of a tensor of a graph are, with its sign, where that is a constant; else None."""
    while not tf.executing_eagerly():
        operation = tensor.op
        if operation.type == "Fill":
            tensor = operation.inputs[1]
        elif _is_left_out(operation):
            tensor = operation.inputs[tensor.value_index]
        elif operation.type == "Const" and tensor.shape.num_elements() == 1:
            known = known_value(tensor)
            return None if known is None else complex(known.item())
        else:
            return None
    return None


def maker_of(tensor: tf.Tensor, *, or_type: str = "") -> tf.Operation | None:
    """The operation that makes a tensor of a graph, but for those that Grappler leaves out; None in eager mode.

    It leaves out two negations or transposes, makes `x - y` of `x + (-y)`, and leaves out what gives one of its
    operands as it is, by a constant or by its sizes, which may be known later: `x * 1`, `x + 0`, a mean of one. Those
    of `or_type` count.
    """
    while tf.is_symbolic_tensor(tensor):
        operation = tensor.op
        if operation.type == or_type:
            return operation
        if operation.type in _LEFT_OUT_IF_ALL_STAY and _may_keep_all(operation):
            tensor = operation.inputs[0]
            continue
        if _is_left_out(operation) or operation.type in _SOMETIMES_LEFT_OUT:
            tensor = operation.inputs[tensor.value_index]
            continue
        same = _same_operand(operation)
        if same is None:
            return operation
        tensor = same
    return None


def _may_keep_all(operation: tf.Operation) -> bool:
    """Whether as many elements may come out as go in."""
    if operation.type in ("Pack", "ConcatV2"):
        return len(list(operation.inputs)) == (2 if operation.type == "ConcatV2" else 1)
    before, after = operation.inputs[0].shape, operation.outputs[0].shape
    if before.rank is None or after.rank is None:
        return True
    (unknown_before, count_before), (unknown_after, count_after) = map(_counted, (before, after))
    return unknown_before != unknown_after or count_before == count_after


def _counted(shape: tf.TensorShape) -> tuple[int, int]:
    """How many sizes are not known, and the product of the others."""
    return list(shape).count(None), math.prod(size for size in shape if size is not None)


def _is_left_out(operation: tf.Operation) -> bool:
    return operation.type in _LEFT_OUT and not (operation.type == "Identity" and is_left_by_grappler(operation))


def _same_operand(operation: tf.Operation) -> tf.Tensor | None:
    """The operand that is the result of an operation because of another one, a constant; None if none is."""
    operands = list(operation.inputs)
    if operation.type in _CHOICES:
        chosen = _uniform_value(operands[0])
        return None if chosen is None else operands[1 if chosen else 2]
    neutral = _NEUTRAL.get(operation.type)
    if neutral is None:
        return None
    orders = (operands, operands[::-1]) if operation.type in _COMMUTATIVE else (operands,)
    return next((x for x, other in orders if _uniform_value(other) == neutral), None)


def _uniform_value(tensor: tf.Tensor) -> complex | None:
    """The number that all elements of a tensor of a graph are, where that is known; of constants of some elements."""
    number = uniform_of(tensor)
    if number is not None or (tensor.shape.num_elements() or 0) > MOST_ELEMENTS_LOOKED_AT:
        return number
    known = known_value(tensor)
    return complex(known.flat[0]) if known is not None and known.size and (known == known.flat[0]).all() else None


def may_be_constant(tensor: tf.Tensor) -> bool:
    """Whether a tensor of a graph may be found to depend on constants alone."""
    if tf.executing_eagerly():
        return False
    found = _is_constant(tensor, _MOST_LOOKED_AT)
    return found is None or found


def computed_by_xla(*tensors: tf.Tensor) -> bool:
    """Whether XLA's operations, not TensorFlow's kernels, compute from tensors what is emitted now.

    They do what is compiled, but what depends on constants and sizes alone: that TensorFlow computes before. Not seen
    is what is known to be a constant only when a function of the caller's is put where it is called.
    """
    return traces_compiled() and not all(map(_is_of_constants, tensors))


def computed_before_xla(tensor: tf.Tensor) -> bool:
    """Whether what is emitted now is compiled, and a tensor depends on constants and sizes alone."""
    return traces_compiled() and _is_of_constants(tensor)


def _is_of_constants(tensor: tf.Tensor) -> bool:
    return bool(_is_constant(tensor, _MOST_OF_CONSTANTS, _OF_SIZES))


def _is_constant(tensor: tf.Tensor, most: int, also: frozenset[str] = frozenset()) -> bool | None:
    """Whether a tensor of a graph depends on constants alone, or on operations of types that are `also` taken for such.

    None if more operations than `most` are reached. With `also` it is asked what is computed before XLA compiles: that
    looks through what is hidden from Grappler.
    """
    left, seen = [tensor], set[tf.Operation]()
    while left:
        operation = left.pop().op
        if operation in seen or operation.type in also:
            continue
        outer = _captured(operation) if also and operation.type == "Placeholder" else None
        is_hidden = not also and operation.type == "Identity" and is_left_by_grappler(operation)
        if outer is None and (is_hidden or (not operation.inputs and operation.type not in ("Const", "NoOp"))):
            return False
        if len(seen) == most:
            return None
        seen.add(operation)
        left += operation.inputs if outer is None else [outer]
    return True


def _captured(argument: tf.Operation) -> tf.Tensor | None:
    """The tensor of the graph around that a loop or a branch has for an argument."""
    for outer, inner in getattr(argument.graph, "captures", ()):
        if inner.op is argument and tf.is_symbolic_tensor(outer):
            return outer
    return None


def may_be_product(tensor: tf.Tensor) -> bool:
    """Whether a tensor of a graph may be found to be a product with a constant.

    Quotients and sums of equal terms are; what a function gives, or takes, is not looked into, and may be.
    """
    maker = maker_of(tensor)
    return maker is not None and (maker.type in _MAY_BE_PRODUCTS or _is_sum_of_equals(maker))


def may_be_result(tensor: tf.Tensor) -> bool:
    """Whether a tensor of a graph is what a function gives or takes, of which the maker is found later."""
    maker = maker_of(tensor)
    return maker is not None and maker.type in _OF_FUNCTIONS


def may_be_one_of_several(tensor: tf.Tensor) -> bool:
    """Whether a tensor of a graph may be found to be one of several results of an operation."""
    maker = maker_of(tensor)
    return maker is not None and (len(maker.outputs) > 1 or may_be_result(tensor))


def is_part_of(tensor: tf.Tensor, whole: tf.Tensor) -> bool:
    """Whether a tensor of a graph is the product of another with one constant that is in (0, 1]."""
    maker = maker_of(tensor)
    if maker is None or maker.type != "Mul":
        return False
    return any(given is whole and _is_at_most_one(factor) for given, factor in (maker.inputs, list(maker.inputs)[::-1]))


def _is_at_most_one(factor: tf.Tensor) -> bool:
    known = known_value(factor)
    return known is not None and bool(known.size) and bool(((known > 0) & (known <= 1)).all())


def _is_sum_of_equals(operation: tf.Operation) -> bool:
    """Whether an operation may add a tensor, or another that an optimizer finds to be the same, to itself."""
    if operation.type not in ("Add", "AddV2", "AddN", "Sub"):
        return False
    first, *others = operation.inputs
    if operation.type == "Sub":
        return bool(others[0].op.type == "Neg")
    return any(other is first or (other.op.type == first.op.type != "Placeholder") for other in others)
