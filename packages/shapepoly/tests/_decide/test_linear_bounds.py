"""Bounds by linear replacement, against every value."""

import pytest
from hypothesis import given

from jaxtf.shapepoly import SymbolicScope, symbolic_shape
from jaxtf.shapepoly._decide.intervals import Enclosure, Interval
from jaxtf.shapepoly._decide.linear_bounds import linear_bounds

from ..strategies import NAMES, SYMBOLIC, all_sizes, expressions, value  # noqa: TID252

WITHIN = Enclosure(lambda name: Interval(1, 4))


def bounds_of(text):
    scope = SymbolicScope()
    dimension = value(text, dict(zip(NAMES, symbolic_shape("a, b, c", scope=scope), strict=True)), SYMBOLIC)
    return Interval(dimension, dimension) if isinstance(dimension, int) else linear_bounds(dimension.expression, WITHIN)


@given(text=expressions)
def test_every_value_is_enclosed(text):
    lower, upper = bounds_of(text)
    assert all(lower <= value(text, sizes) <= upper for sizes in all_sizes(NAMES, 4))


@pytest.mark.parametrize(
    ("text", "bounds"),
    [
        ("a - 4*floordiv(a, 4)", (0, 3)),
        ("mod(a + 2*b, 3)", (0, 2)),
        ("floordiv(a, 2) + floordiv(a + 1, 2) - a", (0, 0)),
        ("min(a, min(b, c))", (1, 4)),
        ("max(a, b) - a", (0, 3)),
        ("floordiv(min(a, b), 2) - floordiv(a, 2)", (-2, 0)),
    ],
)
def test_terms_meet_before_intervals_are_taken(text, bounds):
    assert bounds_of(text) == bounds
