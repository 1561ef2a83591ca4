"""Eager calls that were seen before: from plain values to the op, with no further questions.

Most calls in eager mode repeat an earlier one: tensors of the same structure, shapes and dtypes
under the same configuration of JAX. For these the op is found by one lookup. A call of another
kind (variables, NumPy arrays, casts, graphs) takes the slow path, and is not remembered here.

A compiled function takes some 14 us, and each Python function before it almost 1 us, because the compiled code has
evicted it from the processor's caches: the code here is written to make few calls.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import jax
import tensorflow as tf

from jaxtf.convert import _tf
from jaxtf.convert._function.cache import Cache
from jaxtf.convert._function.function import ExportedFunction
from jaxtf.serialization.interop import tracing_configuration

__all__ = ["EagerCalls"]

# More different calls than this of one function are looked at again when they come back.
_CALLS_KEPT = 1024

_flatten = jax.tree_util.default_registry.flatten

# The structure of a value that is not a container; None and empty containers are single nodes too, and have no leaf.
_LEAF = jax.tree_util.tree_structure(0)


class EagerCalls:
    """The eager calls of one converted function that were seen before.

    Args:
      run: How to apply a function to flat tensors where a tape may watch.

    Attributes:
      get: From what a call is remembered by to a function from its flat arguments to its result; None if it was not
        seen before.
      clear: Forgets all calls, and with them the functions.
    """

    def __init__(self, run: Callable[[ExportedFunction, Sequence[tf.Tensor]], list[tf.Tensor]]) -> None:
        self._run = run
        self._seen: Cache[Hashable, Callable[[Sequence[tf.Tensor]], Any]] = Cache(_CALLS_KEPT)
        self.get = self._seen.peek
        self.clear = self._seen.clear

    def kind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Hashable, Sequence[tf.Tensor]] | None:
        """What such a call is remembered by, and its flat arguments; None where it is of another kind."""
        if not _tf.executing_eagerly():
            return None
        layout = None if kwargs else _tf.eager_layout(args)
        if layout is not None:
            return (None, tracing_configuration(), *layout), args
        flat, tree = _flatten((args, kwargs))
        layout = _tf.eager_layout(flat)
        return None if layout is None else ((tree, tracing_configuration(), *layout), flat)

    def put(self, key: Hashable, function: ExportedFunction) -> None:
        """Remembers the function for a call that needs no casts."""
        out_tree, run_eagerly, run = function.exported.out_tree, function.run_eagerly, self._run
        unflatten = _only if out_tree == _LEAF else out_tree.unflatten

        def call(flat: Sequence[tf.Tensor]) -> Any:
            return unflatten(run(function, flat) if _tf.any_tape_watches() else run_eagerly(flat))

        self._seen(key, lambda: call)


def _only(results: Sequence[tf.Tensor]) -> tf.Tensor:
    return results[0]
