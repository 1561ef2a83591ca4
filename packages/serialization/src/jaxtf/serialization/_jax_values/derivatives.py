"""Rules of differentiation for primitives that call what JAX cannot see into: a module, a TensorFlow function.

Such a call has a primitive of its own, and a second one for its derivative:

    results          = call(args)
    result tangents  = linear(args, tangents of some args)      J(args) @ tangents
    cotangents       = transpose of linear                      J(args)^T @ cotangents

`linear` has the parameter `arguments`, the positions of the arguments that have tangents, and is evaluated as the VJP
of the VJP. What a VJP is, the caller knows: these rules know which tangents there are, which are zero, and which
operands are unknown. For the primitives of this package and of jaxtf-calltf. Imports JAX.

Source: JAX, "How JAX primitives work" (JVP and transposition rules); J. Townsend, "A new trick for calculating
Jacobian vector products" (2017).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
from jax.extend.core import jaxpr_as_fun
from jax.interpreters import ad

from jaxtf.serialization._jax import tangent_aval
from jaxtf.serialization._jax_values.avals import is_differentiable

__all__ = [
    "inexact",
    "is_zero",
    "linear_jvp",
    "linear_transpose",
    "pushed_forward",
    "transpose_at_zero",
    "vjp_function",
]

Rule = Callable[..., Any]


def is_zero(tangent: Any) -> bool:
    """Whether a tangent or cotangent is a symbolic zero, or of the dtype of no derivative."""
    return isinstance(tangent, ad.Zero) or jax.typeof(tangent).dtype == jax.dtypes.float0


def inexact(avals: Sequence[Any]) -> tuple[int, ...]:
    """Positions of the values that have derivatives."""
    return tuple(i for i, aval in enumerate(avals) if is_differentiable(aval.dtype))


def pushed_forward(
    args: Sequence[Any],
    tangents: Sequence[Any],
    results: Sequence[Any],
    apply: Callable[[Sequence[Any], tuple[int, ...], tuple[int, ...]], Sequence[Any]],
) -> list[Any]:
    """The tangents of the results of a call: one linear call for those that have any.

    Args:
      args: The arguments of the call.
      tangents: Theirs.
      results: The results of the call.
      apply: From the operands of the linear call, the positions of the arguments with tangents and those of the
        results with tangents to the tangents of the latter.
    """
    arguments = tuple(i for i, tangent in enumerate(tangents) if not is_zero(tangent))
    avals = [jax.typeof(result) for result in results]
    wanted = inexact(avals) if arguments else ()
    computed = iter(apply([*args, *(tangents[i] for i in arguments)], arguments, wanted) if wanted else ())
    return [next(computed) if i in wanted else ad.Zero(tangent_aval(aval)) for i, aval in enumerate(avals)]


def linear_jvp(primitive: Any, evaluate: Callable[..., list[Any]]) -> Rule:
    """The JVP rule of a linear call.

    Args:
      primitive: It.
      evaluate: What the linear call computes, in operations that have derivatives.
    """

    def rule(
        operands: Sequence[Any], tangents: Sequence[Any], *, arguments: tuple[int, ...], **params: Any
    ) -> tuple[list[Any], list[Any]]:
        count = len(operands) - len(arguments)
        moving = [i for i, tangent in enumerate(tangents) if not is_zero(tangent)]
        if all(i >= count for i in moving):  # linear in the tangents
            results = primitive.bind(*operands, arguments=arguments, **params)
            positions = tuple(arguments[i - count] for i in moving)
            given = [tangents[i] for i in moving]
            return results, primitive.bind(*operands[:count], *given, arguments=positions, **params)

        def moved(*values: Any) -> list[Any]:
            whole = list(operands)
            for i, value in zip(moving, values, strict=True):
                whole[i] = value
            return evaluate(*whole, arguments=arguments, **params)

        return jax.jvp(moved, [operands[i] for i in moving], [tangents[i] for i in moving])

    return rule


def linear_transpose(pull_back: Callable[..., Sequence[Any]]) -> Rule:
    """The transposition rule of a linear call.

    Args:
      pull_back: From the cotangents of its results, the arguments of the call, and the positions of those whose
        cotangents are wanted (and parameters) to these cotangents.
    """

    def rule(
        cotangents: Sequence[Any], *operands: Any, arguments: tuple[int, ...], **params: Any
    ) -> Sequence[Any | None]:
        count = len(operands) - len(arguments)
        # Not every tangent need be an unknown of the linear function being transposed.
        unknown = [ad.is_undefined_primal(tangent) for tangent in operands[count:]]
        wanted = tuple(argument for argument, is_unknown in zip(arguments, unknown, strict=True) if is_unknown)
        if all(map(is_zero, cotangents)):
            return [None] * len(operands)
        pulled = iter(pull_back(cotangents, operands[:count], wanted, **params))
        return [None] * count + [
            _in_memory_of(tangent.aval, next(pulled)) if is_unknown else None
            for tangent, is_unknown in zip(operands[count:], unknown, strict=True)
        ]

    return rule


def transpose_at_zero(pull_back: Callable[..., Sequence[Any]]) -> Rule:
    """The transposition rule of a call, for `jax.linear_transpose`, with a caller who promises a linear function.

    The derivative of such a function at 0 is that anywhere.

    Args:
      pull_back: As for `linear_transpose`; the cotangents are those of the call's results.
    """

    def rule(cotangents: Sequence[Any], *args: Any, **params: Any) -> Sequence[Any | None]:
        unknown = [ad.is_undefined_primal(arg) for arg in args]
        if all(map(is_zero, cotangents)):
            return [None] * len(args)
        at = [
            jax.lax.full(arg.aval.shape, 0, arg.aval.dtype) if is_unknown else arg
            for arg, is_unknown in zip(args, unknown, strict=True)
        ]
        wanted = tuple(i for i, is_unknown in enumerate(unknown) if is_unknown)
        pulled = iter(pull_back(cotangents, at, wanted, **params))
        return [
            _in_memory_of(arg.aval, next(pulled)) if is_unknown else None
            for arg, is_unknown in zip(args, unknown, strict=True)
        ]

    return rule


def vjp_function(traced: Any, argument_count: int) -> Callable[..., tuple[Any, ...]]:
    """The VJP of a traced function: from flat arguments and the cotangents of the results to those of the arguments.

    JAX differentiates, so custom derivative rules of the function are respected.
    """
    primal = jaxpr_as_fun(traced.jaxpr)

    def vjp(*flat: Any) -> tuple[Any, ...]:
        arguments, cotangents = flat[:argument_count], flat[argument_count:]
        results, pull_back = jax.vjp(primal, *arguments)
        return tuple(pull_back([_in_memory_of(jax.typeof(y), x) for y, x in zip(results, cotangents, strict=True)]))

    vjp.__name__ = vjp.__qualname__ = f"{traced.fun_name}_vjp"
    return vjp


def _in_memory_of(aval: Any, cotangent: Any) -> Any:
    """A cotangent in the memory that its value is in: it may have been computed for another one."""
    space = getattr(aval, "memory_space", None)
    found = getattr(jax.typeof(cotangent), "memory_space", None)
    return cotangent if space == found or is_zero(cotangent) else jax.device_put(cotangent, space)
