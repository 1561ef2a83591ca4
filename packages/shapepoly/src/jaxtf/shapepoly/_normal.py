"""Normal forms of floor division, remainder, maximum and minimum of expressions.

What holds for all integers is used here, and one fact about variables: they are at least 1. What
depends on constraints is left to `_scope`. Writing `e // k` for `floordiv(e, k)`:

- k an integer: multiples of k leave the division, so the coefficients inside lie in [0, k); a factor
  that all of them share with k is divided out (the constant rounds down); and
  `(t + e // j) // k` with j, k > 0 is `(j*t + e) // (j*k)`.
- k an expression: exact polynomial division with remainder, after dividing both sides by the integer
  and by the variables that all their terms share.
- `max(e, 0)`: a positive integer factor goes outside, and the first coefficient is made positive by
  `max(-e, 0) == max(e, 0) - e`.

Each rule removes terms or makes coefficients smaller, so rewriting ends.
"""

from math import gcd

from jaxtf.shapepoly._expression import (
    FLOORDIV,
    POSITIVE_PART,
    ZERO,
    Expression,
    Monomial,
    Operation,
    Variable,
    divide_monomials,
    from_atom,
    integer,
    monomial_order,
)


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


def maximum(left: Expression, right: Expression) -> Expression:
    """Returns the normal form of `max(left, right)`."""
    return right + positive_part(left - right)


def minimum(left: Expression, right: Expression) -> Expression:
    """Returns the normal form of `min(left, right)`."""
    return left - positive_part(left - right)


def positive_part(expression: Expression) -> Expression:
    """Returns the normal form of `max(expression, 0)`."""
    constant = expression.as_integer
    if constant is not None:
        return integer(max(constant, 0))
    content = gcd(*expression.terms.values())
    leading = expression.sorted_terms()[0][1]
    reduced = Expression(
        {m: abs(c) // content * (1 if (c > 0) == (leading > 0) else -1) for m, c in expression.terms.items()}
    )
    result = from_atom(Operation(POSITIVE_PART, (reduced,))).scaled(content)
    return result if leading > 0 else result + expression


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
    if inner is None:
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
    """Returns the normal form of `dividend // divisor` for a divisor that is no integer."""
    if divisor.sorted_terms()[0][1] < 0:
        dividend, divisor = -dividend, -divisor
    quotient, rest = _polynomial_division(dividend, divisor)
    if rest == ZERO:
        return quotient
    rest, divisor = _without_shared_factors(rest, divisor)
    by = divisor.as_integer
    if by is not None:
        return quotient + _divide_by_integer(rest, by)
    return quotient + from_atom(Operation(FLOORDIV, (rest, divisor)))


def _polynomial_division(dividend: Expression, divisor: Expression) -> tuple[Expression, Expression]:
    """Returns quotient and rest; the leading monomial of the divisor divides no term of the rest exactly."""
    leading, leading_coefficient = divisor.sorted_terms()[0]
    quotient, rest, pending = ZERO, ZERO, dividend
    while pending.terms:
        monomial = min(pending.terms, key=monomial_order)
        coefficient = pending.terms[monomial]
        factor = divide_monomials(monomial, leading)
        if factor is None or coefficient % leading_coefficient:
            term = Expression({monomial: coefficient})
            rest, pending = rest + term, pending - term
        else:
            step = Expression({factor: coefficient // leading_coefficient})
            quotient, pending = quotient + step, pending - step * divisor
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
