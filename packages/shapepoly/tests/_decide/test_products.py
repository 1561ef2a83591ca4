"""Signs and bounds of products whose factors their normal form hides, against brute force."""

import pytest

from jaxtf.shapepoly import InconclusiveDimensionOperation, symbolic_dim_bounds, symbolic_shape

from ..strategies import NAMES, SYMBOLIC, all_sizes, value  # noqa: TID252


@pytest.mark.parametrize(
    ("text", "lower"),
    [
        ("b*min(a, 3)", 1),
        ("b*mod(a, 4)", 0),
        ("b*(a + mod(-a, 4))", 1),
        ("b * -floordiv(-a, 4)", 1),
        ("b*b*min(a, 3)", 1),
        ("min(a, 3)*min(b, 4)", 1),
        ("mod(a, 4)*mod(b, 3)", 0),
        ("b*mod(a, 4) + a*min(a, b)", 1),
        ("b*max(a, 3)", 3),
        ("c*min(a, 3) + b*mod(a, 2) - 1", 0),
        ("a*b*min(a, c)", 1),
        ("b*mod(a*c, 4)", 0),
    ],
)
def test_a_product_is_at_least_the_product_of_the_bounds_of_its_factors(text, lower):
    product = value(text, dict(zip(NAMES, symbolic_shape("a, b, c"), strict=True)), SYMBOLIC)
    assert lower <= symbolic_dim_bounds(product)[0] <= min(value(text, sizes) for sizes in all_sizes(NAMES, 6))
    assert product >= lower
    assert not product < lower
    assert -product <= -lower


def test_a_product_that_may_be_negative_is_not_decided():
    a, b = symbolic_shape("a, b")
    for product in (b * (a % 4 - 1), (a - 2) * (b % 3), a * b - 2 * b * (a % 4)):
        with pytest.raises(InconclusiveDimensionOperation, match=r"it holds for .* and fails for"):
            product >= 0  # noqa: B015


@pytest.mark.parametrize(
    ("constraint", "text"),
    [
        ("a + b == c + d", "a*a*b"),
        ("a + b == c + d", "d*d*d"),
        ("a*b == c + d", "d*d*a"),
        ("2*a*b == c + d", "d*c*c*a"),
    ],
)
def test_a_product_is_positive_where_equalities_replace_its_factors(constraint, text):
    (product,) = symbolic_shape(text, constraints=[constraint])
    assert product >= 1


@pytest.mark.parametrize(
    ("text", "upper"),
    [
        ("mod(b, 4)*mod(c, 2)", 3),
        ("min(b, 5)*mod(c, 3)", 10),
        ("mod(a, 3)*mod(b, 3)*mod(c, 3)", 8),
        ("(mod(a, 4) - 1)*mod(c, 5)", 8),
    ],
)
def test_a_product_is_at_most_the_product_of_the_bounds_of_its_factors(text, upper):
    product = value(text, dict(zip(NAMES, symbolic_shape("a, b, c"), strict=True)), SYMBOLIC)
    assert max(value(text, sizes) for sizes in all_sizes(NAMES, 6)) == upper
    assert symbolic_dim_bounds(product)[1] == upper
    assert product <= upper
    assert not product > upper


def test_a_product_is_not_negative_where_two_equalities_hide_its_factor():
    a, _, _, d = symbolic_shape("a, b, c, d", constraints=["floordiv(a, 2) == d", "max(b, c) == d"])
    assert d * (d % 5) >= 0
    assert (a // 2) * (d % 5 + 1) >= 0
