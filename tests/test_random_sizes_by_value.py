"""TensorFlow functions whose sizes depend on values, drawn, through `call_tf` on every backend: right or refused.

A few are tried always, the same ones; JAXTF_FULL=1 tries `RANDOM_PROGRAMS` of them, 300 if it is not set, others each
time (the session `random_programs`).
"""

import sys
from pathlib import Path

import jax
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, reject

from jaxtf.calltf import CompilationError, DynamicShapeError, call_tf
from jaxtf.convert import GraphModeUnsupported, NativeModeUnsupported, convert, convert_exported
from jaxtf.serialization import deserialize, export

from .drawing import drawn

sys.path.insert(0, str(Path(__file__).parents[1] / "packages" / "calltf" / "tests"))
from dynamic_programs import ARGUMENTS, by_tensorflow, programs, slope_of, squared

REFUSALS = CompilationError, DynamicShapeError, GraphModeUnsupported, NativeModeUnsupported

pytestmark = pytest.mark.skipif(jax.default_backend() != "cpu", reason="TensorFlow compiles the functions for the CPU")


def in_graph(function):
    return tf.function(function, autograph=False)


def artifact(function):
    return deserialize(export(jax.jit(function))(ARGUMENTS[0]).serialize())


def from_artifact(function):
    return in_graph(convert_exported(artifact(function), native_serialization=False))


BACKENDS = {
    "artifact": lambda function: artifact(function).call,
    "native": convert,
    "native, from an artifact": lambda function: convert_exported(artifact(function)),
    "graph": lambda function: convert(function, native_serialization=False),
    "graph, from an artifact": from_artifact,
    "graph, from an artifact, derivatives": lambda function: from_artifact(jax.grad(function)),
}


def answer(backend, function, expected, source):
    """Whether a backend refuses a function, or is right."""
    try:
        run = BACKENDS[backend](call_tf(function))
        results = [np.asarray(run(x)) for x, _ in expected]
    except REFUSALS:
        return "refused"
    for ours, (x, theirs) in zip(results, expected, strict=True):
        where = f"{backend}, {source}, rows by {x[:, 0]}"
        assert ours.shape == theirs.shape, where
        np.testing.assert_allclose(ours, theirs, rtol=2e-3, atol=2e-4, err_msg=where)
    return "right"


def try_each_backend(function, source):
    total = squared(function)
    values, slopes = by_tensorflow(function), by_tensorflow(slope_of(total))
    if not values:
        reject()  # no program
    for backend in BACKENDS:
        if not backend.endswith("derivatives"):
            answer(backend, function, values, source)
        elif slopes:
            answer(backend, total, slopes, source)


@pytest.mark.slow
@given(program=programs())
@drawn(16, 300)
def test_a_program_of_such_sizes_is_right_or_refused(program):
    try_each_backend(program.function(), program.source)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: tf.reduce_sum(tf.unique(tf.round(x[:, 0]))[0][:, tf.newaxis] * x[0]),
        lambda x: tf.reduce_sum(tf.boolean_mask(x, x[:, 0] > 0) * tf.boolean_mask(x[::-1], x[:, 0] > 0)),
        lambda x: tf.argmax(tf.boolean_mask(x, x[:, 0] > 0), 0),
        lambda x: tf.reduce_sum(tf.nn.softmax(tf.boolean_mask(x, x[:, 0] > 0)), 0),
        lambda x: tf.matmul(*2 * [tf.boolean_mask(x, x[:, 0] > 0)], transpose_a=True),
    ],
    ids=["a static factor", "two selections alike", "an index", "softmax", "a product"],
)
def test_such_sizes_come_out_of_an_artifact_in_graph_mode(function):
    """Of one row too, which TensorFlow's operations broadcast."""
    expected = [(x, function(tf.constant(x)).numpy()) for x in ARGUMENTS[1:]]
    assert answer("graph, from an artifact", function, expected, "") == "right"
    assert answer("native, from an artifact", function, expected, "") == "refused"


def test_two_selections_that_differ_are_refused_in_graph_mode_from_an_artifact():
    """XLA counts what is selected from a selection in blocks, whose last ones have different sizes."""

    def function(x):
        rows = tf.boolean_mask(x, x[:, 0] > 0)
        return tf.reduce_sum(tf.boolean_mask(rows, rows[:, 1] > 0))

    expected = by_tensorflow(function)
    assert answer("artifact", function, expected, "") == "right"
    with pytest.raises(GraphModeUnsupported, match="depend on values, and are not known to be equal"):
        from_artifact(call_tf(function))
