"""Intervals that enclose the values of expressions, from intervals of their variables.

Interval arithmetic: sound for every expression, exact for sums of distinct variables, cheap. Bounds
are integers or the two infinities. Knows nothing of constraints between variables.

Source: Moore, Interval Analysis (1966).
"""

from collections.abc import Callable
from math import inf
from typing import NamedTuple

from jaxtf.shapepoly._expressions.expression import FLOORDIV, Atom, Expression, Monomial, Operation, Variable

Bound = int | float
"""An integer, `inf` or `-inf`."""


class Interval(NamedTuple):
    """All integers from `lower` to `upper`, both included; what computes with them relies on `lower <= upper`."""

    lower: Bound
    upper: Bound


EVERYTHING = Interval(-inf, inf)


def plus(left: Bound, right: Bound) -> Bound:
    """Returns the sum of bounds that are not opposite infinities; an integer may be larger than any float."""
    if isinstance(left, int) and isinstance(right, int):
        return left + right
    return left if isinstance(left, float) else right


def times(left: Bound, right: Bound) -> Bound:
    """Returns the product, where 0 times an infinity is 0."""
    if left == 0 or right == 0:
        return 0
    if isinstance(left, int) and isinstance(right, int):
        return left * right
    return inf if (left > 0) == (right > 0) else -inf


def multiply(left: Interval, right: Interval) -> Interval:
    """Returns the interval of products."""
    corners = [times(a, b) for a in left for b in right]
    return Interval(min(corners), max(corners))


def divide(dividend: Interval, divisor: Interval) -> Interval:
    """Returns the interval of floor quotients; everything where the divisor may be 0."""
    if divisor.upper < 0:
        dividend, divisor = multiply(dividend, Interval(-1, -1)), multiply(divisor, Interval(-1, -1))
    if divisor.lower < 1:
        return EVERYTHING
    corners = [_quotient(a, b) for a in dividend for b in divisor]
    return Interval(min(corners), max(corners))


def _quotient(dividend: Bound, divisor: Bound) -> Bound:
    """Returns the floor quotient, or its limit; the divisor is positive."""
    if dividend in (inf, -inf):
        # inf / inf: the corner with the finite divisor bounds it from the other side
        return dividend if divisor != inf else (0 if dividend > 0 else -1)
    if divisor == inf:
        return 0 if dividend >= 0 else -1
    return int(dividend) // int(divisor)


def power(base: Interval, exponent: int) -> Interval:
    """Returns the interval of powers."""
    low, high = (_power(bound, exponent) for bound in base)
    if exponent % 2 == 0 and base.lower < 0:
        return Interval(0 if base.upper >= 0 else min(low, high), max(low, high))
    return Interval(low, high)


def _power(bound: Bound, exponent: int) -> Bound:
    result: Bound = 1
    for _ in range(exponent):
        result = times(result, bound)
    return result


class Enclosure:
    """Encloses expressions in intervals, given the interval of each variable.

    Args:
      of_variable: Returns the interval of the variable of a name.
    """

    def __init__(self, of_variable: Callable[[str], Interval]) -> None:
        self._of_variable = of_variable

    def of(self, expression: Expression) -> Interval:
        """Returns an interval that contains every value of the expression."""
        lower: Bound = 0
        upper: Bound = 0
        for monomial, coefficient in expression.terms.items():
            if not monomial:
                lower, upper = plus(lower, coefficient), plus(upper, coefficient)
                continue
            low, high = self.of_monomial(monomial)
            if coefficient < 0:
                low, high = high, low
            lower, upper = plus(lower, times(coefficient, low)), plus(upper, times(coefficient, high))
        return Interval(lower, upper)

    def of_monomial(self, monomial: Monomial) -> Interval:
        """Returns an interval that contains every value of the monomial."""
        if len(monomial) == 1 and monomial[0][1] == 1:
            return self.of_atom(monomial[0][0])
        result = Interval(1, 1)
        for atom, exponent in monomial:
            result = multiply(result, power(self.of_atom(atom), exponent))
        return result

    def of_atom(self, atom: Atom) -> Interval:
        """Returns an interval that contains every value of the atom."""
        if isinstance(atom, Variable):
            return self._of_variable(atom.name)
        return self._of_operation(atom)

    def _of_operation(self, operation: Operation) -> Interval:
        intervals = [self.of(operand) for operand in operation.operands]
        if operation.name == FLOORDIV:
            return divide(*intervals)
        return Interval(max(0, *(i.lower for i in intervals)), max(0, *(i.upper for i in intervals)))
