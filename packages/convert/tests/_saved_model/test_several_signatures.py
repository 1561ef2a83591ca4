"""Signatures of one SavedModel, in every order: each serves what it says, or what JAX computes, and nothing else."""

import itertools

import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

from jaxtf.convert import save_model

SIGNATURES = {"any": [None, None], "rows": [2, None], "columns": [None, 3], "fixed": [2, 3]}
SHAPES = [(2, 3), (2, 4), (4, 3), (3, 4), (1, 3), (5, 1)]


def sizes_and_mean(params, x):
    return {"rows": jnp.arange(x.shape[0]), "mean": x.mean(axis=1) * params["s"], "last": x * x.shape[0]}


@pytest.mark.parametrize("native", [True, False], ids=["native", "graph"])
@pytest.mark.parametrize("order", [0, 1])
def test_each_signature_is_right_or_refuses_whatever_came_before_it(tmp_path, native, order):
    for number, names in enumerate(itertools.permutations(SIGNATURES)):
        if number % 5:  # five orders in which each name is first or second
            continue
        path = tmp_path / str(number)
        save_model(
            sizes_and_mean,
            {"s": np.float32(1)},
            path,
            input_signatures={name: [tf.TensorSpec(SIGNATURES[name])] for name in names},
            polymorphic_shapes=["b, n"],
            gradient_order=order,
            native_serialization=native,
        )
        loaded = tf.saved_model.load(path)
        for name, shape in itertools.product(names, SHAPES):
            x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
            fits = tf.TensorShape(SIGNATURES[name]).is_compatible_with(shape)
            try:
                found = loaded.signatures[name](x=tf.constant(x))
            except tf.errors.InvalidArgumentError:
                assert not fits, (names, name, shape)
                continue
            assert fits or native, (names, name, shape)
            np.testing.assert_allclose(found["mean"], x.mean(axis=1), rtol=1e-6)
            np.testing.assert_array_equal(found["rows"], np.arange(len(x)))
            np.testing.assert_array_equal(found["last"], x * len(x))
