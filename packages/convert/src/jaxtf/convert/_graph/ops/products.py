"""Tensors that TensorFlow's graph optimizer may find to be products with a constant."""

from __future__ import annotations

import tensorflow as tf

__all__ = ["may_be_product"]

_LEFT_OUT = frozenset(("Identity", "IdentityN", "StopGradient", "Reshape", "Squeeze", "ExpandDims", "BroadcastTo"))
_CALLS = frozenset(("PartitionedCall", "StatefulPartitionedCall"))


def may_be_product(tensor: tf.Tensor) -> bool:
    """Whether a tensor of a graph may be found to be a product with a constant that is not in (0, 1].

    Quotients and sums of equal terms are; what a function gives is not looked into, and may be.
    """
    while not tf.executing_eagerly():
        operation, inputs = tensor.op, list(tensor.op.inputs)
        if operation.type in _LEFT_OUT:
            tensor = inputs[tensor.value_index]
        elif operation.type in ("Mul", "RealDiv", "Div"):
            others = [given for given in inputs if not _is_at_most_one(given, operation.type == "Mul")]
            if len(others) != 1 or (others[0] is inputs[1] and operation.type != "Mul"):
                return True
            (tensor,) = others
        else:
            return operation.type in _CALLS or _is_sum_of_equals(operation)
    return False


def _is_at_most_one(factor: tf.Tensor, multiplies: bool) -> bool:
    """Whether a factor, or a divisor, is a constant by which something becomes smaller, or stays."""
    known = tf.get_static_value(factor)
    if known is None or not known.size:
        return False
    return bool(((known > 0) & (known <= 1)).all() if multiplies else (known >= 1).all())


def _is_sum_of_equals(operation: tf.Operation) -> bool:
    """Whether an operation may add a tensor, or another that an optimizer finds to be the same, to itself."""
    if operation.type not in ("Add", "AddV2", "AddN", "Sub"):
        return False
    first, *others = operation.inputs
    if operation.type == "Sub":
        return bool(others[0].op.type == "Neg")
    return any(other is first or (other.op.type == first.op.type != "Placeholder") for other in others)
