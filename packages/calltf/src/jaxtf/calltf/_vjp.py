"""The vector-Jacobian product of a TensorFlow function, by its own gradient tape.

So gradients are TensorFlow's and custom gradients are respected. TensorFlow's gradient of a complex
function is the complex conjugate of JAX's, in each cotangent (JAX transposes, TensorFlow takes
the adjoint); both are conjugated on the way.

Knows `Function` and TensorFlow; nothing of primitives. Source: TensorFlow, "Advanced automatic
differentiation" (output_gradients, unconnected_gradients).
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any

import jax
import tensorflow as tf
from jax.core import ShapedArray

from jaxtf.calltf import _graph
from jaxtf.calltf._compared import if_like
from jaxtf.calltf._declared import shape_text
from jaxtf.calltf._errors import ResultError, UnsupportedError
from jaxtf.calltf._function import SIGNATURES_KEPT, Derived, Function, Results
from jaxtf.calltf._lost_derivatives import lost_derivatives
from jaxtf.calltf._observed import Observer
from jaxtf.calltf._tf import Tape, eager_shape, observed
from jaxtf.calltf._traced import Signature, Traced
from jaxtf.calltf._transfer import jax_dtype


class Seen:
    """A run of a function, seen by a tape and, if it is eager and of the user's Python, by an observer.

    Args:
      function: What is run while this is entered, once.
      watched: The arguments to be differentiated with respect to, by their indices.
      persistent: Whether gradients may be asked for more than once.

    Attributes:
      tape: Has the gradients.
      observer: Has what ran; None if nobody looked.
    """

    def __init__(self, function: Function, watched: Mapping[int, Any], persistent: bool = False):
        self.tape = Tape(list(watched.values()), persistent)
        is_followed = tf.executing_eagerly() and not _differentiated(function).is_graph
        self.observer = Observer(watched.items()) if is_followed else None
        self._entered = ExitStack()

    def __enter__(self) -> Seen:
        with ExitStack() as entered:
            entered.enter_context(self.tape)
            if self.observer is not None:
                entered.enter_context(observed(self.observer))
            self._entered = entered.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._entered.close()


class VectorJacobian(Derived):
    """(args, cotangents of some results) -> cotangents of some args.

    Args:
      function: The function to differentiate.
      arguments: Indices of the arguments to differentiate with respect to.
      results: Indices of the results that have cotangents.
    """

    def __init__(self, function: Function, arguments: tuple[int, ...], results: tuple[int, ...]):
        super().__init__(f"vjp_{function.name}", function)
        self._arguments = arguments
        self._results = results
        self._twice = isinstance(function, VectorJacobian)
        self._lost = functools.lru_cache(SIGNATURES_KEPT)(self._lost_derivatives)
        self._lost_within = functools.lru_cache(SIGNATURES_KEPT)(self._lost_in_function)

    def call(self, tensors: Sequence[Any]) -> Results:
        """Runs the function under a tape, and the tape backwards."""
        if tf.executing_eagerly():
            self._look_ahead(tensors)
        num_args = len(tensors) - len(self._results)
        args, cotangents = tensors[:num_args], tensors[num_args:]
        with Seen(self._function, {i: args[i] for i in self._arguments}) as seen:
            results = self._function.run(args).leaves
            self._check_results(results, cotangents)
        # Compiled for symbolic sizes, those of results are known.
        is_open = self.staging.by_name or all(cotangent.shape.is_fully_defined() for cotangent in cotangents)
        if is_open and not tf.executing_eagerly():
            of_each = zip(cotangents, self._results, strict=True)
            cotangents = [if_like(cotangent, results[index]) for cotangent, index in of_each]
        return Results(*jax.tree.flatten(self.pulled_back(seen, args, results, cotangents)))

    def pulled_back(
        self, seen: Seen, args: Sequence[Any], results: Sequence[Any], cotangents: Sequence[Any]
    ) -> list[Any]:
        """The cotangents of the arguments, by JAX's convention; one without a gradient has zero.

        Args:
          seen: The call.
          args: All of the call.
          results: All of the call.
          cotangents: Those of the results that have any.

        Raises:
          LookupError: TensorFlow does not define the gradient of an operation.
          ResultError: A custom gradient that is not like its argument.
          UnsupportedError: In eager mode, where tracing raises it.
        """
        sources = [args[i] for i in self._arguments]
        targets = [results[i] for i in self._results]
        if seen.observer is not None:
            self._refuse_what_ran(args, targets, seen.observer)
        try:
            gradients = seen.tape.gradients(targets, sources, [_conjugate(cotangent) for cotangent in cotangents])
        except LookupError as error:
            error.add_note(
                f"call_tf: {'forward mode or a second' if self._twice else 'a'} derivative of {_own_name(self)} needs "
                "the gradient of that operation, which TensorFlow does not define\n"
                "  remedy: use other ops" + (", or reverse mode once (jax.grad, jax.vjp)" if self._twice else "")
            )
            raise
        if tf.executing_eagerly():
            self._refuse_if_lost(args, [gradient is not None for gradient in gradients], seen.observer)
        return [
            tf.zeros_like(args[i]) if gradient is None else self._dense(gradient, args[i], i)
            for i, gradient in zip(self._arguments, gradients, strict=True)
        ]

    def _dense(self, gradient: Any, source: Any, index: int) -> Any:
        """A gradient as a cotangent: it may be sparse (tf.IndexedSlices, of a gather) or of a shape not inferred."""
        shape = eager_shape(gradient)
        if shape is None or shape != eager_shape(source):
            gradient = tf.convert_to_tensor(gradient)
            if not gradient.shape.is_compatible_with(source.shape):
                raise self._unlike(gradient, source, index)
            gradient = tf.ensure_shape(gradient, source.shape)
        if gradient.dtype != source.dtype:
            raise self._unlike(gradient, source, index)
        return _conjugate(gradient)

    def _unlike(self, gradient: Any, source: Any, index: int) -> ResultError:
        return ResultError(
            f"call_tf: the gradient of {_own_name(self)} with respect to its argument {index}, which is "
            f"{_type_text(source)}, is {_type_text(gradient)}\n"
            "  remedy: let the tf.custom_gradient in it return gradients of the shapes and dtypes of its arguments"
        )

    def _refuse_if_lost(self, args: Sequence[Any], has_gradients: Sequence[bool], observer: Observer | None) -> None:
        """Refuses in eager mode what tracing refuses: derivatives that TensorFlow takes for zero, or for others.

        What ran was observed, and asked. A trace, one for all runs of the same types of operations, is asked about
        arguments without any gradient, which may have gone through NumPy, and about all where nobody looked.

        Args:
          args: Those of the function.
          has_gradients: Of the arguments that it was differentiated with respect to, whether there was a gradient.
          observer: What looked when it ran, if it is the user's Python.
        """
        of_all = self._function.is_graph
        asked = tuple(i for i, found in zip(self._arguments, has_gradients, strict=True) if of_all or not found)
        if asked:
            types = frozenset() if observer is None else frozenset(observer.types)
            self._refuse(self._lost(_signature(args), asked, types) or ())

    def _refuse_what_ran(self, args: Sequence[Any], targets: Sequence[Any], observer: Observer) -> None:
        """The same of the user's Python, which may be in another state than when it was traced.

        Only where a function with a gradient of its own may be around what lost a derivative, it is traced, anew.
        """
        lost = observer.lost(self._arguments, targets)
        names = sorted({each.name for each in lost})
        if self._twice:
            self._refuse_linear(sorted(_graph.LINEAR_WITHOUT_GRADIENT.intersection(map(_type_of, names))))
            if "EagerPyFunc" in observer.types:
                self._refuse(self._lost_in_function(_signature([*args, *targets])))
        if lost and not self._is_forward(args):  # of which the first derivative, which ran within, was asked
            is_certain = any(each.is_certain for each in lost)
            self._refuse(names if is_certain else self._lost_in_new_trace(_signature(args), names))

    def _lost_in_new_trace(self, signature: Signature, names: list[str]) -> list[str]:
        """The operations by which derivatives are lost in what Python does now; `names` if that is something else."""
        try:
            graph = self._function.graph(signature)
        except Exception:  # not a function for tracing: nothing is known
            return names
        if set(map(_type_of, names)) - set(_graph.op_types(graph)):
            return names
        return lost_derivatives(graph, self._arguments, self._results)

    def _lost_derivatives(
        self, signature: Signature, arguments: tuple[int, ...], _: frozenset[str]
    ) -> list[str] | None:
        try:
            graph = self._function.graph(signature)
        except Exception:  # not a function for tracing: nothing is known
            return None
        return lost_derivatives(graph, arguments, self._results)

    def _refuse(self, lost: Sequence[str]) -> None:
        if lost:
            raise UnsupportedError(
                f"call_tf: a derivative of {_own_name(self)} needs that of {', '.join(lost)}, which TensorFlow does "
                "not define, and takes for zero, or has wrong\n"
                "  remedy: apply tf.stop_gradient to that operand, if zero is meant, or use other ops"
            )

    def _refuse_linear(self, types: Sequence[str]) -> None:
        if types:
            raise UnsupportedError(
                f"call_tf: forward mode or a second derivative of {_own_name(self)} needs "
                f"the gradient of {', '.join(types)}, which TensorFlow defines as zero\n"
                "  remedy: use reverse mode once (jax.grad, jax.vjp), or other ops (another method of tf.image.resize)"
            )

    def known_results(self, signature: Signature) -> Sequence[ShapedArray]:
        """Cotangents are like the arguments that they belong to."""
        return [ShapedArray(*signature[i]) for i in self._arguments]

    def _check_results(self, results: Sequence[Any], cotangents: Sequence[Any]) -> None:
        """Raises `ResultError` unless the function returned again what the cotangents are of."""
        for index, cotangent in zip(self._results, cotangents, strict=True):
            result = results[index] if index < len(results) else None
            if (
                result is None
                or result.dtype != cotangent.dtype
                or not result.shape.is_compatible_with(cotangent.shape)
            ):
                raise ResultError(
                    f"call_tf: {self._function} returned different results when called again for its derivative: "
                    f"result[{index}] was {_type_text(cotangent)}, and is "
                    f"{'missing' if result is None else _type_text(result)} now\n"
                    "  remedy: let the function return the same number of results, of the same shapes and dtypes, "
                    "whenever it is called with arguments of the same shapes and dtypes"
                )

    def _trace_signature(self, signature: Signature) -> Traced:
        traced = super()._trace_signature(signature)
        if self._twice:
            self._refuse_linear(_graph.linear_ops_without_gradient(traced.unreplaced))
        self._refuse_if_lost_in_trace(signature)
        if self._twice and _graph.has_functions_of_python(traced.concrete):
            self._refuse(self._lost_within(signature))
        return traced

    def _refuse_if_lost_in_trace(self, signature: Signature) -> None:
        args, function = signature[: len(signature) - len(self._results)], self._function
        if self._is_forward(args) and isinstance(function, VectorJacobian):
            function._refuse_if_lost_in_trace(args)
            return
        traced = function.trace([ShapedArray(*argument) for argument in args])
        self._refuse(lost_derivatives(traced.unreplaced, self._arguments, self._results))

    def _is_forward(self, args: Sequence[Any]) -> bool:
        """Whether what is differentiated is linear in the arguments that it is differentiated with respect to."""
        function = self._function
        if not isinstance(function, VectorJacobian):
            return False
        return all(index >= len(args) - len(function._results) for index in self._arguments)

    def _lost_in_function(self, signature: Signature) -> list[str]:
        """What first and second derivatives lose in the function that is not a derivative, whatever it returns."""
        derivative, again = self, set[int]()
        args = signature[: len(signature) - len(self._results)]
        while isinstance(derivative._function, VectorJacobian):
            again.update(derivative._arguments)
            derivative = derivative._function
            args = args[: len(args) - len(derivative._results)]
        try:
            graph = derivative._function.graph(args)
        except Exception:  # not a function for tracing: nothing is known
            return []
        twice = [index for index in again if index < len(args)]
        once = lost_derivatives(graph, derivative._arguments, derivative._results)
        return once + lost_derivatives(graph, twice, derivative._results, twice=True)

    def _look_ahead(self, tensors: Sequence[Any]) -> None:
        """Refuses in eager mode what tracing refuses of what is not observed, as far as it can be traced."""
        if self._twice and _differentiated(self).is_graph:
            signature = _signature(tensors)
            try:
                self.trace([ShapedArray(*argument) for argument in signature])
            except UnsupportedError:
                raise
            except Exception:  # not a function for tracing: nothing is known but what its graph shows
                self._refuse(self._lost_within(signature))


def _type_of(name: str) -> str:
    """The type of an operation that is named with its operand."""
    return name.partition(" ")[0]


def _own_name(derivative: Function) -> str:
    """The name of the function that a derivative is of, of whatever order."""
    return _differentiated(derivative).name


def _differentiated(function: Function) -> Function:
    """The function that a derivative is of, of whatever order; any other function itself."""
    return _differentiated(function._function) if isinstance(function, VectorJacobian) else function


def _signature(tensors: Sequence[Any]) -> Signature:
    return tuple((tuple(tensor.shape.as_list()), jax_dtype(tensor.dtype)) for tensor in tensors)


def _conjugate(tensor: Any) -> Any:
    return tf.math.conj(tensor) if tensor.dtype.is_complex else tensor


def _type_text(tensor: Any) -> str:
    return f"{tensor.dtype.name}{shape_text(tensor.shape)}"
