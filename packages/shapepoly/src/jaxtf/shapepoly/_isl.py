"""The compatibility module for islpy: sets of integer points given by linear inequalities.

islpy is imported when the first set is made, not with this module (it costs about 80 ms). What it lacks
in types is settled here. Knows columns and rows of integers only.

Source: Verdoolaege, isl: An Integer Set Library for the Polyhedral Model (2010).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import inf
from typing import Any, NamedTuple

from jaxtf.shapepoly._expressions.budget import UNBOUNDED, Budget

_OPERATIONS_PER_QUESTION = 5_000
"""Bound on the work of isl for one question, in its own unit.

Knapsack equations in 14 and in 24 columns, where isl branches for long, stopped after 0.24 s and 0.06 s.
"""

_MOST_DIGITS = 4_000
"""Of a number. isl may find a point so far away that its numbers are longer than those that Python reads."""

_STEPS_OF_A_SET, _STEPS_OF_A_ROW, _STEPS_OF_A_QUESTION = 200, 10, 50


class Row(NamedTuple):
    """The inequality: sum of factor * column + constant >= 0."""

    factors: Mapping[int, int]
    constant: int

    def opposite(self) -> Row:
        """Returns the inequality that together with this one says that the left-hand side is 0."""
        return Row({column: -factor for column, factor in self.factors.items()}, -self.constant)

    def negated(self) -> Row:
        """Returns the inequality that holds exactly where this one does not."""
        return Row({column: -factor for column, factor in self.factors.items()}, -self.constant - 1)


class TooHard(Exception):
    """A question took more work than a question may take."""


class Regions:
    """Makes sets of points with a fixed number of integer columns.

    Args:
      width: The number of columns.
      most_operations: Bound on the work of isl for one question, in its own unit.
      budget: Bound on that of all of them.
    """

    def __init__(self, width: int, most_operations: int = _OPERATIONS_PER_QUESTION, budget: Budget = UNBOUNDED) -> None:
        import islpy

        budget.spend(_STEPS_OF_A_SET)
        self.budget = budget
        self.isl: Any = islpy
        self.width = width
        self.most_operations = most_operations
        self.context: Any = islpy.Context()
        space = islpy.Space.set_alloc(self.context, 0, width)
        self._zero: Any = islpy.Aff.zero_on_domain(islpy.LocalSpace.from_space(space))
        self.everything = Region(self, islpy.BasicSet.universe(space), 0)

    def affine(self, row: Row) -> Any:
        """Returns the left-hand side of a row as isl's affine expression."""
        result = self._zero
        for column, factor in row.factors.items():
            result = result.set_coefficient_val(self.isl.dim_type.in_, column, self._integer(factor))
        return result.set_constant_val(self._integer(row.constant)) if row.constant else result

    def _integer(self, value: int) -> Any:
        if -(2**31) <= value < 2**31:
            return self.isl.Val.int_from_si(self.context, value)
        if value.bit_length() > 3 * _MOST_DIGITS:
            raise TooHard(f"a number of {value.bit_length()} bits")
        return self.isl.Val.read_from_str(self.context, str(value))


class Region:
    """The integer points that satisfy all of some rows."""

    def __init__(self, regions: Regions, points: Any, row_count: int) -> None:
        self._regions = regions
        self._points = points
        self._row_count = row_count

    def where(self, rows: Iterable[Row]) -> Region:
        """Returns the points that satisfy the rows as well."""
        points, row_count = self._points, self._row_count
        for row in rows:
            self._regions.budget.spend(_STEPS_OF_A_ROW + row_count * self._regions.width // 60)
            constraint = self._regions.isl.Constraint.inequality_from_aff(self._regions.affine(row))
            points = points.add_constraint(constraint)
            row_count += 1
        return Region(self._regions, points, row_count)

    def is_empty(self) -> bool:
        """Returns whether there is no point; raises `TooHard`."""
        return bool(self._asked(self._points.is_empty))

    def point(self) -> tuple[int, ...] | None:
        """Returns some point, or None if there is none; raises `TooHard`."""
        point = self._asked(self._points.sample_point)
        if point.is_void():
            return None
        kind = self._regions.isl.dim_type.set
        return tuple(_number(point.get_coordinate_val(kind, column)) for column in range(self._regions.width))

    def minimum(self, row: Row) -> int | float:
        """Returns the least value of the row's left-hand side, possibly `-inf`; of no points it is `inf`.

        Raises:
          TooHard: The question took too much work.
        """
        points = self._regions.isl.Set.from_basic_set(self._points)
        value = self._asked(points.min_val, self._regions.affine(row))
        if value.is_nan():
            return inf
        return -inf if value.is_neginfty() else _number(value)

    def _asked(self, question: Any, *arguments: Any) -> Any:
        """Asks isl, with a bound on its work; making sets, between questions, has none."""
        context, width = self._regions.context, self._regions.width
        self._regions.budget.spend(_STEPS_OF_A_QUESTION + self._row_count * width * width // 40)
        context.reset_operations()
        context.set_max_operations(self._regions.most_operations)
        try:
            return question(*arguments)
        except self._regions.isl.Error as error:
            raise TooHard(str(error)) from error
        finally:
            context.set_max_operations(0)


def _number(value: Any) -> int:
    """Returns the integer; raises `TooHard` for one of more than `_MOST_DIGITS` digits."""
    text: str = value.to_str()
    if len(text) > _MOST_DIGITS:
        raise TooHard(f"a number of {len(text)} digits")
    return int(text)
