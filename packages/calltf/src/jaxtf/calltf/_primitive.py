"""The primitives of a call, and the decision between running it now and staging it.

    call_tf            the results of a traced function
    call_tf_evaluated  results that were computed eagerly, tied to the arguments they came from, and their values
    call_tf_compiled   results of a traced function for its arguments and the values of its captures, to be executed
    call_tf_linear     the derivative of a function at its arguments, applied to tangents

What is staged has the values that variables had when it was traced (`captures`); its derivatives have the same.

`invoke` calls a `Function`. Where JAX evaluates and every argument has a value, TensorFlow
runs eagerly, once; if some argument is being differentiated, the finished results are bound
to it by `call_tf_evaluated`, so that neither Python side effects nor value-dependent shapes
are lost to `jax.grad`. Anywhere else the function is traced and staged as `call_tf`.

Here are the primitives, their abstract evaluation and what they do when executed;
lowering, differentiation and batching are rules registered by `_lowering`, `_gradient` and
`_batching`. `call_tf_evaluated` needs no batching rule: what is batched has no one value.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import jax
from jax.core import ShapedArray
from jax.extend.core import Primitive

from jaxtf.calltf import _graph
from jaxtf.calltf._captures import Captures, warn_of_captures
from jaxtf.calltf._effects import CALL_TF_EFFECT, CALL_TF_ORDERED_EFFECT
from jaxtf.calltf._errors import LIMITATIONS, VariableWriteError
from jaxtf.calltf._function import Function, Results, UserFunction
from jaxtf.calltf._jax import concrete_value, evaluating, outside_of_traces
from jaxtf.calltf._recorded import recorded_call
from jaxtf.calltf._tf import outside_of_graphs
from jaxtf.calltf._traced import Traced
from jaxtf.calltf._transfer import lasting, to_array, to_tensor
from jaxtf.serialization.interop import vary_alike, varying_like

call_tf_p = Primitive("call_tf")
call_tf_evaluated_p = Primitive("call_tf_evaluated")
call_tf_compiled_p = Primitive("call_tf_compiled")
call_tf_linear_p = Primitive("call_tf_linear")
for _primitive in (call_tf_p, call_tf_evaluated_p, call_tf_compiled_p, call_tf_linear_p):
    _primitive.multiple_results = True


def invoke(function: Function, args: Sequence[Any], captures: Captures | None = None) -> Results:
    """Calls a function with flat arrays or tracers, now or as part of the program being staged.

    Args:
      function: The function.
      args: Its arguments.
      captures: The values of variables in the program that it is a derivative for; None for those that they have now.

    Raises:
      DynamicShapeError, VariableWriteError, UnsupportedError: Staged, and not possible there.
      Whatever the TensorFlow function raises.
    """
    if captures is None and evaluating():
        if not any(isinstance(arg, jax.core.Tracer) for arg in args):
            return evaluate(function, args)
        values = [concrete_value(arg) for arg in args]
        if all(value is not None for value in values):
            values = [lasting(value) for value in values]
            # Functions that are derivatives or batches have derivatives of their own, not those of a tape.
            is_users = isinstance(function, UserFunction)
            evaluated, recorded = recorded_call(function, values) if is_users else (evaluate(function, values), None)
            tied = call_tf_evaluated_p.bind(
                *args,
                function=function,
                values=tuple(values),
                results=tuple(evaluated.leaves),
                recorded=recorded,
            )
            return Results(tied, evaluated.tree)
    args = vary_alike([lasting(arg) for arg in args])
    traced = function.trace([jax.typeof(arg) for arg in args])
    refuse_variable_writes(traced)
    return Results(call_tf_p.bind(*args, traced=traced, captures=_values_of(traced, captures)), traced.tree)


def _values_of(traced: Traced, captures: Captures | None) -> Captures | None:
    """The values of what a trace captures, in the program; None if it captures nothing, or is called by name."""
    if captures is None and traced.captured and not traced.function.staging.by_name:
        captures = Captures(are_constants=not evaluating())
    if captures is not None:
        captures(traced.captured)
    return captures


def evaluate(function: Function, values: Sequence[Any]) -> Results:
    """Runs a function eagerly on concrete arrays; the results are JAX arrays."""
    # What TensorFlow runs on values may convert functions of JAX.
    with outside_of_graphs(), outside_of_traces(), function.configuration.entered():
        if function.is_compiled:
            traced = function.trace(values)
            return Results(executed(traced, values, None), traced.tree)
        results = function.run([to_tensor(value) for value in values])
        return Results([to_array(leaf) for leaf in results.leaves], results.tree)


def refuse_variable_writes(traced: Traced) -> None:
    """Raises `VariableWriteError` if a staged call would write to a `tf.Variable`."""
    writes = _graph.variable_writes(traced.stateful_ops)
    if writes:
        raise VariableWriteError(
            f"call_tf: {traced.function} modifies a tf.Variable (by {', '.join(writes)}), which is not possible in a "
            "JAX staging context (jax.jit, lax.scan, ...) or under jax.vmap\n"
            "  remedy: pass the variable's value as an argument and return its new value as a result, or call "
            f"the function outside of staged contexts; see {LIMITATIONS}"
        )


def executed(traced: Traced, values: Sequence[Any], captures: Captures | None) -> list[Any]:
    """The results of a trace for concrete arrays: TensorFlow compiles it to HLO, and JAX that to a program.

    Not TensorFlow, whose XLA drops NaN in maxima and minima, and has casts of integers of 4 bits wrong (2.21). What
    stays a call by name is not compiled, so that TensorFlow runs it.

    Raises:
      VariableWriteError: It writes to a variable.
      CompilationError: TensorFlow cannot compile it.
    """
    refuse_variable_writes(traced)
    if traced.function.staging.by_name:
        with outside_of_graphs():
            return [to_array(result) for result in traced(list(map(to_tensor, values)))]
    captured = traced.captured_values(captures)
    # Captured values are arguments here, of the dtypes that they have.
    with jax.disable_jit(False), jax.enable_x64(True) if captured else nullcontext():
        found: list[Any] = _program(traced)(*_together(values), *captured)
    return found


class _Reference(weakref.ref[Traced]):
    """A weak reference to which there may be others: JAX's caches hold weakly what can be called."""


