"""TensorFlow functions of arrays whose sizes depend on values, drawn: a selection of rows, steps, a result.

A function has one argument, `x` of shape `(5, 3)`; how many rows are selected depends on the signs in its first column.
Steps are of operations that are known to keep such a size, and of others, with constants that XLA folds.
"""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf
from hypothesis import strategies as st

__all__ = ["ARGUMENTS", "Program", "by_tensorflow", "programs", "slope_of", "squared"]

ROWS = 5

SELECTIONS = (
    "tf.boolean_mask(x, x[:, 0] > 0)",
    "tf.boolean_mask(x, x[:, 0] > 0)",
    "tf.gather(x, tf.where(x[:, 0] > 0)[:, 0])",
    "tf.gather_nd(x, tf.where(x[:, 0] > 0))",
    "x[:count(x)]",
    "x[count(x):]",
    "tf.slice(x, [0, 0], [count(x), 3])",
    "tf.cond(x[0, 0] > 0, lambda: x[:2], lambda: x[:4])",
    "tf.dynamic_partition(x, tf.cast(x[:, 0] > 0, tf.int32), 2)[1]",
    "tf.unique(tf.round(x[:, 0]))[0][:, tf.newaxis] * x[0]",
)
# Rows of three numbers to the same; {c} is a number, {i} an integer, {t} a truth value.
STEPS = (
    *("tf.sin({m})", "{m} * {c}", "{c} - {m}", "{m} + {m}", "{m} - {m}", "{m} * x[0]", "{m} * {m}[:, :1]", "{m} / 2.0"),
    *("tf.maximum({m}, {c})", "tf.nn.relu({m})", "tf.nn.elu({m})", "tf.pow(tf.abs({m}), {c})", "tf.add_n([{m}, {m}])"),
    "tf.where({m} > {c}, {m}, {c})",
    "tf.where({m} > {m}, {c}, {c})",
    "tf.where(tf.logical_or({m} > {c}, {t}), {m}, 2.0)",
    "tf.where(tf.logical_and({m} > {c}, {m} < 1.0), {m}, 2.0)",
    "tf.cast({m} > {c}, tf.float32)",
    "tf.cast(tf.cast({m}, tf.int32) * {i} + 1, tf.float32)",
    "tf.cast(tf.bitwise.bitwise_and(tf.cast({m}, tf.int32), {i}) + 1, tf.float32)",
    "tf.cast(tf.equal(tf.cast({m}, tf.int32), {i}), tf.float32)",
    "tf.cast(tf.maximum(tf.cast({m}, tf.int32), {i}), tf.float32)",
    *("tf.nn.softmax({m})", "tf.nn.softmax({m}, 0)", "tf.nn.log_softmax({m})", "tf.math.l2_normalize({m}, 1)"),
    *("{m} - tf.reduce_mean({m}, 0, keepdims=True)", "{m} * tf.reduce_sum({m}, 1, keepdims=True)"),
    *("tf.cumsum({m})", "tf.cumsum({m}, 1)", "tf.cumsum({m}, reverse=True)", "tf.math.cumulative_logsumexp({m})"),
    *("tf.roll({m}, 1, 0)", "tf.reverse({m}, [0])", "tf.reverse({m}, [1])", "tf.sort({m}, 0)", "{m}[::-1]", "{m}[1:]"),
    *("{m}[:-1]", "{m}[:2]", "{m}[..., ::-1]", "{m}[:, tf.newaxis, :][:, 0]", "tf.concat([{m}, x], 0)"),
    *("tf.concat([x, {m}], 0)", "tf.concat([{m}, {m}], 1)[:, :3]", "tf.stack([{m}, {m}])[0]", "tf.tile({m}, [2, 1])"),
    "tf.boolean_mask({m}, {m}[:, 1] > {c})",
    "tf.pad({m}, [[1, 0], [0, 0]], constant_values={c})",
    *("tf.gather({m}, [2, 0, 1], axis=1)", "tf.repeat({m}, 2, 0)", "tf.matmul({m}, x[:3])", "tf.matmul(x, {m})"),
    "tf.matmul(tf.matmul({m}, {m}, transpose_b=True), {m})",
    *("tf.ones_like({m})", "tf.zeros_like({m}) + {c}", "tf.broadcast_to(x[0], tf.shape({m}))"),
    *("tf.fill(tf.shape({m}), {c})", "tf.ones(tf.shape({m}))", "tf.reshape(tf.reshape({m}, [-1]), [-1, 3])"),
    *(
        "tf.reshape({m}, [-1, 3, 1])[..., 0]",
        "tf.transpose(tf.transpose({m}))",
        "tf.squeeze(tf.expand_dims({m}, 1), 1)",
    ),
    *("tf.stop_gradient({m})", "tf.ensure_shape({m}, [None, 3])", "tf.linalg.band_part({m}, 1, 0)", "called({m})"),
    "tf.cond(x[1, 0] > 0, lambda: {m}, lambda: {m} * 2)",
    "tf.while_loop(lambda i, a: i < 2, lambda i, a: (i + 1, a * 2), (0, {m}))[1]",
    *("tf.math.multiply_no_nan({m}, {c})", "tf.math.xlogy({c}, tf.abs({m}) + 1)", "tf.math.divide_no_nan({m}, {m})"),
    *("tf.atan2({c}, {m})", "tf.math.floormod({m}, 2.0)", "tf.math.xdivy({m}, 2.0 + {c})", "tf.sign({m})"),
    *("{m} + x", "tf.math.divide_no_nan({m}, {c})", "tf.clip_by_value({m}, {c}, {c})", "tf.math.top_k({m}, 3)[0]"),
)
# Of rows to what is of a constant size.
RESULTS = (
    *(
        "tf.reduce_sum({m})",
        "tf.reduce_sum({m}, 0)",
        "tf.reduce_max({m}, 0)",
        "tf.reduce_mean({m})",
        "tf.reduce_prod({m})",
    ),
    *("tf.reduce_sum(tf.reduce_sum({m}, 1))", "tf.reduce_sum({m}, keepdims=True)", "tf.math.reduce_std({m}, 0)"),
    *("tf.reduce_logsumexp({m}, 0)", "tf.reduce_all({m} > {c})", "tf.reduce_any({m} > {c})", "tf.norm({m})"),
    *(
        "tf.nn.l2_loss({m})",
        "tf.size({m})",
        "tf.shape({m})",
        "tf.argmax({m}, 0)",
        "tf.reduce_sum(tf.cast({m}, tf.int32))",
    ),
    *("{m}[0]", "{m}[-1]", "{m}[tf.shape({m})[0] - 1]", "tf.gather({m}, [0, 0])", "tf.reduce_sum({m}) / count({m})"),
    *("tf.matmul({m}, {m}, transpose_a=True)", "tf.einsum('ij,ik->jk', {m}, {m})", "tf.math.count_nonzero({m})"),
    "tf.math.unsorted_segment_sum({m}, tf.cast(tf.abs({m}[:, 0]), tf.int32), 3)",
    "tf.math.unsorted_segment_max({m}, tf.cast(tf.abs({m}[:, 0]), tf.int32), 3)",
    "tf.tensor_scatter_nd_add(x, tf.cast(tf.abs(tf.sin({m}[:, :1])), tf.int32), {m})",
    "tf.reduce_sum(tf.gather(x, tf.cast({m}[:, 0] * {c}, tf.int32) * 0))",
    "tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(tf.cast({m}[:, 0] > 0, tf.int32), {m}))",
    "tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(tf.nn.softmax({m}), {m}))",
    "tf.reduce_sum(tf.nn.sigmoid_cross_entropy_with_logits(tf.sigmoid({m}), {m}))",
    "tf.unique(tf.round(x[:, 0]))[1]",
)
NUMBERS = ("0.0", "1.0", "-1.0", "0.5", "-0.25")


