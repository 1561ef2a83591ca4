"""A JAX function for TFLite's converter: plain operations, none that TFLite has no form of. Imports JAX."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from jaxtf.convert._convert.convert import convert_for
from jaxtf.convert._convert.target import target_of
from jaxtf.convert._saved_model.inputs import inputs_of
from jaxtf.convert._saved_model.results import by_result_name, is_flat
from jaxtf.convert._saved_model.save_options import check_specifications
from jaxtf.convert._values.names import parameter_names

__all__ = ["AVOIDED", "of_function"]

# Operations that TensorFlow has and TFLite has not, with decompositions that JAX writes into the module.
AVOIDED = frozenset(
    f"chlo.{name}" for name in ("acos", "acosh", "asin", "asinh", "atan", "atanh", "cosh", "erf", "erfc", "sinh")
)


def of_function(
    fun: Callable[..., Any], signature: Sequence[Any], shapes: Any, constraints: Sequence[str]
) -> tuple[tf.Module, Any, dict[str, tf.TensorSpec], list[str]]:
    """A module with the concrete function of a JAX function, that, and what its inputs look like, by name.

    And the names of inputs that the signature left open, of which the function needs static sizes.
    """
    check_specifications(signature, "input_signature of to_tflite")
    target = target_of(
        native_serialization=False,
        platforms=None,
        disabled_checks=(),
        tensorflow_version=None,
        enable_xla=False,
        avoids=AVOIDED,
    )
    converted = convert_for(fun, target, shapes, constraints, with_gradient=False)
    inputs = inputs_of(signature, parameter_names(fun), "input_signature of to_tflite")

    def serve(**by_name: tf.Tensor) -> Any:
        result = converted(*inputs.nested(by_name))
        return result if is_flat(result) else by_result_name(result)

    def traced(specs: dict[str, tf.TensorSpec]) -> Any:
        module.f = tf.function(serve, autograph=False)
        return module.f.get_concrete_function(**specs)

    module, specs = tf.Module(), inputs.specs
    concrete = traced(specs)
    needed = {name: _as_needed(spec, concrete) for name, spec in specs.items()}
    narrowed = [name for name in specs if needed[name] != specs[name]]
    if narrowed:
        concrete = traced(needed)
    return module, concrete, needed, narrowed


def _as_needed(spec: tf.TensorSpec, concrete: Any) -> tf.TensorSpec:
    """An input with the sizes that the function checks it for: TFLite's converter knows no operation that does."""
    [given] = [tensor for tensor in concrete.inputs if tensor.op.name == spec.name]
    checks = [operation for operation in given.consumers() if operation.type == "EnsureShape"]
    return tf.TensorSpec(checks[0].outputs[0].shape, spec.dtype, spec.name) if checks else spec
