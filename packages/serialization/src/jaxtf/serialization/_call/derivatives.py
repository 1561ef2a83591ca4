"""Derivatives of a call: reverse mode is the exported VJP, forward mode the VJP of that.

    results          = call_exported(args)
    result tangents  = call_exported_linear(args, tangents of some args)     J(args) @ tangents
    cotangents       = transpose of call_exported_linear                     J(args)^T @ cotangents

The transpose calls the VJP, (args, cotangents) -> J(args)^T @ cotangents. Evaluating
`call_exported_linear` is forward mode: the VJP is linear in the cotangents, so that its own VJP
with respect to them is J(args) again. Both are calls like any other, with derivatives of their
own; of the order of the VJP that a record must carry, each reverse mode takes 1, each evaluated
forward mode 2.

Nothing is asked of the record that JAX does not ask for: plain reverse mode never makes the VJP
of the VJP. Only values of inexact dtypes take part; JAX supplies `float0` for the others. JAX's
pairing of complex tangents and cotangents is symmetric, so no value needs to be conjugated.

Source: JAX, "How JAX primitives work" (JVP and transposition rules); J. Townsend, "A new trick
for calculating Jacobian vector products" (2017).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
from jax.interpreters import ad, mlir

from jaxtf.serialization import _jax
from jaxtf.serialization._call.primitive import Callee, call_exported_p, new_call_primitive
from jaxtf.serialization._errors import EffectsRefused
from jaxtf.serialization._jax_values.varying import vary_alike

__all__ = ["call_exported_linear_p", "register"]


def _is_zero(tangent: Any) -> bool:
    return isinstance(tangent, ad.Zero) or jax.typeof(tangent).dtype == jax.dtypes.float0


def _zeros(aval: Any) -> Any:
    """The tangent or cotangent 0 of a value, of dtype float0 if it has no other."""
    return ad.instantiate_zeros(ad.Zero(_jax.tangent_aval(aval)))


def _inexact(avals: Sequence[Any]) -> list[int]:
    """Positions of the values that have derivatives."""
    return [index for index, aval in enumerate(avals) if jax.dtypes.issubdtype(aval.dtype, jax.numpy.inexact)]


def _call_jvp(args: Sequence[Any], tangents: Sequence[Any], *, callee: Callee) -> tuple[list[Any], list[Any]]:
    results = call_exported_p.bind(*args, callee=callee)
    avals = [jax.typeof(result) for result in results]
    found: list[Any] = [ad.Zero(_jax.tangent_aval(aval)) for aval in avals]
    arguments = tuple(index for index, tangent in enumerate(tangents) if not _is_zero(tangent))
    wanted = _inexact(avals)
    if arguments and wanted:
        given = [tangents[index] for index in arguments]
        computed = call_exported_linear_p.bind(*args, *given, callee=callee, arguments=arguments)
        for index, tangent in zip(wanted, computed, strict=True):
            found[index] = tangent
    return results, found


def _call_transpose(cotangents: Sequence[Any], *args: Any, callee: Callee) -> list[Any]:
    """For `jax.linear_transpose`, whose caller promises a linear function: its derivative at 0 is that anywhere."""
    unknown = tuple(index for index, arg in enumerate(args) if ad.is_undefined_primal(arg))
    at = [_zeros_like(arg.aval) if ad.is_undefined_primal(arg) else arg for arg in args]
    found = _pull_back(cotangents, at, callee)
    return [found[index] if index in unknown else None for index in range(len(args))]


def _zeros_like(aval: Any) -> Any:
    return jax.lax.full(aval.shape, 0, aval.dtype)


def _pull_back(cotangents: Sequence[Any], args: Sequence[Any], callee: Callee) -> Sequence[Any]:
    """The VJP at `args`, with zeros for the cotangents that are symbolic ones."""
    pullback = callee.differentiated(1, "reverse mode")
    given = [ad.instantiate_zeros(cotangent) for cotangent in cotangents]
    return call_exported_p.bind(*vary_alike([*args, *given]), callee=pullback)  # type: ignore[no-any-return]


def _linear_abstract(*operands: Any, callee: Callee, arguments: tuple[int, ...]) -> tuple[list[Any], set[Any]]:
    args = operands[: len(operands) - len(arguments)]
    avals, _ = call_exported_p.abstract_eval(*args, callee=callee)
    return [_jax.tangent_aval(avals[index]) for index in _inexact(avals)], set()


def _linear_evaluate(*operands: Any, callee: Callee, arguments: tuple[int, ...]) -> list[Any]:
    """Forward mode: the VJP of the VJP with respect to its cotangents, at cotangents 0."""
    args, given = operands[: len(operands) - len(arguments)], operands[len(operands) - len(arguments) :]
    twice = callee.differentiated(2, "forward mode")
    if twice.record.ordered_effects:
        raise EffectsRefused(
            f"forward-mode differentiation of '{callee.called.fun_name}', which has the ordered effects "
            f"{', '.join(map(str, twice.record.ordered_effects))}: they would happen again, in no order\n"
            "  remedy: use reverse mode (jax.grad, jax.vjp), or export the function without them"
        )
    avals, _ = call_exported_p.abstract_eval(*map(jax.typeof, args), callee=callee)
    tangents = [_zeros(jax.typeof(arg)) for arg in args]
    for index, tangent in zip(arguments, given, strict=True):
        tangents[index] = tangent
    found = call_exported_p.bind(*vary_alike([*args, *map(_zeros, avals), *tangents]), callee=twice)
    pushed = found[len(args) :]
    return [pushed[index] for index in _inexact(avals)]


def _linear_jvp(
    operands: Sequence[Any], tangents: Sequence[Any], *, callee: Callee, arguments: tuple[int, ...]
) -> tuple[list[Any], list[Any]]:
    count = len(operands) - len(arguments)
    if all(map(_is_zero, tangents[:count])):
        # Linear in the rest.
        results = call_exported_linear_p.bind(*operands, callee=callee, arguments=arguments)
        moving = [index for index, tangent in enumerate(tangents[count:]) if not _is_zero(tangent)]
        found = call_exported_linear_p.bind(
            *operands[:count],
            *(tangents[count + index] for index in moving),
            callee=callee,
            arguments=tuple(arguments[index] for index in moving),
        )
        return results, found
    moving = [index for index, tangent in enumerate(tangents) if not _is_zero(tangent)]

    def evaluate(*moved: Any) -> list[Any]:
        whole = list(operands)
        for index, operand in zip(moving, moved, strict=True):
            whole[index] = operand
        return _linear_evaluate(*whole, callee=callee, arguments=arguments)

    return jax.jvp(evaluate, [operands[index] for index in moving], [tangents[index] for index in moving])


def _linear_transpose(
    cotangents: Sequence[Any], *operands: Any, callee: Callee, arguments: tuple[int, ...]
) -> list[Any]:
    count = len(operands) - len(arguments)
    args, tangents = operands[:count], operands[count:]
    if all(isinstance(cotangent, ad.Zero) for cotangent in cotangents):
        return [None] * len(operands)
    avals, _ = call_exported_p.abstract_eval(*map(jax.typeof, args), callee=callee)
    whole: list[Any] = [ad.Zero(_jax.tangent_aval(aval)) for aval in avals]
    for index, cotangent in zip(_inexact(avals), cotangents, strict=True):
        whole[index] = cotangent
    found = _pull_back(whole, args, callee)
    # Not every tangent need be an unknown of the linear function being transposed.
    pulled = [
        found[index] if ad.is_undefined_primal(tangent) else None
        for index, tangent in zip(arguments, tangents, strict=True)
    ]
    return [None] * count + pulled


call_exported_linear_p = new_call_primitive(
    "jaxtf_call_exported_linear", _linear_abstract, mlir.lower_fun(_linear_evaluate, multiple_results=True)
)


def register() -> None:
    """Registers the rules of both primitives."""
    ad.primitive_jvps[call_exported_p] = _call_jvp
    ad.primitive_transposes[call_exported_p] = _call_transpose
    ad.primitive_jvps[call_exported_linear_p] = _linear_jvp
    ad.primitive_transposes[call_exported_linear_p] = _linear_transpose
