"""Normal forms of floor division and remainder of expressions.

What holds for all integers is used here, and one fact about variables: they are at least 1. What
depends on constraints is left to `_dimensions.scope`. Writing `e // k` for `floordiv(e, k)`:

- k an integer: multiples of k leave the division, so the coefficients inside lie in [0, k); a factor
  that all of them share with k is divided out (the constant rounds down); and
  `(t + e // j) // k` with j, k > 0 is `(j*t + e) // (j*k)`.
- k an expression: polynomial division, where quotient and rest are the same in whatever order variables
  are named: the rest is 0 or of smaller degree in the variables of k, or k is a single term; then both
  sides are divided by the integer and by the variables that all their terms share.

Each rule removes terms or makes coefficients smaller, so rewriting ends.
"""

from math import gcd

from jaxtf.shapepoly._expressions.expression import (
    FLOORDIV,
    ZERO,
    Expression,
    Monomial,
    Operation,
    Variable,
    degree,
    divide_monomials,
    from_atom,
    integer,
    monomial_order,
)

# Quotients of quotients become one up to this divisor, which the integers of a program hold.
_MOST_DIVISOR = 2**31 - 1


def floordiv(dividend: Expression, divisor: Expression) -> Expression:
    """Returns the normal form of `dividend // divisor`, rounding towards minus infinity as Python does.

    Raises:
      ZeroDivisionError: The divisor is the integer 0. An expression that is 0 for some sizes is the
        caller's to refuse.
    """
    by = divisor.as_integer
    if by == 0:
        raise ZeroDivisionError(f"division of the symbolic dimension expression {dividend!r} by zero")
    if by is None:
        return _divide_by_expression(dividend, divisor)
    return _divide_by_integer(dividend, by) if by > 0 else _divide_by_integer(-dividend, -by)


def mod(dividend: Expression, divisor: Expression) -> Expression:
    """Returns the normal form of `dividend % divisor`, with the sign of the divisor as in Python."""
    return dividend - divisor * floordiv(dividend, divisor)


def _divide_by_integer(dividend: Expression, by: int) -> Expression:
    """Returns the normal form of `dividend // by` for a positive integer."""
    quotient = Expression({m: c // by for m, c in dividend.terms.items() if c // by})
    rest = Expression({m: c % by for m, c in dividend.terms.items() if c % by})
    if rest.as_integer is not None:
        return quotient
    shared = gcd(by, *(c for m, c in rest.terms.items() if m))
    if shared > 1:
        rest = Expression({m: c // shared for m, c in rest.terms.items() if c // shared})
        by //= shared
    if by == 1:
        return quotient + rest
    inner = _division_with_unit_coefficient(rest)
    if inner is None or by * inner.operands[1].constant > _MOST_DIVISOR:
        return quotient + from_atom(Operation(FLOORDIV, (rest, integer(by))))
    inner_dividend, inner_by = inner.operands
    factor = inner_by.constant
    combined = (rest - from_atom(inner)).scaled(factor) + inner_dividend
    return quotient + _divide_by_integer(combined, factor * by)


def _division_with_unit_coefficient(expression: Expression) -> Operation | None:
    """Returns the first term of the form `e // k` with coefficient 1 and integer k, if there is one."""
    for monomial, coefficient in expression.sorted_terms():
        if coefficient != 1 or len(monomial) != 1:
            continue
        atom, exponent = monomial[0]
        if exponent == 1 and isinstance(atom, Operation) and atom.name == FLOORDIV and atom.operands[1].as_integer:
            return atom
    return None


def _divide_by_expression(dividend: Expression, divisor: Expression) -> Expression:
    """Returns the normal form of `dividend // divisor` for a divisor that is not an integer."""
    if divisor.sorted_terms()[0][1] < 0:
        dividend, divisor = -dividend, -divisor
    divide = _division_by_term if len(divisor.terms) == 1 else polynomial_division
    quotient, rest = divide(dividend, divisor)
    if rest == ZERO:
        return quotient
    rest, divisor = _without_shared_factors(rest, divisor)
    by = divisor.as_integer
    if by is not None:
        return quotient + _divide_by_integer(rest, by)
    return quotient + from_atom(Operation(FLOORDIV, (rest, divisor)))


def _division_by_term(dividend: Expression, divisor: Expression) -> tuple[Expression, Expression]:
    """Returns the multiple of a divisor of one term, divided by it, and the terms that are not multiples."""
    ((leading, by),) = divisor.terms.items()
    quotient: dict[Monomial, int] = {}
    rest: dict[Monomial, int] = {}
    for monomial, coefficient in dividend.terms.items():
        factor = divide_monomials(monomial, leading)
        if factor is None or coefficient % by:
            rest[monomial] = coefficient
        else:
            quotient[factor] = coefficient // by
    return Expression(quotient), Expression(rest)


def polynomial_division(dividend: Expression, divisor: Expression) -> tuple[Expression, Expression]:
    """Returns quotient and rest; both are the same whatever the variables are named.

    A rest of smaller degree than the divisor, counting only the atoms of the divisor, is the only one of its
    kind: the difference of two of them would be a multiple of the divisor. Any other rest depends on the
    order of terms, and so the dividend is left whole.
    """
    atoms = {atom for monomial in divisor.terms for atom, _ in monomial}

    def degree_in_divisor(monomial: Monomial) -> int:
        return sum(exponent for atom, exponent in monomial if atom in atoms)

    leading, leading_coefficient = divisor.sorted_terms()[0]
    quotient, rest, pending = ZERO, ZERO, dividend
    while pending.terms:
        monomial = min(pending.terms, key=lambda m: (-degree_in_divisor(m), monomial_order(m)))
        coefficient = pending.terms[monomial]
        factor = divide_monomials(monomial, leading)
        if factor is None or coefficient % leading_coefficient:
            term = Expression({monomial: coefficient})
            rest, pending = rest + term, pending - term
        else:
            step = Expression({factor: coefficient // leading_coefficient})
            quotient, pending = quotient + step, pending - step * divisor
    if any(degree_in_divisor(m) >= degree(leading) for m in rest.terms):
        return ZERO, dividend
    return quotient, rest


def _without_shared_factors(dividend: Expression, divisor: Expression) -> tuple[Expression, Expression]:
    """Divides both by the integer and by the powers of variables that all their terms share."""
    shared = gcd(*dividend.terms.values(), *divisor.terms.values())
    monomials = [*dividend.terms, *divisor.terms]
    common: Monomial = tuple(
        (atom, lowest)
        for atom, _ in monomials[0]
        if isinstance(atom, Variable) and (lowest := min(dict(m).get(atom, 0) for m in monomials))
    )

    def reduced(expression: Expression) -> Expression:
        terms: dict[Monomial, int] = {}
        for monomial, coefficient in expression.terms.items():
            factor = divide_monomials(monomial, common)
            assert factor is not None, "every term is divisible by the common monomial"
            terms[factor] = coefficient // shared
        return Expression(terms)

    return reduced(dividend), reduced(divisor)
