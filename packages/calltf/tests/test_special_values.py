"""At NaN, infinities and outside of domains what is compiled is as in eager mode, but for what the page says."""

import jax
import numpy as np
import pytest
import tensorflow as tf

from jaxtf.calltf import call_tf
from jaxtf.calltf._replacements import _REPLACEMENTS
from jaxtf.calltf._tf import operation_definition
from jaxtf.calltf._vectorizations import ELEMENTWISE

F = np.float32
NAN, INF = float("nan"), float("inf")
SPECIAL = F([NAN, -INF, -2.5, -1, -0.5, -0.0, 0, 0.5, 1, 2.5, 7, INF])
PAIRS = [x.ravel() for x in np.meshgrid(SPECIAL, SPECIAL)]
# Where compiled numbers are others, as the page says: of which operands.
OTHERWISE = {
    "Polygamma": lambda order, _: np.isinf(order),
    "Relu6Grad": lambda slope, _: ~np.isfinite(slope),
    "ReluGrad": lambda slope, _: ~np.isfinite(slope),
    "Zeta": lambda order, x: (order <= 1) | (x <= 0) | np.isinf(order),
}


def _floating_operands(op_type):
    """The names of the operands, if all may be of 32-bit floating point; None otherwise."""
    definition = operation_definition(op_type)
    allowed = {attr.name: attr.allowed_values.list.type for attr in definition.attr}
    for operand in definition.input_arg:
        if operand.number_attr or operand.type_list_attr or not operand.type_attr:
            return None
        if allowed[operand.type_attr] and tf.float32.as_datatype_enum not in allowed[operand.type_attr]:
            return None
    return [operand.name for operand in definition.input_arg]


ATTRIBUTES = {"Bucketize": {"boundaries": [-1.0, 0.5, 2.5]}, "Cast": {"DstT": tf.float64}}
OPERANDS = {op_type: _floating_operands(op_type) for op_type in sorted(ELEMENTWISE)}
DRAWN = [op_type for op_type, names in OPERANDS.items() if names and len(names) <= 2 and op_type != "Cross"]


@pytest.mark.parametrize(
    "op_type", [x if x in _REPLACEMENTS else pytest.param(x, marks=pytest.mark.slow) for x in DRAWN]
)
def test_elementwise_operations_are_as_in_eager_mode_at_special_numbers(op_type):
    def operation(*tensors):
        names = zip(OPERANDS[op_type], tensors, strict=True)
        return getattr(tf.raw_ops, op_type)(**dict(names), **ATTRIBUTES.get(op_type, {}))

    operands = PAIRS[: len(OPERANDS[op_type])] if len(OPERANDS[op_type]) > 1 else [SPECIAL]
    call = call_tf(operation)
    due, found = call(*operands), jax.jit(call)(*operands)
    is_due = ~OTHERWISE.get(op_type, lambda *x: np.zeros_like(x[0], bool))(*operands)
    np.testing.assert_allclose(np.asarray(found)[is_due], np.asarray(due)[is_due], rtol=1e-5, atol=1e-6)


def test_limits_of_a_clip_may_be_in_the_wrong_order_or_nan():
    for upper in (-1.0, NAN, 2.0):
        call = call_tf(
            lambda x, lower, upper=upper: tf.raw_ops.ClipByValue(t=x, clip_value_min=lower, clip_value_max=upper)
        )
        np.testing.assert_array_equal(jax.jit(call)(*PAIRS), call(*PAIRS))
    whole = call_tf(lambda x: tf.raw_ops.ClipByValue(t=x, clip_value_min=3, clip_value_max=-3))
    x = np.int32([-7, 0, 7])
    np.testing.assert_array_equal(jax.jit(whole)(x), whole(x))


@pytest.mark.parametrize("columns", [0, 1, 3])
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_the_top_k_are_those_of_rows_of_finite_numbers_and_of_targets_that_are_there(columns, dtype):
    rng = np.random.default_rng(3)
    predictions = rng.choice(F([0.1, 0.2, 0.3, 0.1, 0.2, 0.3, NAN, INF, -INF]), (200, columns))
    targets = rng.integers(-2, columns + 2, 200).astype(dtype)
    for k in (-1, 0, 1, 2, 3, 5):
        call = call_tf(lambda x, k=k: tf.raw_ops.InTopKV2(predictions=x, targets=targets, k=tf.constant(k, dtype)))
        due = call(predictions)
        np.testing.assert_array_equal(jax.jit(call)(predictions), due)
        older = call_tf(lambda x, k=k: tf.raw_ops.InTopK(predictions=x, targets=targets, k=k))
        np.testing.assert_array_equal(jax.jit(older)(predictions), due)
    one = call_tf(lambda x, target: tf.math.in_top_k(target[None], x[None], 2)[0])
    known = call_tf(lambda x: tf.math.in_top_k(targets, x, 2))
    np.testing.assert_array_equal(jax.vmap(one)(predictions, targets.astype(np.int32)), known(predictions))


def test_a_number_of_the_top_k_may_be_an_argument():
    call = call_tf(lambda x, k: tf.math.in_top_k([0, 2], x, k))
    x = F([[3, 2, 1], [3, 2, 1]])
    for k in (1, 3):
        np.testing.assert_array_equal(jax.jit(call)(x, np.int32(k)), [True, k == 3])


X = F([NAN, -INF, -1, -0.0, 0, 0.5, 1, 2, INF])


def _empty(x, dtype):
    return tf.cast(tf.reshape(x[:0], [3, 0]), dtype)


