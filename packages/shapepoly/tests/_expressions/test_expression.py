"""Normal forms, against Python's integers."""

import pytest
from hypothesis import given

from jaxtf.shapepoly import symbolic_shape

from ..strategies import NAMES, SYMBOLIC, all_sizes, expressions, value  # noqa: TID252

SIZES = list(all_sizes(NAMES, 3))


def dimensions(text):
    return dict(zip(NAMES, symbolic_shape(text), strict=True))


def evaluated(dimension, sizes):
    """The value of a dimension or an integer."""
    return dimension if isinstance(dimension, int) else dimension._evaluate(sizes)


@given(text=expressions)
def test_operators_compute_what_python_computes(text):
    dimension = value(text, dimensions("a, b, c"), SYMBOLIC)
    for sizes in SIZES:
        assert evaluated(dimension, sizes) == value(text, sizes)


@given(text=expressions)
def test_the_printed_text_is_a_python_expression_of_the_same_value(text):
    dimension = value(text, dimensions("a, b, c"), SYMBOLIC)
    for sizes in SIZES:
        assert value(str(dimension), sizes) == value(text, sizes)


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("(a*b + a) // (b + 1)", "a"),
        ("(6*a + 4) % 3", "1"),
        ("mod(2*a, 2)", "0"),
        ("4*(a//4) + a%4", "a"),
        ("a//2//2", "floordiv(a, 4)"),
        ("max(a, b) - max(b, a)", "0"),
        ("max(a, b) + min(a, b)", "a + b"),
        ("(a + b) * (a - b)", "a^2 - b^2"),
        ("(a*b) // (2*b)", "floordiv(a, 2)"),
        ("(35*a) // -2", "-18*a + floordiv(a, 2)"),
        ("max(a, 0)", "a"),
        ("(a*b + a + c) // (b + 1)", "a + floordiv(c, b + 1)"),
        ("(a + b - 1) // b", "floordiv(a - 1, b) + 1"),
        ("(a + 3*b) // (a + b)", "floordiv(a + 3*b, a + b)"),
        ("max(2*a, 2*b)", "2*max(a, b)"),
        ("(4*a + 2) // 4", "a"),
        ("a**3", "a^3"),
        ("min(c, min(b, a))", "min(a, min(b, c))"),
        ("max(a, max(b, c))", "max(a, max(b, c))"),
    ],
)
def test_equal_expressions_have_one_normal_form(text, normal):
    assert [str(size) for size in symbolic_shape(f"1, {text}")] == ["1", normal]


def test_terms_are_printed_by_degree_then_by_name():
    assert [str(d) for d in symbolic_shape("b + a, 3 + b*a, 2*d*d + 15 + d, 3 - a")] == [
        "a + b",
        "a*b + 3",
        "2*d^2 + d + 15",
        "-a + 3",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "a*mod(b, 4)",
        "b*min(a, 512)",
        "b^2*min(a, 512)",
        "b*max(a, c)",
        "3*a*b*mod(c, 5)",
        "b*c + c*mod(a, 4) + 1",
        "a*min(a, b) + b*mod(a, 4)",
    ],
)
def test_a_product_prints_as_it_was_written(text):
    assert str(symbolic_shape(text)[0]) == text
