"""Questions about expressions under facts, answered by integer sets.

A `Problem` holds the points that satisfy all facts about some expressions, as a union of regions: one
for each choice among alternatives that is possible. Whether an expression can be negative, and how
small it can get, are then questions to isl about each region.

Where products of variables occur, a region may contain points that are not true values. Such a point is
excluded by a sharper bound of a product around it, and the question is asked again, a few times.
"""

from collections.abc import Mapping, Sequence
from math import inf

from jaxtf.shapepoly._decide.intervals import Bound, Enclosure, Interval
from jaxtf.shapepoly._decide.relaxation import Alternative, Relaxation
from jaxtf.shapepoly._expressions.budget import UNBOUNDED, Budget
from jaxtf.shapepoly._expressions.evaluation import evaluate_integer
from jaxtf.shapepoly._expressions.expression import Expression, Monomial, integer
from jaxtf.shapepoly._isl import Region, Regions, Row, TooHard

_MOST_REGIONS = 64
_MOST_REFINEMENTS = 24

_FARTHEST = 8
"""How many times as long as those of the first point the numbers of one may be that is looked at.

Of a bound around a far point isl may find one twice as far, so that numbers grow to thousands of digits, which takes
seconds and settles nothing.
"""


class Problem:
    """The values that some monomials can take jointly.

    Args:
      monomials: The monomials that questions will be about.
      facts: Expressions that are at least 0.
      enclosure: Bounds of atoms.
      budget: Bound on the work, of the questions too.

    Raises:
      TooHard: There are too many alternatives, or isl needs too much work.
    """

    def __init__(
        self,
        monomials: Sequence[Monomial],
        facts: Sequence[Expression],
        enclosure: Enclosure,
        budget: Budget = UNBOUNDED,
    ) -> None:
        self._facts = tuple(facts)
        self._budget = budget
        self._relaxation = Relaxation(enclosure, budget)
        self._relaxation.row(Expression(dict.fromkeys(monomials, 1)))
        self._relaxation.assume(facts)
        self._regions = self._all_regions()

    @property
    def is_empty(self) -> bool:
        """Whether no values satisfy the facts."""
        return not self._regions

    def can_be_negative(self, expression: Expression) -> bool:
        """Returns whether the expression may be negative; False is certain.

        Raises:
          TooHard: isl needs too much work.
        """
        return self._may_satisfy([self._relaxation.row(expression).negated()])

    def can_be_at_least_zero(self, expression: Expression) -> bool:
        """Returns whether the expression may be 0 or more; False is certain. Raises as above."""
        return self._may_satisfy([self._relaxation.row(expression)])

    def can_be_zero(self, expression: Expression) -> bool:
        """Returns whether the expression may be 0; False is certain. Raises as above."""
        return self._may_satisfy([self._relaxation.row(expression), self._relaxation.row(-expression)])

    def bounds(self, expression: Expression) -> Interval:
        """Returns bounds of the expression, attained where no products occur.

        Raises:
          TooHard: isl needs too much work.
        """
        row, opposite = self._relaxation.row(expression), self._relaxation.row(-expression)
        lower: Bound = min((region.minimum(row) for region in self._regions), default=inf)
        upper: Bound = min((region.minimum(opposite) for region in self._regions), default=inf)
        return Interval(lower, -upper)

    def sizes(self, conditions: Sequence[Expression] = ()) -> dict[str, int] | None:
        """Returns sizes of the variables that satisfy the facts, if some are found.

        The conditions are wishes, considered in order: one that would leave no sizes is dropped.

        Raises:
          TooHard: isl needs too much work.
        """
        for region in self._regions:
            narrowed = region
            for condition in conditions:
                candidate = narrowed.where([self._relaxation.row(condition)])
                narrowed = narrowed if candidate.is_empty() else candidate
            sizes = self._true_sizes(narrowed.point())
            if sizes is not None:
                return sizes
        return None

    def _may_satisfy(self, rows: Sequence[Row]) -> bool:
        """Returns whether some region has a point where the rows hold, unless all such points are untrue."""
        pending = [region.where(rows) for region in self._regions]
        refinements = most_bits = 0
        while pending:
            region = pending.pop()
            point = region.point()
            if point is None:
                continue
            bits = max((abs(number).bit_length() for number in point), default=0)
            most_bits = most_bits or _FARTHEST * max(bits, 64)
            is_hopeless = refinements >= _MOST_REFINEMENTS or bits > most_bits
            sharper = None if is_hopeless else self._sharper_bound(point)
            if sharper is None:
                return True
            refinements += 1
            pending += [region.where(side) for side in sharper]
        return False

    def _sharper_bound(self, point: Sequence[int]) -> Alternative | None:
        """Returns a bound of a product that excludes the point; None if the point may be true.

        The bound is taken around the factor that is closest to 0: small numbers of cases decide more.
        """
        columns = self._relaxation.columns

        def value(monomial: Monomial) -> int:
            return point[columns[monomial]]

        for product in sorted(self._relaxation.products, key=lambda product: abs(value(product.left))):
            excess = value(product.monomial) - value(product.left) * value(product.right)
            if excess:
                sharper = self._relaxation.bounds_product(product, value(product.left), above=excess > 0)
                if sharper is not None:
                    return sharper
        return None

    def _true_sizes(self, point: Sequence[int] | None) -> dict[str, int] | None:
        """Returns the sizes at a point if they satisfy the original facts."""
        if point is None:
            return None
        sizes = self._relaxation.sizes(point)
        return sizes if satisfies(self._facts, sizes) else None

    def _all_regions(self) -> list[Region]:
        """Returns the regions that are not empty, one for each choice among the alternatives."""
        regions = Regions(len(self._relaxation.columns), budget=self._budget)
        found = [regions.everything.where(self._relaxation.rows)]
        for alternative in self._relaxation.alternatives:
            candidates = [region.where(side) for region in found for side in alternative]
            found = [region for region in candidates if not region.is_empty()]
            if len(found) > _MOST_REGIONS:
                raise TooHard(f"more than {_MOST_REGIONS} combinations of alternatives")
        return [region for region in found if not region.is_empty()]


