"""Eager calls that were seen before: from plain values to the function, with no further questions.

Most calls in eager mode repeat an earlier one: tensors of the same structure, shapes and dtypes
under the same configuration of JAX. For these the way to the op is one lookup. A call of another
kind (variables, NumPy arrays, casts, graphs) goes the long way, and is not remembered here.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import tensorflow as tf

from jaxtf.convert import _jax, _tf
from jaxtf.convert._function import ExportedFunction
from jaxtf.convert._signature import Signatures

__all__ = ["EagerCalls"]

# More different calls than this of one function are looked at again when they come back.
_CALLS_KEPT = 1024


class EagerCalls:
    """The functions for eager calls of one converted function.

    Args:
      signatures: Which sizes the polymorphic shapes leave open.
    """

    def __init__(self, signatures: Signatures) -> None:
        self._signatures = signatures
        self._functions: dict[Hashable, ExportedFunction] = {}

    def key(self, tree: Any, values: Sequence[Any]) -> Hashable | None:
        """What such a call is remembered by; None where it is of another kind."""
        if not tf.executing_eagerly():
            return None
        layout = _tf.eager_layout(values)
        if layout is None:
            return None
        if self._signatures.polymorphic_shapes is not None:
            open_sizes = self._signatures.known_open_sizes(tree, [shape for shape, _ in layout])
            if open_sizes is None:
                return None
            masked = [
                (tuple(None if is_open else size for size, is_open in zip(shape, are_open, strict=True)), dtype)
                for (shape, dtype), are_open in zip(layout, open_sizes, strict=True)
            ]
            return (tree, _jax.tracing_configuration(), *masked)
        return (tree, _jax.tracing_configuration(), *layout)

    def get(self, key: Hashable) -> ExportedFunction | None:
        """The function for a call, if it was seen before."""
        return self._functions.get(key)

    def put(self, key: Hashable, function: ExportedFunction) -> None:
        """Remembers the function for a call that needs no casts."""
        if len(self._functions) >= _CALLS_KEPT:
            self._functions = {}
        self._functions[key] = function
