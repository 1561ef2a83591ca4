"""A staged call lowers to StableHLO alone, for each platform, once for all calls."""

import re
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax import export  # the authority: what it takes is an ordinary JAX program

from jaxtf.calltf import CaptureWarning, CompilationError, VariableWriteError, _traced, call_tf


def step(x):
    return tf.sin(x) + x


def lowered(function, *args, platforms=("cpu",)):
    return jax.jit(function).trace(*args).lower(lowering_platforms=platforms).as_text()


def operations(text):
    return set(re.findall(r"[\w.]+\.\w+(?=[ (\"])", text)) - {"func.func"}


@pytest.mark.parametrize("platform", ["cpu", "cuda", "rocm"])
def test_a_stateless_call_lowers_to_stablehlo_without_effects_or_custom_calls(platform):
    def program(x):
        return jax.grad(lambda x: call_tf(step)(jnp.cos(x)).sum())(x)

    assert not jax.make_jaxpr(program)(jnp.ones(3)).effects
    text = lowered(program, jnp.ones(3), platforms=(platform,))
    assert "stablehlo.sine" in text
    assert "custom_call" not in text
    assert "token" not in text
    assert {line.split(".")[0] for line in operations(text) if "." in line} <= {"stablehlo", "func", "jax", "mhlo"}


def test_a_call_lowers_for_several_platforms_at_once():
    text = lowered(call_tf(step), jnp.ones(3), platforms=("cpu", "cuda"))
    assert "_platform_index" in text
    assert text.count("stablehlo.sine") == 2


def test_jax_itself_exports_and_reloads_a_call():
    exported = export.export(jax.jit(lambda x: call_tf(step)(x) * 2))(jnp.ones(3))
    assert exported.ordered_effects == exported.unordered_effects == ()
    found = export.deserialize(exported.serialize()).call(jnp.ones(3))
    np.testing.assert_allclose(found, 2 * (np.sin(1) + 1) * np.ones(3), rtol=1e-6)


def test_calls_of_one_signature_share_one_function():
    call = call_tf(step)
    text = lowered(lambda x: call(call(call(x))), jnp.ones(3))
    assert text.count("stablehlo.sine") == 1
    assert text.count("func.func private @call_tf_step") == 1


def test_calls_of_different_functions_do_not_collide():
    def other(x):
        return tf.cos(x)

    other.__name__ = "step"
    found = jax.jit(lambda x: (call_tf(step)(x), call_tf(other)(x), call_tf(step)(x[:1])))(jnp.ones(2))
    np.testing.assert_allclose(found[0], np.sin(1) + np.ones(2), rtol=1e-6)
    np.testing.assert_allclose(found[1], np.cos(1) * np.ones(2), rtol=1e-6)
    assert found[2].shape == (1,)


def test_lowering_twice_compiles_by_tensorflow_once(monkeypatch):
    from tensorflow.python.eager import context

    compiled = []
    original = context.context().get_compiler_ir
    monkeypatch.setattr(
        context.context(), "get_compiler_ir", lambda *a, **k: compiled.append(k["stage"]) or original(*a, **k)
    )
    call = call_tf(step)
    lowered(call, jnp.ones(3))
    lowered(lambda x: call(x) + 1, jnp.ones(3))
    assert compiled == ["hlo_serialized"]


def test_names_of_tensorflow_ops_are_kept_in_the_locations():
    def function(x):
        return tf.sin(x, name="my_favourite_sine")

    text = jax.jit(call_tf(function)).lower(jnp.ones(3)).as_text(debug_info=True)
    assert "my_favourite_sine" in text


def test_captured_variables_and_tensors_are_constants_with_a_warning():
    weights = tf.Variable([1.0, 2.0, 3.0], name="weights")
    table = tf.constant(np.arange(200, dtype=np.float32))

    @tf.function
    def nested(x):
        return x * weights

    program = jax.jit(call_tf(lambda x: nested(x) + tf.reduce_sum(table)))
    message = (
        r"(?s)call_tf works best with a TensorFlow function that does not capture variables or tensors from the "
        r"context. The following captures were found in <lambda>: tf.Variable weights:0 float32\[3\], tf.Tensor "
        r"float32\[200\]"
    )
    with pytest.warns(UserWarning, match=message):
        found = program(jnp.ones(3))
    np.testing.assert_array_equal(found, [19901.0, 19902.0, 19903.0])
    weights.assign([0.0, 0.0, 0.0])
    np.testing.assert_array_equal(program(jnp.ones(3)), found)  # as documented: the value at lowering


