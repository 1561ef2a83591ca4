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
gradient that is not linear in its upstream gradient has in forward mode its slope at 0.

Source: JAX, "How JAX primitives work" (JVP and transposition rules); J. Townsend, "A new trick
for calculating Jacobian vector products" (2017).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
from jax.core import ShapedArray
from jax.interpreters import ad, mlir

from jaxtf.calltf._errors import UnsupportedError
from jaxtf.calltf._function import Function
from jaxtf.calltf._jax import evaluating, register_linearization, register_staging_without_cache, tangent_aval
from jaxtf.calltf._primitive import call_tf_evaluated_p, call_tf_linear_p, call_tf_p, invoke
from jaxtf.calltf._recorded import Recorded
from jaxtf.calltf._traced import Traced
from jaxtf.calltf._transfer import is_differentiable
from jaxtf.calltf._vectorized import vjp
from jaxtf.serialization.interop import varying_like


def _is_zero(tangent: Any) -> bool:
    return isinstance(tangent, ad.Zero) or jax.typeof(tangent).dtype == jax.dtypes.float0


def _tangents(
    function: Function,
    args: Sequence[Any],
    tangents: Sequence[Any],
    results: Sequence[Any],
    recorded: Recorded | None = None,
) -> list[Any]:
    """The tangents of the results: one linear call for those that have any."""
    arguments = tuple(i for i, tangent in enumerate(tangents) if not _is_zero(tangent))
    avals = [jax.typeof(result) for result in results]
    wanted = tuple(i for i, aval in enumerate(avals) if is_differentiable(aval.dtype)) if arguments else ()
    computed = iter(())
    if wanted:
        computed = iter(
            call_tf_linear_p.bind(
                *args,
                *(tangents[i] for i in arguments),
                function=function,
                arguments=arguments,
                results=wanted,
                avals=tuple(avals[i] for i in wanted),
                recorded=recorded,
            )
        )
    return [next(computed) if i in wanted else ad.Zero(tangent_aval(aval)) for i, aval in enumerate(avals)]


def _call_jvp(args: Sequence[Any], tangents: Sequence[Any], *, traced: Traced) -> tuple[list[Any], list[Any]]:
    results = call_tf_p.bind(*args, traced=traced)
    return results, _tangents(traced.function, args, tangents, results)


def _evaluated_jvp(
    args: Sequence[Any],
    tangents: Sequence[Any],
    *,
    function: Function,
    results: tuple[jax.Array, ...],
    recorded: Recorded | None,
) -> tuple[list[Any], list[Any]]:
    found = call_tf_evaluated_p.bind(*args, function=function, results=results, recorded=recorded)
    return found, _tangents(function, args, tangents, found, recorded)


def _evaluated_linearization(
    nonzeros: Sequence[bool],
    args: Sequence[Any],
    *,
    function: Function,
    results: tuple[jax.Array, ...],
    recorded: Recorded | None,
) -> tuple[list[Any], list[bool], Callable[[Sequence[Any]], list[Any]]]:
    """What JAX makes of `_evaluated_jvp`, without tracing it."""
    found: list[Any] = list(results)
    if any(isinstance(arg, jax.core.Tracer) for arg in args):
        found = call_tf_evaluated_p.bind(*args, function=function, results=results, recorded=recorded)
    moves = any(nonzero and is_differentiable(arg.dtype) for nonzero, arg in zip(nonzeros, args, strict=True))
    moved = [moves and is_differentiable(result.dtype) for result in results]
    return found, moved, lambda tangents: _tangents(function, args, tangents, found, recorded)


def _linear_abstract(*operands: Any, avals: tuple[ShapedArray, ...], **_: Any) -> tuple[ShapedArray, ...]:
    return varying_like([ShapedArray(aval.shape, aval.dtype) for aval in avals], operands)


