"""A TensorFlow function over a batch of some of its arguments: `jax.vmap` of a call.

`tf.vectorized_map` where it is known to give what a loop gives: the graph for one element holds no
stateful op (elements draw different random numbers) and no control flow (branches and loops
that depend on the element), every op that depends on it has a vectorization that is known to be right
(`_vectorizations`), and the result compiles. Anything else is a loop over the elements, in order, inside
of the TensorFlow program (`tf.map_fn`).

The VJP of a vectorized function is the vectorized VJP: TensorFlow's tape never sees what
`tf.vectorized_map` made of an op, which has lost its custom gradient.

Knows `Function`s and TensorFlow; nothing of primitives.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import tensorflow as tf
from jax.core import ShapedArray

from jaxtf.calltf import _graph
from jaxtf.calltf._function import Derived, Function, Results
from jaxtf.calltf._traced import Signature, Traced
from jaxtf.calltf._transfer import jax_dtype, tensorflow_dtype
from jaxtf.calltf._vectorizations import Vectorizable
from jaxtf.calltf._vjp import VectorJacobian


class Vectorized(Derived):
    """A function of arguments some of which have a leading batch axis, as its results have.

    Args:
      function: The function for one element.
      batched: For each argument, whether it has the batch axis; one at least has.
      summed: Indices of results that are summed over the batch: cotangents of arguments
        that all elements share.
    """

    is_compiled = True  # tracing decides how a batch is computed

    def __init__(self, function: Function, batched: tuple[bool, ...], summed: tuple[int, ...] = ()):
        assert any(batched), "a batch of nothing"
        super().__init__(f"vmap_{function.name}", function)
        self._batched = batched
        self._summed = frozenset(summed)

    def vjp(self, arguments: tuple[int, ...], results: tuple[int, ...]) -> Vectorized:
        """(args, cotangents of some results) -> cotangents of some args, vectorized."""
        cotangents = tuple(i not in self._summed for i in results)
        shared = tuple(k for k, i in enumerate(arguments) if not self._batched[i])
        return vjp(self._function, arguments, results).derived(Vectorized, self._batched + cotangents, shared)

    def call(self, tensors: Sequence[Any]) -> Results:
        """Calls the trace, in another trace."""
        traced = self.trace([ShapedArray(tuple(tensor.shape.as_list()), jax_dtype(tensor.dtype)) for tensor in tensors])
        return Results(list(traced.concrete(*tensors)), traced.tree)

    def _trace_signature(self, signature: Signature) -> Traced:
        element = self._function.trace(
            [
                ShapedArray(shape[1:] if batched else shape, dtype)
                for (shape, dtype), batched in zip(signature, self._batched, strict=True)
            ]
        )

        def vectorized(tensors: Sequence[Any]) -> Results:
            one, batches = self._for_elements(tensors, vectorizable)
            found = tf.vectorized_map(one, batches, fallback_to_while_loop=False, warn=False) if element.avals else []
            return self._results(found, element)

        def loop(tensors: Sequence[Any]) -> Results:
            one, batches = self._for_elements(tensors, lambda whole: list(element.concrete(*whole)))
            specs = [tf.TensorSpec(aval.shape, tensorflow_dtype(aval.dtype)) for aval in element.avals]
            found = tf.map_fn(
                # A number for each element, so that there is a loop if the function has no results.
                lambda values: [*one(values), tf.zeros(())],
                batches,
                fn_output_signature=[*specs, tf.TensorSpec((), tf.float32)],
                parallel_iterations=1,
            )
            return self._results(found[:-1], element)

        if element.stateful_ops or _graph.has_control_flow(element.concrete):
            return self._trace_run(loop, signature, element)
        vectorizable = Vectorizable(element.concrete, self._batched)
        if not vectorizable.unknown:
            try:
                with _without_reports():
                    traced = self._trace_run(vectorized, signature)
                    traced.hlo("CPU")
            except Exception:  # whatever TensorFlow says it cannot vectorize by; the loop says what is truly wrong
                pass
            else:
                return traced
        return self._trace_run(loop, signature, element)

    def _for_elements(
        self, tensors: Sequence[Any], function: Callable[[Sequence[Any]], list[Any]]
    ) -> tuple[Any, list[Any]]:
        """A function for one element, of the batched arguments alone, and the batches."""
        mapped = [i for i, batched in enumerate(self._batched) if batched]

        def one(values: Sequence[Any]) -> list[Any]:
            whole = list(tensors)
            for i, value in zip(mapped, values, strict=True):
                whole[i] = value
            return function(whole)

        return one, [tensors[i] for i in mapped]

    def _results(self, found: Sequence[Any], element: Traced) -> Results:
        leaves = []
        for i, (result, aval) in enumerate(zip(found, element.avals, strict=True)):
            batch = tf.ensure_shape(result, (None, *aval.shape))
            leaves.append(tf.reduce_sum(batch, axis=0) if i in self._summed else batch)
        return Results(leaves, element.tree)


class _OtherReports(logging.Filter):
    """Leaves out what TensorFlow's vectorization logs in the thread that makes it."""

    def __init__(self) -> None:
        super().__init__()
        self._thread = threading.get_ident()

    def filter(self, record: logging.LogRecord) -> bool:
        return record.thread != self._thread or record.filename != "pfor.py"


@contextmanager
def _without_reports() -> Iterator[None]:
    """A context in which TensorFlow does not report, in hundreds of lines, why it cannot vectorize something."""
    logger, others = tf.get_logger(), _OtherReports()
    logger.addFilter(others)
    try:
        yield
    finally:
        logger.removeFilter(others)


def vjp(function: Function, arguments: tuple[int, ...], results: tuple[int, ...]) -> Function:
    """The function (args, cotangents of some results) -> cotangents of some args.

    Args:
      function: The function to differentiate.
      arguments: Indices of the arguments to differentiate with respect to.
      results: Indices of the results that have cotangents.
    """
    if isinstance(function, Vectorized):
        return function.vjp(arguments, results)
    return function.derived(VectorJacobian, arguments, results)
