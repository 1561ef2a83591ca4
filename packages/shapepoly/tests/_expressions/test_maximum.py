"""Maxima of many operands: their normal form, their size, and what is decided about them."""

from functools import reduce
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxtf.shapepoly import IntegerOperations, evaluate, max_dim, min_dim, symbolic_dim_bounds, symbolic_shape

from ..strategies import all_sizes  # noqa: TID252

OPERANDS = ["a", "b + 2", "c - 3", "2*a - b", "min(a, c)", "max(b, 4)", "7"]


@pytest.mark.parametrize(("many", "built_in"), [(max_dim, max), (min_dim, min)])
def test_the_order_in_which_many_are_compared_does_not_matter(many, built_in):
    operands = symbolic_shape("a, b + 1, 2*c, 3")
    forms = {reduce(many, order).expression for order in permutations(operands)}
    a, b, c, d = operands
    assert forms == {many(many(a, b), many(c, d)).expression}
    for sizes in all_sizes("abc", 4):
        expected = built_in(sizes["a"], sizes["b"] + 1, 2 * sizes["c"], 3)
        assert evaluate(reduce(many, operands), sizes, IntegerOperations()) == expected


@pytest.mark.parametrize("count", [13, 50])
def test_many_operands_stay_small_and_decidable(count):
    shape = symbolic_shape(", ".join(f"x{i}" for i in range(count)))
    smallest, largest = reduce(min_dim, shape), reduce(max_dim, shape)
    assert smallest.expression.size <= 4 * count
    assert largest.expression.size <= 4 * count
    assert smallest >= 1
    assert all(smallest <= size for size in shape)
    assert all(largest >= size for size in shape)
    assert symbolic_dim_bounds(smallest) == (1, float("inf"))
    assert symbolic_shape(str(smallest), scope=shape[0].scope)[0].expression == smallest.expression


def test_a_maximum_of_many_may_be_written_with_one_call():
    a, b, c = symbolic_shape("a, b, c")
    assert symbolic_shape("max(a, b, c, 4), min(c, b, a)", scope=a.scope) == (
        max_dim(max_dim(a, b), max_dim(c, 4)),
        min_dim(a, min_dim(b, c)),
    )


def test_what_another_operand_exceeds_is_left_out():
    a, b, c = symbolic_shape("a, b, c", constraints=["b >= c"])
    assert str(max_dim(max_dim(a, c), b)) == "max(a, b)"
    assert str(min_dim(min_dim(a + 7, b), min_dim(c, a))) == "min(a, c)"
    assert max_dim(max_dim(a, b), a + b) == a + b


def test_terms_that_all_operands_share_come_out():
    a, b, c = symbolic_shape("a, b, c")
    assert (max_dim(a + c, b + c) - c).expression == max_dim(a, b).expression
    assert (max_dim(a, min_dim(b, c)) - max_dim(min_dim(c, b), a)) == 0
    assert max_dim(3 * a, 3 * b).expression == (3 * max_dim(a, b)).expression


def test_a_sum_of_many_maxima_is_not_spread_without_bound():
    names = [f"x{i}" for i in range(16)]
    shape = symbolic_shape(", ".join(names))
    total = sum(max_dim(one, other) for one, other in zip(shape[::2], shape[1::2], strict=True))
    larger = max_dim(total, shape[0] * 20)
    assert larger.expression.size < 500
    sizes = {name: 1 + position % 3 for position, name in enumerate(names)}
    expected = max(sum(max(sizes[a], sizes[b]) for a, b in zip(names[::2], names[1::2], strict=True)), 20)
    assert evaluate(larger, sizes, IntegerOperations()) == expected


@given(operands=st.lists(st.sampled_from(OPERANDS), min_size=2))
def test_maxima_and_minima_of_any_kind_compute_what_python_computes(operands):
    shape = symbolic_shape(", ".join(operands))
    largest, smallest = reduce(max_dim, shape), reduce(min_dim, shape)
    for sizes in list(all_sizes("abc", 5))[::7]:
        values = [evaluate(size, sizes, IntegerOperations()) for size in shape]
        assert evaluate(largest, sizes, IntegerOperations()) == max(values)
        assert evaluate(smallest, sizes, IntegerOperations()) == min(values)
