"""TensorFlow functions of many kinds give TensorFlow's own results and gradients in JAX."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np
import pytest
import tensorflow as tf

from jaxtf.calltf import call_tf

RNG = np.random.default_rng(0)


class Case(NamedTuple):
    function: Callable[..., Any]
    shapes: tuple[tuple[int, ...], ...]
    terms: int = 1  # how many products are summed for one element: summation order may differ
    integers: tuple[Any, ...] = ()  # arguments after the floating point ones
    single: bool = False  # TensorFlow computes in float32 whatever the argument


def spd(x):
    return x @ tf.transpose(x) + 4 * tf.eye(x.shape[0], dtype=x.dtype)


def loop(x):
    return tf.while_loop(lambda i, _: i < 3, lambda i, y: (i + 1, tf.sin(y) + x), (0, x), maximum_iterations=3)[1]


def tensor_array(x):
    array = tf.TensorArray(x.dtype, size=3, element_shape=x.shape)
    for i in range(3):
        array = array.write(i, x * tf.cast(i + 1, x.dtype))
    return array.stack()


def layer_norm(x):
    mean, variance = tf.nn.moments(x, axes=[-1], keepdims=True)
    return tf.nn.batch_normalization(x, mean, variance, None, None, 1e-3)


@tf.custom_gradient
def clipped(x):
    return x * x, lambda upstream: tf.clip_by_value(upstream * 2 * x, -1, 1)


@tf.function
def with_autograph(x):
    if tf.reduce_sum(x) > 0:
        return x * 2
    return x * 3


CASES = {
    "sin": Case(tf.sin, ((3,),)),
    "exp log1p": Case(lambda x: tf.exp(tf.math.log1p(tf.abs(x))), ((3, 2),)),
    "tanh sigmoid": Case(lambda x: tf.tanh(x) * tf.sigmoid(x), ((3, 2),)),
    "pow and divide": Case(lambda x, y: tf.abs(x) ** 1.5 / (tf.abs(y) + 1), ((4,), (4,))),
    "maximum": Case(tf.maximum, ((5,), (5,))),
    "where": Case(lambda x, y: tf.where(x > y, x, y * y), ((5,), (5,))),
    "cumsum": Case(lambda x: tf.cumsum(x, axis=1), ((2, 5),), terms=5),
    "reduce_logsumexp": Case(lambda x: tf.reduce_logsumexp(x, axis=0), ((4, 3),), terms=4),
    "argmax": Case(lambda x: tf.argmax(x, axis=1), ((4, 3),)),
    "sort": Case(tf.sort, ((7,),)),
    "top_k": Case(lambda x: tuple(tf.math.top_k(x, k=2)), ((7,),)),
    "softmax": Case(tf.nn.softmax, ((3, 4),), terms=4),
    "gelu": Case(tf.nn.gelu, ((6,),)),
    "conv2d": Case(lambda x, k: tf.nn.conv2d(x, k, 1, "SAME"), ((2, 5, 5, 3), (3, 3, 3, 4)), terms=100),
    "avg_pool2d": Case(lambda x: tf.nn.avg_pool2d(x, 2, 2, "VALID"), ((1, 4, 4, 2),), terms=4),
    "layer norm": Case(layer_norm, ((3, 8),), terms=50),
    "cross entropy": Case(
        lambda x, labels: tf.nn.sparse_softmax_cross_entropy_with_logits(labels, x),
        ((3, 4),),
        terms=8,
        integers=(np.array([0, 3, 1], np.int32),),
    ),
    "resize": Case(lambda x: tf.cast(tf.image.resize(x, (6, 6)), x.dtype), ((1, 3, 3, 2),), terms=20, single=True),
    "flip": Case(tf.image.flip_left_right, ((2, 3, 3, 1),)),
    "rfft": Case(lambda x: tf.abs(tf.signal.rfft(x)), ((8,),), terms=20),
    "matmul": Case(tf.matmul, ((3, 4), (4, 5)), terms=5),
    "einsum": Case(lambda x, y: tf.einsum("bij,bjk->bik", x, y), ((2, 3, 4), (2, 4, 3)), terms=4),
    "cholesky": Case(lambda x: tf.linalg.cholesky(spd(x)), ((3, 3),), terms=60),
    "norm": Case(tf.norm, ((3, 3),), terms=9),
    "gather": Case(tf.gather, ((5, 2),), terms=2, integers=(np.array([4, 0, 4], np.int32),)),
    "scatter": Case(
        lambda x, i: tf.scatter_nd(i[:, None], x, [6, 2]), ((3, 2),), terms=2, integers=(np.array([5, 0, 5], np.int32),)
    ),
    "one_hot": Case(lambda i: tf.one_hot(i, 4), (), integers=(np.array([3, 0], np.int32),)),
    "concat and split": Case(lambda x, y: tf.split(tf.concat([x, y], 0), 2), ((3, 2), (1, 2))),
    "pad and tile": Case(lambda x: tf.tile(tf.pad(x, [[1, 0], [0, 2]]), [2, 1]), ((2, 2),), terms=2),
    "strided slice": Case(lambda x: x[::-2, 1:, None], ((5, 3),)),
    "bit operations": Case(
        tf.bitwise.bitwise_xor, (), integers=(np.array([5, 9], np.uint8), np.array([3, 1], np.uint8))
    ),
    "logical": Case(lambda x: tf.reduce_all(x > -9), ((5,),)),
    # The default algorithm, "auto_select", is another one for XLA than for eager TensorFlow.
    "stateless random": Case(
        lambda x: x * tf.random.stateless_uniform(x.shape, [1, 2], dtype=x.dtype, alg="philox"), ((5,),)
    ),
    "while_loop": Case(loop, ((4,),), terms=8),
    "cond": Case(lambda x: tf.cond(tf.reduce_sum(x) > 0, lambda: x * 2, lambda: tf.sin(x)), ((4,),)),
    "map_fn": Case(lambda x: tf.map_fn(lambda row: tf.reduce_sum(row) * row, x), ((3, 2),), terms=4),
    "TensorArray": Case(tensor_array, ((2,),), terms=3),
    "custom gradient": Case(clipped, ((4,),)),
    "autograph": Case(with_autograph, ((4,),)),
}


def arguments(case, dtype):
    return [RNG.normal(size=shape).astype(dtype) for shape in case.shapes] + list(case.integers)


def reference(case, args):
    """TensorFlow's results, and its gradient with respect to the floating point arguments."""
    tensors = [tf.constant(arg) for arg in args]
    sources = tensors[: len(case.shapes)]
    with tf.GradientTape() as tape:
        tape.watch(sources)
        results = tf.nest.flatten(case.function(*tensors))
        differentiable = [result for result in results if result.dtype.is_floating]
    if not (differentiable and sources):
        return [result.numpy() for result in results], []
    gradients = tape.gradient(differentiable, sources, unconnected_gradients="zero")
    return [result.numpy() for result in results], [tf.convert_to_tensor(g).numpy() for g in gradients]