def run_here(function, *args, platform):
    """What the program for a platform computes on this one."""
    checks = [export.DisabledSafetyCheck.platform()]
    return export.export(jax.jit(function), platforms=(platform,), disabled_checks=checks)(*args).call(*args)


@pytest.mark.slow(1)
@pytest.mark.filterwarnings("ignore:call_tf works best")
@pytest.mark.parametrize("platform", ["cpu", "cuda", "tpu"])
def test_variables_and_tensors_are_captured_also_in_control_flow_for_devices_that_are_not_here(platform):
    weights = tf.Variable([1.0, -2.0, 3.0])
    table = tf.constant([5.0, 6.0, 7.0])

    @tf.function
    def branches(x, n):
        for _ in tf.range(n):
            x = x * weights + table
        return tf.cond(tf.reduce_sum(x) > 0, lambda: tf.sin(x) * weights, lambda: x), table

    x = np.array([1, 2, 3], np.float32)
    for values in ([1.0, -2.0, 3.0], [0.5, 0.0, -4.0]):
        weights.assign(values)
        for n in (0, 3):
            found = run_here(call_tf(branches), x, np.int32(n), platform=platform)
            jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-6), found, branches(x, n))


@pytest.mark.filterwarnings("ignore:call_tf works best")
def test_gradients_of_captured_variables_lower_for_devices_that_are_not_here():
    weights = tf.Variable([1.0, -2.0, 3.0])
    gradient = jax.grad(lambda x: call_tf(lambda x: tf.sin(x * weights))(x).sum())
    x = np.array([1, 2, 3], np.float32)
    w = weights.numpy()
    np.testing.assert_allclose(run_here(gradient, x, platform="cuda"), np.cos(x * w) * w, rtol=1e-6)


def test_a_saved_model_is_called_and_differentiated_under_jit(tmp_path):
    class Model(tf.Module):
        def __init__(self):
            self.weights = tf.Variable(tf.reshape(tf.range(6.0), (3, 2)))

        @tf.function(input_signature=[tf.TensorSpec([None, 3], tf.float32)])
        def __call__(self, x):
            return x @ self.weights

    tf.saved_model.save(Model(), str(tmp_path))
    call = call_tf(tf.saved_model.load(str(tmp_path)))
    x = jnp.ones((2, 3))
    weights = np.arange(6.0).reshape(3, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # it captures its weights
        value, gradient = jax.jit(jax.value_and_grad(lambda x: call(x).sum()))(x)
    assert value == np.ones((2, 3)).dot(weights).sum()
    np.testing.assert_array_equal(gradient, np.ones((2, 2)) @ weights.T)


def test_a_captured_table_is_refused_under_jit():
    keys = tf.lookup.KeyValueTensorInitializer(tf.constant([1, 2]), tf.constant([3, 4]))
    table = tf.lookup.StaticHashTable(keys, -1)
    call = call_tf(table.lookup)
    np.testing.assert_array_equal(call(jnp.array([1, 2, 5])), [3, 4, -1])
    with (
        pytest.warns(UserWarning, match="does not capture"),
        pytest.raises(ValueError, match=r"(?s)captures a resource that is not a variable.*remedy"),
    ):
        jax.jit(call)(jnp.array([1, 2, 5]))


def test_a_function_that_does_not_compile_is_refused_under_jit():
    call = call_tf(lambda x: tf.strings.length(tf.strings.format("Hello {}!", [x])))
    message = (
        r"(?s)Error compiling TensorFlow function <lambda> for CPU.*call_tf can be used in a staged context \(under "
        r"jax.jit, lax.scan, etc.\) only with compilable functions with static output shapes.*remedy: call it outside "
        r"of staged contexts.*Caught TensorFlow exception: .*StringFormat"
    )
    with pytest.raises(ValueError, match=message):
        jax.jit(call)(np.float32(42.0))


def test_what_the_compiler_says_comes_without_the_lines_of_libraries():
    call = call_tf(lambda x: tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, tf.sin(a)), (0, x))[1])
    with pytest.raises(ValueError, match="Error compiling TensorFlow function vjp_<lambda> for CPU") as caught:
        jax.jit(jax.grad(call))(np.float32(1.0))
    message = str(caught.value)
    assert "maximum_iteration" in message
    assert "test_lowering.py" in message
    assert "site-packages" not in message


