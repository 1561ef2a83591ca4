"""Forward mode of a TensorFlow function in a JAX function that becomes a graph: what it calls is found."""

import jax
import numpy as np
import pytest
import tensorflow as tf

from jaxtf.calltf import call_tf
from jaxtf.convert import convert

X = np.float32([1, 2, 3])
SCALE = tf.Variable(2.0)

pytestmark = pytest.mark.filterwarnings("ignore:call_tf works best")  # the variable is a constant


def pushed(f):
    return lambda x: jax.jvp(f, (x,), (x,))[1]


CONSTANT = {
    "jacfwd": jax.jacfwd,
    "hessian": lambda f: jax.hessian(lambda x: f(x).sum()),
}
PROGRAMS = {
    "jvp": pushed,
    "linearize": lambda f: lambda x: jax.linearize(f, x)[1](x),
    "twice": lambda f: pushed(pushed(f)),
    "grad": lambda f: jax.grad(lambda x: pushed(f)(x).sum()),
    "jit": lambda f: jax.jit(pushed(f)),
    "scan": lambda f: lambda x: jax.lax.scan(lambda y, _: (pushed(f)(y), None), x, length=2)[0],
    "cond": lambda f: lambda x: jax.lax.cond(x[0] > 0, pushed(f), lambda y: y, x),
    "vmap": lambda f: jax.vmap(pushed(f)),
    "while": lambda f: lambda x: jax.lax.fori_loop(0, 2, lambda _, y: pushed(f)(y), x),
}


def check(program, shapes):
    f = call_tf(lambda x: tf.sin(x) * x * SCALE)
    converted = convert(program(f), native_serialization=False, polymorphic_shapes=shapes)
    for x in (X, X + 1):
        np.testing.assert_allclose(converted(x), jax.jit(program(f))(x), rtol=1e-5)
    return f, converted


@pytest.mark.parametrize("name", [*PROGRAMS, *CONSTANT])
def test_it_is_that_of_jax(name):
    check({**PROGRAMS, **CONSTANT}[name], None)


@pytest.mark.parametrize("name", PROGRAMS)
def test_it_is_that_of_jax_for_all_sizes(name):
    check(PROGRAMS[name], ["(b,)"])


def test_its_gradient_is_that_of_jax():
    f, converted = check(pushed, None)
    with tf.GradientTape() as tape:
        x = tf.constant(X)
        tape.watch(x)
        result = converted(x)
    np.testing.assert_allclose(tape.gradient(result, x), jax.grad(lambda x: pushed(f)(x).sum())(X), rtol=1e-5)
