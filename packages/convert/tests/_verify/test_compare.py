"""What counts as the same: NumPy's own comparison of the parts of numbers decides."""

import itertools

import jax.numpy as jnp
import numpy as np
import pytest

from jaxtf.convert._verify.compare import allowed, difference

PARTS = (np.nan, np.inf, -np.inf, 0.0, 1.0, -2.0)
NUMBERS = [complex(*parts) for parts in itertools.product(PARTS, PARTS)]


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_complex_numbers_are_the_same_where_their_parts_are(dtype):
    for left, right in itertools.product(NUMBERS, NUMBERS):
        found, expected = (np.array([number, 3 + 4j], dtype) for number in (left, right))
        are_same = np.array_equal(found.view(found.real.dtype), expected.view(found.real.dtype), equal_nan=True)
        assert (difference(found, expected) == 0) == are_same, (left, right)


def test_a_part_beside_a_nan_is_compared_relative_to_the_numbers():
    found, expected = (np.array([complex(np.nan, part), 4], np.complex64) for part in (1.0, 1.0 + 2**-22))
    assert difference(found, expected) == pytest.approx(0.5)
    assert difference(*(np.array([complex(np.inf, part)], np.complex64) for part in (1.0, 1.0 + 2**-22))) < 3
    assert difference(*(np.array([complex(np.nan, part)], np.complex64) for part in (1.0, 0.0))) == np.inf


def test_zeros_of_either_sign_are_the_same():
    for dtype in (np.float32, np.complex64):
        assert difference(np.array([0.0, 1.0], dtype), -np.array([0.0, -1.0], dtype)) == 0


@pytest.mark.parametrize(
    ("dtype", "factor"), [("float8_e5m2", 0.5), ("float8_e5m2", 1.5), ("float4_e2m1fn", 0), ("float8_e8m0fnu", 4)]
)
def test_no_other_number_is_the_same_for_having_few_bits(dtype, factor):
    expected = np.array([1, 2, 4], jnp.dtype(dtype))
    found = (np.array([1, 2, 4]) * factor).astype(expected.dtype)
    assert difference(found, expected) > allowed(expected, None)
    assert difference(expected, expected) == 0