def test_a_compiled_function_with_a_bounded_dynamic_shape_is_refused():
    call = call_tf(lambda x: tf.where(x > 0), output_shape_dtype=jax.ShapeDtypeStruct((2, 1), jnp.int32))
    with pytest.raises(ValueError, match=r"(?s)has dynamic output shape tensor<\?x1xi32.*remedy: pad the result"):
        jax.jit(call)(jnp.array([1, 2]))


def test_a_declared_shape_that_compilation_contradicts_is_refused():
    call = call_tf(lambda x: x[: tf.shape(x)[0]], output_shape_dtype=jax.ShapeDtypeStruct((3,), jnp.float32))
    with pytest.raises(ValueError, match=r"do not match the declared output_shape_dtype"):
        jax.jit(call)(jnp.ones(2))


@pytest.mark.parametrize("size", [2, 3])
def test_a_shape_that_only_compilation_knows_is_compared_with_the_declared_one(size):
    call = call_tf(
        lambda x: tf.raw_ops.PlaceholderWithDefault(input=x, shape=[None]),
        output_shape_dtype=jax.ShapeDtypeStruct((size,), jnp.float32),
    )
    if size == 2:
        np.testing.assert_array_equal(jax.jit(call)(jnp.ones(2)), [1.0, 1.0])
    else:
        with pytest.raises(ValueError, match=r"Result\[0\] is tensor<2xf32> vs. expected float32\[3\]"):
            jax.jit(call)(jnp.ones(2))


def test_another_shape_than_tensorflow_infers_is_refused_in_words():
    def thinned(x):
        return {"thin": tf.raw_ops.AvgPool(value=x, ksize=[1] * 4, strides=[1, 1, 1, 3], padding="SAME"), "whole": x}

    message = (
        r"Error compiling TensorFlow function thinned: result\[0\], of its operation AvgPool, is tensor<1x4x4x1xf32> "
        r"compiled, and tensor<1x4x4x2xf32> as TensorFlow infers it: .*\n  remedy: write it with others, or call "
    )
    with pytest.raises(CompilationError, match=message):
        jax.jit(call_tf(thinned))(jnp.ones((1, 4, 4, 2)))


NEW_VARIABLES = {
    "of the argument": tf.Variable,
    "of a function": lambda x: tf.Variable(lambda: x) + 1,
    "of a constant": lambda x: x * tf.Variable(2.0),
    "of a layer": lambda x: tf.keras.layers.Dense(3)(x[None]),
    "within": tf.function(lambda x: x * tf.Variable(2.0)),
}


@pytest.mark.parametrize("function", NEW_VARIABLES.values(), ids=NEW_VARIABLES)
def test_a_function_that_creates_a_variable_is_refused_in_words(function):
    message = r"call_tf: .* creates a tf\.Variable, which is not possible in a JAX staging context .*\n  remedy: create"
    for staged in (jax.jit, jax.vmap):
        with pytest.raises(VariableWriteError, match=message):
            staged(call_tf(function))(jnp.ones((2, 3)))


def test_a_variable_that_is_created_once_is_a_captured_one():
    kept = []

    def scaled(x):
        if not kept:
            kept.append(tf.Variable(2.0))
        return x * kept[0]

    with pytest.warns(CaptureWarning):
        np.testing.assert_array_equal(jax.jit(call_tf(scaled))(jnp.ones(2)), [2, 2])


def test_a_compiled_dtype_that_is_not_the_one_tensorflow_inferred_is_converted():
    with jax.enable_x64(True):
        call = call_tf(lambda x: tf.cast(tf.image.resize(x, (6, 6)), x.dtype))
        found = jax.jit(jax.grad(lambda x: call(x).sum()))(np.ones((1, 3, 3, 1)))
        assert found.dtype == np.float64
        np.testing.assert_allclose(found, np.full((1, 3, 3, 1), 4.0), rtol=1e-6)


