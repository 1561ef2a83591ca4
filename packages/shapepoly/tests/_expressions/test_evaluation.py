"""Values of sizes where numbers have 32 bits, as in a module."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jaxtf.shapepoly import IntegerOperations, evaluate, symbolic_shape

MOST = 2**31 - 1


class Of32Bits(IntegerOperations):
    """Integers of 32 bits: sums and products wrap, and no other operation may see one that did."""

    def constant(self, value):
        assert abs(value) <= MOST
        return value

    def add(self, a, b):
        return a + b

    def multiply(self, a, b):
        return a * b

    def floordiv(self, a, b):
        return self.constant(a) // self.constant(b)

    def maximum(self, a, b):
        return max(self.constant(a), self.constant(b))


def value_of(size, **sizes):
    """The value of a size; the test fails where wrapping would have changed it."""
    return size if isinstance(size, int) else evaluate(size, sizes, Of32Bits())


@pytest.mark.parametrize("size", [1, 32767, 32768, 65536, 65539, 70000, 2**31 - 40000])
def test_a_negated_quotient_by_a_large_number_stays_within_32_bits(size):
    (b,) = symbolic_shape("b")
    assert value_of(-b // 32768, b=size) == -size // 32768
    assert value_of(1 - (-b // 32768), b=size) == 1 - (-size // 32768)


@pytest.mark.parametrize("size", [1, 30_000, 65_539, 200_000, 2**31 - 1])
def test_remainders_of_large_multiples_stay_within_32_bits(size):
    (b,) = symbolic_shape("b")
    assert value_of((70_000 * b + 1) % 100_000, b=size) == (70_000 * size + 1) % 100_000
    assert value_of((-b // 1000) % 1_100_000, b=size) == (-size // 1000) % 1_100_000
    assert value_of((b * 30_000_001 + 12) // 60_000_000, b=size) == (size * 30_000_001 + 12) // 60_000_000


sizes = st.integers(1, 2**30) | st.integers(1, 70_000)
numbers = st.integers(-(2**31) + 1, MOST) | st.integers(-100_000, 100_000) | st.integers(-9, 9)


@given(
    factors=st.tuples(numbers, numbers),
    added=numbers,
    by=st.integers(1, MOST) | st.integers(1, 2**26) | st.integers(1, 100_000) | st.integers(1, 9),
    a=sizes,
    b=sizes,
)
def test_a_quotient_of_a_sum_stays_within_32_bits(factors, added, by, a, b):
    first, second = symbolic_shape("a, b")
    dividend = factors[0] * first + factors[1] * second + added
    expected = factors[0] * a + factors[1] * b + added
    assert value_of(dividend // by, a=a, b=b) == expected // by
    assert value_of(dividend % by, a=a, b=b) == expected % by


@given(
    factor=numbers,
    added=st.integers(-MOST, MOST),
    by=st.tuples(*[st.integers(1, MOST) | st.integers(1, 70_000)] * 3),
    b=st.integers(1, MOST),
)
def test_quotients_of_quotients_stay_within_32_bits(factor, added, by, b):
    first, second, third = by

    def of_size(size):
        inner = (factor * size + added) // first
        return [
            inner // second,
            inner % second,
            inner // second // third,
            inner % second % third,
            -(-inner // second) // third,
        ]

    (size,) = symbolic_shape("b")
    for symbolic, number in zip(of_size(size), of_size(b), strict=True):
        if -(2**31) <= (factor * b + added) // first <= MOST:
            assert value_of(symbolic, b=b) == number


areas = st.integers(1, 46_340)


@given(
    sides=st.tuples(*[areas] * 4),
    signs=st.tuples(*[st.sampled_from([1, -1, 3])] * 2),
    added=st.integers(-9, 9),
    by=st.integers(1, 9) | st.integers(1, MOST),
)
@example(sides=(40_000,) * 4, signs=(1, 1), added=0, by=2)
def test_a_quotient_of_a_sum_of_products_stays_within_32_bits(sides, signs, added, by):
    def total(a, b, c, d):
        return signs[0] * a * b + signs[1] * c * d + added

    dividend, expected = total(*symbolic_shape("a, b, c, d")), total(*sides)
    given_sizes = dict(zip("abcd", sides, strict=True))
    assert value_of(dividend // by, **given_sizes) == expected // by
    assert value_of(dividend % by, **given_sizes) == expected % by
