"""What is advised where a divisor may be 0: constraints that sizes satisfy, and that decide it."""

import re

import pytest
from hypothesis import given

from jaxtf.shapepoly import InconclusiveDimensionOperation, symbolic_shape
from jaxtf.shapepoly._decide.advice import at_least_one

from ..strategies import NAMES, SYMBOLIC, expressions, value  # noqa: TID252


@pytest.mark.parametrize(
    ("expression", "constraint"),
    [
        ("b - 1", "b >= 2"),
        ("2*b - 2", "b >= 2"),
        ("3*b - 4", "b >= 2"),
        ("5 - b", "b <= 4"),
        ("9 - 2*b", "b <= 4"),
        ("a - b", "a >= b + 1"),
        ("b - a + 3", "b >= a - 2"),
        ("a*b - 3*c", "a*b >= 3*c + 1"),
        ("floordiv(b, 2)", "floordiv(b, 2) >= 1"),
        ("3 - floordiv(b, 2)", "floordiv(b, 2) <= 2"),
        ("mod(b, 3)", "mod(b, 3) >= 1"),
        ("a - mod(b, 3) - 2", "a - mod(b, 3) >= 3"),
    ],
)
def test_the_constraint_that_an_expression_is_positive_reads_as_one_would_write_it(expression, constraint):
    (dimension,) = symbolic_shape(expression)
    assert at_least_one(dimension.expression) == constraint


@given(text=expressions)
def test_the_constraint_that_an_expression_is_positive_means_that(text):
    dimension = value(text, dict(zip(NAMES, symbolic_shape("a, b, c"), strict=True)), SYMBOLIC)
    if isinstance(dimension, int):
        return
    left, relation, right = re.fullmatch("(.*) (>=|<=) (.*)", at_least_one(dimension.expression)).groups()
    (left, right) = symbolic_shape(f"{left} + 10**9, {right} + 10**9")
    for sizes in ((1, 1, 1), (1, 2, 7), (5, 1, 3), (4, 9, 2), (30, 8, 11)):
        at = dict(zip(NAMES, sizes, strict=True))
        found = [side if isinstance(side, int) else side._evaluate(at) for side in (left, right)]
        holds = found[0] >= found[1] if relation == ">=" else found[0] <= found[1]
        assert holds == (dimension._evaluate(at) >= 1)


def advised(message):
    """The constraints in a message."""
    return re.findall('add the constraint "(.*)"', message)


@pytest.mark.parametrize(
    ("dividend", "divisor", "constraints"),
    [
        ("a", "b - 1", ["b >= 2"]),
        ("a", "1 - b", ["b >= 2"]),
        ("a", "5 - b", ["b <= 4", "b >= 6"]),
        ("a", "floordiv(b, 2)", ["floordiv(b, 2) >= 1", "mod(b, 2) == 0"]),
        ("4*b", "-2*floordiv(b, 2)", ["mod(b, 2) == 0"]),
        ("a", "mod(b, 3)", ["mod(b, 3) >= 1"]),
        ("a", "-mod(b, 3)", ["mod(b, 3) >= 1"]),
        ("a", "max(a, b) - 3", ["max(a, b) >= 4", "max(a, b) <= 2"]),
        ("a", "floordiv(b + 1, 4) - 1", ["floordiv(b + 1, 4) >= 2", "floordiv(b + 1, 4) <= 0"]),
        ("a", "a*b - c", ["a*b >= c + 1", "c >= a*b + 1"]),
    ],
)
def test_each_constraint_that_is_advised_makes_the_division_possible(dividend, divisor, constraints):
    a, b = symbolic_shape(f"{dividend}, {divisor} + 1000")
    with pytest.raises(InconclusiveDimensionOperation) as caught:
        a // (b - 1000)
    assert advised(str(caught.value)) == constraints
    for constraint in constraints:
        a, b = symbolic_shape(f"{dividend}, {divisor} + 1000", constraints=[constraint])
        a // (b - 1000)


def test_what_the_scope_excludes_is_not_advised():
    a, b = symbolic_shape("a, b", constraints=["a >= b", "b >= 3"])
    with pytest.raises(InconclusiveDimensionOperation) as caught:
        a // (a - b)
    assert advised(str(caught.value)) == ["a >= b + 1"]
    with pytest.raises(InconclusiveDimensionOperation) as caught:
        a // (b - a)
    assert advised(str(caught.value)) == ["a >= b + 1"]
    assert "Cannot divide 'a' by 'a - b'" in str(caught.value)


@pytest.mark.parametrize(
    ("shape", "constraints", "advice"),
    [
        ("b", [], 'if b is always a multiple of 4 for you, write 4*b for b in the shapes, or add the constraint "{}"'),
        ("b", ["b <= 100"], 'if b is always a multiple of 4 for you, add the constraint "{}"'),
        ("b + 1", [], 'if b + 1 is always a multiple of 4 for you, add the constraint "{}"'),
    ],
)
def test_another_size_is_advised_only_for_a_variable_that_no_constraint_mentions(shape, constraints, advice):
    (size,) = symbolic_shape(shape, constraints=constraints)
    with pytest.raises(InconclusiveDimensionOperation) as caught:
        size // (size // 4 * -1)
    assert str(caught.value).splitlines()[2] == "  " + advice.format(f"mod({shape}, 4) == 0")


def test_two_quotients_of_a_variable_are_reported_as_constraints():
    (b,) = symbolic_shape("b")
    with pytest.raises(InconclusiveDimensionOperation) as caught:
        b // -((b // 4) * (b // 6))
    assert advised(str(caught.value)) == ["mod(b, 4) == 0", "mod(b, 6) == 0"]
    assert "in the shapes" not in str(caught.value)
