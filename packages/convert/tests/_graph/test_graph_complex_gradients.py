"""Gradients of every order that a tape takes of functions of complex numbers: those of JAX, also compiled.

TensorFlow's gradients of reciprocals and roots of complex numbers lack a conjugate when they are compiled (2.21): of
what it differentiates by them the gradient is right, and that of the gradient is not.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax import lax

from jaxtf.convert import GraphModeUnsupported, convert_stablehlo

from .graph_mode import MODES
from .test_graph_gradients import BINARY, FUNCTIONS, UNARY, kind_of, module_of, operations

# JAX's gradient of `sign` is 0 everywhere, a tape's the derivative of z / |z|.
ANOTHER_GRADIENT = ("sign",)
X = np.complex64([0.3 + 0.4j, 0.7 + 0.2j, 0.5 - 0.9j, 0.4 - 0.3j, 1.3 + 0.6j, 2.1 + 1.7j, 2.2 - 1.1j, 0.9 - 1.8j])
Y = np.complex64([1.1 - 0.4j, 0.3 + 0.8j, -0.6 - 0.9j, -1.2 + 0.5j, 0.4 + 1.6j, 2.1 + 0.7j, -0.8 - 0.2j, 1.9 + 0.3j])
# In the left half of the plane JAX's derivative of acosh has the other sign.
SIGNS = np.float32([1, -1, 1, -1, 1, -1, 1, -1])
UPWARDS = np.complex64([1 - 2j, 0.5 + 1j, -1 + 0.3j, 2 + 0.1j, -0.2 - 0.7j, 1.5j, 0.7, -1.1 + 0.2j])


@functools.cache
def prepared():
    """By operation that JAX and graph mode have for complex numbers: JAX's function, ours, and the operands."""
    made = {}
    for name in operations():
        kind = kind_of(name)
        if kind not in UNARY | BINARY or kind in ANOTHER_GRADIENT:
            continue
        operands = (X if kind == "acosh" else X * SIGNS, Y)[: 1 if kind in UNARY else 2]
        try:
            result, _ = jax.vjp(FUNCTIONS[kind], *operands)
            converted = convert_stablehlo(module_of(name, operands, np.asarray(result)))
            converted(*operands)
        except (TypeError, ValueError, NotImplementedError, GraphModeUnsupported):
            continue
        made[name] = FUNCTIONS[kind], converted, operands
    return made


def of_jax(function, order, operands):
    """The cotangents of the operands, for those of the results, and so on of these."""
    if not order:
        return function(*operands)

    def before(*operands):
        return of_jax(function, order - 1, operands)

    results, pull = jax.vjp(before, *operands)
    return pull(jax.tree.map(upwards_of, results))


def of_tape(converted, order, operands):
    """The same of a tape, whose cotangents are conjugates of JAX's."""
    if not order:
        return converted(*operands)
    with tf.GradientTape() as tape:
        tape.watch(operands)
        results = of_tape(converted, order - 1, operands)
    upwards = tf.nest.map_structure(lambda x: tf.math.conj(tf.constant(upwards_of(x))), results)
    pulled = tape.gradient(results, operands, upwards, unconnected_gradients=tf.UnconnectedGradients.ZERO)
    return tuple(map(tf.math.conj, pulled))


def upwards_of(result):
    is_complex = tf.as_dtype(result.dtype).is_complex
    return UPWARDS if is_complex else UPWARDS.real


@functools.cache
def expected(order):
    return {name: of_jax(function, order, operands) for name, (function, _, operands) in prepared().items()}


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("order", [1, 2])
def test_gradients_of_complex_functions_and_their_gradients_are_those_of_jax(order, mode):
    def every(given):
        return {name: of_tape(made[1], order, given[name]) for name, made in prepared().items()}

    run = every if mode == "eager" else tf.function(every, autograph=False, jit_compile=mode == "compiled")
    found = run({name: tuple(map(tf.constant, operands)) for name, (*_, operands) in prepared().items()})
    wrong = []
    for name, theirs in expected(order).items():
        for place, (own, wanted) in enumerate(zip(found[name], theirs, strict=True)):
            error = np.max(np.abs(own - wanted) / np.maximum(np.abs(wanted), 1e-2))
            if not error < 1e-4:
                wrong.append(f"{name}, {place}: {error}")
    assert not wrong, "\n".join(wrong)


def saved_and_loaded(function, z, folder):
    module = tf.Module()
    module.run = tf.function(function, autograph=False, input_signature=[tf.TensorSpec(z.shape, z.dtype)])
    options = tf.saved_model.SaveOptions(experimental_custom_gradients=True)
    tf.saved_model.save(module, str(folder), options=options)
    return tf.saved_model.load(str(folder)).run


