"""Maxima of any number of expressions, in one normal form.

`max(e0, ..., en)` becomes `e0 + k*MAX(d1, ..., dn)`: the atom is the largest of 0 and its operands, e0 is
the operand that comes first in an order that adding the same to all operands does not change, and k
is the integer that all differences share. So `max(a, b) == max(b, a)`, `max(a, b) + min(a, b) == a + b` and
`max(a + c, b + c) == max(a, b) + c` hold by form.

Operands that are sums with maxima are spread out: `max(x, r + max(y, z))` is `max(x, r + y, r + z)`, whatever
the order in which a maximum of many was made. Terms that both sides share are taken out before. An
operand that another one exceeds for all sizes is left out; what exceeds what is the caller's to know.

Method: normal forms of tropical polynomials; sums of several maxima are spread only up to a bound.
"""

from collections.abc import Callable, Sequence
from math import gcd

from jaxtf.shapepoly._expressions.expression import (
    MAXIMUM,
    ZERO,
    Expression,
    Operation,
    from_atom,
    integer,
    monomial_order,
)

_LARGEST_PRODUCT = 32
"""How many operands the spreading of a sum of several maxima may make."""


def maximum(left: Expression, right: Expression, never_negative: Callable[[Expression], bool]) -> Expression:
    """Returns the normal form of `max(left, right)`.

    Args:
      left: One operand.
      right: The other one.
      never_negative: Whether an expression is known to be at least 0 for all sizes.
    """
    shared, left, right, maxima = _without_shared_maxima(left, right)
    lefts, rights = _spread(left, maxima, 1), _spread(right, maxima, -1)
    lefts = [e for e in lefts if not any(never_negative(other - e) for other in rights)]
    rights = [e for e in rights if not any(never_negative(other - e) for other in lefts)]
    return shared + _normal_form([*lefts, *rights])


def linear_maxima(expression: Expression) -> dict[Operation, int]:
    """Returns the maxima that are terms of an expression, with their coefficients."""
    found = {}
    for monomial, coefficient in expression.terms.items():
        if len(monomial) == 1:
            atom, exponent = monomial[0]
            if exponent == 1 and isinstance(atom, Operation) and atom.name == MAXIMUM:
                found[atom] = coefficient
    return found


def _without_shared_maxima(
    left: Expression, right: Expression
) -> tuple[Expression, Expression, Expression, dict[Operation, int]]:
    """Takes out of two operands the maxima that are their terms.

    Returns:
      What both share; the two operands without maxima; the maxima that remain, each with the factor it
      has, positive where it belongs to the left operand and negative where it belongs to the right one.
    """
    ours, theirs = linear_maxima(left), linear_maxima(right)
    shared, remaining = ZERO, {}
    for atom in sorted({**ours, **theirs}, key=lambda atom: atom.sort_key):
        mine, other = ours.get(atom, 0), theirs.get(atom, 0)
        term = from_atom(atom)
        shared = shared.plus(term, min(mine, other))
        left, right = left.plus(term, -mine), right.plus(term, -other)
        if mine != other:
            remaining[atom] = mine - other
    return shared, left, right, remaining


def _spread(operand: Expression, maxima: dict[Operation, int], sign: int) -> list[Expression]:
    """Returns operands whose maximum is the operand plus those maxima whose factor has the sign."""
    spread = [operand]
    for atom, factor in maxima.items():
        times = factor * sign
        if times <= 0:
            continue
        choices = (ZERO, *atom.operands)
        if len(spread) > 1 and len(spread) * len(choices) > _LARGEST_PRODUCT:
            spread = [e.plus(from_atom(atom), times) for e in spread]
        else:
            spread = [e.plus(choice, times) for e in spread for choice in choices]
    return spread


def _normal_form(operands: Sequence[Expression]) -> Expression:
    """Returns the maximum of expressions as a sum with an atom, or as one of them if they are one."""
    monomials = sorted({m for operand in operands for m in operand.terms}, key=monomial_order)
    coefficients = {tuple(operand.terms.get(m, 0) for m in monomials): operand for operand in operands}
    first, *others = (coefficients[key] for key in sorted(coefficients))
    if not others:
        return first
    differences = [other - first for other in others]
    shared = gcd(*(c for difference in differences for c in difference.terms.values()))
    reduced = (Expression({m: c // shared for m, c in difference.terms.items()}) for difference in differences)
    return first + from_atom(Operation(MAXIMUM, tuple(reduced))).scaled(shared)


def positive_part(expression: Expression) -> Expression:
    """Returns the normal form of `max(expression, 0)`, knowing nothing of sizes."""
    return maximum(expression, integer(0), lambda e: (e.as_integer if e.as_integer is not None else -1) >= 0)