def _linear_transpose(
    cotangents: Sequence[Any],
    *operands: Any,
    function: Function,
    arguments: tuple[int, ...],
    results: tuple[int, ...],
    avals: tuple[ShapedArray, ...],
    recorded: Recorded | None,
) -> list[Any]:
    num_args = len(operands) - len(arguments)
    args, tangents = operands[:num_args], operands[num_args:]
    # Not every tangent need be an unknown of the linear function being transposed.
    unknown = [i for i, tangent in enumerate(tangents) if ad.is_undefined_primal(tangent)]
    given = [i for i, cotangent in enumerate(cotangents) if not isinstance(cotangent, ad.Zero)]
    computed: list[Any] = [None] * len(tangents)
    if given:
        to, of = tuple(arguments[i] for i in unknown), tuple(results[i] for i in given)
        pulled = [cotangents[i] for i in given]
        found = None if recorded is None else recorded(args, to, of, pulled)
        if found is None:
            found = invoke(vjp(function, to, of), [*args, *pulled]).leaves
        for index, cotangent in zip(unknown, found, strict=True):
            computed[index] = cotangent
    return [None] * num_args + computed


def _linear_evaluate(
    *operands: Any,
    function: Function,
    arguments: tuple[int, ...],
    results: tuple[int, ...],
    avals: tuple[ShapedArray, ...],
    recorded: Recorded | None,
) -> list[Any]:
    """Forward mode: the VJP of the VJP with respect to its cotangents, at cotangents 0."""
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
    zeros = [jax.numpy.zeros(aval.shape, aval.dtype) for aval in avals]
    return invoke(pushforward, [*args, *zeros, *tangents]).leaves


def _linear_jvp(
    operands: Sequence[Any], tangents: Sequence[Any], *, arguments: tuple[int, ...], **params: Any
) -> tuple[list[Any], list[Any]]:
    num_args = len(operands) - len(arguments)
    moving = [i for i, tangent in enumerate(tangents) if not _is_zero(tangent)]
    if all(i >= num_args for i in moving):  # linear in the tangents
        computed = call_tf_linear_p.bind(
            *operands[:num_args],
            *(tangents[i] for i in moving),
            arguments=tuple(arguments[i - num_args] for i in moving),
            **params,
        )
        return call_tf_linear_p.bind(*operands, arguments=arguments, **params), computed

    def evaluate(*moved: Any) -> list[Any]:
        whole = list(operands)
        for i, operand in zip(moving, moved, strict=True):
            whole[i] = operand
        return _linear_evaluate(*whole, arguments=arguments, **params)

    return jax.jvp(evaluate, [operands[i] for i in moving], [tangents[i] for i in moving])


def _call_transpose(cotangents: Sequence[Any], *args: Any, traced: Traced) -> list[Any]:
    """For `jax.linear_transpose`, whose caller promises a linear function: its derivative at 0 is that anywhere."""
    unknown = tuple(i for i, arg in enumerate(args) if ad.is_undefined_primal(arg))
    given = tuple(i for i, cotangent in enumerate(cotangents) if not _is_zero(cotangent))
    computed: list[Any] = [None] * len(args)
    if given:
        at = [jax.numpy.zeros(arg.aval.shape, arg.aval.dtype) if ad.is_undefined_primal(arg) else arg for arg in args]
        found = invoke(vjp(traced.function, unknown, given), [*at, *(cotangents[i] for i in given)]).leaves
        for i, cotangent in zip(unknown, found, strict=True):
            computed[i] = cotangent
    return computed


call_tf_linear_p.def_impl(_linear_evaluate)
call_tf_linear_p.def_abstract_eval(_linear_abstract)
register_staging_without_cache(call_tf_linear_p)
mlir.register_lowering(call_tf_linear_p, mlir.lower_fun(_linear_evaluate, multiple_results=True))
ad.primitive_jvps[call_tf_p] = _call_jvp
ad.primitive_jvps[call_tf_evaluated_p] = _evaluated_jvp
register_linearization(call_tf_evaluated_p, _evaluated_linearization)
ad.primitive_jvps[call_tf_linear_p] = _linear_jvp
ad.primitive_transposes[call_tf_p] = _call_transpose
ad.primitive_transposes[call_tf_linear_p] = _linear_transpose
