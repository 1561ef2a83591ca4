"""The compatibility module for isl: sets of points, and questions that take too much work."""

from math import inf

import pytest

from jaxtf.shapepoly import SymbolicScope
from jaxtf.shapepoly._isl import Region, Regions, Row, TooHard

BETWEEN = (Row({0: 3, 1: -2}, -1), Row({0: -3, 1: 2}, 1), Row({0: 1}, -1), Row({0: -1}, 2**40))


def test_points_satisfy_their_rows():
    region = Regions(2).everything.where(BETWEEN)
    x, y = region.point()
    assert 3 * x - 2 * y == 1
    assert 1 <= x <= 2**40
    assert not region.is_empty()
    assert region.where([Row({0: 1}, -2), Row({0: -1}, 2)]).point() is None


def test_minima_are_attained_infinite_or_those_of_no_points():
    region = Regions(2).everything.where(BETWEEN)
    assert region.minimum(Row({0: 1}, 0)) == 1
    assert region.minimum(Row({1: -1}, 0)) == -(3 * (2**40 - 1) - 1) // 2
    assert Regions(1).everything.minimum(Row({0: 1}, 5)) == -inf
    assert region.where([Row({0: 1}, -(2**41))]).minimum(Row({0: 1}, 0)) == inf


def test_a_negated_row_holds_exactly_where_the_row_does_not():
    row = Row({0: 2}, -3)
    assert [2 * x - 3 >= 0 for x in range(4)] == [not -2 * x + 3 - 1 >= 0 for x in range(4)]
    assert row.negated() == Row({0: -2}, 2)


def test_a_question_that_takes_too_much_work_ends_and_the_next_one_is_answered():
    regions = Regions(2, most_operations=1)
    region = regions.everything.where(BETWEEN)
    with pytest.raises(TooHard, match="maximal number of operations exceeded"):
        region.point()
    regions.most_operations = 10**6
    assert region.minimum(Row({0: 1}, 0)) == 1


def test_making_sets_takes_nothing_from_the_work_of_a_question():
    region = Regions(2, most_operations=200).everything
    for bound in range(300):
        region = region.where([Row({0: 1}, -bound)])
    assert region.minimum(Row({0: 1}, 0)) == 299


def test_numbers_longer_than_those_that_python_reads_are_too_hard():
    far = Regions(1).everything.where([Row({0: 1}, -(10**3000))])
    assert far.minimum(Row({0: 1}, 0)) == 10**3000
    with pytest.raises(TooHard, match=r"4[0-9]{3} digits"):
        far.minimum(Row({0: 10**1500}, 0))
    with pytest.raises(TooHard, match="bits"):
        far.where([Row({0: 1}, 10**4000)])


def test_points_that_lie_farther_and_farther_away_are_given_up(monkeypatch):
    digits = []
    point = Region.point

    def seen(region):
        found = point(region)
        digits.extend(len(str(number)) for number in found or ())
        return found

    monkeypatch.setattr(Region, "point", seen)
    SymbolicScope(["2 * b == ((3 * a * a) - floordiv(mod(a, b), c))"])
    assert 10 < max(digits) < 400
