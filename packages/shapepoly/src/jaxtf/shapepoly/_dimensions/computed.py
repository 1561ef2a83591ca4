"""What a program computes for a symbolic dimension, apart from sums and products within it.

Sums and products of integers with few bits are exact where their result fits, whatever they go through. A quotient or
a maximum is not: its operands must fit, too. Knows which values variables can take.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from jaxtf.shapepoly._dimensions.dimension import Dimension
from jaxtf.shapepoly._dimensions.scope import SymbolicScope
from jaxtf.shapepoly._expressions.expression import (
    FLOORDIV,
    ONE,
    Atom,
    Expression,
    Operation,
    Variable,
    degree,
    integer,
)


def computed_parts(
    dimension: Dimension, most: int, *, largest: Mapping[str, int] | None = None
) -> tuple[Dimension, ...]:
    """Returns the parts of a dimension, itself among them, that must fit in some bits and may not.

    Variables and their multiples that are only divided by integers need not be looked at: they are divided first.

    >>> from jaxtf.shapepoly import symbolic_shape
    >>> a, b, c, d = symbolic_shape("a*b + 1, floordiv(a*b + a, 2), 5*b, floordiv(3*b, 4)")
    >>> [computed_parts(size, 1000) for size in (a, b, c, d)]
    [(a*b + 1,), (a*b, floordiv(a*b + a, 2)), (5*b,), ()]

    Args:
      dimension: What a program computes.
      most: A part may not fit where it, or its negative, may be larger while no variable is.
      largest: What variables may be at most, where that is not `most`.
    """
    limits = _Limits(most, largest or {})
    parts = dict.fromkeys([*_operands(dimension.expression, limits), dimension.expression])
    return tuple(Dimension(part, dimension.scope) for part in parts if _may_be_larger(part, limits, dimension.scope))


@dataclass(frozen=True)
class _Limits:
    most: int
    largest: Mapping[str, int]

    def of(self, variable: Variable) -> int:
        """What a variable may be at most."""
        return self.largest.get(variable.name, self.most)


def _operands(expression: Expression, limits: _Limits) -> Iterator[Expression]:
    """The operands that must fit, within an expression."""
    for monomial in expression.terms:
        for atom, _ in monomial:
            if not isinstance(atom, Operation):
                continue
            for operand in atom.operands:
                yield from _operands(operand, limits)
            if atom.name == FLOORDIV and atom.operands[1].as_integer:
                yield from _divided(atom.operands[0], limits)
            else:
                yield from atom.operands


def _divided(dividend: Expression, limits: _Limits) -> Iterator[Expression]:
    """The terms of a dividend by an integer, each with the number that may be added before it is divided."""
    number = integer(abs(dividend.terms.get(ONE, 0)))
    for monomial in dividend.terms:
        is_large = any(isinstance(atom, Variable) and limits.of(atom) > limits.most for atom, _ in monomial)
        if degree(monomial) > 1 or is_large:
            yield Expression({monomial: 1}) + number


def _may_be_larger(part: Expression, limits: _Limits, scope: SymbolicScope) -> bool:
    most = limits.most
    least, greatest = _range(part, limits)
    if -most <= least and greatest <= most:
        return False
    lower, upper = scope.algebra.decider.bounds(part)
    return not (-most <= lower and upper <= most)


def _range(expression: Expression, limits: _Limits) -> tuple[int, int]:
    """What encloses the values where the variables are up to their limits."""
    lower = upper = 0
    for monomial, coefficient in expression.terms.items():
        term = (coefficient, coefficient)
        for atom, exponent in monomial:
            for _ in range(exponent):
                products = [x * y for x in term for y in _range_of_atom(atom, limits)]
                term = min(products), max(products)
        lower, upper = lower + term[0], upper + term[1]
    return lower, upper


def _range_of_atom(atom: Atom, limits: _Limits) -> tuple[int, int]:
    if isinstance(atom, Variable):
        return 0, limits.of(atom)
    ranges = [_range(operand, limits) for operand in atom.operands]
    if atom.name != FLOORDIV:
        return max(0, *(lower for lower, _ in ranges)), max(0, *(upper for _, upper in ranges))
    dividends, (low, high) = ranges
    divisors = [divisor for divisor in (low, high, -1, 1) if divisor and low <= divisor <= high] or [1]
    quotients = [dividend // divisor for dividend in dividends for divisor in divisors]
    return min(quotients), max(quotients)
