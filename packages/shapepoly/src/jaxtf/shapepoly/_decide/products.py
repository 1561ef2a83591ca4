"""Lower bounds of products from the bounds of their factors, which normal forms hide.

`b * (a % 4)` is `a*b - 4*b*(a//4)` in normal form, and `b * min(a, 5)` is `a*b - b*max(0, a - 5)`. Here an expression
is written as `factor * quotient + rest` again, where the factor is a remainder, a minimum, a maximum, a variable or
what all terms share; where neither factor nor quotient is negative, their lower bounds multiply, and where the quotient
may be negative, its lower bound and the upper one of the factor. Sound, and not always tight. All ways are tried, so
that the answer does not depend on the order of terms; if they are too many, none counts.

In: an expression, and lower bounds of those that are simpler. Out: a lower bound.
"""

from collections.abc import Callable, Iterator, Sequence
from math import inf
from typing import NamedTuple

from jaxtf.shapepoly._decide.intervals import Bound, plus, times
from jaxtf.shapepoly._expressions.anonymous import is_linear
from jaxtf.shapepoly._expressions.expression import (
    FLOORDIV,
    ZERO,
    Atom,
    Expression,
    Monomial,
    Operation,
    divide_monomials,
    from_atom,
)
from jaxtf.shapepoly._expressions.normal import polynomial_division

_DEEPEST = 5
_MOST_TERMS = 16
_MOST_PARTS = 200


class Split(NamedTuple):
    """An expression as `factor * quotient + rest`."""

    factor: Expression
    quotient: Expression
    rest: Expression


def lower_bound(
    expression: Expression, simple: Callable[[Expression], Bound], positive: Sequence[Expression] = ()
) -> Bound:
    """Returns a lower bound of an expression.

    Args:
      expression: The expression.
      simple: Returns a lower bound of an expression without regard to its factors.
      positive: Sums that are at least 1, for factors that are multiplied out: variables that were replaced by them.
    """
    if len(expression.terms) > _MOST_TERMS:
        return -inf
    try:
        return _Search(simple, positive).lower_bound(expression, _DEEPEST)
    except _TooMany:
        return -inf


class _TooMany(Exception):
    """There are too many ways to split an expression."""


class _Search:
    """All ways to split one expression."""

    def __init__(self, simple: Callable[[Expression], Bound], positive: Sequence[Expression]) -> None:
        self._simple = simple
        self._positive = positive
        self._known: dict[tuple[Expression, int], Bound] = {}

    def lower_bound(self, expression: Expression, depth: int) -> Bound:
        """Returns a lower bound, with so many factors taken out at most."""
        known = self._known.get((expression, depth))
        if known is None:
            if len(self._known) >= _MOST_PARTS:
                raise _TooMany
            known = self._known[expression, depth] = self._lower_bound(expression, depth)
        return known

    def _lower_bound(self, expression: Expression, depth: int) -> Bound:
        best = max(self._simple(expression), 1 if expression in self._positive else -inf)
        if depth == 0 or is_linear(expression):
            return best
        for factor, quotient, rest in self._splits(expression):
            below = self.lower_bound(factor, depth - 1)
            if below < 0:
                continue
            other = self.lower_bound(quotient, depth - 1)
            least = times(below, other) if other >= 0 else times(-self._simple(-factor), other)
            if least > -inf:
                best = max(best, plus(least, self.lower_bound(rest, depth - 1)))
        return best

    def _splits(self, expression: Expression) -> Iterator[Split]:
        """Yields ways to split an expression, by sums that are positive too."""
        for factor in self._positive:
            quotient, rest = polynomial_division(expression, factor)
            if quotient.terms and len(rest.terms) < len(expression.terms):
                yield Split(factor, quotient, rest)
                if not rest.terms:
                    return
        yield from _splits(expression)


def _splits(expression: Expression) -> Iterator[Split]:
    """Yields ways to split an expression, the rest always with fewer terms."""
    shared = _shared_factor(expression)
    if shared:
        yield Split(Expression({shared: 1}), _divided(expression, shared), ZERO)
        return
    for atom in dict.fromkeys(expression.atoms()):
        power: Monomial = ((atom, 1),)
        multiple = Expression({m: c for m, c in expression.terms.items() if any(atom == other for other, _ in m)})
        rest = expression - multiple
        by = _divided(multiple, power)
        for factor, quotient in _factors(atom, by):
            remaining = expression - factor * quotient
            if len(remaining.terms) < len(expression.terms):
                yield Split(factor, quotient, remaining)
        if rest.terms and len(multiple.terms) > 1:
            yield Split(from_atom(atom), by, rest)


def _factors(atom: Atom, by: Expression) -> Iterator[tuple[Expression, Expression]]:
    """Yields remainders, minima and maxima that an operation may come from, with what they are multiplied by."""
    if not isinstance(atom, Operation):
        return
    if atom.name == FLOORDIV:
        dividend, divisor = atom.operands
        n = divisor.as_integer
        if n is not None and all(coefficient % n == 0 for coefficient in by.terms.values()):
            yield (
                dividend - from_atom(atom).scaled(n),
                Expression({m: -c // n for m, c in by.terms.items()}),
            )
        return
    for operand in atom.operands:
        positive = Expression({m: c for m, c in operand.terms.items() if c > 0})
        negative = positive - operand
        yield positive - from_atom(atom), -by
        yield negative + from_atom(atom), by


def _shared_factor(expression: Expression) -> Monomial:
    """Returns the monomial that all terms share."""
    monomials = [dict(monomial) for monomial in expression.terms]
    return tuple(
        (atom, lowest)
        for atom in (monomials[0] if monomials else ())
        if (lowest := min(monomial.get(atom, 0) for monomial in monomials))
    )


def _divided(expression: Expression, by: Monomial) -> Expression:
    """Returns an expression of which each term has a factor, without it."""
    terms: dict[Monomial, int] = {}
    for monomial, coefficient in expression.terms.items():
        quotient = divide_monomials(monomial, by)
        assert quotient is not None, "each term has the factor"
        terms[quotient] = coefficient
    return Expression(terms)
