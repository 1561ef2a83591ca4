"""Gradients of operations in loops and branches, of which a SavedModel holds none.

TensorFlow (2.21) makes the graph of a loop or a branch anew when it differentiates a loaded function, and what a saved
gradient takes of the graph that was loaded is not in that one. So what is saved is an error with a reason, which takes
nothing of it. Of a function that is called there the gradient is loaded.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from jaxtf.convert import _tf

__all__ = ["refused_in_control_flow", "takes_of_control_flow"]


def takes_of_control_flow(tensors: Sequence[tf.Tensor]) -> bool:
    """Whether what runs now becomes part of a saved gradient that would take a tensor of a loop or a branch."""
    return _tf.traces_saved_gradient() and any(map(_tf.is_in_control_flow, tensors))


def refused_in_control_flow(
    what: str, remedy: str, cotangents: Sequence[tf.Tensor | None], arguments: Sequence[tf.Tensor]
) -> list[tf.Tensor | None]:
    """Cotangents that are an error when they are computed, and when they are compiled.

    Args:
      what: What has no gradient.
      remedy: What to do.
      cotangents: Of its results, one at least.
      arguments: Of theirs the cotangents are to have the dtypes and, as far as they are known, the shapes.
    """
    message = f"a SavedModel has no gradient of {what} in a loop or a branch, for TensorFlow cannot load one\n{remedy}"
    return refused_when_computed(message, "a_SavedModel_has_no_gradient_in_a_loop_or_a_branch", cotangents, arguments)


def refused_when_computed(
    message: str, name: str, cotangents: Sequence[tf.Tensor | None], arguments: Sequence[tf.Tensor]
) -> list[tf.Tensor | None]:
    """As `refused_in_control_flow`, with this message, and the name of an operation where it is compiled."""
    given = next(cotangent for cotangent in cotangents if cotangent is not None)
    with tf.control_dependencies([tf.debugging.Assert(False, [message])]):
        # Compiled, there are no assertions; nor are there texts, which is an error with the name of the operation.
        text = tf.strings.as_string(tf.reduce_sum(_real(given)), name=name)
        number = tf.strings.to_number(text) * np.float32("nan")
        return [_like(argument, number) for argument in arguments]


def _real(tensor: tf.Tensor) -> tf.Tensor:
    return tf.cast(tf.math.real(tensor) if tensor.dtype.is_complex else tensor, tf.float32)


def _like(argument: tf.Tensor, number: tf.Tensor) -> tf.Tensor | None:
    if not (argument.dtype.is_floating or argument.dtype.is_complex):
        return None
    shape = argument.shape
    sizes = shape.as_list() if shape.rank is not None else []
    filled = tf.fill([size or 0 for size in sizes], tf.cast(number, argument.dtype))
    return filled if shape.is_fully_defined() else tf.compat.v1.placeholder_with_default(filled, shape)
