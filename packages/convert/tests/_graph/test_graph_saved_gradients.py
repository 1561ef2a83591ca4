"""What `convert_stablehlo` makes is differentiated also when it is saved, loaded and compiled: by JAX's gradients.

TensorFlow differentiates a loaded `tf.cond` by optionals, which XLA does not compile: what a translation chooses while
it runs has a gradient of its own in a SavedModel.
"""

import os

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax import lax

from jaxtf.convert import convert_stablehlo
from jaxtf.serialization.interop import export_for_graph
from jaxtf.shapepoly import symbolic_shape

NUMBERS = np.random.default_rng(0)
IMAGES = NUMBERS.uniform(-1, 1, (2, 8, 8, 2)).astype(np.float32)
LARGE = np.where(IMAGES > 0.9, np.inf, IMAGES)
ONE_NAN = IMAGES.copy()
ONE_NAN[0, 3, 3, 1] = np.nan
COMPLEX = np.complex64([1 + 2j, 3 - 1j, 2e-3 + 1j])
OF_ALL_SIZES = np.complex64([1, 2j, 3e38 + 3e38j, 1e38j, 1e-37j, 1e-36 + 1e-36j])
NHWC = ("NHWC", "HWIO", "NHWC")


def pool(x):
    return lax.reduce_window(x, -np.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")


def pool_apart(x):
    return lax.reduce_window(x, -np.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


def convolved(x, kernel, rate=1, groups=1):
    return lax.conv_general_dilated(
        x, kernel, (1, 1), "SAME", rhs_dilation=(rate, rate), dimension_numbers=NHWC, feature_group_count=groups
    )


def kernel(*shape):
    return NUMBERS.uniform(-1, 1, (3, 3, *shape)).astype(np.float32)


# XLA for CPU drops NaN from maxima, unless it is asked not to.
KEEPS_NAN = "xla_cpu_enable_fast_min_max=false" in os.environ.get("XLA_FLAGS", "")

PROGRAMS = {  # a function, arguments, and texts of their shapes where sizes are left open
    "divide": (lambda x, y: x / y, (COMPLEX, COMPLEX[::-1] + 1), None),
    "divide by infinity": (lambda x, y: x / y, (COMPLEX, np.complex64([2, 1, complex(np.inf, 1)])), None),
    "divide, broadcast": (lambda x, y: x / y[:, None], (COMPLEX, COMPLEX[:2]), None),
    "sqrt": (lax.sqrt, (COMPLEX,), None),
    "sqrt of all sizes": (lax.sqrt, (OF_ALL_SIZES,), None),
    "rsqrt": (lax.rsqrt, (COMPLEX,), None),
    "power": (lambda x: x**-0.5, (COMPLEX,), None),
    "top_k": (lambda x: lax.top_k(x, 2)[0] * np.float32([1, 2]), (np.float32([[3, 1, 2], [0, -0.0, -5]]),), None),
    "pool": (pool, (IMAGES,), None),
    "pool of open sizes": (pool, (IMAGES,), ["b, h, w, 2"]),
    "pool of NaN": (pool_apart, (ONE_NAN,), None),
    "pool of nothing but -inf": (pool, (np.where(IMAGES < 0.9, -np.inf, IMAGES).astype(np.float32),), None),
    "pool of relu": (lambda x: pool(jax.nn.relu(x)), (IMAGES,), None),
    "cumsum": (lambda x: lax.cumsum(x * x), (np.float32([1, 3, 2]),), ["n"]),
    "reverse cumsum": (lambda x: lax.cumsum(x * x, 1, reverse=True), (NUMBERS.random((2, 5), np.float32),), ["2, n"]),
    "long cumsum": (lax.cumsum, (NUMBERS.random(20_000, np.float32),), ["n"]),
    "dilated kernel": (lambda x, k: convolved(x, k, 2, 2), (IMAGES, kernel(1, 2)), None),
    "dilated kernel and infinity": (lambda x, k: convolved(x, k, 2, 2), (LARGE, kernel(1, 2)), None),
    "convolution of open sizes": (convolved, (IMAGES, kernel(2, 3)), ["b, h, w, 2", "3, 3, 2, 3"]),
    "dilated kernel, open batch": (
        lambda x, k: convolved(x, k, 2, 2),
        (IMAGES, kernel(1, 2)),
        ["b, 8, 8, 2", "3, 3, 1, 2"],
    ),
}


def made(function, arguments, texts):
    """The converted function, and the shapes of its arguments."""
    if texts is None:
        return convert_stablehlo(jax.jit(function).lower(*arguments)), [x.shape for x in arguments]
    scope = symbolic_shape("scope")[0].scope
    shapes = [symbolic_shape(text, scope=scope) for text in texts]
    if any("h" in text for text in texts):
        scope = symbolic_shape("scope", constraints=["h >= 3", "w >= 3"])[0].scope
        shapes = [symbolic_shape(text, scope=scope) for text in texts]
    specs = [jax.ShapeDtypeStruct(shape, x.dtype) for shape, x in zip(shapes, arguments, strict=True)]
    known = [[n if isinstance(n, int) else None for n in shape] for shape in shapes]
    return convert_stablehlo(export_for_graph(jax.jit(function))(*specs)), known


def saved(converted, shapes, arguments, folder):
    module = tf.Module()
    signature = [tf.TensorSpec(shape, x.dtype) for shape, x in zip(shapes, arguments, strict=True)]
    module.f = tf.function(converted, input_signature=signature, autograph=False)
    options = tf.saved_model.SaveOptions(experimental_custom_gradients=True)
    tf.saved_model.save(module, folder, options=options)
    return tf.saved_model.load(folder).f


def pulled(function):
    def gradient(*arguments):
        with tf.GradientTape() as tape:
            tape.watch(arguments)
            result = function(*arguments)
        return tape.gradient(result, arguments)

    return gradient


def of_jax(function):
    def gradient(*arguments):
        result, vjp = jax.vjp(function, *arguments)
        return vjp(jnp.ones_like(result))

    return gradient


def assert_near(found, expected):
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.shape == theirs.shape
        np.testing.assert_allclose(np.conj(ours), theirs, rtol=2e-5, atol=1e-6 if theirs.dtype.kind == "f" else 1e-25)


@pytest.mark.slow(1)
@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_chosen_at_run_time_is_differentiated_when_loaded_and_compiled(name, tmp_path):
    function, arguments, texts = PROGRAMS[name]
    arguments = [x.astype(np.complex64 if x.dtype.kind == "c" else np.float32) for x in arguments]
    expected = of_jax(function)(*arguments)
    converted, shapes = made(function, arguments, texts)
    loaded = saved(converted, shapes, arguments, tmp_path)
    tensors = list(map(tf.constant, arguments))
    np.testing.assert_allclose(loaded(*tensors), jax.jit(function)(*arguments), rtol=2e-5, atol=1e-6)
    for called in (converted, loaded):
        for compiled in (False, True):
            if called is converted and compiled and texts is not None:
                continue  # loops of sizes that XLA does not know are not differentiated
            if compiled and "NaN" in name and not KEEPS_NAN:
                continue
            gradient = tf.function(pulled(called), autograph=False, jit_compile=compiled)
            assert_near(gradient(*tensors), expected)


@pytest.mark.parametrize("compiled", [False, True])
def test_a_pole_is_not_in_the_gradients_of_other_elements_that_are_loaded(compiled, tmp_path):
    x = np.complex64([0, 2, 1j])
    loaded = saved(*made(lambda x: 1 / x, (x,), None), (x,), tmp_path)
    (found,) = tf.function(pulled(loaded), autograph=False, jit_compile=compiled)(tf.constant(x))
    np.testing.assert_allclose(found[1:], [-0.25, 1], rtol=1e-6)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", ["divide", "divide by infinity"])
def test_the_gradient_of_a_loaded_quotient_is_differentiated(name, compiled, tmp_path):
    function, arguments, _ = PROGRAMS[name]
    loaded = saved(*made(function, arguments, None), arguments, tmp_path)
    expected = of_jax(lambda *given: sum(of_jax(function)(*given)))(*arguments)
    gradient = tf.function(pulled(pulled(loaded)), autograph=False, jit_compile=compiled)
    assert_near(gradient(*map(tf.constant, arguments)), expected)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("function", [lax.log, lax.tan, lax.acos, lax.asin, lax.asinh, lax.acosh, lax.atanh])
def test_the_gradient_of_a_loaded_complex_function_is_differentiated(function, compiled, tmp_path):
    loaded = saved(*made(function, (COMPLEX,), None), (COMPLEX,), tmp_path)
    gradient = tf.function(pulled(lambda x: pulled(loaded)(x)[0]), autograph=False, jit_compile=compiled)

    def of_conjugate(x):  # a tape's gradient is the conjugate of JAX's
        return of_jax(lambda x: jax.numpy.conj(of_jax(function)(x)[0]))(x)

    assert_near(gradient(tf.constant(COMPLEX)), of_conjugate(COMPLEX))


@pytest.mark.parametrize("compiled", [False, True])
def test_a_loaded_quotient_in_a_loop_is_differentiated_as_before(compiled, tmp_path):
    def function(x):
        return lax.fori_loop(0, 3, lambda _, y: 1 / (y + 2), x)

    loaded = saved(*made(function, (COMPLEX,), None), (COMPLEX,), tmp_path)
    gradient = tf.function(pulled(loaded), autograph=False, jit_compile=compiled)
    if compiled:
        with pytest.raises(tf.errors.InvalidArgumentError):
            gradient(tf.constant(COMPLEX))
    else:
        assert_near(gradient(tf.constant(COMPLEX)), of_jax(function)(COMPLEX))
