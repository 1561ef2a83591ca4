"""Sizes of arguments that are compared when a graph runs, whether or not a result is computed from the argument."""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf

from jaxtf.convert._graph._support import typed

__all__ = ["CHECK", "checked_before"]

CHECK = "EnsureShape"
"""The type of an operation that compares sizes, as `_tf.ensured` makes it."""


def checked_before(checks: Sequence[tf.Operation], results: Sequence[tf.Tensor]) -> list[tf.Tensor]:
    """The results of a function in a graph, which are there only if the sizes of its arguments were right.

    Args:
      checks: The operations that compare sizes.
      results: Perhaps none: then an operation with an effect, which TensorFlow always runs, comes after the checks.
    """
    if not checks:
        return list(results)
    with tf.control_dependencies(checks):
        if not results:
            tf.raw_ops.Assert(condition=typed(True, tf.bool), data=["sizes"])
        return [tf.identity(result) for result in results]
