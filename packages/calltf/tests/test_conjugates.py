"""Gradients of complex numbers are right where they are compiled, too: TensorFlow leaves out some conjugates there."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.framework import op_def_registry

from jaxtf.calltf import call_tf
from jaxtf.calltf._conjugates import _FORMULAS
from jaxtf.serialization import export

Z = np.complex64([0.3 + 1.2j, -1.1 + 0.4j])
COMPLEX = tf.complex64.as_datatype_enum
FUNCTIONS = {
    "sqrt": (tf.sqrt, jnp.sqrt),
    "rsqrt": (tf.math.rsqrt, lambda z: z**-0.5),
    "reciprocal": (tf.math.reciprocal, lambda z: 1 / z),
    "inverse": (lambda z: tf.raw_ops.Inv(x=z), lambda z: 1 / z),
    "log": (tf.math.log, jnp.log),
    "tan": (tf.math.tan, jnp.tan),
}


def slope(function):
    return jax.grad(lambda z: (function(z) * (0.5 - 2j)).sum(), holomorphic=True)


STAGED = {
    "jit": jax.jit,
    "vmap": jax.vmap,
    "export": lambda f: lambda z: export(f)(jax.ShapeDtypeStruct(z.shape, z.dtype)).call(z),
    "symbolic": lambda f: lambda z: export(f)(jax.ShapeDtypeStruct(jax.export.symbolic_shape("n"), z.dtype)).call(z),
    "forward": lambda f: jax.jit(lambda z: jax.jvp(f, (z,), (z,))[1]),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("staged", STAGED)
def test_derivatives_are_those_of_jax(name, staged):
    ours, due = (STAGED[staged](slope(function)) for function in (call_tf(FUNCTIONS[name][0]), FUNCTIONS[name][1]))
    np.testing.assert_allclose(ours(Z), due(Z), rtol=1e-5)


def of_its_own(z):
    with tf.GradientTape() as tape:
        tape.watch(z)
        root = tf.sqrt(z)
    return tf.math.conj(tape.gradient(root, z))


VARIABLE = tf.Variable(2 + 1j, dtype=tf.complex64)
WITHIN = {
    "branch": lambda z: tf.cond(tf.math.real(z) > 0, lambda: tf.sqrt(z), lambda: z),
    "loop": lambda z: tf.while_loop(lambda i, _: i < 2, lambda i, z: (i + 1, tf.sqrt(z)), (0, z), maximum_iterations=2)[
        1
    ],
    "function": tf.function(lambda z: tf.function(tf.sqrt)(z) * tf.sqrt(z)),
    "variable": lambda z: tf.sqrt(VARIABLE * z),
    "own": of_its_own,
}


@pytest.mark.filterwarnings("ignore::jaxtf.calltf.CaptureWarning")
@pytest.mark.parametrize("where", WITHIN)
def test_it_is_so_within(where):
    derivative = slope(call_tf(WITHIN[where]))
    np.testing.assert_allclose(jax.jit(derivative)(Z[0]), derivative(Z[0]), rtol=1e-5)


def test_it_is_so_by_name():
    root = call_tf(tf.sqrt, call_tf_graph=True)
    exported = export(lambda z: jax.vjp(root, z)[1](z))(jax.ShapeDtypeStruct(Z.shape, Z.dtype))
    pulled_back = exported.called_functions[-1].value
    due = jax.vjp(jnp.sqrt, Z)[1](Z)[0]
    for run in (pulled_back, tf.function(pulled_back, jit_compile=True)):
        np.testing.assert_allclose(run(tf.constant(Z), tf.constant(Z))[0], due, rtol=1e-5)


def test_what_a_gradient_passes_on_stays():
    values, pull = jax.vjp(call_tf(lambda z, c: tf.sqrt(z) + c), Z, Z)
    found = jax.jit(pull)(values)
    np.testing.assert_allclose(found[1], values)


def gradients():
    """The types of all operations of TensorFlow that are a gradient, of two complex operands."""
    for name in dir(tf.raw_ops):
        definition = op_def_registry.get(name) if name.endswith("Grad") else None
        if definition is not None and len(definition.input_arg) == 2:
            types = {attr.name: set(attr.allowed_values.list.type) for attr in definition.attr}
            if all(x.type_attr in types and COMPLEX in types[x.type_attr] for x in definition.input_arg):
                yield name, [x.name for x in definition.input_arg]


def test_all_others_are_compiled_as_they_are_run():
    differing, same = set(), set()
    for name, operands in gradients():
        values = dict(zip(operands, (tf.constant(Z), tf.constant(Z[::-1])), strict=True))

        def run(values, name=name):
            return getattr(tf.raw_ops, name)(**values)

        try:
            compiled = tf.function(run, jit_compile=True)(values)
        except tf.errors.InvalidArgumentError:  # not compiled
            differing.add(name)
        else:
            (same if np.allclose(run(values), compiled) else differing).add(name)
    assert differing == set(_FORMULAS)
    assert {"SigmoidGrad", "TanhGrad"} <= same