def _program(traced: Traced) -> Any:
    """What JAX makes of a trace; made once. JAX's caches hold it, so that it must not hold the trace that holds it."""
    if not traced.programs:
        reference = _Reference(traced)
        traced.programs.append(jax.jit(lambda *operands: call_tf_compiled_p.bind(*operands, reference=reference)))
    return traced.programs[0]


def _together(values: Sequence[Any]) -> Sequence[Any]:
    """The arrays; if they are on several devices, all on one, as tensors are."""
    places = {value.sharding for value in values if isinstance(value, jax.Array)}
    if len(places) <= 1 and all(len(place.device_set) == 1 for place in places):
        return values
    together: list[Any] = jax.device_put(list(values), jax.numpy.zeros(()).sharding)
    return together


def _call_impl(*args: Any, traced: Traced, captures: Captures | None) -> list[Any]:
    """Evaluates a staged call op by op (jax.core.eval_jaxpr)."""
    if captures is not None and captures.are_constants:
        warn_of_captures(traced.function.name, traced.captured)
    with outside_of_traces(), traced.function.configuration.entered():
        return executed(traced, args, captures)


def _call_abstract(*args: Any, traced: Traced, captures: Captures | None) -> tuple[tuple[ShapedArray, ...], set[Any]]:
    results = varying_like(traced.avals, args)
    if traced.function.staging.ordered:
        return results, {CALL_TF_ORDERED_EFFECT}
    return results, {CALL_TF_EFFECT} if traced.has_effect else set()


def _compiled_impl(*operands: Any, reference: _Reference) -> list[Any]:
    """What JAX runs by itself where it looks for NaN or infinities and has found some in the program.

    Raises:
      FloatingPointError: They are in a result.
    """
    kinds = [("nan", jax.config.jax_debug_nans, jax.numpy.isnan), ("inf", jax.config.jax_debug_infs, jax.numpy.isinf)]
    with jax.debug_nans(False), jax.debug_infs(False):
        results: list[Any] = jax.jit(lambda *xs: call_tf_compiled_p.bind(*xs, reference=reference))(*operands)
        for i, result in enumerate(results):
            for kind, is_asked, is_kind in kinds:
                if is_asked and jax.numpy.issubdtype(result.dtype, jax.numpy.inexact) and is_kind(result).any():
                    raise FloatingPointError(
                        f"invalid value ({kind}) encountered in call_tf of {reference()}: in result[{i}]\n"
                        f"  remedy: mend it in that function, or jax.config.update('jax_debug_{kind}s', False)"
                    )
    return results


def _evaluated_impl(*_: Any, results: tuple[jax.Array, ...], **__: Any) -> list[jax.Array]:
    return list(results)


def _evaluated_abstract(*_: Any, results: tuple[jax.Array, ...], **__: Any) -> list[ShapedArray]:
    return [ShapedArray(result.shape, result.dtype) for result in results]


call_tf_p.def_impl(_call_impl)
call_tf_p.def_effectful_abstract_eval(_call_abstract)
call_tf_compiled_p.def_impl(_compiled_impl)
call_tf_compiled_p.def_abstract_eval(lambda *_, reference: reference().avals)
call_tf_evaluated_p.def_impl(_evaluated_impl)
call_tf_evaluated_p.def_abstract_eval(_evaluated_abstract)