COMPOSED = {
    "sqrt of a product": (lambda z: lax.sqrt(z * z), lambda z, y: z / y),
    "rsqrt of a product": (lambda z: lax.rsqrt(z * z), lambda z, y: -y / z),
    "root by a power of a product": (lambda z: lax.pow(z * z, jnp.full_like(z, 0.5)), lambda z, y: y / z),
    "reciprocal root by a power": (lambda z: lax.pow(z * z, jnp.full_like(z, -0.5)), lambda z, y: -y / z),
    "log of exp": (lambda z: lax.log(lax.exp(z)), lambda z, y: np.ones_like(z)),
}


@pytest.mark.parametrize("where", ["eager", "graph", "compiled", "loaded", "loaded and compiled"])
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("name", COMPOSED)
def test_compositions_that_xla_takes_for_those_of_real_numbers_are_those_of_jax(name, dtype, where, tmp_path):
    """XLA makes |x| of sqrt(x * x), and x of log(exp(x))."""
    function, slope = COMPOSED[name]
    z = np.array([1 + 1j, -1 + 2j, -1 - 2j, 3 - 0.5j, 0.25 + 5j, -2 - 4j, 0.5 - 3.5j], dtype)
    with jax.enable_x64(dtype == "complex128"):
        expected = np.asarray(jax.jit(function)(z))
        made = convert_stablehlo(jax.jit(function).lower(z).as_text())
    if where.startswith("loaded"):
        made = saved_and_loaded(made, z, tmp_path)

    def pulled(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            (y,) = tf.nest.flatten(made(x))
        return y, tape.gradient(y, x)

    run = pulled if where == "eager" else tf.function(pulled, autograph=False, jit_compile=where.endswith("compiled"))
    alone = made if where == "eager" else tf.function(made, autograph=False, jit_compile=where.endswith("compiled"))
    y, gradient = run(tf.constant(z))
    limit = 64 * np.finfo(dtype).eps
    np.testing.assert_allclose(y.numpy(), expected, rtol=limit)
    np.testing.assert_allclose(tf.nest.flatten(alone(tf.constant(z)))[0].numpy(), expected, rtol=limit)
    np.testing.assert_allclose(gradient.numpy(), slope(z, expected).conj(), rtol=limit, atol=limit)


SECOND = {  # points with zero parts, none on a cut
    "asin": (lax.asin, lambda z: z * (1 - z * z) ** -1.5),
    "acos": (lax.acos, lambda z: -z * (1 - z * z) ** -1.5),
    "asinh": (lax.asinh, lambda z: -z * (1 + z * z) ** -1.5),
    "acosh": (lax.acosh, lambda z: -z * (z - 1) ** -1.5 * (z + 1) ** -1.5),
    "power": (lambda z: lax.pow(z, jnp.full_like(z, 1.5)), lambda z: 0.75 * z**-0.5),
    "root by a power": (lambda z: lax.pow(z, jnp.full_like(z, 0.5)), lambda z: -0.25 * z**-1.5),
    "reciprocal root by a power": (lambda z: lax.pow(z, jnp.full_like(z, -0.5)), lambda z: 0.75 * z**-2.5),
}


@pytest.mark.parametrize(
    "where", ["eager", "graph", "compiled", "gradient loaded", "loaded", "loaded, graph", "loaded, compiled"]
)
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("name", SECOND)
def test_second_derivatives_of_inverses_and_powers_are_right_where_a_part_is_zero(name, dtype, where, tmp_path):
    function, slope = SECOND[name]
    points = [0.5 + 0.2j, 2 + 1j, 0.25j, 0.5j, -0.75j]
    points += [2, 3] if name == "acosh" else [] if name == "asinh" else [0.5, -0.5, 2j]
    points += [0.5, -0.75, 2] if name == "asinh" else []
    points = [point for point in points if complex(point).imag or complex(point).real > 0 or "power" not in name]
    z = np.array(points, dtype)
    with jax.enable_x64(dtype == "complex128"):
        made = convert_stablehlo(jax.jit(function).lower(z).as_text())
    if where.startswith("loaded"):
        made = saved_and_loaded(made, z, tmp_path)

    def first(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            (y,) = tf.nest.flatten(made(x))
        return tape.gradient(y, x)

    if where == "gradient loaded":
        first = saved_and_loaded(first, z, tmp_path)

    def second(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.math.conj(first(x))
        return tape.gradient(y, x, tf.fill(z.shape, tf.constant(1 + 2j, dtype)))

    is_eager = where in ("eager", "loaded")
    run = second if is_eager else tf.function(second, autograph=False, jit_compile=where.endswith("compiled"))
    limit = 256 * np.finfo(dtype).eps
    expected = (1 + 2j) * slope(z.astype(np.complex128)).conj()
    np.testing.assert_allclose(run(tf.constant(z)).numpy(), expected, rtol=limit, atol=limit)
