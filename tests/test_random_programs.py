"""Programs of random steps give JAX's numbers, exported and converted: values, gradients, sizes.

A few are tried always, the same ones; JAXTF_FULL=1 tries `RANDOM_PROGRAMS` of them, 300 if
it is not set, others each time (the session `random_programs`).
"""

import jax
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import assume, given
from hypothesis import strategies as st

from jaxtf.calltf import call_tf
from jaxtf.convert import convert
from jaxtf.serialization import deserialize, export
from jaxtf.shapepoly import symbolic_args_specs

from .drawing import drawn
from .random_programs import POLYMORPHIC_SHAPES, arguments, programs

BATCHES = (1, 2, 3)


def in_jax(function):
    """Values and gradients by JAX, of a function for JAX; arguments after the first two are passed on."""

    def scalar(x, y, *others):
        values = function(x, y, *others)
        return values[1], values

    def both(x, y, *others):
        (_, values), gradients = jax.value_and_grad(scalar, (0, 1), has_aux=True)(x, y, *others)
        return [*values, *gradients]

    return jax.jit(both)


def in_tensorflow(function):
    """The same by TensorFlow."""

    def both(x, y):
        x, y = tf.constant(x), tf.constant(y)
        with tf.GradientTape() as tape:
            tape.watch([x, y])
            values = function(x, y)
        return [*values, *tape.gradient(values[1], [x, y], unconnected_gradients="zero")]

    return both


def reloaded(program):
    """As an artifact, written and read again."""
    specs = symbolic_args_specs(arguments(1, 0), POLYMORPHIC_SHAPES)
    return deserialize(bytes(export(jax.jit(program))(*specs).serialize(vjp_order=1))).call


def compiled(function):
    return tf.function(function, autograph=False, jit_compile=True)


def in_graphs(program, **options):
    return convert(program, polymorphic_shapes=POLYMORPHIC_SHAPES, native_serialization=False, **options)


BACKENDS = {
    "artifact": lambda program: in_jax(reloaded(program)),
    "native": lambda program: in_tensorflow(convert(program, polymorphic_shapes=POLYMORPHIC_SHAPES)),
    "graph": lambda program: in_tensorflow(tf.function(in_graphs(program), autograph=False)),
    "graph without XLA operations": lambda program: in_tensorflow(in_graphs(program, enable_xla=False)),
    "graph, compiled": lambda program: in_tensorflow(compiled(in_graphs(program))),
    "call_tf of convert": lambda program: in_jax(call_tf(convert(program))),
}


def expected_of(program, given_arguments):
    """What JAX computes, and how far apart results may be; programs that rounding decides on are passed over.

    Where results differ by more when each intermediate array has an error of some eps, as on the edge of a comparison,
    nothing is decided.
    """
    expected = [np.asarray(value) for value in in_jax(program)(*given_arguments)]
    assume(all(np.isfinite(value).all() for value in expected))
    allowed = [2e-4 * max(1.0, np.abs(value).max(initial=0)) for value in expected]
    with_noise = in_jax(program)
    for noise in (1e-6, -1e-6):
        beside = with_noise(*given_arguments, np.float32(noise))
        for value, other, most in zip(expected, beside, allowed, strict=True):
            assume(np.abs(value - other).max(initial=0) < most / 2)
    return expected, allowed


@pytest.mark.slow
@given(program=programs(), seed=st.integers(0, 3))
@drawn(8, 300)
def test_random_programs_give_the_numbers_of_jax_on_every_backend(program, seed):
    cases = [(inputs, *expected_of(program, inputs)) for inputs in (arguments(batch, seed) for batch in BATCHES)]
    for backend, made in BACKENDS.items():
        run = made(program)
        for batch, (given_arguments, expected, allowed) in zip(BATCHES, cases, strict=True):
            for found, value, most in zip(run(*given_arguments), expected, allowed, strict=True):
                where = f"{backend}, b={batch}"
                assert tuple(found.shape) == value.shape, where
                difference = np.abs(np.asarray(found) - value).max(initial=0)
                assert difference <= most, f"{where}: differs by {difference}, allowed are {most}"