class Question:
    """A question about one expression under the facts of a problem.

    Args:
      problem: The problem, with columns for the expression.
      expression: The expression, in the names of the problem.
      names: The name to answer with for each variable; None if they are those of the problem.
    """

    def __init__(self, problem: Problem, expression: Expression, names: Mapping[str, str] | None = None) -> None:
        self._problem = problem
        self._expression = expression
        self._names = names

    def can_be_negative(self) -> bool:
        """Answers as `Problem` does; so do the other methods."""
        return self._problem.can_be_negative(self._expression)

    def can_be_at_least_zero(self) -> bool:
        """Returns whether the expression may be 0 or more."""
        return self._problem.can_be_at_least_zero(self._expression)

    def can_be_zero(self) -> bool:
        """Returns whether the expression may be 0."""
        return self._problem.can_be_zero(self._expression)

    def bounds(self) -> Interval:
        """Returns bounds of the expression."""
        return self._problem.bounds(self._expression)

    def sizes(self, *, negative: bool) -> dict[str, int] | None:
        """Returns sizes that satisfy the facts, and for which the expression has the sign if some are found."""
        wished = -self._expression - integer(1) if negative else self._expression
        sizes = self._problem.sizes((wished,))
        if sizes is None or self._names is None:
            return sizes
        return {self._names[name]: size for name, size in sizes.items()}


def satisfies(facts: Sequence[Expression], sizes: Mapping[str, int]) -> bool:
    """Returns whether all facts hold for sizes of all their variables, and are defined there."""
    try:
        return all(evaluate_integer(fact, sizes) >= 0 for fact in facts)
    except ZeroDivisionError:
        return False
