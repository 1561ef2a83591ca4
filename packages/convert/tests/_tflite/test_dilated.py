"""Convolutions by dilated kernels: TFLite's converter makes operations of its own of what they are written with."""

import warnings
from functools import partial

import jax
import numpy as np
import pytest
import tensorflow as tf

from jaxtf.convert import to_tflite


def drawn(random):
    """A convolution by a dilated kernel, depthwise or of one or two groups, and an operand, both of small integers."""
    rank, features = int(random.choice([1, 2, 2, 3])), 4
    groups = 1 if rank == 3 else int(random.choice([1, 2, 4, 4, 4]))
    bounds = (6, 13), (1, 5), (2, 4), (1, 4)
    size, span, apart, stride = (random.integers(*pair, rank).tolist() for pair in bounds)
    edges = [tuple(random.integers(0, 4, 2).tolist()) for _ in range(rank)]
    padding = ("SAME", "SAME", "SAME_LOWER", "VALID", edges)[random.integers(5)]
    kernel = random.integers(-4, 5, (*span, features // groups, 4 * int(random.integers(1, 3)))).astype(np.float32)
    names = "DHW"[-rank:]
    convolved = partial(
        jax.lax.conv_general_dilated,
        rhs=kernel,
        window_strides=stride,
        padding=padding,
        rhs_dilation=apart,
        feature_group_count=groups,
        dimension_numbers=(f"N{names}C", f"{names}IO", f"N{names}C"),
    )
    return convolved, random.integers(-4, 5, (1, *size, features)).astype(np.float32)


def results(model, **arguments):
    with warnings.catch_warnings(action="ignore", category=UserWarning):  # tf.lite.Interpreter moves to ai_edge_litert
        return tf.lite.Interpreter(model_content=model).get_signature_runner()(**arguments)


@pytest.mark.slow(2)
@pytest.mark.parametrize("seed", range(8))
def test_convolutions_by_dilated_kernels_are_right(seed):
    random = np.random.default_rng(seed)
    drawings = {f"p{i:02}": drawn(random) for i in range(12)}
    funs, arrays = ({name: pair[i] for name, pair in drawings.items()} for i in range(2))
    expected = {name: np.asarray(fun(arrays[name])) for name, fun in funs.items()}
    funs, arrays = ({name: d[name] for name in d if expected[name].size} for d in (funs, arrays))
    model = to_tflite(
        lambda inputs: {name: fun(inputs[name]) for name, fun in funs.items()},
        input_signature=[{name: tf.TensorSpec(x.shape) for name, x in arrays.items()}],
    )
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        names = sorted(tf.lite.Interpreter(model_content=model).get_signature_runner().get_input_details())
    found = results(model, **{name: arrays[name[-3:]] for name in names})
    wrong = [
        funs[name].keywords
        for name, array in zip(sorted(funs), (found[key] for key in sorted(found)), strict=True)
        if not np.array_equal(array, expected[name])
    ]
    assert not wrong


@pytest.mark.parametrize("size", [7, 8])
@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_a_depthwise_one_with_a_stride_stays_one_operation(size, padding):
    kernel = np.ones((3, 1, 2), np.float32)
    x = np.arange(size * 2, dtype=np.float32).reshape(1, size, 2)

    def convolved(x):
        return jax.lax.conv_general_dilated(
            x, kernel, (2,), padding, rhs_dilation=(2,), feature_group_count=2, dimension_numbers=("NWC", "WIO", "NWC")
        )

    model = to_tflite(convolved, input_signature=[tf.TensorSpec(x.shape)])
    [found] = results(model, x=x).values()
    assert np.array_equal(found, convolved(x))
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        details = tf.lite.Interpreter(model_content=model)._get_ops_details()
    names = {detail["op_name"] for detail in details}
    assert "DEPTHWISE_CONV_2D" in names
    assert "SPACE_TO_BATCH_ND" not in names