def _arguments() -> list[np.ndarray]:
    """Of which none, some and all rows are selected, at the beginning, the end and between."""
    drawn = np.random.default_rng(0)
    found = []
    for signs in ("-----", "+----", "--+--", "++---", "+-+-+", "---++", "+++++"):
        x = drawn.uniform(0.1, 1.9, (ROWS, 3)) * drawn.choice([-1, 1], (ROWS, 3))
        x[:, 0] = np.abs(x[:, 0]) * [1 if sign == "+" else -1 for sign in signs]
        found.append(x.astype(np.float32))
    return found


ARGUMENTS = _arguments()


@dataclass(frozen=True)
class Program:
    """A function of `x`, as Python."""

    source: str

    def function(self) -> Any:
        return eval(f"lambda x: {self.source}", {"tf": tf, "count": _count, "called": _called})


def _count(x: Any) -> Any:
    """How many rows of `x` have a positive number first; a float for the number of rows, if these are not known."""
    if x.shape[0] is None:
        return tf.cast(tf.shape(x)[0] + 1, tf.float32)
    return tf.reduce_sum(tf.cast(x[:, 0] > 0, tf.int32))


_called = tf.function(lambda x: tf.sin(x) * 2, autograph=False)


@st.composite
def programs(draw: Any) -> Program:
    """Programs of a selection, up to three steps and a result."""
    source = draw(st.sampled_from(SELECTIONS))
    for step in [*draw(st.lists(st.sampled_from(STEPS), max_size=3)), draw(st.sampled_from(RESULTS))]:
        number, integer, truth = draw(st.sampled_from(NUMBERS)), draw(st.integers(-1, 2)), draw(st.booleans())
        source = f"(lambda m: {step.format(m='m', c=number, i=integer, t=truth)})({source})"
    return Program(source)


def by_tensorflow(function: Callable[..., Any]) -> list[tuple[np.ndarray, np.ndarray]]:
    """The arguments for which TensorFlow has a result, not compiled, and the results; some have too few rows."""
    found = []
    for x in ARGUMENTS:
        with contextlib.suppress(tf.errors.OpError, ValueError, TypeError, LookupError):
            found.append((x, function(tf.constant(x)).numpy()))
    return found


def squared(function: Callable[..., Any]) -> Callable[..., Any]:
    """The sum of the squares of what a function gives, which has a derivative."""

    def sum_of_squares(x: Any) -> Any:
        return tf.reduce_sum(tf.cast(function(x), tf.float32) ** 2)

    return sum_of_squares


def slope_of(function: Callable[..., Any]) -> Callable[..., Any]:
    """The derivative of a function of one number, by TensorFlow."""

    def slope(x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            result = function(x)
        return tf.convert_to_tensor(tape.gradient(result, x, unconnected_gradients="zero"))

    return slope