def assert_close(found, expected, terms, single=False):
    """Within a few units in the last place of the largest magnitude, per summed term."""
    assert len(found) == len(expected)
    for x, y in zip(found, expected, strict=True):
        assert x.shape == y.shape
        assert x.dtype == jax.dtypes.canonicalize_dtype(y.dtype)
        if not np.issubdtype(y.dtype, np.inexact):
            np.testing.assert_array_equal(x, y)
            continue
        bound = (
            8 * (1 + terms) * np.finfo(np.float32 if single else y.dtype).eps * max(1.0, np.max(np.abs(y), initial=0))
        )
        np.testing.assert_allclose(x, y, rtol=0, atol=bound)


def gradient(function, case, args):
    """The gradient of the sum of all floating point results, in JAX."""

    def total(*floats):
        results = jax.tree.leaves(function(*floats, *args[len(case.shapes) :]))
        return sum(r.sum() for r in results if np.issubdtype(r.dtype, np.floating))

    return jax.grad(total, argnums=tuple(range(len(case.shapes))))


@pytest.mark.parametrize("name", CASES)
def test_a_tensorflow_function_gives_its_results_and_gradients_in_jax(name, x64):
    case = CASES[name]
    args = arguments(case, np.float64 if x64 else np.float32)
    results, gradients = reference(case, args)
    function = call_tf(case.function)
    floats = args[: len(case.shapes)]

    assert_close(jax.tree.leaves(function(*args)), results, 0)
    assert_close(jax.tree.leaves(jax.jit(function)(*args)), results, case.terms, case.single)
    if gradients:
        assert_close(gradient(function, case, args)(*floats), gradients, case.terms, case.single)
        assert_close(jax.jit(gradient(function, case, args))(*floats), gradients, case.terms, case.single)


# A clipped gradient is not linear; the others are refused or do not compile twice differentiated.
NOT_FORWARD = {"custom gradient", "resize", "autograph"}


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.shapes and name not in NOT_FORWARD])
def test_forward_mode_agrees_with_tensorflows_reverse_mode(name):
    """The sum of all floating point results changes along a tangent by the product with their gradient."""
    case = CASES[name]
    args = arguments(case, np.float32)
    floats, rest = args[: len(case.shapes)], args[len(case.shapes) :]
    tangents = [RNG.normal(size=x.shape).astype(np.float32) for x in floats]
    _, gradients = reference(case, args)
    expected = sum(np.vdot(gradient, tangent) for gradient, tangent in zip(gradients, tangents, strict=False))
    scale = sum(np.abs(gradient * tangent).sum() for gradient, tangent in zip(gradients, tangents, strict=False))

    def pushed(*floats):
        return jax.jvp(lambda *floats: call_tf(case.function)(*floats, *rest), floats, tuple(tangents))[1]

    for stage in (lambda f: f, jax.jit):
        found = sum(t.sum() for t in jax.tree.leaves(stage(pushed)(*floats)) if np.issubdtype(t.dtype, np.floating))
        bound = 8 * (1 + case.terms) * np.finfo(np.float32).eps * max(1.0, scale)
        np.testing.assert_allclose(found, expected, rtol=0, atol=bound)


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.shapes])
def test_vmap_gives_the_stacked_results_and_gradients_of_the_elements(name):
    case = CASES[name]
    batch = [arguments(case, np.float32) for _ in range(3)]
    elements = [reference(case, args) for args in batch]
    results, gradients = ([np.stack(leaf) for leaf in zip(*part, strict=True)] for part in zip(*elements, strict=True))
    floats = [np.stack([args[i] for args in batch]) for i in range(len(case.shapes))]
    rest = batch[0][len(case.shapes) :]
    function = jax.vmap(lambda *floats: call_tf(case.function)(*floats, *rest))

    for stage in (lambda f: f, jax.jit):
        assert_close(jax.tree.leaves(stage(function)(*floats)), results, case.terms)
        if gradients:
            found = stage(
                gradient(lambda *floats, function=function: function(*floats), case._replace(integers=()), floats)
            )(*floats)
            assert_close(found, gradients, case.terms)
