"""Polymorphic programs give JAX's numbers in every way that TensorFlow runs them."""

import functools
import json
import os
import subprocess
from pathlib import Path

import jax
import numpy as np
import pytest
import tensorflow as tf

from jaxtf.convert import convert

from .programs import PROGRAMS

HERE = Path(__file__).parent

# The process that serves SavedModels may have another TensorFlow (the session `older_tensorflow`).
SERVING_PYTHON = os.environ.get("JAXTF_SERVING_PYTHON")
SERVING_TENSORFLOW = os.environ.get("JAXTF_SERVING_TENSORFLOW")

MODES = {
    "eager": lambda f: f,
    "graph": lambda f: tf.function(f, autograph=False),
    "compiled": lambda f: tf.function(f, autograph=False, jit_compile=True),
}


def assert_close(found, expected):
    """Equal to within the rounding of two compilations of one program."""
    np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-6)


def scalar_of(result):
    """A number that every floating result enters, to differentiate."""
    return sum(leaf.sum() for leaf in jax.tree.leaves(result) if leaf.dtype.kind == "f")


@functools.cache
def expected_of(name, position):
    """What JAX computes at these sizes of a program: the result, and the gradients of the sum of its leaves."""
    program = PROGRAMS[name]

    def value_and_gradients(*arguments):
        def scalar(*arguments):
            result = program.function(*arguments)
            return scalar_of(result), result

        gradients, result = jax.grad(scalar, tuple(range(len(arguments))), has_aux=True)(*arguments)
        return result, gradients

    return jax.jit(value_and_gradients)(*program.arguments(program.sizes[position]))


@pytest.mark.slow(3)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_values_and_gradients_are_those_of_jax(name, mode):
    program = PROGRAMS[name]
    converted = MODES[mode](convert(program.function, polymorphic_shapes=list(program.shapes)))
    for position, sizes in enumerate(program.sizes):
        arguments = program.arguments(sizes)
        variables = [tf.Variable(argument) for argument in arguments]
        with tf.GradientTape() as tape:
            found = converted(*variables)
            total = tf.add_n([tf.reduce_sum(leaf) for leaf in tf.nest.flatten(found) if leaf.dtype.is_floating])
        result, gradients = expected_of(name, position)
        jax.tree.map(assert_close, found, result)
        for a, b in zip(tape.gradient(total, variables), gradients, strict=True):
            assert_close(a, b)


@pytest.mark.parametrize("name", PROGRAMS)
def test_one_module_for_cpu_cuda_and_tpu_gives_the_numbers_of_jax_here(name):
    """None of the platforms but this one is present: lowering and serializing need no device."""
    program = PROGRAMS[name]
    platforms = ("tpu", "cuda", "cpu")
    converted = convert(
        program.function, polymorphic_shapes=list(program.shapes), native_serialization_platforms=platforms
    )
    jax.tree.map(assert_close, converted(*program.arguments(program.sizes[1])), expected_of(name, 1)[0])


@pytest.fixture(scope="module")
def served(run_without_jax, tmp_path_factory):
    """What a process without JAX computes with the SavedModels of all programs: name -> arrays."""
    folder = tmp_path_factory.mktemp("saved_models")
    for position, program in enumerate(PROGRAMS.values()):
        module = tf.Module()
        specs = [tf.TensorSpec(shape, tf.float32) for shape in program.specs()]
        converted = convert(
            program.function, polymorphic_shapes=list(program.shapes), tensorflow_version=SERVING_TENSORFLOW
        )
        module.f = tf.function(converted, autograph=False, input_signature=specs)
        options = tf.saved_model.SaveOptions(experimental_custom_gradients=True)
        tf.saved_model.save(module, str(folder / str(position)), options=options)
        arrays = {
            f"{i}:{j}": a for i, sizes in enumerate(program.sizes) for j, a in enumerate(program.arguments(sizes))
        }
        np.savez(folder / f"{position}.npz", **arrays)
    words = [str(HERE / "serve_without_jax.py"), str(folder)]
    if SERVING_PYTHON:
        done = subprocess.run([SERVING_PYTHON, *words], capture_output=True, text=True, check=False)
    else:
        done = run_without_jax(*words)
    assert done.returncode == 0, done.stderr[-4000:]
    assert json.loads(done.stdout.splitlines()[-1]) == {
        "jax": False,
        "programs": len(PROGRAMS),
        "tensorflow": SERVING_TENSORFLOW or tf.__version__,
    }
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_process_without_jax_serves_the_numbers_of_jax(served, name):
    position, program = list(PROGRAMS).index(name), PROGRAMS[name]
    with np.load(served / f"{position}.results.npz") as results:
        for i in range(len(program.sizes)):
            for kind, expected in zip(("value", "gradient"), expected_of(name, i), strict=True):
                for j, array in enumerate(jax.tree.leaves(expected)):
                    assert_close(results[f"{i}:{kind}:{j}"], array)
