"""The steps of a JAX function: each operation that it computes, with its line, and a function that gives all values.

A step is an equation of the function's jaxpr. Functions that JAX calls (`jax.jit`, custom derivatives,
`jax.checkpoint`) are taken apart, and so is the body of a scan, of which each step has one value for each iteration. A
`while_loop` or a `cond` is one step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import ClosedJaxpr, jaxpr_as_fun

from jaxtf.convert import _jax
from jaxtf.serialization.interop import equation_line, is_literal, of_one_equation

__all__ = ["Step", "recording", "steps_of"]


@dataclass(frozen=True)
class Step:
    """One intermediate array of a function.

    Attributes:
      line: `file:line` of the user's program; empty if it is not known.
      primitive: JAX's name of the operation.
      computes: What computes it, from those operands that are variables.
      scan: The number of the outermost scan that it is in, None if it is in none; its values have an axis for each.
      is_reversed: Whether that scan runs from the last iteration to the first.
    """

    line: str
    primitive: str
    computes: ClosedJaxpr
    scan: int | None = None
    is_reversed: bool = False

    @property
    def identity(self) -> tuple[str, str, bool]:
        """What is the same for a step at other sizes."""
        return self.line, self.primitive, self.scan is None

    def operations(self) -> tuple[str, ...]:
        """The StableHLO operations that it is lowered to."""
        text = jax.jit(jaxpr_as_fun(self.computes)).lower(*self.computes.in_avals).as_text()
        return _jax.stablehlo_operations(text)


def steps_of(fun: Callable[..., Any], specs: Sequence[Any]) -> list[Step]:
    """The steps of a function of flat arguments, in order."""
    found = list(_steps(jax.make_jaxpr(fun)(*specs), ""))
    return [replace(step, scan=None if step.scan is None else index_of(step.scan, found)) for step in found]


def index_of(scan: int, steps: Sequence[Step]) -> int:
    """The index of the first step of a scan."""
    return next(index for index, step in enumerate(steps) if step.scan == scan)


def recording(fun: Callable[..., Any]) -> Callable[..., list[Any]]:
    """A function of the same flat arguments that gives the value of each step, in order."""

    def record(*arguments: Any) -> list[Any]:
        specs = [jax.ShapeDtypeStruct(jnp.shape(a), a.dtype, weak_type=jax.typeof(a).weak_type) for a in arguments]
        _, values = _evaluated(jax.make_jaxpr(fun)(*specs), arguments)
        return values

    return record


def _steps(jaxpr: ClosedJaxpr, caller: str) -> Iterator[Step]:
    """The steps of a jaxpr; those without a line, or of a function of JAX's own, are of the line that called it."""
    for equation in jaxpr.jaxpr.eqns:
        line = caller or equation_line(equation)
        inner = _jax.called_jaxpr(equation)
        scanned = _jax.scanned_jaxpr(equation)
        if inner is not None:
            yield from _steps(inner, line if _jax.is_of_jax(inner) else caller)
        elif scanned is not None:
            for step in _steps(scanned, line if _jax.is_of_jax(scanned) else caller):
                yield replace(step, scan=id(equation), is_reversed=equation.params["reverse"])
            yield from _own(jaxpr, equation, line)
        else:
            yield from _own(jaxpr, equation, line)


def _own(jaxpr: ClosedJaxpr, equation: Any, line: str) -> Iterator[Step]:
    computes = of_one_equation(jaxpr, equation)
    yield from (
        Step(line, equation.primitive.name, computes) for variable in equation.outvars if _is_shown(variable.aval)
    )


def _is_shown(aval: Any) -> bool:
    """Whether TensorFlow has values of it: arrays of numbers, and random keys by their numbers."""
    return hasattr(aval, "shape") and hasattr(aval, "dtype") and aval.dtype != _jax.float0


def _shown(value: Any) -> Any:
    return jax.random.key_data(value) if jnp.issubdtype(value.dtype, jax.dtypes.prng_key) else value


def _evaluated(jaxpr: ClosedJaxpr, arguments: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """The results of a jaxpr and the values of its steps, in the order of `_steps`."""
    values = dict(zip((*jaxpr.jaxpr.constvars, *jaxpr.jaxpr.invars), (*jaxpr.consts, *arguments), strict=True))
    recorded: list[Any] = []

    def read(atom: Any) -> Any:
        return atom.val if is_literal(atom) else values[atom]

    for equation in jaxpr.jaxpr.eqns:
        operands = list(map(read, equation.invars))
        inner, scanned = _jax.called_jaxpr(equation), _jax.scanned_jaxpr(equation)
        if inner is not None:
            results, further = _evaluated(inner, operands)
            recorded += further
        elif scanned is not None:
            results, further = _scanned(scanned, equation, operands)
            recorded += further
        else:
            single = of_one_equation(jaxpr, equation)
            results = list(jaxpr_as_fun(single)(*(values[variable] for variable in single.jaxpr.invars)))
        if inner is None:
            pairs = zip(equation.outvars, results, strict=True)
            recorded += [_shown(value) for variable, value in pairs if _is_shown(variable.aval)]
        values.update(zip(equation.outvars, results, strict=True))
    return list(map(read, jaxpr.jaxpr.outvars)), recorded


def _scanned(jaxpr: ClosedJaxpr, equation: Any, operands: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """The results of a scan, and the values of the steps of its body, for all iterations."""
    # What is scanned over has an axis more than a row of it; releases of JAX tell the parts by other parameters.
    carried = sum(outer.aval.ndim == aval.ndim for outer, aval in zip(equation.outvars, jaxpr.out_avals, strict=True))
    first = sum(outer.aval.ndim == aval.ndim for outer, aval in zip(equation.invars, jaxpr.in_avals, strict=True))
    fixed, start, rows = operands[: first - carried], operands[first - carried : first], operands[first:]

    def body(carry: list[Any], row: list[Any]) -> tuple[list[Any], tuple[list[Any], list[Any]]]:
        results, recorded = _evaluated(jaxpr, [*fixed, *carry, *row])
        return results[:carried], (results[carried:], recorded)

    # What is scanned over says how often, also where that is a symbolic size; `length` is an integer.
    length = None if rows else equation.params["length"]
    end, (results, recorded) = jax.lax.scan(
        body, list(start), list(rows), length=length, reverse=equation.params["reverse"]
    )
    return [*end, *results], list(recorded)
