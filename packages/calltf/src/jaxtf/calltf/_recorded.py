"""An eager call that TensorFlow's tape has seen, and what pulls back through it without running it again.

`jax.grad` calls a function for its value and asks for the derivative later. Run once, under a tape, the function draws
its random numbers once, has its side effects once, and reads its variables as they are then: the derivative is that of
the value that was returned. Where it is asked for otherwise (forward mode, in a batch, staged, of second order) the
function runs again, as `_vjp` says.

Knows `Function`, tapes and arrays; nothing of primitives.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax

from jaxtf.calltf._function import Function, Results
from jaxtf.calltf._jax import evaluating, outside_of_traces
from jaxtf.calltf._tf import outside_of_graphs
from jaxtf.calltf._transfer import is_same, jax_dtype, to_array, to_tensor
from jaxtf.calltf._vjp import Seen, VectorJacobian
from jaxtf.serialization.interop import is_differentiable

__all__ = ["Recorded", "recorded_call"]


class Recorded:
    """One call, and its pullback; equal only to itself.

    It is what is called, not a method of it: JAX's caches, which hold parameters of primitives, hold those that can be
    called weakly (JAX 0.10.2 and 0.12.0.1), so that the tape goes when nobody can pull back any more.

    Args:
      function: What was called.
      args: The arrays that it was made with.
      seen: What saw it.
      tensors: The same as tensors.
      results: What it returned.
    """

    def __init__(
        self, function: Function, args: Sequence[Any], seen: Seen, tensors: Sequence[Any], results: Sequence[Any]
    ):
        self._function = function
        self._args = args
        self._seen = seen
        self._tensors = tensors
        self._results = results

    def __repr__(self) -> str:
        return "<call>"

    def __call__(
        self, args: Sequence[Any], arguments: Sequence[int], results: Sequence[int], cotangents: Sequence[Any]
    ) -> list[jax.Array] | None:
        """The cotangents of some arguments; None unless all values are known and are those of this call.

        Args:
          args: The arguments, to be compared.
          arguments: Indices of those to differentiate with respect to.
          results: Indices of the results that have cotangents.
          cotangents: Theirs.
        """
        is_this_call = all(map(is_same, args, self._args))
        if not is_this_call or not evaluating() or any(isinstance(value, jax.core.Tracer) for value in cotangents):
            return None
        with outside_of_graphs(), outside_of_traces(), self._function.configuration.entered():
            derivative = self._function.derived(VectorJacobian, tuple(arguments), tuple(results))
            found = derivative.pulled_back(self._seen, self._tensors, self._results, list(map(to_tensor, cotangents)))
            return list(map(to_array, found))


def recorded_call(function: Function, args: Sequence[Any]) -> tuple[Results, Recorded]:
    """Runs a function eagerly on concrete arrays, seen by a tape; the results are JAX arrays."""
    with outside_of_graphs(), outside_of_traces():
        tensors = [to_tensor(arg) for arg in args]
        watched = {i: tensor for i, tensor in enumerate(tensors) if is_differentiable(jax_dtype(tensor.dtype))}
        with Seen(function, watched, persistent=True) as seen:
            results = function.run(tensors)
    arrays = [to_array(leaf) for leaf in results.leaves]
    return Results(arrays, results.tree), Recorded(function, args, seen, tensors, results.leaves)
