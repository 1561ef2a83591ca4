"""Signatures of one SavedModel, in several orders: what each takes depends on no other, and it is as in JAX."""

import itertools
from contextlib import nullcontext

import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

from jaxtf.convert import save_model

SIGNATURES = {"any": [None, None], "rows": [2, None], "columns": [None, 3], "fixed": [2, 3]}
SHAPES = [(2, 3), (2, 4), (4, 3), (3, 4), (1, 3), (5, 1)]


def sizes_and_mean(params, inputs):
    x = inputs["x"]
    return {"rows": jnp.arange(x.shape[0]), "mean": x.mean(axis=1) * params["s"], "last": x * x.shape[0]}


@pytest.mark.slow(2)
@pytest.mark.parametrize("native", [True, False], ids=["native", "graph"])
@pytest.mark.parametrize("order", [0, 1])
def test_each_signature_is_right_or_refuses_whatever_came_before_it(tmp_path, native, order):
    for number, names in enumerate(itertools.permutations(SIGNATURES)):
        if number % 5:  # five orders, in which each of them is the first or the second
            continue
        path = tmp_path / str(number)
        save_model(
            sizes_and_mean,
            {"s": np.float32(1)},
            path,
            input_signatures={name: [{"mask": None, "x": tf.TensorSpec(SIGNATURES[name])}] for name in names},
            polymorphic_shapes=[{"mask": None, "x": "b, n"}],
            gradient_order=order,
            native_serialization=native,
        )
        loaded = tf.saved_model.load(path)
        for name, shape in itertools.product(names, SHAPES):
            x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
            is_taken = native or tf.TensorShape(SIGNATURES[name]).is_compatible_with(shape)
            with nullcontext() if is_taken else pytest.raises(tf.errors.InvalidArgumentError, match="shape"):
                found = loaded.signatures[name](inputs_x=tf.constant(x))
            if not is_taken:
                continue
            np.testing.assert_allclose(found["mean"], x.mean(axis=1), rtol=1e-6)
            np.testing.assert_array_equal(found["rows"], np.arange(len(x)))
            np.testing.assert_array_equal(found["last"], x * len(x))
