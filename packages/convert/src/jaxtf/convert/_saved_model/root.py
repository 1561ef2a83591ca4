"""What TensorFlow loads from a SavedModel, and its description; needs no JAX."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf

from jaxtf.convert._saved_model.saved import SavedSignature

__all__ = ["bytes_of", "described", "root_of"]


def root_of(
    params: Any, leaves: Sequence[tf.Variable], constants: Sequence[tf.Variable], assets: Mapping[str, Any]
) -> tf.train.Checkpoint:
    """What TensorFlow loads, except for the function: variables and files, by the names of a reusable SavedModel.

    Args:
      params: The parameters in their structure, in containers that a SavedModel keeps.
      leaves: Each of them once.
      constants: Those of large arrays that the function closes over.
      assets: Files by name.
    """
    root = tf.train.Checkpoint()
    root.params = params
    root.constants = list(constants)
    root.variables = [*leaves, *constants]
    root.trainable_variables = [variable for variable in leaves if variable.trainable]
    root.regularization_losses = []
    root.assets = {name: tf.saved_model.Asset(file) for name, file in assets.items()}
    return root


def bytes_of(variables: Sequence[tf.Variable]) -> int:
    return sum(variable.dtype.size * variable.shape.num_elements() for variable in variables)


def described(function: Any) -> SavedSignature:
    _, inputs = function.structured_input_signature
    return SavedSignature(
        {name: inputs[name] for name in inputs},
        {name: tf.TensorSpec(spec.shape, spec.dtype) for name, spec in function.structured_outputs.items()},
    )
