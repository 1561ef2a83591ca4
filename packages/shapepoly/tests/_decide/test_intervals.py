"""Interval arithmetic, against every value in the intervals."""

from itertools import product
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxtf.shapepoly._decide.intervals import EVERYTHING, Enclosure, Interval, divide, multiply, power
from jaxtf.shapepoly._expressions.expression import integer, variable
from jaxtf.shapepoly._expressions.maximum import positive_part

ends = st.integers(-6, 6)
intervals = st.builds(lambda a, b: Interval(min(a, b), max(a, b)), ends, ends)


def members(interval):
    return range(interval.lower, interval.upper + 1)


def hull(values):
    values = list(values)
    return Interval(min(values), max(values))


@given(left=intervals, right=intervals)
def test_products_are_enclosed_exactly(left, right):
    assert multiply(left, right) == hull(a * b for a, b in product(members(left), members(right)))


@given(dividend=intervals, divisor=intervals)
def test_quotients_by_positive_divisors_are_enclosed_exactly(dividend, divisor):
    expected = EVERYTHING
    if 0 not in members(divisor):
        expected = hull(a // b for a, b in product(members(dividend), members(divisor)))
    assert divide(dividend, divisor) == expected


@given(base=intervals, exponent=st.integers(1, 4))
def test_powers_are_enclosed_exactly(base, exponent):
    assert power(base, exponent) == hull(a**exponent for a in members(base))


@pytest.mark.parametrize(
    ("computed", "expected"),
    [
        (multiply(Interval(0, inf), Interval(-inf, 3)), EVERYTHING),
        (multiply(Interval(0, 0), EVERYTHING), Interval(0, 0)),
        (divide(Interval(1, inf), Interval(1, inf)), Interval(0, inf)),
        (divide(Interval(-5, inf), Interval(2, inf)), Interval(-3, inf)),
        (divide(EVERYTHING, Interval(2, 3)), EVERYTHING),
        (power(EVERYTHING, 2), Interval(0, inf)),
        (power(Interval(-inf, -2), 2), Interval(4, inf)),
        (multiply(Interval(10**400, 10**400), Interval(1, inf)), Interval(10**400, inf)),
    ],
)
def test_infinite_ends_are_limits(computed, expected):
    assert computed == expected


def test_a_positive_part_is_enclosed_on_both_sides():
    enclosure = Enclosure(lambda name: Interval(1, 3))
    assert enclosure.of(positive_part(variable("a") - integer(10))) == Interval(0, 0)
    assert enclosure.of(positive_part(variable("a") - integer(2))) == Interval(0, 1)


def test_a_sum_with_a_number_larger_than_any_float_is_enclosed():
    large = integer(10**400)
    enclosure = Enclosure(lambda name: Interval(1, inf))
    assert enclosure.of(variable("a") - large) == Interval(1 - 10**400, inf)
    assert enclosure.of(large - variable("a")) == Interval(-inf, 10**400 - 1)