@pytest.mark.parametrize("function", [step, tf.linalg.qr])
def test_for_a_platform_that_tensorflow_has_no_compiler_for_here_it_is_what_runs_everywhere(function):
    x = np.array([[1, 2], [3, 5]], np.float32)
    found = run_here(call_tf(function), x, platform="tpu")
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5), found, jax.jit(call_tf(function))(x))


def test_what_a_cpu_alone_has_is_refused_for_others(monkeypatch):
    monkeypatch.setattr(_traced, "_OF_EVERY_COMPILER", ())
    message = r"Error compiling TensorFlow function qr for TPU: .*calls Product\w+, Qr, of a CPU alone\n  remedy: "
    with pytest.raises(ValueError, match=message):
        lowered(call_tf(tf.linalg.qr), jnp.ones((2, 2)), platforms=("tpu",))


def test_a_platform_that_tensorflow_does_not_know_is_refused():
    with pytest.raises(NotImplementedError, match=r"(?s)step cannot be lowered for \('metal',\).*remedy"):
        lowered(call_tf(step), jnp.ones(3), platforms=("metal",))


@tf.function
def growing(x):
    found = tf.TensorArray(tf.float32, size=0, dynamic_size=True)
    for i in tf.range(3):
        found = found.write(i, x[i])
    return tf.reduce_sum(found.stack())


@pytest.mark.parametrize(
    "staged",
    [
        lambda call, x: jax.jit(call)(x),
        lambda call, x: jax.vmap(call)(x[None]),
        jax.eval_shape,
        lambda _, x: jax.jit(call_tf(lambda x: tf.cond(x[0] > 0, lambda: growing(x), lambda: x[0])))(x),
    ],
    ids=["jit", "vmap", "eval_shape", "in a branch"],
)
def test_a_list_that_grows_is_refused_where_the_compiler_would_cut_it(staged):
    x = np.arange(1, 5, dtype=np.float32)
    assert call_tf(growing)(x) == 6.0
    with pytest.raises(CompilationError, match=r"TensorArray with dynamic_size=True"):
        staged(call_tf(growing), x)


def test_lists_of_the_size_they_need_are_compiled():
    @tf.function
    def sized(x):
        found = tf.TensorArray(tf.float32, size=3)
        for i in tf.range(3):
            found = found.write(i, x[i])
        return tf.reduce_sum(found.stack())

    x = np.arange(1, 5, dtype=np.float32)
    assert jax.jit(call_tf(sized))(x) == jax.vmap(call_tf(sized))(x[None])[0] == 6.0


def test_the_gradient_of_a_convolution_with_much_padding_reads_what_it_is_given():
    """XLA reads other memory for a convolution whose padding takes elements away before and adds some after."""
    random = np.random.RandomState(0)
    x, k, weights = (
        random.randint(-4, 5, shape).astype(np.float32) for shape in ((2, 6, 6, 3), (3, 3, 3, 4), (2, 10, 8, 4))
    )

    def gradient(x, k):
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = tf.reduce_sum(tf.nn.conv2d(x, k, 1, [[0, 0], [5, 1], [4, 0], [0, 0]]) * weights)
        return tape.gradient(loss, x)

    np.testing.assert_array_equal(jax.jit(call_tf(gradient))(x, k), gradient(tf.constant(x), tf.constant(k)))


@pytest.mark.filterwarnings("ignore::jaxtf.calltf.CaptureWarning")
@pytest.mark.parametrize("transform", [lambda f: jax.jit(lambda x: 1 * f(x)), jax.vmap], ids=["jit", "vmap"])
@pytest.mark.parametrize("shape", [None, [None]])
def test_a_captured_variable_may_get_another_shape(shape, transform):
    variable = tf.Variable(np.ones(3, np.float32), shape=tf.TensorShape(shape))
    call = call_tf(lambda x: x * tf.reduce_sum(variable))
    x = jnp.arange(2, dtype=jnp.float32)
    np.testing.assert_array_equal(transform(call)(x), x * 3)
    variable.assign(np.full(5, 2, np.float32))
    np.testing.assert_array_equal(transform(call)(x), x * 10)
