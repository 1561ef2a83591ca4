"""`suggest_constraints`: what a function asks of its symbolic sizes, found by tracing it again and again.

A trace ends at the first comparison that is inconclusive; its error advises a constraint. It is taken, if some sizes
satisfy it together with those before it, and the function is traced again, until a trace ends or fails otherwise.
Knows texts, scopes and errors; JAX traces.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from jaxtf.shapepoly._dimensions.dimension import compatibility_module
from jaxtf.shapepoly._dimensions.log import raised_at
from jaxtf.shapepoly._dimensions.scope import SymbolicScope
from jaxtf.shapepoly._dimensions.sizes import is_symbolic_dim
from jaxtf.shapepoly._errors import InconclusiveDimensionOperation, ScopeError, ShapeSpecError
from jaxtf.shapepoly._shapes import symbolic_shape

# How errors of this package advise a constraint.
_ADVISED = re.compile(r'add the constraint "([^"]+)"')

# What JAX says of a reshape (JAX 0.10.2 and 0.12.0.1).
_REMAINDER = re.compile(r"The remainder -?(.+) should be 0\.")

_MOST_TRACES = 100


@dataclass(frozen=True)
class SuggestedConstraint:
    """A constraint that a function needs.

    Attributes:
      text: As `constraints` and `polymorphic_constraints` take it.
      asked_at: File, line and function of the user's program that asked.
      question: What was inconclusive there, in a line.
    """

    text: str
    asked_at: str
    question: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class SuggestedConstraints:
    """The constraints that a function needs of its symbolic sizes, besides those that it was given.

    Attributes:
      constraints: Those needed, in the order in which they were found.
      error: Why the trace failed under all of these; empty if one succeeded.
    """

    constraints: tuple[SuggestedConstraint, ...]
    error: str = ""

    @property
    def texts(self) -> list[str]:
        """The constraints as `constraints` and `polymorphic_constraints` take them."""
        return [constraint.text for constraint in self.constraints]

    def __str__(self) -> str:
        lines = [f"constraints={self.texts!r}"] if self.constraints else ["no further constraints are needed"]
        lines += [f"  {c.text!r:24} needed at {c.asked_at}: {c.question}" for c in self.constraints]
        if self.error:
            lines = lines if self.constraints else []
            lines.append(f"with {'all of these' if self.constraints else 'none of them'} the trace fails: {self.error}")
        return "\n".join(lines)


def suggest_constraints(fun: Callable[..., Any], *specs: Any) -> SuggestedConstraints:
    """The constraints that a function needs to be traced with symbolic sizes, each with the line that asks for it.

    A draft: it takes the first of the constraints that an inconclusive comparison advises, so that an `if` on sizes
    takes the branch where it holds. Read them before you paste them: other sizes are refused at run time.

    Args:
      fun: A JAX function.
      specs: The specifications of its arguments, such as `jax.ShapeDtypeStruct`, with sizes of one scope; its
        constraints hold.

    Returns:
      The constraints, without those that others imply, and the error if a trace fails for another reason: where one
      contradicts those before it, with their texts.

    Raises:
      JaxRequiredError: JAX is not installed.
      ScopeError: The sizes are of two scopes.

    >>> import jax, jax.numpy as jnp
    >>> from jaxtf.shapepoly import suggest_constraints, symbolic_shape
    >>> spec = jax.ShapeDtypeStruct(symbolic_shape("b, n"), jnp.float32)
    >>> suggest_constraints(lambda x: jax.lax.slice(x, (0, 0), (4, 3)), spec).texts
    ['b >= 4', 'n >= 3']
    """
    jax = compatibility_module("suggest_constraints")
    leaves, structure = jax.flat(specs)
    given = _constraints_of([leaf for _, leaf in leaves])
    needed: list[SuggestedConstraint] = []
    for _ in range(_MOST_TRACES):
        scope = SymbolicScope([*given, *(constraint.text for constraint in needed)])
        try:
            jax.trace(fun, jax.unflat(structure, [_in_scope(leaf, scope, jax.spec_of) for _, leaf in leaves]))
        except Exception as error:  # whatever ends the trace
            further, refused = _next(error, given, needed)
            if further is None:
                return SuggestedConstraints(_without_implied(given, needed), refused)
            needed.append(further)
        else:
            return SuggestedConstraints(_without_implied(given, needed))
    return SuggestedConstraints(_without_implied(given, needed), f"it needs more than {_MOST_TRACES} constraints")


def _constraints_of(leaves: Sequence[Any]) -> list[str]:
    """The constraints of the scope of the sizes.

    Raises:
      ScopeError: There are two.
    """
    scopes = {size.scope for leaf in leaves for size in getattr(leaf, "shape", ()) if is_symbolic_dim(size)}
    if len(scopes) > 1:
        raise ScopeError(
            "the specifications have sizes of two scopes\n"
            "  remedy: make them with one scope: symbolic_shape(..., scope=scope), or symbolic_args_specs"
        )
    return [constraint.text for scope in scopes for constraint in scope.constraints]


def _in_scope(spec: Any, scope: SymbolicScope, spec_of: Callable[..., Any]) -> Any:
    """A specification with its sizes in another scope, by their texts."""
    sizes = getattr(spec, "shape", ())
    if not any(map(is_symbolic_dim, sizes)):
        return spec
    return spec_of(spec, symbolic_shape(f"({', '.join(map(str, sizes))},)", scope=scope))


def _next(
    error: Exception, given: Sequence[str], needed: Sequence[SuggestedConstraint]
) -> tuple[SuggestedConstraint | None, str]:
    """The first constraint that an error advises and that is not known; else None, and why."""
    known = [*given, *(constraint.text for constraint in needed)]
    where, question = raised_at(error) or "an unknown line", str(error).partition("\n")[0]
    refusals = []
    for text in _advised(str(error)):
        if text in known:
            continue
        try:
            SymbolicScope([*known, text])
        except (ScopeError, ShapeSpecError, InconclusiveDimensionOperation) as refusal:
            refusals.append(f"'{text}', asked for at {where}: {refusal}")
            continue
        return SuggestedConstraint(text, where, question), ""
    return None, "; ".join(refusals) or f"{type(error).__name__}: {question}, at {where}"


def _advised(message: str) -> list[str]:
    """The constraints that would do away with an error, one of them each."""
    remainders = [f"{text} == 0" for text in _REMAINDER.findall(message)]
    return [*dict.fromkeys(_ADVISED.findall(message)), *remainders]


def _without_implied(given: Sequence[str], needed: Sequence[SuggestedConstraint]) -> tuple[SuggestedConstraint, ...]:
    """The constraints that the others do not imply."""
    kept = list(needed)
    for constraint in needed:
        others = [*given, *(other.text for other in kept if other is not constraint)]
        if _is_implied(constraint.text, others):
            kept.remove(constraint)
    return tuple(kept)


def _is_implied(text: str, others: Sequence[str]) -> bool:
    """Whether constraints imply another one."""
    scope = SymbolicScope(others)
    try:
        [constraint] = SymbolicScope([text]).constraints
        (difference,) = symbolic_shape(f"{constraint.difference_text} + 1,", scope=scope)
        return bool(difference == 1 if constraint.relation == "==" else difference >= 1)
    except (InconclusiveDimensionOperation, ShapeSpecError):
        return False
