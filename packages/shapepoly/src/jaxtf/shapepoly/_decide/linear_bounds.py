"""Bounds of expressions by replacing their operations with linear expressions.

Interval arithmetic forgets that `a` and `4*(a//4)` go together. Here the operations among the terms of an
expression are replaced by what bounds them, and intervals come last, when terms have met:

- `e // k`, k a positive integer, lies between `(e - k + 1) / k` and `e / k`;
- `c*max(0, e1, ...)` is the largest of `0, c*e1, ...` where c is positive, the smallest where it is negative.

This decides everyday questions, such as `4*(a//4) <= a` and `min(a, b) >= 1`, without integer sets. Sound, and
not always tight. Operations inside products keep their intervals.
"""

from math import inf

from jaxtf.shapepoly._decide.intervals import Bound, Enclosure, Interval
from jaxtf.shapepoly._expressions.expression import FLOORDIV, Expression, Monomial, Operation

_MOST_CASES = 256
"""How many cases of maxima are looked at for one expression."""


def linear_bounds(expression: Expression, enclosure: Enclosure) -> Interval:
    """Returns an interval that contains every value of an expression.

    Args:
      expression: The expression.
      enclosure: Intervals of expressions.
    """
    lower, upper = enclosure.of(expression)
    if not any(_is_operation(monomial) for monomial in expression.terms):
        return Interval(lower, upper)
    below = _lower(expression, enclosure, _MOST_CASES)
    above = -_lower(-expression, enclosure, _MOST_CASES)
    return Interval(max(lower, below), min(upper, above))


def _lower(expression: Expression, enclosure: Enclosure, cases: int) -> Bound:
    """Returns a lower bound of the expression."""
    found = _next_operation(expression)
    if found is None:
        return enclosure.of(expression).lower
    operation, monomial, factor = found
    rest = Expression({m: c for m, c in expression.terms.items() if m != monomial})
    if operation.name == FLOORDIV:
        return _lower_of_quotient(rest, operation, factor, enclosure, cases)
    cases //= len(operation.operands) + 1
    if cases < 1:
        return -inf
    bounds = [_lower(rest, enclosure, cases)]
    for operand in operation.operands:
        if factor < 0 and bounds[-1] == -inf:
            return -inf
        bounds.append(_lower(rest.plus(operand, factor), enclosure, cases))
    return max(bounds) if factor > 0 else min(bounds)


def _lower_of_quotient(rest: Expression, quotient: Operation, factor: int, enclosure: Enclosure, cases: int) -> Bound:
    """Returns a lower bound of `rest + factor * quotient`."""
    dividend, divisor = quotient.operands
    by = divisor.constant
    scaled = rest.scaled(by).plus(dividend, factor)
    lower = _lower(scaled, enclosure, cases)
    if lower == -inf:
        return lower
    lower -= factor * (by - 1) if factor > 0 else 0
    return -(-lower // by)


def _next_operation(expression: Expression) -> tuple[Operation, Monomial, int] | None:
    """Returns the operation to replace: a quotient, then a maximum to be small, then one to be large.

    Of two of a kind the larger one comes first, because it may contain the other.
    """
    best: tuple[Operation, Monomial, int] | None = None
    rank = (3, 0)
    for monomial, factor in expression.terms.items():
        if _is_operation(monomial):
            operation = monomial[0][0]
            assert isinstance(operation, Operation)
            kind = 0 if operation.name == FLOORDIV else 1 if factor < 0 else 2
            if (kind, -operation.size) < rank:
                best, rank = (operation, monomial, factor), (kind, -operation.size)
    return best


def _is_operation(monomial: Monomial) -> bool:
    """Returns whether a monomial is a maximum or a quotient by an integer."""
    if len(monomial) != 1 or monomial[0][1] != 1:
        return False
    atom = monomial[0][0]
    return isinstance(atom, Operation) and (atom.name != FLOORDIV or atom.operands[1].as_integer is not None)
