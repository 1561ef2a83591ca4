"""What a function computes from symbolic sizes is right on both sides of each threshold, or refused by name."""

import jax
import numpy as np
import pytest
import tensorflow as tf
from jax import export

from jaxtf.calltf import call_tf
from jaxtf.calltf._operations import RULES
from jaxtf.calltf._operations.table import rule
from jaxtf.calltf._tf import is_compilable

from .operations_table import NOT_COMPILED, PAGE, page

KNOWN_ELSEWHERE = {"XlaCallModule", "XlaDynamicUpdateSlice"}  # of TensorFlow's compiler


def rows(x):
    return tf.shape(x)[0]


def as_float(size):
    return tf.cast(size, tf.float32)


# Function, and the sizes to compare at.
CASES = {
    "root": (lambda x: x + tf.floor(tf.sqrt(as_float(rows(x)))), (1, 2, 8, 9, 10, 128)),
    "root as a bound": (lambda x: x[: tf.cast(tf.sqrt(as_float(rows(x))), tf.int32)], (1, 8, 9, 10)),
    "a part, rounded": (lambda x: x + as_float(tf.cast(as_float(rows(x)) * 0.99, tf.int32)), (1, 2, 100, 127, 128)),
    "maximum": (lambda x: x + as_float(tf.maximum(rows(x), 2)), (1, 2, 3)),
    "branch at one": (lambda x: tf.cond(rows(x) == 1, lambda: x, lambda: 2 * x), (1, 2, 3)),
    "all but one, not none": (lambda x: x[: tf.maximum(rows(x) - 1, 1)], (1, 2, 3)),
    "branch at a large size": (lambda x: tf.cond(rows(x) > 300_000, lambda: x, lambda: 2 * x), (1, 300_000, 300_001)),
    "many rows": (lambda x: x[:300_000], (1, 2, 299_999, 300_000, 300_001)),
    "a computed number of rows": (lambda x: x[: tf.pow(10, 4)], (1, 9_999, 10_000, 10_001)),
    "a product of rows": (lambda x: x[: tf.reduce_prod([12, 12, 12])], (1, 1_727, 1_728, 1_729)),
    "bits": (lambda x: x + as_float(tf.bitwise.bitwise_and(rows(x), 4096)), (1, 4_095, 4_096, 4_097)),
    "shifted": (lambda x: x + as_float(tf.bitwise.right_shift(rows(x), 14)), (1, 16_383, 16_384)),
    "8 bits": (lambda x: x + as_float(tf.cast(rows(x), tf.int8)), (1, 127, 128, 300)),
    "16 bits": (lambda x: x + as_float(tf.cast(rows(x), tf.int16) + 1), (1, 32_766, 32_767, 32_768)),
    "64 bits": (lambda x: x + as_float(tf.cast(rows(x), tf.int64) ** 2 // 1000), (1, 46_340, 46_341)),
    "64 bits, multiplied": (
        lambda x: x + as_float(tf.cast(rows(x), tf.int64) * tf.cast(rows(x), tf.int64)),
        (1, 46_340, 46_341, 100_000),
    ),
    "fewer than none": (lambda x: x[2:], (1, 2, 3)),
    "fewer than none, summed": (lambda x: tf.reduce_sum(x[2:], 0), (1, 2, 3)),
    "first rows": (lambda x: x[:10], (1, 9, 10, 11)),
    "first rows by a minimum": (lambda x: x[: tf.minimum(rows(x), 50)], (1, 49, 50, 51)),
    "a multiple of 4": (lambda x: x[: rows(x) // 4 * 4], (1, 3, 4, 5)),
    "above": (lambda x: tf.where(as_float(rows(x)) > 5000.0, x, 2 * x), (1, 5_000, 5_001)),
    "encoded": (lambda x: tf.one_hot([0, 3], rows(x)), (1, 3, 4)),
    "padded to 10": (lambda x: tf.pad(x, [[0, 10 - tf.minimum(rows(x), 10)], [0, 0]]), (1, 9, 10, 11)),
    "cumulative": (lambda x: tf.cumsum(x, 0), (1, 2, 9)),
    "cumulative, of those before": (
        lambda x: tf.cumsum(tf.transpose(x), 1, exclusive=True, reverse=True),
        (1, 2, 9, 64, 65),
    ),
    "cumulative integers": (lambda x: tf.cumsum(tf.cast(100 * x, tf.int32), 0), (1, 2, 9, 1000)),
    "cumulative products": (lambda x: tf.math.cumprod(x + 1.5, 0), (1, 2, 9)),
    "cumulative exponentials": (lambda x: tf.math.cumulative_logsumexp(x, 0), (1, 2, 9, 100)),
    "exponentials of those before": (
        lambda x: tf.math.cumulative_logsumexp(x, 0, exclusive=True),
        (1, 2, 9, 100),
    ),
    "an identity matrix": (lambda x: tf.eye(rows(x)), (1, 2, 9)),
    "a diagonal matrix": (lambda x: tf.linalg.diag(x[:, 0]), (1, 2, 9)),
    "a trace": (lambda x: tf.linalg.trace(tf.matmul(x, x, transpose_b=True)), (1, 2, 9)),
    "a diagonal, replaced": (
        lambda x: tf.linalg.set_diag(tf.matmul(x, x, transpose_b=True), x[:, 1]),
        (1, 2, 9),
    ),
    "frames": (lambda x: tf.signal.frame(tf.transpose(x), 4, 2), (4, 5, 6, 7, 50)),
    "spectra": (lambda x: tf.abs(tf.signal.stft(tf.transpose(x), 4, 2)), (4, 5, 6, 7, 50)),
    "bits of a bound": (lambda x: x[: tf.bitwise.bitwise_and(rows(x), 12)], (1, 3, 4, 7, 8, 12, 16, 31)),
    "a shifted bound": (lambda x: x[: tf.bitwise.right_shift(rows(x), 2)], (1, 3, 4, 50)),
    "a bound by a condition": (lambda x: x[: tf.where(rows(x) > 5, 3, 2)], (1, 2, 5, 6)),
    "a bound by a branch": (lambda x: x[: tf.cond(rows(x) == 5, lambda: 3, lambda: 2)], (1, 4, 5, 6)),
    "complex constants": (
        lambda x: tf.math.real(tf.cast(x, tf.complex64) * tf.constant([1 + 2j, 3 - 1j, 2j], tf.complex64)),
        (1, 2, 5),
    ),
    "cosines": (lambda x: tf.signal.dct(tf.transpose(x)), (1, 2, 5)),
    "a range that may be negative": (lambda x: tf.range(rows(x) - 2), (2, 3, 9)),
    "a range": (lambda x: tf.range(rows(x) - 1), (1, 2, 3, 9)),
    "a loop over sizes": (
        lambda x: x + as_float(tf.while_loop(lambda i: i < rows(x), lambda i: (2 * i,), (tf.constant(1),))[0]),
        (1, 2, 3, 64, 65),
    ),
    "ones, counted": (lambda x: tf.minimum(tf.reduce_sum(tf.ones_like(x)), 20.0), (1, 6, 7, 8)),
    "an op of ones, counted": (lambda x: tf.minimum(tf.reduce_sum(tf.raw_ops.OnesLike(x=x)), 20.0), (1, 6, 7, 8)),
    "a range, divided": (lambda x: tf.range(rows(x)) // 50, (1, 50, 51, 200)),
    "constants, encoded": (lambda x: tf.reduce_sum(tf.one_hot([3, 30], rows(x)), 1), (1, 3, 4, 30, 31, 50)),
    "filled, counted": (lambda x: tf.minimum(tf.reduce_sum(tf.fill([rows(x)], 1)), 25), (1, 24, 25, 26)),
    "constants, padded": (lambda x: tf.reduce_sum(tf.pad(tf.ones([2]), [[0, rows(x)]], "CONSTANT", 1)), (1, 24, 50)),
    "constants, scattered": (lambda x: tf.scatter_nd([[0]], [1], [rows(x)]) * 2, (1, 24, 50)),
    "last rows": (lambda x: x[-5:], (1, 4, 5, 6, 50)),
    "backwards": (lambda x: x[10:2:-3], (1, 2, 3, 10, 11, 12, 50)),
    "first of the last": (lambda x: x[::-1][:7], (1, 6, 7, 8)),
    "swapped": (lambda x: tf.concat([x[5:], x[:5]], 0), (1, 4, 5, 6)),
    "rolled": (lambda x: tf.roll(x, rows(x) // 2, 0), (1, 2, 3, 4, 50)),
    "the largest": (lambda x: tf.math.top_k(tf.transpose(x), tf.minimum(rows(x), 5))[0], (1, 4, 5, 6)),
    "a list": (
        lambda x: tf.map_fn(lambda i: x[i] * 2, tf.range(rows(x)), fn_output_signature=tf.float32),
        (1, 2, 50),
    ),
    "one of three": (lambda x: tf.switch_case(rows(x) % 3, [lambda: x, lambda: 2 * x, lambda: 3 * x]), (1, 2, 3, 4)),
    "leaves 32 bits": (lambda x: tf.cond(rows(x) * 100_000 < 0, lambda: x, lambda: 2 * x), (1, 21_474, 21_475, 42_950)),
    "a bound that leaves 32 bits": (lambda x: x[: tf.minimum(rows(x) * 100_000, rows(x))], (1, 21_475)),
    "a random number of rows": (lambda x: x[: tf.random.stateless_uniform([], [1, 2], 0, 5, tf.int32)], (1, 2)),
    "random": (lambda x: tf.random.stateless_uniform(tf.shape(x), [1, 2]), (1, 2)),
}


REFUSED = {
    *("root as a bound", "cosines"),
    *("a bound that leaves 32 bits", "a random number of rows", "random"),
}


@pytest.mark.parametrize("name", CASES)
def test_what_depends_on_a_size_is_right_on_both_sides_of_its_threshold_or_refused(name):
    function, sizes = CASES[name]
    spec = jax.ShapeDtypeStruct(export.symbolic_shape("b, 3"), np.float32)
    if name in REFUSED:
        with pytest.raises((ValueError, NotImplementedError), match=r"(?s)call_tf.*remedy:"):
            export.export(jax.jit(call_tf(function)))(spec)
        return
    exported = export.export(jax.jit(call_tf(function)))(spec)
    for size in sizes:
        x = np.linspace(-1, 1, 3 * size, dtype=np.float32).reshape(size, 3)
        found, expected = exported.call(x), function(tf.constant(x)).numpy()
        assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("name", "operation"),
    [("root as a bound", "StridedSlice"), ("cosines", "Range")],
)
def test_the_refusal_names_the_operation(name, operation):
    spec = jax.ShapeDtypeStruct(export.symbolic_shape("b, 3"), np.float32)
    message = rf"(?s)<lambda> is called with symbolic sizes, and its operation \w*{operation} \(.*remedy"
    with pytest.raises(NotImplementedError, match=message):
        jax.jit(call_tf(CASES[name][0])).trace(spec)


def test_random_numbers_are_those_of_a_compiled_function():
    def noise(x):
        return x * 0 + tf.random.stateless_uniform([3], [1, 2])

    exported = export.export(jax.jit(call_tf(noise)))(jax.ShapeDtypeStruct(export.symbolic_shape("b, 3"), np.float32))
    x = np.ones((2, 3), np.float32)
    np.testing.assert_array_equal(exported.call(x), jax.jit(call_tf(noise))(x))


def test_the_page_of_operations_is_up_to_date():
    assert PAGE.read_text() == page()


def test_an_operation_has_one_entry():
    with pytest.raises(AssertionError, match="Reshape"):
        rule("Reshape")(lambda *_: [])


def test_every_entry_is_an_operation_of_tensorflow():
    assert [name for name in RULES if name not in KNOWN_ELSEWHERE and not hasattr(tf.raw_ops, name)] == []


@pytest.mark.skipif(not tf.__version__.startswith("2.21"), reason="the page is of TensorFlow 2.21")
def test_the_page_names_the_operations_that_are_compiled_at_no_size():
    assert sorted(name for name in RULES if not is_compilable(name)) == list(NOT_COMPILED)
