"""What TensorFlow's compiler computes wrongly is compiled as TensorFlow computes it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

from jaxtf.calltf import call_tf
from jaxtf.serialization import export

NAN = float("nan")
DRAWN = np.random.default_rng(7)
SIZES = [(5, 5, 9, 9), (5, 7, 9, 5), *(tuple(map(int, DRAWN.integers(1, 20, 4))) for _ in range(28))]
WAYS = [(False, True), (True, False), (False, False)]


def resize(size, way):
    corners, centers = way
    return lambda x: tf.raw_ops.ResizeBilinear(images=x, size=size, align_corners=corners, half_pixel_centers=centers)


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_images_are_resized_as_in_eager_mode(way):
    for rows, columns, *size in SIZES:
        x = DRAWN.uniform(size=(2, rows, columns, 2)).astype(np.float32)
        call = call_tf(resize(size, way))
        np.testing.assert_allclose(jax.jit(call)(x), call(x), atol=1e-6, err_msg=f"{rows, columns, size}")
        slopes = jax.jit(squares(call))(x)
        np.testing.assert_allclose(slopes, squares(call)(x), atol=1e-4, err_msg=f"{rows, columns, size}")


def squares(call):
    return jax.grad(lambda x: jnp.sum(call(x) ** 2))


X = np.broadcast_to(np.arange(5, dtype=np.float32)[None, :, None, None], (1, 5, 5, 1)).copy()
STAGED = {
    "jit": jax.jit,
    "vmap": lambda f: lambda x: jax.vmap(f)(x[None])[0],
    "gradient": lambda f: jax.jit(squares(f)),
    "export": lambda f: (
        lambda x: export(f)(jax.ShapeDtypeStruct(jax.export.symbolic_shape("b, 5, 5, 1"), x.dtype)).call(x)
    ),
}


@pytest.mark.parametrize("staged", STAGED)
def test_so_in_each_stage(staged):
    call = call_tf(lambda x: tf.image.resize(x, [9, 9]))
    due = squares(call)(X) if staged == "gradient" else call(X)
    np.testing.assert_allclose(STAGED[staged](call)(X), due, rtol=1e-5)


def test_so_where_the_traced_size_is_not_known():
    within = tf.function(lambda x: tf.image.resize(x, [9, 9]), input_signature=[tf.TensorSpec([None] * 4)])
    np.testing.assert_allclose(jax.jit(call_tf(within))(X), within(X), atol=1e-6)
    turns = call_tf(lambda x: tf.map_fn(lambda x: tf.image.resize(x, [9, 9]), x[None])[0])
    np.testing.assert_allclose(jax.jit(turns)(X), turns(X), atol=1e-6)


def patches(window, steps, rates, padding):
    return lambda x: tf.image.extract_patches(x, [1, *window, 1], [1, *steps, 1], [1, *rates, 1], padding)


PATCHES = [
    ((2, 2), (1, 1), (1, 1), "SAME"),
    *((DRAWN.integers(1, 5, 2), DRAWN.integers(1, 4, 2), DRAWN.integers(1, 3, 2), "SAME") for _ in range(8)),
    *((DRAWN.integers(1, 4, 2), DRAWN.integers(1, 6, 2), DRAWN.integers(1, 3, 2), "VALID") for _ in range(4)),
]


@pytest.mark.parametrize("at", range(len(PATCHES)))
def test_patches_are_moved_so_that_what_is_not_finite_stays_where_it_is(at):
    x = DRAWN.uniform(size=(2, 5, 6, 3)).astype(np.float32)
    x.flat[DRAWN.choice(x.size, 9, replace=False)] = [NAN, np.inf, -np.inf] * 3
    call = call_tf(patches(*PATCHES[at]))
    np.testing.assert_array_equal(jax.jit(call)(x), call(x))
    gradient = jax.grad(lambda x: (call(x) * np.float32(2)).sum())
    np.testing.assert_array_equal(jax.jit(gradient)(x), gradient(x))


@pytest.mark.parametrize("dtype", [tf.int8, tf.uint8, tf.int32, tf.float16, tf.float64, tf.complex64])
def test_patches_of_each_dtype(dtype):
    x = DRAWN.integers(0, 99, (2, 5, 6, 3)).astype(np.float32)
    call = call_tf(lambda x: tf.abs(tf.cast(patches((2, 3), (1, 2), (2, 1), "SAME")(tf.cast(x, dtype)), tf.complex64)))
    np.testing.assert_array_equal(jax.jit(call)(x), call(x))


@pytest.mark.parametrize("height", [1, 2, 5])
def test_there_are_no_patches_of_a_small_image(height):
    call = call_tf(patches((3, 3), (2, 3), (1, 2), "VALID"))
    x = np.ones((2, height, 2, 3), np.float32)
    assert jax.jit(call)(x).shape == call(x).shape


def test_patches_in_each_stage():
    function = patches((2, 3), (1, 2), (1, 1), "SAME")
    x = DRAWN.uniform(size=(2, 5, 6, 3)).astype(np.float32)
    x[0, 1, 2] = np.inf
    due = call_tf(function)(x)
    for shape in ("b, 5, 6, 3", "b, h, w, 3"):
        exported = export(call_tf(function))(jax.ShapeDtypeStruct(jax.export.symbolic_shape(shape), x.dtype))
        np.testing.assert_array_equal(exported.call(x), due)
    np.testing.assert_array_equal(jax.vmap(call_tf(function))(x[None])[0], due)
    within = tf.function(function, input_signature=[tf.TensorSpec([None] * 4)])
    np.testing.assert_array_equal(jax.jit(call_tf(within))(x), due)
    with pytest.raises(ValueError, match="output size would be negative"):
        jax.jit(call_tf(patches((7, 7), (1, 1), (1, 1), "VALID")))(x)


@pytest.mark.parametrize("delta", [0.0, 0.3, -0.2, 1.0])
def test_hues_are_turned_also_where_no_channel_is_positive(delta):
    x = np.concatenate([DRAWN.uniform(-1, 0, (40, 3)), DRAWN.uniform(-1, 1, (40, 3)), np.zeros((1, 3))])
    x = np.float32([*x, [0, -0.1, -0.2], [-0.5, -0.5, -0.5], [-0.0, -0.0, -0.1]])
    call = call_tf(lambda x: tf.image.adjust_hue(x[None], delta)[0])
    np.testing.assert_allclose(jax.jit(call)(x), call(x), atol=1e-5)
    np.testing.assert_allclose(jax.vmap(call)(x[None])[0], call(x), atol=1e-5)


F = np.float32
FUNCTIONS = {
    "mean": (tf.reduce_mean, np.int32([2_000_000_000] * 2)),
    "mean, negative": (tf.reduce_mean, np.int32([-3, -4])),
    "mean, unsigned": (tf.reduce_mean, np.uint32([2**32 - 1] * 5)),
    **{
        f"{f.__name__} of {x}": (f, F(x))
        for f in (tf.argmin, tf.argmax)
        for x in ([1, NAN, 5, 7], [NAN, 1, 2], [2, 1, NAN], [NAN, NAN], [NAN, -np.inf], [NAN, np.inf], [-0.0, 0.0])
    },
    "argsort": (lambda x: tf.argsort(x, stable=True), F([0.0, -0.0, 0.0, -0.0])),
    "top_k": (lambda x: tf.math.top_k(x, 2)[1], F([-0.0, 0.0, -1.0])),
    "unique": (lambda x: tf.unique(x)[1], F([0.0, 1.0, -0.0])),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_results_are_those_of_eager_mode(name):
    function, x = FUNCTIONS[name]
    call = call_tf(function)
    np.testing.assert_array_equal(jax.jit(call)(x), call(x))


NUMBERS = {
    "of rows": np.int32([[1, 2], [2, 9]]),
    "of a row": np.int32([1, 2, 2]),
    "of one": np.int32(2),
}


@pytest.mark.parametrize("numbers", NUMBERS)
@pytest.mark.parametrize("dtype", [tf.int32, tf.float32])
def test_numbers_are_counted_as_in_eager_mode(numbers, dtype):
    x = NUMBERS[numbers]
    for weights in (np.zeros(0), np.arange(x.size).reshape(x.shape)):
        call = call_tf(lambda x, w=weights: tf.raw_ops.Bincount(arr=x, size=4, weights=tf.cast(w, dtype)))
        np.testing.assert_array_equal(jax.jit(call)(x), call(x))


@pytest.mark.parametrize("shape", [(3, 3), (2, 3, 3)])
def test_there_are_no_eigenvectors_where_none_are_asked_for(shape):
    x = DRAWN.normal(size=shape).astype(np.float32)
    call = call_tf(lambda x: list(tf.raw_ops.SelfAdjointEigV2(input=x, compute_v=False)))
    values, vectors = jax.jit(call)(x)
    np.testing.assert_allclose(values, np.linalg.eigvalsh(x), rtol=1e-4, atol=1e-5)
    assert vectors.shape == (0,)


def test_what_has_no_compiler_and_is_not_used_keeps_nothing_from_being_replaced():
    def place(x):
        tf.strings.as_string(x)
        return tf.argmin(x)

    x = np.float32([1, np.nan, 5, 7])
    assert int(jax.jit(call_tf(place))(x)) == int(place(tf.constant(x))) == 0


@pytest.fixture
def checked_numerics():
    tf.debugging.enable_check_numerics()
    yield
    tf.debugging.disable_check_numerics()


def _loop(x):
    return tf.while_loop(lambda i, _: i < 3, lambda i, y: (i + 1, tf.sin(y) + x), (0, x), maximum_iterations=3)[1]


WITHIN = tf.function(lambda x: tf.cos(x) * 2, autograph=False)
VARIABLE = tf.Variable(2.0)
CHECKED = {
    "operations": lambda x: tf.sin(x) + 1,
    "function": lambda x: WITHIN(x) + WITHIN(x + 1),
    "loop": _loop,
    "branch": lambda x: tf.cond(tf.reduce_sum(x) > 0, lambda: tf.exp(x), lambda: tf.sin(x)),
    "variable": lambda x: x * tf.tanh(VARIABLE),
    "replaced": lambda x: x * tf.cast(tf.argmax(x), x.dtype),
}


@pytest.mark.parametrize("name", CHECKED)
@pytest.mark.filterwarnings("ignore::jaxtf.calltf.CaptureWarning")
@pytest.mark.usefixtures("checked_numerics")
def test_a_function_is_staged_while_numerics_are_checked(name):
    call, x = call_tf(CHECKED[name]), np.float32([0.25, 0.5])
    due, slopes = call(x), squares(call)(x)
    np.testing.assert_allclose(jax.jit(call)(x), due, rtol=1e-6)
    np.testing.assert_allclose(jax.jit(squares(call))(x), slopes, rtol=1e-5)
    np.testing.assert_allclose(jax.vmap(call)(x[None])[0], due, rtol=1e-6)
    np.testing.assert_allclose(jax.jit(jax.vmap(squares(call)))(x[None])[0], slopes, rtol=1e-5)
    exported = export(call)(jax.ShapeDtypeStruct(jax.export.symbolic_shape("b"), x.dtype))
    np.testing.assert_allclose(exported.call(x), due, rtol=1e-6)


@pytest.mark.usefixtures("checked_numerics")
def test_numerics_are_checked_where_tensorflow_runs_also_after_a_staged_call():
    within = tf.function(tf.math.log, autograph=False)
    call = call_tf(lambda x: within(x) + 0)
    assert np.isnan(jax.jit(call)(np.float32(-1)))
    for function in (call, within):
        with pytest.raises(tf.errors.InvalidArgumentError, match="Detected Infinity or NaN in output 0 of"):
            function(np.float32(-1))
