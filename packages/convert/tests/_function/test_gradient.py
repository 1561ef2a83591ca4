"""Gradients of converted functions: TensorFlow asks, JAX answers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax import lax

from jaxtf.convert import ConversionStateError, convert


def loss(params, x):
    return (jnp.tanh(x @ params["w"]) ** 2).sum() + params["b"].sum() * 3


PARAMS = {"w": np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3), "b": np.arange(3, dtype=np.float32)}
IMAGES = np.linspace(0, 1, 20, dtype=np.float32).reshape(5, 4)


def tape_gradient(f, *args, **options):
    variables = tf.nest.map_structure(tf.Variable, args)
    with tf.GradientTape() as tape:
        result = f(*variables)
    return tape.gradient(result, variables, **options)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("shapes", [None, [None, "(b, _)"]], ids=["static", "polymorphic"])
def test_gradients_are_those_of_jax(shapes, compiled):
    converted = convert(loss, polymorphic_shapes=shapes)
    found = tape_gradient(
        tf.function(converted, autograph=False, jit_compile=True) if compiled else converted, PARAMS, IMAGES
    )
    expected = jax.grad(loss, argnums=(0, 1))(PARAMS, IMAGES)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5), tuple(found), expected)


def test_gradients_inside_a_graph_are_those_of_jax():
    converted = convert(loss, polymorphic_shapes=[None, "(b, _)"])

    @tf.function(autograph=False)
    def gradient(w, b, x):
        return tf.gradients(converted({"w": w, "b": b}, x), [w, b])

    found = gradient(PARAMS["w"], PARAMS["b"], IMAGES)
    expected = jax.grad(loss)(PARAMS, IMAGES)
    np.testing.assert_allclose(found[0], expected["w"], rtol=1e-5)
    np.testing.assert_allclose(found[1], expected["b"], rtol=1e-5)


def test_gradients_of_gradients_are_those_of_jax():
    converted = convert(lambda x: (jnp.sin(x) * x).sum(), polymorphic_shapes=["(b,)"])
    x = tf.Variable(np.linspace(0, 1, 5, dtype=np.float32))
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = converted(x)
        first = inner.gradient(y, x)
    second = outer.gradient(first, x)
    f = lambda x: (jnp.sin(x) * x).sum()  # noqa: E731
    np.testing.assert_allclose(second, jax.grad(lambda x: jax.grad(f)(x).sum())(x.numpy()), rtol=1e-5)


def test_a_persistent_tape_and_a_jacobian_work():
    converted = convert(lambda x: jnp.stack([x[0] * x[1], x[1] ** 3]))
    x = tf.Variable([2.0, 3.0])
    with tf.GradientTape(persistent=True) as tape:
        y = converted(x)
    np.testing.assert_allclose(tape.gradient(y, x), [3.0, 2.0 + 27.0])
    np.testing.assert_allclose(tape.jacobian(y, x, experimental_use_pfor=False), [[3.0, 2.0], [0.0, 27.0]])


def test_custom_derivatives_of_jax_are_respected():
    @jax.custom_vjp
    def f(x):
        return x * x

    f.defvjp(lambda x: (f(x), x), lambda x, cotangent: (x * cotangent * 100,))
    assert tape_gradient(convert(f), np.float32(3))[0] == 300


def test_the_vjp_is_not_made_before_it_is_asked_for():
    asked = []

    @jax.custom_vjp
    def f(x):
        return x

    f.defvjp(lambda x: asked.append("vjp") or (x, None), lambda _, cotangent: (cotangent,))
    converted = convert(f)
    converted(tf.ones(2))
    with tf.GradientTape() as tape:
        x = tf.Variable([1.0])
        y = converted(x)
    assert asked == []
    tape.gradient(y, x)
    assert asked == ["vjp"]


def test_unused_arguments_have_zero_gradients_and_integers_none():
    converted = convert(lambda x0, x1, x2, x3: x0 * 0.0 + x2 * 2.0)
    values = [np.float32(10), np.float32(11), np.float32(12), np.int32(13)]
    found = tape_gradient(converted, *values)
    assert [None if g is None else float(g) for g in found] == [0.0, 0.0, 2.0, None]
    zeros = tape_gradient(converted, *values, unconnected_gradients=tf.UnconnectedGradients.ZERO)
    assert [float(g) for g in zeros] == [0.0, 0.0, 2.0, 0.0]
    assert zeros[3].dtype == tf.int32


@pytest.mark.parametrize("wrap", [lambda f: f, lambda f: tf.function(f, autograph=False)], ids=["eager", "graph"])
def test_integer_results_do_not_disturb_the_gradient(wrap):
    converted = wrap(convert(lambda x, i: (x * i, i + 1), polymorphic_shapes=["(b,)", "(b,)"]))
    x, i = tf.Variable([1.0, 2.0]), tf.constant([3, 4])
    with tf.GradientTape() as tape:
        y, _ = converted(x, i)
    np.testing.assert_array_equal(tape.gradient(y, x), [3.0, 4.0])


def test_the_gradient_of_an_integer_gradient_function_is_a_bool_or_int_zero():
    found = convert(jax.grad(lambda x: x * 2.0, allow_int=True))(np.int16(2))
    assert found.shape == ()
    assert not found.numpy()


def test_with_gradient_false_refuses_to_differentiate():
    converted = convert(jnp.sin, with_gradient=False)
    assert converted(np.float32(0)).numpy() == 0
    with pytest.raises(LookupError, match=r"does not support gradients\. Use `with_gradient` parameter"):
        tape_gradient(converted, np.float32(1))


def test_constraints_hold_in_the_vjp_too():
    converted = convert(lambda x: x[:16].sum(), polymorphic_shapes=["(b,)"], polymorphic_constraints=["b >= 16"])
    np.testing.assert_array_equal(tape_gradient(converted, np.ones(17, np.float32))[0], [1.0] * 16 + [0.0])


def test_a_cast_argument_has_a_gradient_of_its_own_dtype():
    found = tape_gradient(convert(lambda x: x**2), np.float64(3))[0]
    assert found.dtype == tf.float64
    assert found == 6


@pytest.mark.parametrize("mode", ["eager", "graph"])
def test_gradients_of_complex_numbers_follow_tensorflows_convention(mode):
    def through(function):
        def gradient(z):
            with tf.GradientTape() as outer:
                outer.watch(z)
                with tf.GradientTape() as inner:
                    inner.watch(z)
                    loss = tf.reduce_sum(tf.abs(tf.sin(function(tf.exp(z)))) ** 2)
                first = inner.gradient(loss, z)
                size = tf.reduce_sum(tf.abs(first) ** 2)
            return first, outer.gradient(size, z)

        return tf.function(gradient) if mode == "graph" else gradient

    z = tf.constant([0.1 + 0.2j, 0.3 - 0.1j], tf.complex64)
    expected = through(lambda z: z**2 * tf.constant(1 + 1j, tf.complex64))(z)
    found = through(convert(lambda z: z**2 * (1 + 1j)))(z)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4)


@pytest.mark.parametrize("native", [True, False], ids=["native", "graph mode"])
@pytest.mark.parametrize("mode", ["eager", "graph", "compiled", "tf.gradients"])
@pytest.mark.parametrize("pick", [tf.gather, tf.nn.embedding_lookup], ids=["gather", "embedding_lookup"])
def test_rows_picked_behind_the_function_have_gradients(pick, mode, native):
    tripled = convert(lambda x: x * 3, native_serialization=native)
    x = tf.reshape(tf.range(8.0), [4, 2])

    def by_tape(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(pick(tripled(x), [0, 0, 2]))
        return tape.gradient(y, x)

    def in_graph(x):
        return tf.gradients(tf.reduce_sum(pick(tripled(x), [0, 0, 2])), x)[0]

    gradient = {
        "eager": by_tape,
        "graph": tf.function(by_tape),
        "compiled": tf.function(by_tape, jit_compile=True),
        "tf.gradients": tf.function(in_graph),
    }[mode]
    np.testing.assert_array_equal(tf.convert_to_tensor(gradient(x)), [[6, 6], [0, 0], [3, 3], [0, 0]])


@pytest.mark.parametrize("native", [True, False], ids=["native", "graph mode"])
def test_forward_mode_is_right_eagerly_and_refused_in_a_graph(native):
    sine = convert(jnp.sin, native_serialization=native)
    x = tf.range(3.0)

    def pushed(x):
        with tf.autodiff.ForwardAccumulator(x, tf.ones_like(x)) as accumulator:
            y = sine(x)
        return accumulator.jvp(y)

    def beside(x):
        with tf.autodiff.ForwardAccumulator(x, tf.ones_like(x)):
            return sine(tf.ones_like(x))

    np.testing.assert_allclose(pushed(x), tf.cos(x), rtol=1e-6)
    with pytest.raises(ConversionStateError, match=r"ForwardAccumulator watches an argument of 'sin'"):
        tf.function(pushed, autograph=False)(x)
    np.testing.assert_allclose(tf.function(beside, autograph=False)(x), tf.sin(tf.ones(3)), rtol=1e-6)
    tangents = convert(lambda x, t: jax.jvp(jnp.sin, (x,), (t,))[1], native_serialization=native)
    np.testing.assert_allclose(tf.function(tangents, autograph=False)(x, tf.ones(3)), tf.cos(x), rtol=1e-6)


@pytest.mark.parametrize("native", [False, True], ids=["graph mode", "native"])
def test_a_gradient_is_of_the_call_whatever_jax_is_set_to_when_it_is_asked_for(native):
    converted = convert(lambda x: jnp.sum(x * jnp.linspace(0, 1, 3) ** 2), native_serialization=native)
    x = tf.constant([1.0, 2.0, 3.0], tf.float64)
    with tf.GradientTape() as tape:
        tape.watch(x)
        with jax.enable_x64(True):
            y = converted(x)
    with jax.enable_x64(False):
        found = tape.gradient(y, x)
    assert found.dtype == tf.float64
    np.testing.assert_allclose(found, [0, 0.25, 1], rtol=1e-15)


LARGE = np.linspace(0, 1, 20_000, dtype=np.float32)  # so large that it is an argument


def several(x):
    return jnp.sin(x) * jnp.asarray(LARGE).mean() + x**2 + (lax.complex(x, x) * 1j).real


IN_CONTROL_FLOW = {
    "a loop": lambda f: lambda x: tf.while_loop(lambda i, _: i < 3, lambda i, y: (i + 1, f(y)), [0, x])[1],
    "a loop that compiles": lambda f: (
        lambda x: tf.while_loop(lambda i, _: i < 3, lambda i, y: (i + 1, f(y)), [0, x], maximum_iterations=5)[1]
    ),
    "a branch": lambda f: lambda x: tf.cond(tf.reduce_sum(x) > 0, lambda: f(x), lambda: x),
    "a map": lambda f: lambda x: tf.map_fn(f, x),
}


def loaded_gradient(function, folder, *, shape, compiled=False):
    module = tf.Module()
    module.f = tf.function(function, autograph=False, input_signature=[tf.TensorSpec(shape)])
    options = tf.saved_model.SaveOptions(experimental_custom_gradients=True)
    tf.saved_model.save(module, folder, options=options)
    loaded = tf.saved_model.load(folder).f

    @tf.function(autograph=False, jit_compile=compiled)
    def gradient(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            result = loaded(x)
        return tape.gradient(result, x)

    return gradient


@pytest.mark.parametrize("shape", [(3,), (None,)])
@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize("name", IN_CONTROL_FLOW)
def test_a_saved_model_refuses_the_gradient_of_a_function_in_control_flow(name, native, shape, tmp_path):
    shapes = ["(n,)"] if shape == (None,) and name != "a map" else None
    converted = convert(several, polymorphic_shapes=shapes, native_serialization=native)
    gradient = loaded_gradient(IN_CONTROL_FLOW[name](converted), tmp_path, shape=shape)
    words = (
        "a SavedModel has no gradient of .*several.* in a loop or a branch.*remedy: call it there through a tf.function"
    )
    with pytest.raises(tf.errors.InvalidArgumentError, match=words):
        gradient(np.float32([0.1, 0.2, 0.3]))


@pytest.mark.parametrize("native", [False, True])
def test_a_saved_model_refuses_to_compile_the_gradient_of_a_function_in_a_loop(native, tmp_path):
    looped = IN_CONTROL_FLOW["a loop that compiles"](convert(several, native_serialization=native))
    gradient = loaded_gradient(looped, tmp_path, shape=[3], compiled=True)
    with pytest.raises(tf.errors.InvalidArgumentError, match="a_SavedModel_has_no_gradient_in_a_loop_or_a_branch"):
        gradient(np.float32([0.1, 0.2, 0.3]))


@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize("name", IN_CONTROL_FLOW)
def test_a_saved_model_has_the_gradient_of_a_function_that_is_called_in_control_flow(name, native, tmp_path):
    called = tf.function(convert(several, native_serialization=native), autograph=False)
    x = np.float32([0.1, 0.2, 0.3])
    count = 3 if "loop" in name else 1

    def expected(x):
        for _ in range(count):
            x = several(x)
        return x.sum()

    for compiled in (False, True) if name == "a loop that compiles" else (False,):
        gradient = loaded_gradient(
            IN_CONTROL_FLOW[name](called), tmp_path / str(compiled), shape=[3], compiled=compiled
        )
        np.testing.assert_allclose(gradient(x), jax.grad(expected)(x), rtol=1e-5)
