"""Polynomials that are 0 wherever some others are: a Groebner basis, with a bound on its size.

An equality of a scope is a polynomial over atoms that is 0 for all sizes, and so is each sum of its multiples: their
ideal. A Groebner basis decides whether a polynomial is in it, by division, and `quotient` finds `q` with
`dividend - q * divisor` in it. Coefficients are integers; a polynomial that is multiplied by an integer before it is
divided counts as well, because sizes have no torsion. What all terms of a polynomial share is divided out where it
is a product of variables, which are at least 1.

Method: Buchberger's algorithm with the product criterion; each polynomial carries the multiple of the divisor that it
is. A basis that is not finished within the bounds is still sound: it finds less.

Monomials are ordered by degree, where the degree of an operation is that of its operands; then by the order of atoms
that the caller gives. So `4*floordiv(a*b, 4)` is replaced by `a*b`, and not the other way round.

Source: Cox, Little and O'Shea, Ideals, Varieties, and Algorithms (4th edition, 2015), sections 2.6 to 2.10.
Knows expressions; nothing of scopes or decisions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import gcd
from typing import Any, NamedTuple

from jaxtf.shapepoly._expressions.budget import UNBOUNDED, Budget
from jaxtf.shapepoly._expressions.expression import (
    ZERO,
    Atom,
    Expression,
    Monomial,
    Variable,
    divide_monomials,
    integer,
    multiply_monomials,
)

_MOST_PAIRS = 60
_MOST_STEPS = 200
_MOST_TERMS = 60
_HIGHEST_DEGREE = 12
_MOST_BITS = 256
_STEPS_OF_A_TERM = 3


class Ideal:
    """All sums of multiples of some polynomials.

    Args:
      equations: The polynomials.
      order: The atoms of the polynomials, those first that are to be replaced by others.
      budget: Bound on the work.
    """

    def __init__(self, equations: Sequence[Expression], order: Sequence[Atom], budget: Budget = UNBOUNDED) -> None:
        self._order = tuple(order)
        self._budget = budget
        self._key = _key(self._order)
        self._basis = _completed([(equation, ZERO) for equation in equations], self._key, budget)

    def contains(self, expression: Expression) -> bool:
        """Returns whether the expression is known to be 0 wherever the polynomials are."""
        try:
            return not _divided(expression, self._basis, self._budget).rest.terms
        except _TooLarge:
            return False

    def simplified(self, expression: Expression) -> Expression:
        """Returns an expression that differs by one of the ideal, and has smaller monomials or coefficients.

        `6*q` becomes `b + 2*q` where `4*q - b` is 0. Where coefficients of leading monomials are 1, expressions that
        differ by one of the ideal become equal.
        """
        for _ in range(_MOST_STEPS):
            reducible = {
                monomial: found
                for monomial, coefficient in expression.terms.items()
                if (found := _divisor(monomial, self._basis, abs(coefficient))) is not None
            }
            if not reducible:
                break
            monomial = max(reducible, key=self._key)
            element, factor = reducible[monomial]
            coefficient = expression.terms[monomial]
            times = abs(coefficient) // element.coefficient
            self._budget.spend(_STEPS_OF_A_TERM * len(element.polynomial.terms))
            multiple = Expression({factor: times if coefficient > 0 else -times})
            expression = expression - multiple * element.polynomial
        return expression

    def quotient(self, dividend: Expression, divisor: Expression) -> Expression | None:
        """Returns an expression whose product with the divisor is the dividend wherever the polynomials are 0.

        None where none is found.
        """
        order = dict.fromkeys((*self._order, *sorted((*divisor.atoms(), *dividend.atoms()), key=lambda a: a.sort_key)))
        start = [(element.polynomial, ZERO) for element in self._basis]
        try:
            basis = _completed([*start, (divisor, integer(1))], _key(tuple(order)), self._budget)
            factor, rest, quotient = _divided(dividend, basis, self._budget)
        except _TooLarge:
            return None
        if rest.terms:
            return None
        quotient = self.simplified(quotient)
        if any(coefficient % factor for coefficient in quotient.terms.values()):
            return None
        return Expression({monomial: coefficient // factor for monomial, coefficient in quotient.terms.items()})


def degree_of_atom(atom: Atom) -> int:
    """Returns the degree of an atom: that of an operation is the largest of its operands' terms, at least 1."""
    if isinstance(atom, Variable):
        return 1
    return max(1, *(weighted_degree(monomial) for operand in atom.operands for monomial in operand.terms))


