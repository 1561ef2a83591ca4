"""Which unknowns a system of linear equations determines, as integer combinations of its equations.

Method: Gauss-Jordan elimination on integers; each row carries the combination of the original
equations that it is. Knows nothing of dimensions.
"""

from collections.abc import Mapping, Sequence
from math import gcd
from typing import NamedTuple


class Combination(NamedTuple):
    """An unknown as the sum of factor * equation, divided by `divisor`, which is positive."""

    factors: tuple[int, ...]
    divisor: int


def determined_unknowns(equations: Sequence[Mapping[str, int]]) -> dict[str, Combination]:
    """Returns the unknowns that have one value whatever the right-hand sides are.

    Args:
      equations: For each equation the factor of each unknown on its left-hand side; none is 0.

    >>> determined_unknowns([{"a": 1, "b": 1}, {"a": 1, "b": -1}])
    {'a': Combination(factors=(1, 1), divisor=2), 'b': Combination(factors=(1, -1), divisor=2)}
    """
    unknowns = sorted({name for equation in equations for name in equation})
    width = len(unknowns)
    rows = [
        [*(equation.get(name, 0) for name in unknowns), *(int(i == j) for j in range(len(equations)))]
        for i, equation in enumerate(equations)
    ]
    pivots = _reduce(rows, width)
    found = {}
    for row, column in pivots:
        if any(rows[row][other] for other in range(width) if other != column):
            continue
        sign = 1 if rows[row][column] > 0 else -1
        found[unknowns[column]] = Combination(tuple(sign * f for f in rows[row][width:]), sign * rows[row][column])
    return found


def _reduce(rows: list[list[int]], width: int) -> list[tuple[int, int]]:
    """Brings rows into reduced echelon form in their first columns; returns the pivots (row, column)."""
    pivots: list[tuple[int, int]] = []
    for column in range(width):
        top = len(pivots)
        candidates = [row for row in range(top, len(rows)) if rows[row][column]]
        if not candidates:
            continue
        pivot = min(candidates, key=lambda row: abs(rows[row][column]))
        rows[top], rows[pivot] = rows[pivot], rows[top]
        for row in range(len(rows)):
            if row != top and rows[row][column]:
                rows[row] = _without_column(rows[row], rows[top], column)
        pivots.append((top, column))
    return pivots


def _without_column(row: Sequence[int], pivot: Sequence[int], column: int) -> list[int]:
    """Returns the smallest integer combination of the two rows that is 0 in the column."""
    shared = gcd(row[column], pivot[column])
    ours, theirs = pivot[column] // shared, row[column] // shared
    combined = [ours * a - theirs * b for a, b in zip(row, pivot, strict=True)]
    content = gcd(*combined) or 1
    return [entry // content for entry in combined]
