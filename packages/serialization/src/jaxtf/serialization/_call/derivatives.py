"""Derivatives of a call: reverse mode is the exported VJP, forward mode the VJP of that.

The rules are those of `_jax_values.derivatives`. The transpose of a linear call calls the VJP, (args,
cotangents) -> J(args)^T @ cotangents. Evaluating a linear call is forward mode: the VJP is linear in
the cotangents, so that its own VJP with respect to them is J(args) again. Both are calls like any other,
with derivatives of their own; of the order of the VJP that a record must carry, each reverse mode takes
1, each evaluated forward mode 2.

Nothing is asked of the record that JAX does not ask for: plain reverse mode never makes the VJP
of the VJP. Only values of inexact dtypes take part; JAX supplies `float0` for the others. JAX's
pairing of complex tangents and cotangents is symmetric, so no value needs to be conjugated.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
from jax.interpreters import ad, mlir

from jaxtf.serialization import _jax
from jaxtf.serialization._call.primitive import Callee, call_exported_p, new_call_primitive
from jaxtf.serialization._errors import EffectsRefused
from jaxtf.serialization._jax_values.derivatives import (
    inexact,
    linear_jvp,
    linear_transpose,
    pushed_forward,
    transpose_at_zero,
)
from jaxtf.serialization._jax_values.varying import vary_alike

__all__ = ["call_exported_linear_p", "register"]


def _zeros(aval: Any) -> Any:
    """The tangent or cotangent 0 of a value, of dtype float0 if it has no other."""
    return ad.instantiate_zeros(ad.Zero(_jax.tangent_aval(aval)))


def _call_jvp(args: Sequence[Any], tangents: Sequence[Any], *, callee: Callee) -> tuple[list[Any], list[Any]]:
    results = call_exported_p.bind(*args, callee=callee)

    def apply(operands: Sequence[Any], arguments: tuple[int, ...], _: tuple[int, ...]) -> Sequence[Any]:
        found: Sequence[Any] = call_exported_linear_p.bind(*operands, callee=callee, arguments=arguments)
        return found

    return results, pushed_forward(args, tangents, results, apply)


def _pull_back(cotangents: Sequence[Any], args: Sequence[Any], wanted: Sequence[int], callee: Callee) -> list[Any]:
    """The cotangents of some arguments, with zeros for those of results that are symbolic ones."""
    pullback = callee.differentiated(1, "reverse mode")
    given = [ad.instantiate_zeros(cotangent) for cotangent in cotangents]
    pulled = call_exported_p.bind(*vary_alike([*args, *given]), callee=pullback)
    return [pulled[index] for index in wanted]


def _linear_abstract(*operands: Any, callee: Callee, arguments: tuple[int, ...]) -> tuple[list[Any], set[Any]]:
    args = operands[: len(operands) - len(arguments)]
    avals, _ = call_exported_p.abstract_eval(*args, callee=callee)
    return [_jax.tangent_aval(avals[index]) for index in inexact(avals)], set()


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
    return [pushed[index] for index in inexact(avals)]


def _linear_pull_back(
    cotangents: Sequence[Any], args: Sequence[Any], wanted: Sequence[int], callee: Callee
) -> list[Any]:
    """The same for cotangents of those results that have derivatives."""
    avals, _ = call_exported_p.abstract_eval(*map(jax.typeof, args), callee=callee)
    whole: list[Any] = [ad.Zero(_jax.tangent_aval(aval)) for aval in avals]
    for index, cotangent in zip(inexact(avals), cotangents, strict=True):
        whole[index] = cotangent
    return _pull_back(whole, args, wanted, callee)


call_exported_linear_p = new_call_primitive(
    "jaxtf_call_exported_linear", _linear_abstract, mlir.lower_fun(_linear_evaluate, multiple_results=True)
)


def register() -> None:
    """Registers the derivative rules of the call primitive and of its linear form."""
    ad.primitive_jvps[call_exported_p] = _call_jvp
    ad.primitive_transposes[call_exported_p] = transpose_at_zero(_pull_back)
    ad.primitive_jvps[call_exported_linear_p] = linear_jvp(call_exported_linear_p, _linear_evaluate)
    ad.primitive_transposes[call_exported_linear_p] = linear_transpose(_linear_pull_back)
