"""Integers computed from a size by random operations, against NumPy's 32 bits."""

import operator
import random

import numpy as np
import pytest
import tensorflow as tf

from jaxtf.calltf._jax import evaluated_dimension, is_symbolic
from jaxtf.calltf._operations.arithmetic import _CHOOSING, _EXACT, _NARROW, _cast
from jaxtf.shapepoly import symbolic_shape

NUMPY = {
    "AddV2": operator.add,
    "Sub": operator.sub,
    "Mul": operator.mul,
    "Invert": operator.invert,
    "Neg": operator.neg,
    "Maximum": np.maximum,
    "Minimum": np.minimum,
    "Abs": np.abs,
    "Sign": np.sign,
    "FloorDiv": operator.floordiv,
    "FloorMod": operator.mod,
    "Equal": operator.eq,
    "NotEqual": operator.ne,
    "Less": operator.lt,
    "LessEqual": operator.le,
    "Greater": operator.gt,
    "GreaterEqual": operator.ge,
    "BitwiseAnd": operator.and_,
    "BitwiseOr": operator.or_,
    "BitwiseXor": operator.xor,
    "RightShift": operator.rshift,
    "LeftShift": operator.lshift,
}
UNARY = {"Invert", "Neg", "Abs", "Sign"}
SHIFTS = {"RightShift", "LeftShift"}
SIZES = (1, 2, 3, 7, 8, 9, 100, 127, 128, 129, 255, 256, 1000, 4097)


def draw(seed):
    """What a random expression of `b` is as a size, and for each of the sizes by NumPy."""
    random_ = random.Random(seed)
    [size] = symbolic_shape("b")
    values = np.array(SIZES, np.int32)
    for _ in range(random_.randint(1, 3)):
        name = random_.choice(sorted(NUMPY))
        function = _EXACT.get(name) or _CHOOSING[name]
        other = random_.randint(0, 5) if name in SHIFTS else random_.choice((1, 2, 3, 6, 8, 12, 100, 128, 255, 1000))
        operands = [] if name in UNARY else [other]
        found = function(size, *operands)
        if found is None:
            continue
        size, values = found, NUMPY[name](values, *(np.int32(x) for x in operands)).astype(np.int32)
    return size, values


def at(size, value):
    return evaluated_dimension(size, {"b": value}) if is_symbolic(size) else int(size)


@pytest.mark.parametrize("seed", range(300))
def test_a_random_expression_of_a_size_is_what_numpy_computes(seed):
    size, values = draw(seed)
    assert [at(size, value) for value in SIZES] == values.tolist()


@pytest.mark.parametrize("dtype", _NARROW)
def test_a_cast_takes_the_last_bits(dtype):
    [b] = symbolic_shape("b")
    for size, values in ((b, np.array(SIZES)), (-3 * b, -3 * np.array(SIZES))):
        found = _cast(tf.int32, dtype, True)(size)
        assert [at(found, value) for value in SIZES] == values.astype(dtype.as_numpy_dtype).tolist()


def test_most_operations_are_known():
    found = sum(is_symbolic(draw(seed)[0]) for seed in range(300))
    assert found > 200
