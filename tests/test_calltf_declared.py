"""What `output_shape_dtype` declares of a function that is called by name is compared when a converted program runs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

from jaxtf.calltf import CompilationError, UnsupportedError, call_tf
from jaxtf.convert import convert

FITS, MORE, FEWER = np.float32([1, 2, -4]), np.float32([1, 2, 4]), np.float32([5, -1, -2])


def positive(x):
    return tf.boolean_mask(x, x > 0)


def declared(shape_of=lambda x: (2,), function=positive, **options):
    def call(x):
        result = jax.ShapeDtypeStruct(shape_of(x), np.float32)
        return call_tf(function, output_shape_dtype=result, **{"call_tf_graph": True, **options})(x)

    return call


PROGRAMS = {
    "last": lambda f, x: f(x)[-1] + jnp.zeros(()),
    "mean": lambda f, x: f(x).sum() / f(x).shape[0],
    "size": lambda f, x: (f(x), jnp.zeros(f(x).shape))[1],
    "gradient": lambda f, x: jax.grad(lambda x: (f(x) ** 2).sum())(x),
    "gradient of a sum": lambda f, x: jax.grad(lambda x: f(x).sum())(x),
    "unused gradient": lambda f, x: (jax.grad(lambda x: f(x).sum())(x), x * 2)[1],
    "second gradient": lambda f, x: jax.grad(lambda x: jax.grad(lambda x: (f(x) ** 3).sum())(x).sum())(x),
    "loop": lambda f, x: jax.lax.scan(lambda carry, _: (carry, f(carry)), x, length=2)[1].sum(),
    "branch": lambda f, x: jax.lax.cond(x[0] > 0, lambda x: f(x).sum() * 2, lambda x: x.sum(), x),
}
# Of two elements, and of three.
EXPECTED = {
    "last": (2, 4),
    "mean": (3 / 2, 7 / 3),
    "gradient": ([2, 4, 0], [2, 4, 8]),
    "gradient of a sum": ([1, 1, 0], [1, 1, 1]),
    "loop": (6, 14),
    "branch": (6, 14),
}


def in_session(function, x):
    with tf.Graph().as_default():
        argument = tf.compat.v1.placeholder(tf.float32, x.shape)
        result = function(argument)
        with tf.compat.v1.Session() as session:
            return session.run(result, {argument: x})


def frozen(function, x):
    graph = tf.function(function, autograph=False).get_concrete_function(tf.TensorSpec(x.shape))
    return convert_variables_to_constants_v2(graph)(tf.constant(x))[0]


def differentiated(function, x):
    variable = tf.Variable(x)
    with tf.GradientTape() as tape:
        result = function(variable)
    return tape.gradient(result, variable)


MODES = {
    "eager": lambda function, x: function(x),
    "graph": lambda function, x: tf.function(function, autograph=False)(x),
    "compiled": lambda function, x: tf.function(function, autograph=False, jit_compile=True)(x),
    "session": in_session,
    "frozen": frozen,
    "tape": differentiated,
}


@pytest.mark.parametrize("symbolic", [False, True])
@pytest.mark.parametrize("program", PROGRAMS)
def test_results_of_another_size_than_declared_are_refused_wherever_the_program_runs(program, symbolic):
    call = declared((lambda x: x.shape) if symbolic else (lambda x: (2,)))
    options = {"polymorphic_shapes": ["b"]} if symbolic else {}
    converted = convert(lambda x: PROGRAMS[program](call, x), native_serialization=False, **options)
    right, wrong = (MORE, FITS) if symbolic else (FITS, MORE)
    expected = EXPECTED.get(program)
    for mode, run in MODES.items():
        for x in (wrong, FEWER):
            # A session may report that what ran beside it was cancelled.
            with pytest.raises((tf.errors.InvalidArgumentError, tf.errors.CancelledError)):
                run(converted, x)
        if mode != "compiled":  # where sizes that depend on values are not compared
            found = run(converted, right)
            if expected is not None and mode != "tape":
                np.testing.assert_allclose(found, expected[symbolic])


@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize("mode", ["eager", "compiled"])
def test_sizes_that_the_compiler_knows_are_compared_in_every_mode(mode, native):
    """By a function that adds an element to seven."""

    def function(x):
        more = tf.cast(tf.equal(tf.shape(x)[0], 7), tf.int32)
        return tf.concat([x, tf.zeros([more])], 0)

    for make in (lambda f: f, lambda f: lambda x: f(x).sum() / x.shape[0], lambda f: jax.grad(lambda x: f(x).sum())):
        program = make(declared(lambda x: x.shape, function))
        converted = convert(program, polymorphic_shapes=["b"], native_serialization=native)
        MODES[mode](converted, np.ones(3, np.float32))
        with pytest.raises(tf.errors.InvalidArgumentError):
            MODES[mode](converted, np.ones(7, np.float32))


@pytest.mark.parametrize("symbolic", [False, True])
def test_native_mode_refuses_declared_sizes_that_depend_on_values(symbolic):
    call = declared((lambda x: x.shape) if symbolic else (lambda x: (3,)))
    converted = convert(lambda x: call(x) * 2, polymorphic_shapes=["b"] if symbolic else None)
    with pytest.raises(tf.errors.InvalidArgumentError, match="declared_sizes_depend_on_values"):
        tf.function(converted, autograph=False, jit_compile=True)(MORE)


def test_native_mode_refuses_declared_sizes_that_it_does_not_compute():
    call = declared(lambda x: (jax.core.max_dim(x.shape[0], 3),), lambda x: tf.zeros([tf.maximum(tf.shape(x)[0], 3)]))
    with pytest.raises(UnsupportedError, match="which native mode does not compare"):
        convert(call, polymorphic_shapes=["b"])(MORE)
    converted = convert(call, polymorphic_shapes=["b"], native_serialization=False)
    np.testing.assert_array_equal(converted(MORE), np.zeros(3))


def test_another_rank_is_refused():
    def ragged(x):
        return tf.numpy_function(lambda x: np.stack([x, x]), [x], tf.float32)

    converted = convert(lambda x: declared(lambda x: (3,), ragged)(x) * 2, native_serialization=False)
    with pytest.raises(tf.errors.InvalidArgumentError):
        converted(MORE)


def test_the_message_has_the_sizes():
    converted = convert(lambda x: declared()(x).sum(), native_serialization=False)
    with pytest.raises(tf.errors.InvalidArgumentError, match="output_shape_dtype declares; found, and declared"):
        tf.function(converted, autograph=False)(MORE)


def test_a_function_that_is_not_called_by_name_is_checked_too():
    converted = convert(lambda x: declared(call_tf_graph=False)(x)[-1] * 2, native_serialization=False)
    np.testing.assert_allclose(converted(FITS), 4)
    with pytest.raises(tf.errors.InvalidArgumentError):
        converted(MORE)
    gradient = jax.grad(lambda x: declared(call_tf_graph=False)(x).sum())
    with pytest.raises(CompilationError):
        convert(gradient, native_serialization=False)(MORE)


def test_batches_are_compared_in_eager_mode():
    call = declared()
    assert jax.vmap(call)(FITS[None]).shape == (1, 2)
    with pytest.raises((tf.errors.InvalidArgumentError, CompilationError)):
        jax.vmap(call)(MORE[None])
