"""The battery of JAX functions through TensorFlow: JAX's numbers and gradients in every way that TensorFlow runs them.

A sample that depends on the names alone, each entry at one of its sizes; with `JAXTF_FULL=1` all entries at all sizes
(the session `battery_tensorflow`).
"""

import functools
import json
import os
import zlib
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

from jaxtf.convert import convert

from .battery import BATTERY
from .battery.entry import RUNS
from .battery.trial import assert_same

HERE = Path(__file__).parent
FULL = os.environ.get("JAXTF_FULL") == "1"
ONE_IN = 1 if FULL else 24

MODES = {
    "eager": lambda f: f,
    "graph": lambda f: tf.function(f, autograph=False),
    "compiled": lambda f: tf.function(f, autograph=False, jit_compile=True),
}


def number(name):
    return zlib.crc32(name.encode())


SAMPLE = [name for name, entry in BATTERY.items() if entry.refusal is None and number(name) % ONE_IN == 0]
DIFFERENTIABLE = [name for name in SAMPLE if BATTERY[name].differentiable]


def runs(name):
    return range(RUNS) if FULL else [number(name) // ONE_IN % RUNS]


@functools.cache
def converted(name):
    """One conversion for all modes and sizes; the gradient of what JAX cannot differentiate is not asked for."""
    entry = BATTERY[name]
    return convert(
        entry.function,
        polymorphic_shapes=list(map("({})".format, entry.shapes)),
        polymorphic_constraints=entry.constraints,
    )


def as_numpy(results):
    return jax.tree.map(np.asarray, results)


def weights(index):
    """By element of a result. The squares of what is normalized add up to the same for all arguments."""
    return (index % 7 + 1).astype(np.float32)


def tf_loss(results):
    """A number that every floating result enters; squares, as eigenvectors may have the other sign."""
    leaves = [leaf for leaf in tf.nest.flatten(results) if leaf is not None and leaf.dtype.is_floating]
    flat = [tf.reshape(tf.cast(leaf, tf.float32), [-1]) for leaf in leaves]
    return tf.add_n([tf.reduce_sum(leaf**2 * tf.cast(tf.range(tf.size(leaf)) % 7 + 1, tf.float32)) for leaf in flat])


def jax_gradient(entry, arguments):
    """The same, differentiated by JAX."""

    def loss(*arguments):
        leaves = jax.tree.leaves(entry.function(*arguments))
        flat = [leaf.astype(jnp.float32).reshape(-1) for leaf in leaves if jnp.issubdtype(leaf.dtype, jnp.floating)]
        return sum((leaf**2 * weights(np.arange(leaf.size))).sum() for leaf in flat)

    return jax.jit(jax.grad(loss, entry.differentiated()))(*arguments)


def has_loss(entry, arguments):
    results = jax.eval_shape(entry.function, *arguments)
    return any(jnp.issubdtype(leaf.dtype, jnp.floating) for leaf in jax.tree.leaves(results))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", SAMPLE)
def test_values_are_those_of_jax(name, mode):
    entry = BATTERY[name]
    for run in runs(name):
        arguments = entry.arguments(run)
        found = MODES[mode](converted(name))(*map(tf.constant, arguments))
        assert_same(as_numpy(found), as_numpy(jax.jit(entry.function)(*arguments)), entry)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradients_are_those_of_jax(name, mode):
    entry = BATTERY[name]
    function = MODES[mode](converted(name))
    for run in runs(name):
        arguments = entry.arguments(run)
        if not has_loss(entry, arguments):
            continue
        tensors = list(map(tf.constant, arguments))
        watched = [tensors[i] for i in entry.differentiated()]
        with tf.GradientTape() as tape:
            tape.watch(watched)
            loss = tf_loss(function(*tensors))
        found = tape.gradient(loss, watched)
        expected = as_numpy(jax_gradient(entry, arguments))
        assert [(array.shape, array.dtype) for array in as_numpy(found)] == [(a.shape, a.dtype) for a in expected]
        # Together, for one of them may be nothing but rounding: the derivative of x * w / w by w.
        assert_same(
            *(np.concatenate([array.reshape(-1) for array in all_]) for all_ in (as_numpy(found), expected)), entry
        )


@pytest.fixture(scope="module")
def served(run_without_jax, tmp_path_factory):
    """What a process without JAX computes with the SavedModels of all entries, in this folder."""
    folder = tmp_path_factory.mktemp("battery")
    for position, name in enumerate(SAMPLE):
        entry = BATTERY[name]
        module = tf.Module()
        sizes = [entry.arguments(run) for run in range(RUNS)]
        specs = [
            tf.TensorSpec([a if a == b == c else None for a, b, c in zip(*shapes, strict=True)], array.dtype)
            for array, *shapes in zip(sizes[0], *([a.shape for a in run] for run in sizes), strict=True)
        ]
        module.f = tf.function(converted(name), autograph=False, input_signature=specs)
        options = tf.saved_model.SaveOptions(experimental_custom_gradients=entry.differentiable)
        tf.saved_model.save(module, str(folder / str(position)), options=options)
        arrays = {f"{run}:{j}": a for run in runs(name) for j, a in enumerate(map(storable, sizes[run]))}
        np.savez(folder / f"{position}.npz", **arrays)
    done = run_without_jax(HERE / "serve_without_jax.py", folder, "--values-only")
    assert done.returncode == 0, done.stderr[-4000:]
    report = json.loads(done.stdout.splitlines()[-1])
    assert (report["jax"], report["programs"]) == (False, len(SAMPLE))
    return folder


def storable(array):
    """As `np.savez` keeps it: not so the dtypes that NumPy does not know."""
    return array.astype(np.float32) if array.dtype == jnp.bfloat16 else array


@pytest.mark.slow
@pytest.mark.parametrize("name", SAMPLE)
def test_a_process_without_jax_serves_the_numbers_of_jax(served, name):
    entry = BATTERY[name]
    with np.load(served / f"{SAMPLE.index(name)}.results.npz") as results:
        for run in runs(name):
            expected = jax.tree.leaves(jax.jit(entry.function)(*entry.arguments(run)))
            for j, leaf in enumerate(map(np.asarray, expected)):
                assert_same(results[f"{run}:value:{j}"].astype(leaf.dtype), leaf, entry)
