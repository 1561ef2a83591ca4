"""`convert_and_save_model`, as programs have it from the examples of jax2tf; `save_model` is the newer way.

The interface is that of jax2tf's examples up to JAX 0.4. What it writes is a reusable SavedModel (TensorFlow 2), with
the parameters as its variables.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import jax
import tensorflow as tf

from jaxtf.convert._convert.convert import convert
from jaxtf.convert._errors import ConversionOptionError

__all__ = ["convert_and_save_model"]


def convert_and_save_model(
    jax_fn: Callable[[Any, Any], Any],
    params: Any,
    model_dir: str,
    *,
    input_signatures: Sequence[Any],
    polymorphic_shapes: Any = None,
    with_gradient: bool = False,
    enable_xla: bool = True,
    compile_model: bool = True,
    saved_model_options: tf.saved_model.SaveOptions | None = None,
) -> None:
    """Writes a SavedModel of `jax_fn(params, inputs)` with the parameters as variables.

    Args:
      jax_fn: A function of the parameters and one input.
      params: A pytree of arrays.
      model_dir: The folder to write.
      input_signatures: What the input may look like, each a `tf.TensorSpec` or a pytree of them. The first one is the
        signature `serving_default`; the loaded model can be called with all of them.
      polymorphic_shapes: As in `convert`, for the input alone. There must be one signature then.
      with_gradient: Whether the loaded model can be differentiated, and its variables trained.
      enable_xla: As in `convert`; False is graph mode.
      compile_model: Whether TensorFlow compiles the function with XLA.
      saved_model_options: Of `tf.saved_model.save`.

    Raises:
      ConversionOptionError: No signature, or several with `polymorphic_shapes`.
    """
    if not isinstance(input_signatures, list | tuple) or not input_signatures:
        raise ConversionOptionError(
            f"input_signatures must be a list of one or more signatures of the one input. Got: {input_signatures!r:.60}"
        )
    if polymorphic_shapes is not None and len(input_signatures) > 1:
        raise ConversionOptionError(
            f"with polymorphic_shapes there must be one signature. Got: {len(input_signatures)} in input_signatures\n"
            "  remedy: one signature with None for the sizes that polymorphic_shapes leaves open; for several by name, "
            "jaxtf.convert.save_model"
        )
    converted = convert(
        jax_fn, polymorphic_shapes=[None, polymorphic_shapes], with_gradient=with_gradient, enable_xla=enable_xla
    )
    variables = jax.tree.map(lambda param: tf.Variable(param, trainable=with_gradient), params)
    # TensorFlow names the inputs of a signature after this parameter.
    call = tf.function(lambda inputs: converted(variables, inputs), autograph=False, jit_compile=compile_model)
    first, *_ = [call.get_concrete_function(signature) for signature in input_signatures]

    root = tf.train.Checkpoint()
    root.variables = jax.tree.leaves(variables)
    root.trainable_variables = [variable for variable in root.variables if variable.trainable]
    root.regularization_losses = []
    root.__call__ = call
    options = copy.copy(saved_model_options) or tf.saved_model.SaveOptions()
    options.experimental_custom_gradients = options.experimental_custom_gradients or with_gradient
    signatures = {tf.saved_model.DEFAULT_SERVING_SIGNATURE_DEF_KEY: first}
    tf.saved_model.save(root, model_dir, signatures=signatures, options=options)
