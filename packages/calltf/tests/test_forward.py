"""Forward-mode derivatives: the transpose of TensorFlow's reverse mode, linear and differentiable again."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax import lax

from jaxtf.calltf import call_tf

STAGES = pytest.mark.parametrize("stage", [lambda f: f, jax.jit], ids=["eager", "jit"])

X = np.array([0.3, -1.0, 2.0], np.float32)
T = np.array([1.0, -2.0, 0.5], np.float32)


def function_tf(x):
    return tf.sin(x) * x


def function_jax(x):
    return jnp.sin(x) * x


def pushed(f, x):
    return jax.jvp(f, (x,), (T,))


def compositions(f):
    return {
        "jvp": lambda x: pushed(f, x),
        "jvp of jit": lambda x: pushed(jax.jit(f), x),
        "jvp of scan": lambda x: pushed(lambda x: lax.scan(lambda c, _: (f(c), c), x, None, length=3)[0], x),
        "jvp of cond": lambda x: pushed(lambda x: lax.cond(x[0] > 0, f, lambda x: x, x), x),
        "jvp of checkpoint": lambda x: pushed(jax.checkpoint(f), x),
        "linearize": lambda x: jax.linearize(f, x)[1](T),
        "transpose of linearize": lambda x: jax.linear_transpose(jax.linearize(f, x)[1], x)(T)[0],
        "jacfwd": jax.jacfwd(f),
        "jacrev": jax.jacrev(f),
        "hessian": jax.hessian(lambda x: f(x).sum()),
        "forward over forward": lambda x: pushed(lambda x: pushed(f, x)[1], x),
        "forward over reverse": lambda x: pushed(jax.grad(lambda x: f(x).sum()), x),
        "reverse over forward": jax.grad(lambda x: pushed(f, x)[1].sum()),
        "third": jax.jacfwd(jax.jacfwd(jax.jacfwd(lambda x: f(x).sum()))),
        "in a custom rule": lambda x: pushed(in_custom_jvp(f), x),
    }


def in_custom_jvp(f):
    wrapped = jax.custom_jvp(f)
    wrapped.defjvp(lambda primals, tangents: jax.jvp(f, primals, (3 * tangents[0],)))
    return wrapped


@STAGES
@pytest.mark.parametrize("name", compositions(function_jax))
def test_forward_mode_composes_with_jax(name, stage):
    found = stage(compositions(call_tf(function_tf))[name])(X)
    expected = compositions(function_jax)[name](X)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-5), found, expected)


@STAGES
def test_integer_arguments_and_results_have_float0_tangents(stage):
    call = call_tf(lambda x, i: (tf.gather(x, i), tf.argmax(x), x > 0))
    i = np.array([2, 0], np.int32)
    _, (moved, index, positive) = stage(lambda: jax.jvp(call, (X, i), (T, np.zeros(2, jax.dtypes.float0))))()
    np.testing.assert_array_equal(moved, [0.5, 1.0])
    assert index.dtype == positive.dtype == jax.dtypes.float0
    assert (index.shape, positive.shape) == ((), (3,))


@STAGES
def test_arguments_that_do_not_move_are_not_differentiated(stage):
    @tf.custom_gradient
    def once(x):
        def gradient(_):
            raise AssertionError("nobody asked for it")

        return tf.identity(x), gradient

    call = call_tf(lambda x, y: (x * tf.stop_gradient(once(y)), y * 2))
    _, (moved, other) = stage(lambda: jax.jvp(lambda x: call(x, X), (X,), (T,)))()
    np.testing.assert_array_equal(moved, T * X)
    np.testing.assert_array_equal(other, 0 * X)


@STAGES
def test_a_custom_gradient_of_tensorflow_holds_in_forward_mode_too(stage):
    @tf.custom_gradient
    def f(x):
        return x * x, lambda upstream: -7.0 * upstream

    assert stage(lambda x: jax.jvp(call_tf(f), (x,), (1.0,))[1])(3.0) == -7.0
    assert stage(jax.jacfwd(call_tf(f)))(3.0) == stage(jax.jacrev(call_tf(f)))(3.0) == -7.0


@STAGES
def test_complex_tangents_are_those_of_jax(stage):
    z = jnp.array([1 + 2j, 0.5 - 1j])
    found = stage(lambda z: jax.jvp(call_tf(lambda z: tf.sin(z) * z), (z,), (z * (2 - 1j),)))(z)
    expected = jax.jvp(lambda z: jnp.sin(z) * z, (z,), (z * (2 - 1j),))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5), found, expected)


@STAGES
def test_a_sparse_gradient_pushes_forward(stage):
    call = call_tf(lambda table: tf.gather(table, [2, 0, 2]))
    np.testing.assert_array_equal(stage(lambda x: jax.jvp(call, (x,), (T,))[1])(X), T[[2, 0, 2]])


def test_a_linear_function_is_transposed():
    call = call_tf(lambda x: tf.stack([2 * x[0], x[1] - x[0]]))
    (found,) = jax.linear_transpose(call, np.zeros(2, np.float32))(np.array([1.0, 10.0], np.float32))
    np.testing.assert_array_equal(found, [-8.0, 10.0])


def test_an_eager_tangent_is_that_of_the_path_taken():
    def function(x):
        return x * 2 if x.numpy() > 0 else x * 5

    assert jax.jvp(call_tf(function), (1.0,), (1.0,))[1] == 2.0
    assert jax.jvp(call_tf(function), (-1.0,), (1.0,))[1] == 5.0


def test_a_shape_that_depends_on_values_has_eager_tangents():
    call = call_tf(lambda x: tf.boolean_mask(x, x > 0) ** 2)
    np.testing.assert_allclose(jax.jvp(call, (X,), (T,))[1], [0.6, 2.0], rtol=1e-6)


def test_a_staged_tangent_takes_two_traces():
    traces = []
    call = call_tf(lambda x: traces.append(None) or tf.sin(x))
    jax.jit(lambda x: jax.jvp(call, (x,), (T,)))(X)
    assert len(traces) == 2


def test_an_op_without_a_gradient_is_refused_not_zero():
    with pytest.raises(LookupError, match="gradient"):
        jax.jvp(
            call_tf(lambda x: tf.raw_ops.LRNGrad(input_grads=x, input_image=x, output_image=x)),
            (np.ones((1, 1, 1, 4), np.float32),),
            (np.ones((1, 1, 1, 4), np.float32),),
        )


@STAGES
def test_an_op_whose_gradient_tensorflow_wrongly_takes_to_be_zero_is_refused(stage):
    image = np.ones((1, 3, 3, 1), np.float32)
    call = call_tf(lambda x: tf.image.resize(x, (6, 6)) + tf.tile(x, [1, 2, 2, 1]))
    with pytest.raises(NotImplementedError, match=r"(?s)needs the gradient of ResizeBilinearGrad.*remedy"):
        stage(lambda x: jax.jvp(call, (x,), (x,)))(image)
    assert stage(jax.grad(lambda x: call(x).sum()))(image).shape == image.shape


# TensorFlow has their gradients by log(cotangent), x / (y / cotangent), cotangent / count.
NOT_WRITTEN_LINEARLY = {
    "cumulative_logsumexp": tf.math.cumulative_logsumexp,
    "reduce_euclidean_norm": tf.math.reduce_euclidean_norm,
    "unsorted_segment_max": lambda x: tf.math.unsorted_segment_max(x, [0, 0, 1], 2),
    "segment_mean": lambda x: tf.math.segment_mean(x, [0, 0, 1]),
}
NOT_COMPILED = ("reduce_euclidean_norm", "segment_mean")


@pytest.mark.parametrize("name", NOT_WRITTEN_LINEARLY)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("scale", [1, 30])
def test_forward_mode_is_the_transpose_of_reverse_mode(name, dtype, scale):
    with jax.enable_x64(dtype == "float64"):
        call, x, tangent = call_tf(NOT_WRITTEN_LINEARLY[name]), jnp.asarray(X * scale, dtype), jnp.asarray(T, dtype)
        value, pulled = jax.vjp(call, x)
        cotangent = jnp.asarray(np.linspace(1, 2, value.size).reshape(value.shape), dtype)
        expected = np.dot(np.asarray(pulled(cotangent)[0], np.float64), T)
        accuracy = 20 * scale * float(jnp.finfo(dtype).eps)  # an exponential of x has x times the error
        stages = [lambda f: f] if name in NOT_COMPILED else [lambda f: f, jax.jit]
        for stage in stages:
            moved = stage(lambda x: jax.jvp(call, (x,), (tangent,))[1])(x)
            assert moved.dtype == x.dtype
            found = np.vdot(np.asarray(cotangent, np.float64), np.asarray(moved, np.float64))
            np.testing.assert_allclose(found, expected, rtol=accuracy, atol=accuracy)


@STAGES
def test_a_gradient_that_is_clipped_has_its_slope_near_zero(stage):
    @tf.custom_gradient
    def clipped(x):
        return x * x, lambda upstream: tf.clip_by_value(upstream * 2 * x, -1.0, 1.0)

    assert stage(lambda x: jax.jvp(call_tf(clipped), (x,), (1.0,))[1])(5.0) == 10.0


@STAGES
@pytest.mark.parametrize("kind", ["forward", "second"])
def test_the_error_of_an_op_without_a_gradient_names_the_function(stage, kind):
    def rescaled(x):
        return tf.nn.lrn(tf.reshape(x, (1, 1, 1, 1)))[0, 0, 0, 0]

    call = call_tf(rescaled)
    derivative = {"forward": lambda x: jax.jvp(call, (x,), (x,)), "second": jax.grad(jax.grad(call))}[kind]
    with pytest.raises(LookupError, match="LRNGrad") as refused:
        stage(derivative)(1.0)
    assert (
        "call_tf: forward mode or a second derivative of rescaled needs the gradient of that operation, which "
        "TensorFlow does not define\n  remedy: use other ops, or reverse mode once (jax.grad, jax.vjp)"
    ) in refused.value.__notes__


def test_a_number_is_linearized_and_pulled_back():
    call = call_tf(function_tf)
    slope = np.sin(2) + 2 * np.cos(2)
    np.testing.assert_allclose(jax.linearize(call, 2.0)[1](3.0), 3 * slope, rtol=1e-6)
    np.testing.assert_allclose(jax.vjp(call, 2.0)[1](3.0)[0], 3 * slope, rtol=1e-6)
