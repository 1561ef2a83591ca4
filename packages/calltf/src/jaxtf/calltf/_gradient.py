"""Derivatives: a call's tangents are a linear call, whose transpose runs TensorFlow's gradient.

    results          = call_tf(args)
    result tangents  = call_tf_linear(args, tangents of some args)     J(args) @ tangents
    cotangents       = transpose of call_tf_linear                     J(args)^T @ cotangents

The transpose calls another TensorFlow function, the VJP of the original one. Evaluating
`call_tf_linear` is forward mode: the VJP is linear in the cotangents, so that its own VJP with
respect to them is J(args) again. All are calls like any other, with derivatives of their own.
Only arguments and results with floating point or complex elements, and of them only those JAX
asks for, take part; JAX itself supplies `float0` for the others.

Double reverse and not `tf.autodiff.ForwardAccumulator`, because both modes must be derivatives
of one function: the accumulator differentiates the ops inside of a function with a custom
gradient and ignores that gradient, and it fails on compiled TensorLists (`tf.map_fn`). It is
not faster either (TensorFlow 2.21: twice the time in eager mode, the same when compiled). A custom
gradient that is not linear in its upstream gradient has in forward mode its slope near 0.

Source: JAX, "How JAX primitives work" (JVP and transposition rules); J. Townsend, "A new trick
for calculating Jacobian vector products" (2017).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax.core import ShapedArray
from jax.interpreters import ad, mlir

from jaxtf.calltf._captures import Captures
from jaxtf.calltf._errors import UnsupportedError
from jaxtf.calltf._function import Function
from jaxtf.calltf._jax import evaluating, register_linearization, register_staging_without_cache
from jaxtf.calltf._primitive import call_tf_evaluated_p, call_tf_linear_p, call_tf_p, invoke
from jaxtf.calltf._recorded import Recorded
from jaxtf.calltf._traced import Traced
from jaxtf.calltf._transfer import lasting
from jaxtf.calltf._vectorized import vjp
from jaxtf.serialization.interop import (
    is_differentiable,
    is_zero,
    linear_jvp,
    linear_transpose,
    lowers_by,
    pushed_forward,
    transpose_at_zero,
    varying_like,
)


def _tangents(
    function: Function,
    args: Sequence[Any],
    tangents: Sequence[Any],
    results: Sequence[Any],
    *,
    recorded: Recorded | None = None,
    captures: Captures | None = None,
) -> list[Any]:
    """The tangents of the results."""

    def apply(operands: Sequence[Any], arguments: tuple[int, ...], wanted: tuple[int, ...]) -> Sequence[Any]:
        found: Sequence[Any] = call_tf_linear_p.bind(
            *operands,
            function=function,
            arguments=arguments,
            results=wanted,
            avals=tuple(jax.typeof(results[i]) for i in wanted),
            recorded=recorded,
            captures=captures,
        )
        return found

    return pushed_forward(args, tangents, results, apply)


def _call_jvp(
    args: Sequence[Any], tangents: Sequence[Any], *, traced: Traced, captures: Captures | None
) -> tuple[list[Any], list[Any]]:
    args = [lasting(arg) for arg in args]
    results = call_tf_p.bind(*args, traced=traced, captures=captures)
    return results, _tangents(traced.function, args, tangents, results, captures=captures)


def _evaluated_jvp(
    args: Sequence[Any],
    tangents: Sequence[Any],
    *,
    function: Function,
    values: tuple[Any, ...],
    results: tuple[jax.Array, ...],
    recorded: Recorded | None,
) -> tuple[list[Any], list[Any]]:
    args = _with_values(args, values)
    found = call_tf_evaluated_p.bind(*args, function=function, values=values, results=results, recorded=recorded)
    return found, _tangents(function, args, tangents, found, recorded=recorded)


def _evaluated_linearization(
    nonzeros: Sequence[bool],
    args: Sequence[Any],
    *,
    function: Function,
    values: tuple[Any, ...],
    results: tuple[jax.Array, ...],
    recorded: Recorded | None,
) -> tuple[list[Any], list[bool], Callable[[Sequence[Any]], list[Any]]]:
    """What JAX makes of `_evaluated_jvp`, without tracing it."""
    args = _with_values(args, values)
    found: list[Any] = list(results)
    if any(isinstance(arg, jax.core.Tracer) for arg in args):
        found = call_tf_evaluated_p.bind(*args, function=function, values=values, results=results, recorded=recorded)
    moves = any(
        nonzero and is_differentiable(jax.typeof(arg).dtype) for nonzero, arg in zip(nonzeros, args, strict=True)
    )
    moved = [moves and is_differentiable(result.dtype) for result in results]
    return found, moved, lambda tangents: _tangents(function, args, tangents, found, recorded=recorded)


def _with_values(args: Sequence[Any], values: Sequence[Any]) -> list[Any]:
    """The arguments, with the values that the call was made with for NumPy arrays, which may have others since."""
    return [value if isinstance(arg, np.ndarray) else arg for arg, value in zip(args, values, strict=True)]


def _linear_abstract(*operands: Any, avals: tuple[ShapedArray, ...], **_: Any) -> tuple[ShapedArray, ...]:
    return varying_like([ShapedArray(aval.shape, aval.dtype) for aval in avals], operands)


def _call_pull_back(
    cotangents: Sequence[Any],
    args: Sequence[Any],
    wanted: tuple[int, ...],
    *,
    traced: Traced,
    captures: Captures | None,
) -> Sequence[Any]:
    given = tuple(i for i, cotangent in enumerate(cotangents) if not is_zero(cotangent))
    return invoke(vjp(traced.function, wanted, given), [*args, *(cotangents[i] for i in given)], captures).leaves


def _linear_pull_back(
    cotangents: Sequence[Any],
    args: Sequence[Any],
    wanted: tuple[int, ...],
    *,
    function: Function,
    results: tuple[int, ...],
    avals: tuple[ShapedArray, ...],
    recorded: Recorded | None,
    captures: Captures | None,
) -> Sequence[Any]:
    given = [i for i, cotangent in enumerate(cotangents) if not is_zero(cotangent)]
    of_results, pulled = tuple(results[i] for i in given), [cotangents[i] for i in given]
    found = None if recorded is None else recorded(args, wanted, of_results, pulled)
    return invoke(vjp(function, wanted, of_results), [*args, *pulled], captures).leaves if found is None else found


def _linear_evaluate(
    *operands: Any,
    function: Function,
    arguments: tuple[int, ...],
    results: tuple[int, ...],
    avals: tuple[ShapedArray, ...],
    recorded: Recorded | None,
    captures: Captures | None,
) -> list[Any]:
    """Forward mode: the VJP of the VJP with respect to its cotangents, at small cotangents.

    Not at 0: TensorFlow has some gradients by log(cotangent) or x / (y / cotangent), whose derivatives are NaN there.
    """
    if function.staging.by_name and not evaluating():
        raise UnsupportedError(
            f"call_tf: forward mode of {function} with call_tf_graph=True is not supported in a staged context\n"
            "  remedy: use reverse mode (jax.grad, jax.vjp), or leave call_tf_graph=True out"
        )
    num_args = len(operands) - len(arguments)
    args, tangents = operands[:num_args], operands[num_args:]
    pullback = vjp(function, arguments, results)
    cotangents = range(num_args, num_args + len(results))
    pushforward = vjp(pullback, tuple(cotangents), tuple(range(len(arguments))))
    # Of values these are TensorFlow's alone: an array of JAX would be a transfer, for its guards.
    full = jax.numpy.full if any(isinstance(x, jax.core.Tracer) for x in operands) or not evaluating() else np.full
    with function.configuration.entered():  # which may have dtypes that JAX does not make now
        near_zero = [full(aval.shape, _small(aval.dtype), aval.dtype) for aval in avals]
    return invoke(pushforward, [*args, *near_zero, *tangents], captures).leaves


def _linear_jvp(operands: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[list[Any], list[Any]]:
    rule = linear_jvp(call_tf_linear_p, _linear_evaluate)
    found: tuple[list[Any], list[Any]] = rule([lasting(operand) for operand in operands], tangents, **params)
    return found


def _small(dtype: Any) -> float:
    """A power of two near 0, whose powers neither overflow nor vanish: 2**-10 for float32, 0.5 for float16."""
    return float(2.0 ** -(jax.numpy.finfo(dtype).maxexp // 12))  # type: ignore[no-untyped-call]


call_tf_linear_p.def_impl(_linear_evaluate)
call_tf_linear_p.def_abstract_eval(_linear_abstract)
register_staging_without_cache(call_tf_linear_p)
mlir.register_lowering(call_tf_linear_p, mlir.lower_fun(_linear_evaluate, multiple_results=True))
lowers_by(call_tf_linear_p, _linear_evaluate)
ad.primitive_jvps[call_tf_p] = _call_jvp
ad.primitive_jvps[call_tf_evaluated_p] = _evaluated_jvp
register_linearization(call_tf_evaluated_p, _evaluated_linearization)
ad.primitive_jvps[call_tf_linear_p] = _linear_jvp
ad.primitive_transposes[call_tf_p] = transpose_at_zero(_call_pull_back)
ad.primitive_transposes[call_tf_linear_p] = linear_transpose(_linear_pull_back)
