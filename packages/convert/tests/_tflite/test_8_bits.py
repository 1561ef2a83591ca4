"""Models of 8 bits: what `to_tflite` writes in place of the converter's forms is near in them too."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

from jaxtf.convert import to_tflite

INSIDE = np.linspace(-0.9, 0.9, 32, dtype=np.float32).reshape(4, 8)
SAMPLES = np.linspace(0.6, 1, 20, dtype=np.float32)


def assert_near(fun, x, share):
    """The results of 8 bits are off by no more than a share of the range of the right ones."""
    signature, data = [tf.TensorSpec(x.shape)], [[x * scale] for scale in SAMPLES]
    model = to_tflite(fun, input_signature=signature, representative_data=data)
    with warnings.catch_warnings(action="ignore", category=UserWarning):  # tf.lite.Interpreter moves to ai_edge_litert
        runner = tf.lite.Interpreter(model_content=model).get_signature_runner()
    [found] = runner(**dict.fromkeys(runner.get_input_details(), x)).values()
    expected = np.asarray(fun(jnp.asarray(x)))
    assert found.shape == expected.shape
    assert np.abs(found - expected).max() <= share * np.ptp(expected)


# Each is one operation or a few; a step of 8 bits is 0.004 of the range.
@pytest.mark.parametrize(
    ("fun", "x"),
    [
        (jnp.log1p, INSIDE + np.float32(1.2)),
        (jnp.log1p, INSIDE),
        (jnp.expm1, INSIDE),
        (jax.lax.erf_inv, INSIDE),
        (jnp.arctanh, INSIDE),
        (jnp.sinh, INSIDE),
        (jax.nn.log_sigmoid, INSIDE),
        (lambda x: 5 - x.T, INSIDE),
    ],
    ids=["log1p", "log1p near 0", "expm1", "erf_inv", "arctanh", "sinh", "log_sigmoid", "difference"],
)
def test_functions_are_near_in_8_bits(fun, x):
    assert_near(fun, x, 0.015)


@pytest.mark.slow(1)
@pytest.mark.parametrize(
    "fun",
    [
        lambda x: x.at[jnp.array([1, 1])].add(0.5),
        lambda x: x.at[jnp.array([1, 1, 1, 3])].add(x),
        lambda x: x.at[jnp.array([1, 1, 2]), jnp.array([3, 3, 4])].add(2.0),
        lambda x: x.at[jnp.array([1, 5])].add(x[:2], mode="drop"),
        lambda x: jax.ops.segment_sum(x, jnp.array([1, 1, 1, 0]), 2),
        jax.grad(lambda x: (x[jnp.array([1, 1, 1, 2])] ** 2).sum()),
        lambda x: x.at[jnp.array([1, 3, 1])].set(0.7),
    ],
    ids=["constants", "rows", "elements", "dropped", "segments", "gradient", "set"],
)
def test_updates_of_repeated_indices_are_near_in_8_bits(fun):
    assert_near(fun, INSIDE, 0.015)


EDGES = [((1, 1), (1, 1)), ((0, 1), (2, 0)), ((2, 2), (1, 0))]


@pytest.mark.slow(1)
@pytest.mark.parametrize("edges", EDGES, ids=str)
@pytest.mark.parametrize("first", [1, 2], ids=["NHWC", "NCHW"])
@pytest.mark.parametrize("function", [jax.nn.relu, jnp.tanh])
def test_padded_maxima_of_windows_are_near_in_8_bits(function, first, edges):
    x = np.random.default_rng(0).normal(size=(2, 7, 8, 7)).astype(np.float32)

    def around(pair, rest):
        return [rest] * first + list(pair) + [rest] * (2 - first)

    def pooled(x):
        # Of both signs: where all are below 0, maxima of zeros would show.
        y = function(x) - 2
        return jax.lax.reduce_window(
            y, -jnp.inf, jax.lax.max, around((3, 3), 1), around((2, 1), 1), around(edges, (0, 0))
        )

    assert_near(pooled, x, 0.015)


def test_what_has_the_least_float_elsewhere_keeps_it():
    def padded(x):
        y = jnp.pad(x, ((1, 1), (1, 1)), constant_values=-jnp.inf)
        maxima = jax.lax.reduce_window(y, -jnp.inf, jax.lax.max, (1, 3), (1, 1), "VALID")
        return maxima, y

    model = to_tflite(padded, input_signature=[tf.TensorSpec([4, 8])], representative_data=[[INSIDE]])
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        results = tf.lite.Interpreter(model_content=model).get_signature_runner()(x=INSIDE)
    assert all(np.abs(array[0]).min() > 1e38 for array in results.values())


INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32"]
COMPARISONS = [jnp.equal, jnp.not_equal, jnp.less, jnp.less_equal, jnp.greater, jnp.greater_equal]


@pytest.mark.slow(2)
@pytest.mark.parametrize("exponent", [-9, -2, 0, 1, 8, 25, 33])
def test_numbers_that_8_bits_hold_are_cast_and_compared_exactly(exponent):
    # Multiples of a power of two, all of those that there are with that for a scale.
    x = np.random.default_rng(0).permutation(np.arange(-128, 128)).astype(np.float32) * np.float32(2.0**exponent)

    def function(x):
        casts = {f"cast to {dtype}": x.astype(dtype) for dtype in INTEGERS}
        others = {"itself": x[::-1], "a number": x[7], "a constant": np.float32(3 * 2.0**exponent), "a bound": 2.0**31}
        for comparison in COMPARISONS:
            for name, other in others.items():
                casts[f"{comparison.__name__} with {name}"] = comparison(x, other)
        return casts | {"by index": jnp.take(jnp.arange(256), x.astype(jnp.int32) + 128, mode="clip")}

    model = to_tflite(function, input_signature=[tf.TensorSpec([256])], representative_data=[[x]])
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        runner = tf.lite.Interpreter(model_content=model).get_signature_runner()
    found = runner(x=x)
    expected = jax.jit(function)(x)
    assert found.keys() == expected.keys()
    wrong = [name for name, array in expected.items() if not np.array_equal(found[name], array)]
    assert not wrong