def weighted_degree(monomial: Monomial) -> int:
    """Returns the degree of a monomial, with those of its atoms."""
    return sum(degree_of_atom(atom) * exponent for atom, exponent in monomial)


class _TooLarge(Exception):
    """A polynomial grew beyond the bounds."""


class _Element(NamedTuple):
    """A polynomial of a basis.

    Attributes:
      lead: Its leading monomial.
      coefficient: That of the leading monomial; positive.
      polynomial: The polynomial.
      cofactor: What the divisor is multiplied by in it; 0 where it is one of the ideal.
    """

    lead: Monomial
    coefficient: int
    polynomial: Expression
    cofactor: Expression


class _Division(NamedTuple):
    """`factor * dividend` is `rest` plus `quotient` times the divisor, and something of the ideal."""

    factor: int
    rest: Expression
    quotient: Expression


_Key = Callable[[Monomial], Any]


def _key(order: Sequence[Atom]) -> _Key:
    """Returns the key that orders monomials."""

    def key(monomial: Monomial) -> tuple[int, tuple[int, ...]]:
        exponents = dict(monomial)
        return weighted_degree(monomial), tuple(exponents.get(atom, 0) for atom in order)

    return key


def _completed(start: Sequence[tuple[Expression, Expression]], key: _Key, budget: Budget) -> list[_Element]:
    """Returns a Groebner basis of polynomials with their cofactors, or what was made of it within the bounds."""
    basis: list[_Element] = []
    pairs: list[tuple[_Element, _Element]] = []

    def add(polynomial: Expression, cofactor: Expression) -> None:
        factor, rest, quotient = _divided(polynomial, basis, budget)
        if rest.terms:
            element = _element(rest, cofactor.scaled(factor) - quotient, key)
            pairs.extend((other, element) for other in basis)
            basis.append(element)

    try:
        for polynomial, cofactor in sorted(start, key=lambda one: max(map(key, one[0].terms))):
            add(polynomial, cofactor)
        for _ in range(_MOST_PAIRS):
            if not pairs:
                break
            pairs.sort(key=lambda pair: key(_least_common_multiple(pair[0].lead, pair[1].lead)), reverse=True)
            add(*_s_polynomial(*pairs.pop()))
    except _TooLarge:
        pass  # what was found until then is in the ideal
    return [e for e in basis if not any(o is not e and _is_redundant(e, o, basis) for o in basis)]


def _is_redundant(element: _Element, other: _Element, basis: Sequence[_Element]) -> bool:
    """Returns whether the leading monomial of an element is a multiple of that of another one, the earlier if equal."""
    if divide_monomials(element.lead, other.lead) is None or element.coefficient % other.coefficient:
        return False
    same = element.lead == other.lead and element.coefficient == other.coefficient
    return not same or basis.index(other) < basis.index(element)