LAYER = tf.keras.layers.Discretization([0.0, 1.0])
FUNCTIONS = {
    "Discretization": LAYER,
    "buckets up to infinity": lambda x: tf.raw_ops.Bucketize(input=x, boundaries=[-INF, 0.0, INF]),
    "no buckets": lambda x: tf.raw_ops.Bucketize(input=x, boundaries=[]),
    "searchsorted, left": lambda x: tf.searchsorted([0.0, 1.0], x),
    "searchsorted, right": lambda x: tf.searchsorted([0.0, 1.0], x, "right"),
    "sign": lambda x: 1 / tf.sign(x),
    **{
        f"mean of no {dtype.name}": lambda x, dtype=dtype: tf.reduce_mean(_empty(x, dtype), axis=1)
        for dtype in (tf.int8, tf.uint8, tf.int16, tf.int32, tf.uint32, tf.int64, tf.float32)
    },
    "mean of no rows": lambda x: tf.reduce_mean(_empty(x, tf.int32), axis=[0]),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_results_are_those_of_eager_mode(name):
    call = call_tf(FUNCTIONS[name])
    np.testing.assert_array_equal(jax.jit(call)(X), call(X))


SLOPES = {
    "elu": tf.nn.elu,
    "selu": tf.nn.selu,
    "root": lambda x: tf.where(x > 0, tf.sqrt(x), 0.0),
    "reciprocal": lambda x: tf.where(x > 0, tf.math.reciprocal(x), 0.0),
    "reciprocal root": lambda x: tf.where(x > 0, tf.math.rsqrt(x), 0.0),
}


@pytest.mark.parametrize("name", SLOPES)
def test_derivatives_at_bends_and_poles_are_those_of_eager_mode(name):
    gradient = jax.grad(lambda x: call_tf(SLOPES[name])(x).sum())
    np.testing.assert_allclose(jax.jit(gradient)(X), gradient(X), rtol=1e-6)


def _slope(function):
    return jax.grad(lambda x: function(x).sum())


def _pool(x):
    return tf.nn.max_pool1d(x[None, :, None], 2, 1, "VALID")


def _entropy(x):
    return tf.nn.softmax_cross_entropy_with_logits([0.0, 0.5, 0.5], x)


def _padded(w):
    return tf.nn.conv1d(tf.ones([1, 4, 1]), w[:, None, None], 1, "SAME")


# Of the page: a function, an argument, what TensorFlow computes, and what is compiled.
STATED = {
    "segments": (
        lambda x: tf.math.unsorted_segment_max(x, [0, 0, 0], 1),
        F([1, NAN, 2]),
        [2],
        [NAN],
    ),
    "pool": (_pool, F([1, NAN, 2]), [1, 2], [NAN, NAN]),
    "logarithms": (tf.math.cumulative_logsumexp, F([0, NAN]), [0, np.log(F(2))], [0, NAN]),
    "softmax": (tf.nn.softmax, F([1, INF, 2]), [0, NAN, 0], [NAN] * 3),
    "entropy": (_entropy, F([-INF, 1, 1]), NAN, np.log(F(2))),
    "product": (
        lambda x: tf.linalg.matmul([[0.0, 1.0]], x[:, None], a_is_sparse=True),
        F([INF, 1]),
        [1],
        [NAN],
    ),
    "convolution": (_padded, F([1, 1, INF]), [INF, INF, INF, 2], [INF, INF, INF, NAN]),
    "triangular": (
        lambda x: tf.linalg.triangular_solve([[1.0, 0.0], [1.0, 1.0]], x[:, None]),
        F([1, INF]),
        [1, INF],
        [NAN, INF],
    ),
    "cast": (lambda x: tf.cast(x, tf.int32), F([NAN, INF]), [-(2**31)] * 2, [0, 2**31 - 1]),
    "inverse": (lambda x: tf.linalg.inv([[x[0], 1.0], [1.0, 1.0]])[1], F([3e38]), [0, 1], [NAN, NAN]),
    "zeta": (lambda x: tf.math.zeta(x, 0.0), F([1, 0]), [INF, NAN], [NAN, INF]),
    "shift": (
        lambda x: tf.bitwise.left_shift(tf.cast(x, tf.int32), [32, -1]),
        F([3, 3]),
        [-(2**31), 3],
        [0, 0],
    ),
    "hue": (lambda x: tf.image.adjust_hue(x[None, None], 0.0), F([0.1, NAN, 0.2]), [0.2, NAN, NAN], [NAN] * 3),
    "colour": (tf.image.rgb_to_hsv, F([NAN, 0.1, 0.2]), [NAN, 0.5, 0.2], [0, 0, NAN]),
}
DERIVATIVES = {
    "maximum": (tf.reduce_max, F([1, NAN, 2]), [NAN] * 3, [0] * 3),
    "root": (lambda x: 0 * tf.math.real(tf.sqrt(tf.complex(x, x))), F([0, 1]), [0, 0], [NAN, 0]),
    "infinite": (lambda x: INF * tf.nn.relu(x), F([-1, 2]), [NAN, INF], [0, INF]),
}


@pytest.mark.parametrize("name", [*STATED, *DERIVATIVES])
def test_numbers_that_differ_are_those_that_the_page_states(name):
    function, x, eager, compiled = STATED.get(name) or DERIVATIVES[name]
    call = call_tf(function) if name in STATED else _slope(call_tf(function))
    np.testing.assert_allclose(np.ravel(call(x)), np.ravel(eager), rtol=1e-6)
    np.testing.assert_allclose(np.ravel(jax.jit(call)(x)), np.ravel(compiled), rtol=1e-6)
