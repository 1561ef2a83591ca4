"""What a program computes for a symbolic dimension, apart from sums and products within it.

Sums and products of integers with few bits are exact where their result fits, whatever they go through. A quotient or
a maximum is not: its operands must fit, too.
"""

from collections.abc import Iterator

from jaxtf.shapepoly._dimensions.dimension import Dimension
from jaxtf.shapepoly._expressions.expression import (
    FLOORDIV,
    ONE,
    Expression,
    Operation,
    Variable,
    degree,
    integer,
)


def computed_parts(dimension: Dimension) -> tuple[Dimension, ...]:
    """Returns the parts of a dimension, itself among them, whose values must fit in the integers that compute it.

    Variables and their multiples that are only divided by integers need not be looked at: they are divided first.

    >>> from jaxtf.shapepoly import symbolic_shape
    >>> a, b, c = symbolic_shape("a*b + 1, floordiv(a*b + a, 2), 5*b")
    >>> [computed_parts(size) for size in (a, b, c)]
    [(a*b + 1,), (a*b, floordiv(a*b + a, 2)), (5*b,)]
    """
    parts = dict.fromkeys([*_operands(dimension.expression), dimension.expression])
    return tuple(Dimension(part, dimension.scope) for part in parts if not _is_plain(part))


def _operands(expression: Expression) -> Iterator[Expression]:
    """The operands that must fit, within an expression."""
    for monomial in expression.terms:
        for atom, _ in monomial:
            if not isinstance(atom, Operation):
                continue
            for operand in atom.operands:
                yield from _operands(operand)
            if atom.name == FLOORDIV and atom.operands[1].as_integer:
                yield from _divided(atom.operands[0])
            else:
                yield from atom.operands


def _divided(dividend: Expression) -> Iterator[Expression]:
    """The terms of a dividend by an integer, each with the number that may be added before it is divided."""
    number = integer(abs(dividend.terms.get(ONE, 0)))
    for monomial in dividend.terms:
        if degree(monomial) > 1:
            yield Expression({monomial: 1}) + number


def _is_plain(expression: Expression) -> bool:
    """Whether it is an integer or a variable."""
    if expression.as_integer is not None:
        return True
    [(monomial, coefficient), *others] = expression.terms.items()
    return not others and coefficient == 1 and degree(monomial) == 1 and isinstance(monomial[0][0], Variable)