def _element(polynomial: Expression, cofactor: Expression, key: _Key) -> _Element:
    """Returns an element, without an integer or variables that all terms share."""
    shared = gcd(*polynomial.terms.values(), *cofactor.terms.values())
    lead = max(polynomial.terms, key=key)
    shared = shared if polynomial.terms[lead] > 0 else -shared
    common = _common_variables([*polynomial.terms, *cofactor.terms])

    def reduced(expression: Expression) -> Expression:
        return Expression({_exact(m, common): c // shared for m, c in expression.terms.items()})

    result = reduced(polynomial)
    lead = _exact(lead, common)
    return _Element(lead, result.terms[lead], result, reduced(cofactor))


def without_common_factor(expression: Expression) -> Expression:
    """Returns an expression divided by the integer and the variables that all its terms share."""
    if not expression.terms:
        return expression
    shared = gcd(*expression.terms.values())
    common = _common_variables([*expression.terms])
    return Expression({_exact(m, common): c // shared for m, c in expression.terms.items()})


def _common_variables(monomials: Sequence[Monomial]) -> Monomial:
    """Returns the product of the variables that are factors of all monomials."""
    first, *others = map(dict, monomials)
    return tuple(
        (atom, lowest)
        for atom, exponent in first.items()
        if isinstance(atom, Variable) and (lowest := min([exponent, *(other.get(atom, 0) for other in others)]))
    )


def _exact(monomial: Monomial, by: Monomial) -> Monomial:
    """Returns the quotient of monomials of which one divides the other."""
    quotient = divide_monomials(monomial, by)
    assert quotient is not None, "the divisor is a factor"
    return quotient


def _least_common_multiple(left: Monomial, right: Monomial) -> Monomial:
    missing = {atom: exponent - dict(left).get(atom, 0) for atom, exponent in right}
    return multiply_monomials(left, tuple((atom, exponent) for atom, exponent in missing.items() if exponent > 0))


def _s_polynomial(left: _Element, right: _Element) -> tuple[Expression, Expression]:
    """Returns the combination in which the leading terms of two elements cancel; 0 where they share no factor."""
    multiple = _least_common_multiple(left.lead, right.lead)
    if weighted_degree(multiple) == weighted_degree(left.lead) + weighted_degree(right.lead) and not (
        left.cofactor.terms or right.cofactor.terms
    ):
        return ZERO, ZERO
    shared = gcd(left.coefficient, right.coefficient)
    by_left = Expression({_exact(multiple, left.lead): right.coefficient // shared})
    by_right = Expression({_exact(multiple, right.lead): left.coefficient // shared})
    return (
        by_left * left.polynomial - by_right * right.polynomial,
        by_left * left.cofactor - by_right * right.cofactor,
    )


def _divided(expression: Expression, basis: Sequence[_Element], budget: Budget) -> _Division:
    """Divides by a basis until no monomial is a multiple of a leading one."""
    factor, quotient = 1, ZERO
    for _ in range(_MOST_STEPS):
        step = _step(expression, basis)
        if step is None:
            return _Division(factor, expression, quotient)
        element, by, up = step
        expression = expression.scaled(up) - by * element.polynomial
        quotient, factor = quotient.scaled(up) + by * element.cofactor, factor * up
        budget.spend(_STEPS_OF_A_TERM * (len(expression.terms) + len(quotient.terms)))
        _check_size(expression)
        _check_size(quotient)
    raise _TooLarge


def _step(expression: Expression, basis: Sequence[_Element]) -> tuple[_Element, Expression, int] | None:
    """Returns an element, and factors for it and for the expression, with which a term of the expression goes."""
    for monomial, coefficient in expression.terms.items():
        found = _divisor(monomial, basis)
        if found is not None:
            element, factor = found
            shared = gcd(coefficient, element.coefficient)
            return element, Expression({factor: coefficient // shared}), element.coefficient // shared
    return None


def _divisor(
    monomial: Monomial, basis: Sequence[_Element], largest: int | None = None
) -> tuple[_Element, Monomial] | None:
    """Returns an element whose leading monomial divides another one, and the quotient.

    Its coefficient is not above the largest, where one is given.
    """
    for element in basis:
        if largest is None or element.coefficient <= largest:
            factor = divide_monomials(monomial, element.lead)
            if factor is not None:
                return element, factor
    return None


def _check_size(expression: Expression) -> None:
    terms = expression.terms
    if len(terms) > _MOST_TERMS or any(
        c.bit_length() > _MOST_BITS or weighted_degree(m) > _HIGHEST_DEGREE for m, c in terms.items()
    ):
        raise _TooLarge
