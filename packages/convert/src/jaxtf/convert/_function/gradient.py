"""Gradients of a converted function: TensorFlow asks, JAX differentiates.

In graphs the results come through an operation whose gradient runs the exported VJP,
made when first requested and wrapped in the same way, so that gradients of gradients exist. In
eager mode the same is recorded on the tapes that watch.
Integers and booleans have no gradient: TensorFlow's None on one side, JAX's `float0`, held as
bool, on the other.

A SavedModel holds the gradients of those ops that its functions contain when it is written, and of
no others: not of the ops in the gradients. What is to be differentiated more than once after
loading has all its VJPs traced beforehand, each as a concrete function that the graph of the
function holds without calling it; the saved gradients call those. The last one refuses to be differentiated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Never

import tensorflow as tf

from jaxtf.convert import _tf
from jaxtf.convert._errors import ConversionStateError, GradientNotSaved
from jaxtf.convert._function.checked_sizes import mismatch
from jaxtf.convert._function.constants import check_graph_holds
from jaxtf.convert._function.function import ExportedFunction
from jaxtf.convert._function.saved_gradients import refused_in_control_flow, takes_of_control_flow
from jaxtf.convert._function.vectorized import gradient_for_all

__all__ = ["GRADIENT_PREVENTED", "NOT_SAVED", "NO_VJP", "run_differentiable", "run_without_gradient"]

GRADIENT_PREVENTED = (
    "The jaxtf-converted function does not support gradients. Use `with_gradient` parameter to enable gradients"
)

NOT_SAVED = (
    "The SavedModel of the jaxtf-converted function holds no higher order of gradient. Save it with "
    "`jaxtf.convert.save_model(..., gradient_order=...)` one higher"
)

NO_VJP = (
    "The artifact of the jaxtf-converted function holds too few orders of VJP for this gradient. Write it with "
    "`serialize(vjp_order=...)` one higher"
)

_CALLED_BY_FUNCTION = (
    "  remedy: call it there through a tf.function, as `tf.function(convert(f), autograph=False)`, or save a function "
    "that takes the gradient"
)

# As TensorFlow's PreventGradient says it.
_REFUSAL = "Gradient explicitly disabled. Reason: {}"

# The operation that TensorFlow names when the gradient of a loaded function is requested.
_REFUSING_OPERATION = "no_gradient_because_of_with_gradient_False"


def run_differentiable(
    function: ExportedFunction, arguments: Sequence[tf.Tensor], orders: int | None = None
) -> list[tf.Tensor]:
    """Applies the function so that tapes, `tf.gradients` and SavedModels find its VJP.

    Args:
      function: What to apply.
      arguments: Its flat arguments, without constants.
      orders: How many orders of gradient a SavedModel is to hold, all made now. By default they are
        made on request, any number of them, and a SavedModel holds the first.
    """
    complete = [*arguments, *(constant.tensor() for constant in function.constants)]
    return _run(function, complete, orders, by_signature=orders is not None)


def _run(
    function: ExportedFunction, arguments: Sequence[tf.Tensor], orders: int | None, *, by_signature: bool = False
) -> list[tf.Tensor]:
    """The same, with the constants among the arguments."""
    is_eager = tf.executing_eagerly()
    if not is_eager:
        arguments = function.with_checked_sizes(_tf.in_current_graph(arguments), by_signature=by_signature)
    if not function.argument_dtypes or not function.exported.out_avals:
        return function(arguments)
    if orders is None and is_eager:
        return _run_recorded(function, arguments) if function.has_vjp() else _run_refusing(function, arguments, NO_VJP)
    if _tf.has_tangents(arguments):
        raise ConversionStateError(
            f"tf.autodiff.ForwardAccumulator watches an argument of '{function.exported.fun_name}' inside of a "
            "tf.function: TensorFlow cannot differentiate a converted function in forward mode in a graph\n"
            "  remedy: call it in eager mode there, or convert a function that computes the derivative with jax.jvp"
        )
    if orders == 0:
        return _prevent_gradient(function, arguments, NOT_SAVED)
    if not function.has_vjp():
        return _prevent_gradient(function, arguments, NO_VJP)
    run_vjp = _run_vjp if orders is None else _vjp_in_graph(function, orders - 1)
    is_in_control_flow = _tf.traces_control_flow()

    def gradient(
        results: Sequence[tf.Tensor], arguments: Sequence[tf.Tensor], *cotangents: tf.Tensor | None
    ) -> list[tf.Tensor | None]:
        return _pull_back(function, arguments, results, cotangents, run_vjp, was_in_control_flow=is_in_control_flow)

    return _tf.graph_results(function(arguments), arguments, gradient, gradient_for_all)


def _run_vjp(vjp: ExportedFunction, arguments: Sequence[tf.Tensor]) -> list[tf.Tensor]:
    """Applies a VJP so that it can be differentiated in turn, except after loading."""
    return _run(vjp, arguments, 0 if _tf.traces_saved_gradient() else None)


def _vjp_in_graph(function: ExportedFunction, orders: int) -> Callable[..., list[tf.Tensor]]:
    """Traces the VJP, with further orders, and puts it where a SavedModel of the current graph finds it."""
    try:
        vjp = function.vjp
    except Exception as error:
        raise GradientNotSaved(
            f"Error when tracing gradients for SavedModel: JAX cannot differentiate '{function.exported.fun_name}' in "
            f"reverse mode: {error}\n"
            "  remedy: save it with a lower gradient_order, 0 for no gradient at all"
        ) from error
    graph = tf.function(lambda *arguments: _run(vjp, arguments, orders), autograph=False)
    concrete = graph.get_concrete_function(*vjp.specifications())
    concrete.add_to_graph(tf.compat.v1.get_default_graph())
    return lambda _, arguments: list(concrete(*arguments))


def _run_recorded(function: ExportedFunction, arguments: Sequence[tf.Tensor]) -> list[tf.Tensor]:
    """Applies the function eagerly and gives the watching tapes its derivative."""
    results = (function if function.constants else function.run_eagerly)(arguments)
    if not _tf.any_tape_watches():
        return results
    # A copy: tapes keep it, whatever becomes of the list that the caller gets.
    kept = tuple(results)

    def gradient(*cotangents: tf.Tensor | None) -> Sequence[tf.Tensor | None]:
        # The fast path first: most gradients are of the first order, and of real numbers alone.
        if function.pulls_back_plainly and _tf.executing_eagerly() and not _tf.any_tape_watches():
            given = [tf.zeros_like(r) if c is None else _dense(c) for r, c in zip(kept, cotangents, strict=True)]
            _check_shapes(function, given, kept)
            return function.vjp.run_eagerly([*arguments, *given])
        return _pull_back(function, arguments, kept, cotangents, _run_vjp)

    _tf.record_gradient(results, arguments, gradient)
    return results


def _run_refusing(function: ExportedFunction, arguments: Sequence[tf.Tensor], message: str) -> list[tf.Tensor]:
    """Applies the function eagerly and marks it for the watching tapes as not differentiable."""

    results = function(arguments)
    if _tf.any_tape_watches():
        _tf.record_gradient(results, arguments, _refusing(message))
    return results


def run_without_gradient(
    function: ExportedFunction, arguments: Sequence[tf.Tensor], *, by_signature: bool = False
) -> list[tf.Tensor]:
    """Applies the function so that asking for its gradient is an error, also when reloaded.

    Args:
      function: What to apply.
      arguments: Its flat arguments, without constants.
      by_signature: Whether the graph is of a signature of a SavedModel.
    """
    complete = [*arguments, *(constant.tensor() for constant in function.constants)]
    if tf.executing_eagerly():
        return _run_refusing(function, complete, GRADIENT_PREVENTED)
    complete = list(function.with_checked_sizes(_tf.in_current_graph(complete), by_signature=by_signature))
    if function.is_regular:
        # Other consumers than TensorFlow do not know PreventGradient.
        refusing = _refusing(GRADIENT_PREVENTED)
        return _tf.refusing_results(function(complete), complete, refusing, _REFUSING_OPERATION)
    return _prevent_gradient(function, complete, GRADIENT_PREVENTED)


def _prevent_gradient(function: ExportedFunction, arguments: Sequence[tf.Tensor], message: str) -> list[tf.Tensor]:
    """Applies the function in a graph, of which a SavedModel holds the message."""
    prevented = [_tf.prevent_gradient(result, message) for result in function(arguments)]
    if function.is_regular:  # tapes did not see its operations
        _tf.record_gradient(prevented, arguments, _refusing(message))
    return prevented


def _refusing(message: str) -> Callable[..., Never]:
    """A gradient that says why there is none."""

    def refuse(*_: tf.Tensor | None) -> Never:
        raise LookupError(_REFUSAL.format(message))

    return refuse


def _pull_back(
    function: ExportedFunction,
    arguments: Sequence[tf.Tensor],
    results: Sequence[tf.Tensor],
    cotangents: Sequence[tf.Tensor | None],
    run_vjp: Callable[..., list[tf.Tensor]],
    *,
    was_in_control_flow: bool = False,
) -> list[tf.Tensor | None]:
    """The cotangents of the arguments and constants, None for those without."""
    if _tf.traces_saved_gradient():
        check_graph_holds(function.exported.fun_name, function.constants)
    if takes_of_control_flow(arguments):
        return refused_in_control_flow(f"'{function.exported.fun_name}'", _CALLED_BY_FUNCTION, cotangents, arguments)
    vjp, count = function.vjp, len(function.argument_dtypes)

    def cotangent_of(result: tf.Tensor, cotangent: tf.Tensor | None, has_gradient: bool) -> tf.Tensor:
        if not has_gradient:
            # Whatever TensorFlow passes for it (None, or zeros of some dtype), JAX expects float0.
            return tf.zeros_like(result, dtype=tf.bool)
        return tf.zeros_like(result) if cotangent is None else _conjugate(_dense(cotangent))

    given = list(map(cotangent_of, results, cotangents, function.result_has_gradient))
    if _tf.executing_eagerly():
        _check_shapes(function, given, results)
    known = dict(zip(function.constants, arguments[count:], strict=True))
    if was_in_control_flow and _tf.traces_saved_gradient():  # which loads no captures through a loop or a branch
        known = {}
    constants = [known[constant] if constant in known else constant.tensor() for constant in vjp.constants]
    with tf.name_scope("jaxtf_vjp"):
        pulled = run_vjp(vjp, [*arguments[:count], *given, *constants])
    cotangents_of_arguments = [
        _conjugate(cotangent) if has_gradient else None
        for cotangent, has_gradient in zip(pulled, function.argument_has_gradient, strict=True)
    ]
    return [*cotangents_of_arguments, *([None] * len(function.constants))]


def _check_shapes(function: ExportedFunction, cotangents: Sequence[tf.Tensor], results: Sequence[tf.Tensor]) -> None:
    """Refuses eager cotangents of other shapes than the results, which operations of graph mode would broadcast."""
    if not function.is_regular or _tf.eager_shapes(cotangents) == _tf.eager_shapes(results):
        return
    for name, cotangent, result in zip(function.exported.out_names, cotangents, results, strict=True):
        if cotangent.shape != result.shape:
            raise mismatch(function.exported, f"the cotangent of {name}", result.shape, cotangent.shape)


def _dense(cotangent: tf.Tensor | tf.IndexedSlices) -> tf.Tensor:
    """A cotangent as a tensor: that of a gather comes as rows with their indices."""
    return cotangent if isinstance(cotangent, tf.Tensor) else tf.convert_to_tensor(cotangent)


def _conjugate(cotangent: tf.Tensor) -> tf.Tensor:
    """A cotangent between the conventions of TensorFlow and JAX: of complex numbers, each is the other's conjugate."""
    return tf.math.conj(cotangent) if cotangent.dtype.is_complex else cotangent
