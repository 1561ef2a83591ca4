"""The results of a function by the names that a signature gives them. Imports JAX."""

from __future__ import annotations

from typing import Any

import jax
import tensorflow as tf

from jaxtf.convert._values.names import result_names

__all__ = ["by_result_name", "is_flat"]


def by_result_name(result: Any) -> dict[str, tf.Tensor]:
    """The leaves of a result by their names, which tell their place in the pytree."""
    leaves = jax.tree_util.tree_flatten_with_path(result)[0]
    names = result_names([f"result{jax.tree_util.keystr(path)}" for path, _ in leaves])
    return dict(zip(names, (leaf for _, leaf in leaves), strict=True))


def is_flat(result: Any) -> bool:
    """Whether a result is a tensor, or one container of tensors that TensorFlow has names for."""
    if type(result) is dict:
        return all(isinstance(key, str) and tf.is_tensor(value) for key, value in result.items())
    return tf.is_tensor(result) or (type(result) in (list, tuple) and all(map(tf.is_tensor, result)))
