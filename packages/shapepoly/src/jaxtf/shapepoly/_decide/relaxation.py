"""Expressions as linear rows over columns: the translation from polynomials to integer sets.

Each monomial is a column. A column's meaning becomes rows, which every true valuation satisfies:

- a variable is at least 1;
- `q = e // k`, k a positive integer: `0 <= e - k*q <= k - 1`, which is exact. With an expression for k,
  the products in `k*q` are columns of their own, and q lies between 0 and e;
- `r = max(0, e1, e2, ...)`: r is at least each of them, and equal to one, which is exact;
- a product `u*v` of terms with bounds: the four products of their distances from their bounds are
  not negative (McCormick). This is sound, and not exact.

So the rows are exact for expressions that are linear in variables with division by integers, `max`
and `min`; for others they allow more than what is true, and what they exclude is excluded rightly.

Source: McCormick, Computability of global solutions to factorable nonconvex programs, part I (1976).
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from jaxtf.shapepoly._decide.intervals import Enclosure
from jaxtf.shapepoly._expressions.budget import UNBOUNDED, Budget
from jaxtf.shapepoly._expressions.expression import (
    FLOORDIV,
    ONE,
    Expression,
    Monomial,
    Operation,
    Variable,
    divide_monomials,
    from_atom,
    integer,
)
from jaxtf.shapepoly._isl import Row

_STEPS_OF_A_PRODUCT = 30

Alternative = tuple[tuple[Row, ...], ...]
"""Sides, of which one holds: all of its rows."""


class Product(NamedTuple):
    """A monomial that is the product of two others."""

    monomial: Monomial
    left: Monomial
    right: Monomial


class Relaxation:
    """Rows that hold for all true values of the monomials of some expressions.

    Args:
      enclosure: Bounds of atoms, for divisors and products.
      budget: Bound on the work.

    Attributes:
      columns: The column of each monomial.
      rows: What holds.
      alternatives: Of each, one side holds.
      products: The monomials whose rows are not exact, in each way to split them in two.
    """

    def __init__(self, enclosure: Enclosure, budget: Budget = UNBOUNDED) -> None:
        self._enclosure = enclosure
        self._budget = budget
        self.columns: dict[Monomial, int] = {}
        self.rows: list[Row] = []
        self.alternatives: list[Alternative] = []
        self.products: list[Product] = []

    def row(self, expression: Expression) -> Row:
        """Returns the row `expression >= 0`, after adding columns for its monomials."""
        factors = {self._column(m): c for m, c in expression.terms.items() if m != ONE}
        return Row(factors, expression.constant)

    def assume(self, facts: Sequence[Expression]) -> None:
        """Adds facts: expressions that are at least 0, also multiplied by terms of products."""
        for fact in facts:
            self.rows.append(self.row(fact))
        factors = {atom for product in self.products for atom, _ in (*product.left, *product.right)}
        for fact in facts:
            for atom in sorted(factors, key=lambda atom: atom.sort_key):
                self._assume_multiple(fact, from_atom(atom))

    def sizes(self, point: Sequence[int]) -> dict[str, int]:
        """Returns the sizes of variables at a point."""
        return {atom.name: point[column] for atom, column in self._variables()}

    def bounds_product(self, product: Product, at: int, *, above: bool) -> Alternative | None:
        """Returns a sharper bound of a product `u*v` around `u == at`, where v is not negative.

        With `above`, that `u <= at` implies `u*v <= at*v`; otherwise, that `u >= at` implies
        `u*v >= at*v`. The other side of the alternative is the same for the neighbour of `at`.
        """
        if self._enclosure.of_monomial(product.right).lower < 0:
            return None
        low = at if above else at - 1
        left = Expression({product.left: 1})
        right = Expression({product.right: 1})
        value = Expression({product.monomial: 1})
        below = (self.row(integer(low) - left), self.row(right.scaled(low) - value))
        over = (self.row(left - integer(low + 1)), self.row(value - right.scaled(low + 1)))
        return below, over

    def _variables(self) -> Iterator[tuple[Variable, int]]:
        for monomial, column in self.columns.items():
            if len(monomial) == 1 and monomial[0][1] == 1 and isinstance(monomial[0][0], Variable):
                yield monomial[0][0], column

    def _assume_multiple(self, fact: Expression, factor: Expression) -> None:
        """Adds `fact * factor >= 0` where the factor is not negative and no new column is needed."""
        self._budget.spend(_STEPS_OF_A_PRODUCT + 5 * len(fact.terms) * len(factor.terms))
        multiple = fact * factor
        known = all(monomial == ONE or monomial in self.columns for monomial in multiple.terms)
        if known and self._enclosure.of(factor).lower >= 0:
            self.rows.append(self.row(multiple))

    def _column(self, monomial: Monomial) -> int:
        """Returns the column of a monomial, after adding it and its meaning if it is new."""
        known = self.columns.get(monomial)
        if known is not None:
            return known
        column = self.columns[monomial] = len(self.columns)
        atom, exponent = monomial[0]
        if len(monomial) > 1 or exponent > 1:
            self._define_product(monomial)
        elif isinstance(atom, Variable):
            self.rows.append(Row({column: 1}, -1))
        elif atom.name == FLOORDIV:
            self._define_quotient(atom)
        else:
            self._define_maximum(atom)
        return column

    def _define_quotient(self, operation: Operation) -> None:
        dividend, divisor = operation.operands
        remainder = dividend - divisor * from_atom(operation)
        one = integer(1)
        positive = (
            self.row(remainder),
            self.row(divisor - one - remainder),
            *self._bounds_of_quotient(from_atom(operation), dividend, divisor),
        )
        sign = self._enclosure.of(divisor)
        if sign.lower >= 1:
            self.rows += positive
            return
        negative = (
            self.row(-remainder),
            self.row(remainder - divisor - one),
            *self._bounds_of_quotient(from_atom(operation), -dividend, divisor),
        )
        if sign.upper <= -1:
            self.rows += negative
            return
        self.alternatives.append(((self.row(divisor - one), *positive), (self.row(-divisor - one), *negative)))

    def _bounds_of_quotient(self, quotient: Expression, dividend: Expression, divisor: Expression) -> Iterator[Row]:
        """Yields that a quotient by a positive expression lies between 0 and its dividend, whose sign is known."""
        if divisor.as_integer is not None:
            return
        sign = self._enclosure.of(dividend)
        if sign.lower >= 0:
            yield from (self.row(quotient), self.row(dividend - quotient))
        elif sign.upper <= 0:
            yield from (self.row(-quotient), self.row(quotient - dividend))

    def _define_maximum(self, operation: Operation) -> None:
        value = from_atom(operation)
        excesses = [self.row(value), *(self.row(value - operand) for operand in operation.operands)]
        self.rows += excesses
        self.alternatives.append(tuple((row.opposite(),) for row in excesses))

    def _define_product(self, monomial: Monomial) -> None:
        value = Expression({monomial: 1})
        self._budget.spend(_STEPS_OF_A_PRODUCT * len(monomial))
        for atom, _ in monomial:
            left: Monomial = ((atom, 1),)
            right = divide_monomials(monomial, left)
            assert right, "a product has another factor"
            self._column(left)
            self._column(right)
            self.products.append(Product(monomial, left, right))
            self.rows += self._bounds_of_product(value, left, right)

    def _bounds_of_product(self, value: Expression, left: Monomial, right: Monomial) -> Iterator[Row]:
        """Yields, for each pair of finite bounds, that the product of the distances is not negative."""
        u, v = Expression({left: 1}), Expression({right: 1})
        for u_bound, u_sign in _finite_bounds(self._enclosure, left):
            for v_bound, v_sign in _finite_bounds(self._enclosure, right):
                # u_sign * (u - u_bound) >= 0 and v_sign * (v - v_bound) >= 0
                expanded = value - v.scaled(u_bound) - u.scaled(v_bound) + integer(u_bound * v_bound)
                yield self.row(expanded.scaled(u_sign * v_sign))


def _finite_bounds(enclosure: Enclosure, monomial: Monomial) -> Iterator[tuple[int, int]]:
    """Yields the finite bounds of a monomial: the lower one with 1, the upper one with -1."""
    interval = enclosure.of_monomial(monomial)
    if isinstance(interval.lower, int):
        yield interval.lower, 1
    if isinstance(interval.upper, int):
        yield interval.upper, -1
