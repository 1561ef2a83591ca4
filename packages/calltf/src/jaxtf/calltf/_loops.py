"""Calls within loops that are differentiated run in each turn, once, or are refused.

JAX computes a loop that it differentiates in two programs, of what is known and of what is not, and heeds no effects
there:

    scan          what depends on neither carry nor inputs is computed once, before the loop; so `map` and `fori_loop`
    checkpoint    the same of a scan within it; a while_loop runs again in the backward pass
    while_loop    the known part runs by itself, and all of it again for the tangents of `jax.linearize`

So a call that draws would have one number for all turns, and one that prints would print once, or twice; in a branch or
a checkpoint within the loop it may be left out if nobody uses its results. All that is refused: a scan whose call would
be moved or left out, an effect in a while_loop in a checkpoint, and a while_loop where it would run again. JAX itself
is asked what it would do. A loop without such calls, or that is not differentiated, is JAX's alone. Where JAX has
another form than those known here, effects are not allowed in loops and branches, and JAX says so.

What only a rule of derivatives calls, and not the function that has it, is not looked for: all loops with such
functions, as `jax.nn.relu` is one, would be traced once more.

A call has to run in each turn if it is ordered, or if its graph is stateful: also with `has_side_effects=False` it
draws as often as it does where nobody differentiates. One that only checks something, which is an effect too, may do
so once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from jax.extend.core import Primitive, jaxprs_in_params
from jax.interpreters import ad, mlir

from jaxtf.calltf._effects import CallTfEffect, CallTfOrderedEffect
from jaxtf.calltf._errors import UnsupportedError
from jaxtf.calltf._function import Function
from jaxtf.calltf._jax import allow_in_control_flow, check_divided_loops, register_batching
from jaxtf.calltf._primitive import call_tf_linear_p, call_tf_p
from jaxtf.calltf._traced import Traced


def calls_of_each_turn(equations: Sequence[Any]) -> list[str]:
    """The names of the functions that equations of a jaxpr call, however deep, and that have to run in each turn."""
    found: list[str] = []
    for equation in equations:
        if equation.primitive is call_tf_p:
            traced: Traced = equation.params["traced"]
            if _runs_each_time(traced):
                found.append(traced.function.name)
        elif equation.primitive is call_tf_linear_p:
            function: Function = equation.params["function"]
            args = equation.invars[: len(equation.invars) - len(equation.params["arguments"])]
            if _runs_each_time(function.trace([arg.aval for arg in args])):
                found.append(function.name)
        else:
            for jaxpr in jaxprs_in_params(equation.params):
                found += calls_of_each_turn(jaxpr.eqns)
    return found


def _runs_each_time(traced: Traced) -> bool:
    return bool(traced.stateful_ops) or traced.function.staging.ordered


def _number_of_effects(equations: Sequence[Any]) -> int:
    """How many calls with effects equations of a jaxpr have, however deep."""
    return sum(
        bool(equation.effects)
        if equation.primitive is call_tf_p
        else sum(_number_of_effects(jaxpr.eqns) for jaxpr in jaxprs_in_params(equation.params))
        for equation in equations
    )


def _refuse_divided(body: Sequence[Any], parts: Callable[[], tuple[Sequence[Any], Sequence[Any]]]) -> None:
    """Raises an error if JAX moves a call out of a scan, or leaves one out that has effects."""
    if not calls_of_each_turn(body):
        return
    moved, left = parts()
    names = calls_of_each_turn(moved)
    if names:
        raise UnsupportedError(
            f"call_tf: a derivative of a loop with a call of {names[0]}, which has effects or draws random numbers and "
            "depends on neither the carry nor the inputs of the loop: JAX would run it once, before the loop, and not "
            "in each turn\n"
            "  remedy: pass the carry, an element of the inputs or a counter to the function: "
            "`call_tf(lambda i: tf.random.normal(()))(i)` with `jax.lax.scan(..., jnp.arange(n))`"
        )
    if _number_of_effects([*moved, *left]) < _number_of_effects(body):
        raise UnsupportedError(
            f"call_tf: a derivative of a loop with a call of {' or '.join(dict.fromkeys(calls_of_each_turn(body)))}, "
            "which has effects, whose results nobody uses, within a branch or jax.checkpoint: JAX would leave it out\n"
            "  remedy: use a result of it in the loop, or make the call outside of branches and jax.checkpoint"
        )


def _refuse_in_checkpoint(equation: Any) -> None:
    """Raises an error if a while_loop has an effect of ours."""
    if any(isinstance(effect, CallTfEffect | CallTfOrderedEffect) for effect in equation.effects):
        raise UnsupportedError(
            f"call_tf: a derivative of jax.checkpoint of a while_loop with a call of {_one_of([equation])}, which has "
            "effects: JAX would run the loop again in the backward pass\n"
            "  remedy: leave jax.checkpoint out there, or use a loop whose number of turns is constant: jax.lax.scan, "
            "jax.lax.fori_loop"
        )


def _one_of(equations: Sequence[Any]) -> str:
    return next(iter(calls_of_each_turn(equations)), "a function")


def _mark_if_repeated(equations: Sequence[Any], repeated: Callable[[], Sequence[Any]]) -> Primitive | None:
    return runs_again_p if calls_of_each_turn(equations) and calls_of_each_turn(repeated()) else None


def _refuse_again(*_: Any) -> NoReturn:
    raise UnsupportedError(
        "call_tf: jax.linearize of a while_loop with a call that has effects or draws random numbers: JAX would run "
        "the loop again for the tangents\n"
        "  remedy: use jax.jvp, or a loop whose number of turns is constant: jax.lax.scan, jax.lax.fori_loop"
    )


# Is at the tangents of such a while_loop, which nobody may ask for.
runs_again_p = Primitive("call_tf_runs_again")
runs_again_p.multiple_results = True
runs_again_p.def_abstract_eval(lambda aval: [aval])
runs_again_p.def_impl(_refuse_again)
mlir.register_lowering(runs_again_p, _refuse_again)
ad.primitive_jvps[runs_again_p] = lambda args, tangents: (runs_again_p.bind(*args), list(tangents))
ad.primitive_transposes[runs_again_p] = lambda cotangents, _: list(cotangents)
register_batching(runs_again_p, lambda _, args, dims: (runs_again_p.bind(*args), dims))

if check_divided_loops(_refuse_divided, _refuse_in_checkpoint, _mark_if_repeated):
    allow_in_control_flow(CallTfEffect)
    allow_in_control_flow(CallTfOrderedEffect)
