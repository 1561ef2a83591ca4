"""Computes a jaxpr with other values in place of the large arrays that it closes over, at any depth. Imports JAX.

Equations that hold none of these arrays are as they were. A `jit` that does is written out. Where an array is in the
body of a loop, of a branch, of `jax.checkpoint` or of a function with a rule of its own, the body takes the value as
one more operand. Bodies of other operations are not rewritten: `not_rewritten` finds these, so that an array in one
can be left alone everywhere.

A function with a rule (`jax.custom_jvp`, `jax.custom_vjp`) has no derivative with respect to what it closes over, and
JAX leaves that out in silence for `jax.custom_jvp`: where such a value depends on what is differentiated, the
derivative of what is computed here raises an error instead, of which the caller decides.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr, Var, jaxpr_as_fun

from jaxtf.serialization import _jax
from jaxtf.serialization._export.constants import inner_jaxprs, is_large, memory_of

__all__ = ["Replacing", "not_rewritten"]

_WITH_RULE = {"custom_jvp_call": "jax.custom_jvp", "custom_vjp_call": "jax.custom_vjp"}
_CALLS = {"closed_call", "core_call", "eval_jaxpr"}
_REWRITTEN = {"scan", "while", "cond", "remat2", "checkpoint", *_WITH_RULE}


def not_rewritten(jaxpr: Any) -> Iterator[Any]:
    """The equations, at any depth, whose jaxprs and arrays stay as they are."""
    for equation in jaxpr.eqns:
        if _called(equation) is not None or equation.primitive.name in _REWRITTEN:
            for inner in inner_jaxprs(equation):
                yield from not_rewritten(inner)
        else:
            yield equation


class Replacing:
    """Evaluates jaxprs.

    Args:
      values: For the memory of an array, what takes its place.
      least_bytes: How many bytes these arrays have at least.
      refused: The error for the derivative by a value that a function with a rule closes over, by the JAX function
        that gave it the rule, the value and the equation.
    """

    def __init__(
        self,
        values: Mapping[Hashable, Any],
        least_bytes: int,
        refused: Callable[[str, Any, Any], Exception] | None = None,
    ) -> None:
        self._values = values
        self._least_bytes = least_bytes
        self._refused = refused
        self._known: dict[int, bool] = {}

    def results(self, jaxpr: Any, arguments: Sequence[Any]) -> Sequence[Any]:
        """The flat results of a jaxpr, open or closed, for flat arguments."""
        jaxpr = _closed(jaxpr)
        consts = [self._value(array) for array in jaxpr.consts]
        if not any(map(self._is_changed, jaxpr.eqns)):
            results: Sequence[Any] = jaxpr_as_fun(ClosedJaxpr(jaxpr.jaxpr, consts))(*arguments)
            return results
        values = dict(zip((*jaxpr.jaxpr.constvars, *jaxpr.jaxpr.invars), (*consts, *arguments), strict=True))

        def read(atom: Any) -> Any:
            return _literal(atom) if _jax.is_literal(atom) else values[atom]

        for equation in jaxpr.eqns:
            if self._is_changed(equation):
                computed = self._changed(equation, list(map(read, equation.invars)), jaxpr)
            else:
                single = _jax.of_one_equation(jaxpr, equation)
                computed = jaxpr_as_fun(single)(*(values[variable] for variable in single.jaxpr.invars))
            values.update(zip(equation.outvars, computed, strict=True))
        return list(map(read, jaxpr.jaxpr.outvars))

    def _value(self, array: Any) -> Any:
        if not is_large(array, self._least_bytes):
            return array
        return self._values.get(memory_of(array), array)

    def _is_changed(self, equation: Any) -> bool:
        """Whether it holds an array that is replaced, or a function with a rule that closes over something."""
        if id(equation) not in self._known:
            inner = inner_jaxprs(equation)
            self._known[id(equation)] = (
                bool(self._refused is not None and _closure_size(equation))
                or any(self._value(array) is not array for jaxpr in inner for array in _closed(jaxpr).consts)
                or any(self._is_changed(within) for jaxpr in inner for within in jaxpr.eqns)
            )
        return self._known[id(equation)]

    def _changed(self, equation: Any, operands: list[Any], jaxpr: ClosedJaxpr) -> Sequence[Any]:
        """The results of an equation that is changed."""
        name, params = equation.primitive.name, equation.params
        called = _called(equation)
        if called is not None:
            return self.results(called, operands)
        if name == "scan":
            return self._scanned(equation, operands)
        if name == "while":
            (tested, [test]), (computed, [body]) = map(self._opened, ([params["cond_jaxpr"]], [params["body_jaxpr"]]))
            count = params["cond_nconsts"]
            changes = {
                "cond_jaxpr": test,
                "cond_nconsts": len(tested) + count,
                "body_jaxpr": body,
                "body_nconsts": len(computed) + params["body_nconsts"],
            }
            operands = [*tested, *operands[:count], *computed, *operands[count:]]
        elif name == "cond":
            constants, branches = self._opened(params["branches"])
            changes = {"branches": tuple(branches)}
            operands = [operands[0], *constants, *operands[1:]]
        elif name in _WITH_RULE:
            constants, [body] = self._opened([params["call_jaxpr"]])
            changes = {"call_jaxpr": body, "num_consts": len(constants) + _closure_size(equation)}
            count = changes["num_consts"]
            operands = [*constants, *operands]
            operands[:count] = [self._guarded(value, equation) for value in operands[:count]]
        elif name in _REWRITTEN:
            constants, [body] = self._opened([params["jaxpr"]])
            changes = {"jaxpr": body if hasattr(params["jaxpr"], "consts") else body.jaxpr}
            if isinstance(params["prevent_cse"], tuple):  # of each operand
                changes["prevent_cse"] = (False,) * len(constants) + params["prevent_cse"]
            operands = [*constants, *operands]
        else:  # for what the functions with rules in it close over
            changes = {}
            operands = [self._guarded(value, equation) for value in operands]
        variables = [Var(jax.typeof(value)) for value in operands]
        changed = equation.replace(invars=variables, params={**params, **changes})
        results: Sequence[Any] = jaxpr_as_fun(_jax.of_one_equation(jaxpr, changed))(*operands)
        return results

    def _scanned(self, equation: Any, operands: list[Any]) -> Sequence[Any]:
        """The results of a `scan`, which is traced anew."""
        params, body = equation.params, equation.params["jaxpr"]
        inner = body.jaxpr
        # What is sliced or stacked has one axis less in the body.
        sliced = sum(out.aval.ndim != var.aval.ndim for out, var in zip(equation.invars, inner.invars, strict=True))
        stacked = sum(out.aval.ndim != var.aval.ndim for out, var in zip(equation.outvars, inner.outvars, strict=True))
        carried = len(equation.outvars) - stacked
        fixed = len(operands) - sliced - carried

        def step(carry: list[Any], slices: list[Any]) -> tuple[list[Any], list[Any]]:
            results = self._of_types(body, [*operands[:fixed], *carry, *slices])
            return results[:carried], results[carried:]

        carry, stacks = jax.lax.scan(
            step,
            operands[fixed : fixed + carried],
            operands[fixed + carried :],
            length=None if sliced else params["length"],  # which may be symbolic, as a size may be
            reverse=params["reverse"],
            unroll=params["unroll"],
        )
        return [*carry, *stacks]

    def _opened(self, jaxprs: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """Closed jaxprs that take constants before their arguments, the same ones; and these."""
        avals = [[variable.aval for variable in _closed(jaxpr).jaxpr.invars] for jaxpr in jaxprs]
        closed = [
            jax.make_jaxpr(lambda *args, jaxpr=jaxpr: self._of_types(jaxpr, args))(*types)
            for jaxpr, types in zip(jaxprs, avals, strict=True)
        ]
        constants = list({id(value): value for traced in closed for value in traced.consts}.values())
        places = {id(value): place for place, value in enumerate(constants)}

        def evaluated(traced: Any) -> Callable[..., Any]:
            own = [places[id(value)] for value in traced.consts]

            def function(*args: Any) -> Any:
                held = [args[place] for place in own]
                return jaxpr_as_fun(ClosedJaxpr(traced.jaxpr, held))(*args[len(constants) :])

            return function

        held = list(map(jax.typeof, constants))
        return constants, [
            jax.make_jaxpr(evaluated(traced))(*held, *types) for traced, types in zip(closed, avals, strict=True)
        ]

    def _of_types(self, jaxpr: Any, arguments: Sequence[Any]) -> list[Any]:
        """The results of a body, which must be as weakly typed as they were."""
        results = self.results(jaxpr, arguments)
        return [
            _typed_as(variable.aval, value)
            for variable, value in zip(_closed(jaxpr).jaxpr.outvars, results, strict=True)
        ]

    def _guarded(self, value: Any, equation: Any) -> Any:
        """The value, of which there is no derivative."""
        refused = self._refused
        if refused is None or not jnp.issubdtype(jax.typeof(value).dtype, jnp.inexact):
            return value
        kind = _WITH_RULE.get(equation.primitive.name) or "jax.custom_jvp or jax.custom_vjp"
        error = refused(kind, value, equation)

        @jax.custom_jvp
        def same(value: Any) -> Any:
            return value

        @same.defjvp
        def rule(primals: Any, tangents: Any) -> Any:
            raise error

        return same(value)


def _called(equation: Any) -> Any:
    """The jaxpr of a `jit`, or of what JAX made of one in differentiating; None for any other equation."""
    if equation.primitive.name in _CALLS:
        return equation.params["call_jaxpr"]
    return _jax.jaxpr_of_jit(equation)


def _closure_size(equation: Any) -> int:
    """How many operands of a function with a rule are what it closes over."""
    return int(equation.params["num_consts"]) if equation.primitive.name in _WITH_RULE else 0


def _closed(jaxpr: Any) -> Any:
    return jaxpr if hasattr(jaxpr, "consts") else ClosedJaxpr(jaxpr, ())


def _literal(atom: Any) -> Any:
    """The value of an operand that is not a variable."""
    if not isinstance(atom.aval.dtype, np.dtype):  # a random key
        return atom.val
    value = np.asarray(atom.val, atom.aval.dtype)
    return _jax.weakly_typed(value) if atom.aval.weak_type else value


def _typed_as(aval: Any, value: Any) -> Any:
    """A value whose dtype is as weak as an aval's."""
    weak = getattr(aval, "weak_type", False)
    if getattr(jax.typeof(value), "weak_type", False) == weak:
        return value
    return _jax.weakly_typed(value) if weak else jax.lax.convert_element_type(value, value.dtype)
