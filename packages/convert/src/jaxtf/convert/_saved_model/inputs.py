"""The inputs of one signature, as `save_model` and `to_tflite` receive them: specifications, checked and named."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import tensorflow as tf

from jaxtf.convert._errors import ConversionOptionError
from jaxtf.convert._values.names import argument_names
from jaxtf.serialization.interop import argument_paths

__all__ = ["Inputs", "inputs_of"]


@dataclass(frozen=True)
class Inputs:
    """The inputs of one signature.

    Attributes:
      specs: Of each flat input by its name, in the order in which the function takes them.
      tree: JAX's treedef of the inputs.
    """

    specs: dict[str, tf.TensorSpec]
    tree: Any

    def nested(self, by_name: dict[str, Any]) -> tuple[Any, ...]:
        """Values by the names of the inputs, as positional arguments of the function."""
        args, _ = jax.tree.unflatten(self.tree, [by_name[name] for name in self.specs])
        positional: tuple[Any, ...] = args
        return positional


def inputs_of(signature: Sequence[Any], parameters: Sequence[str], option: str) -> Inputs:
    """The inputs that the specifications in a list describe.

    Args:
      signature: A specification for each argument: anything with shape and dtype, nested as the function takes it.
      parameters: The names of the arguments.
      option: What the list was given for.

    Raises:
      ConversionOptionError: Something in it has no shape or dtype.
    """
    args = (*signature,)

    def is_leaf(value: Any) -> bool:
        return value is not args and _is_specification(value)

    flat, tree = jax.tree.flatten((args, {}), is_leaf=is_leaf)
    names = argument_names(argument_paths(tree), parameters)
    return Inputs({name: _spec_of(like, name, option) for name, like in zip(names, flat, strict=True)}, tree)


def _is_specification(value: Any) -> bool:
    """Whether it is one, or was meant to be: a shape alone."""
    is_shape = isinstance(value, list | tuple) and bool(value) and all(isinstance(x, int | None) for x in value)
    return isinstance(value, tf.TensorSpec) or is_shape


def _spec_of(like: Any, name: str, option: str) -> tf.TensorSpec:
    if not hasattr(like, "shape") or not hasattr(like, "dtype"):
        raise ConversionOptionError(
            f"{option} must say shape and dtype of '{name}', as tf.TensorSpec([None, 4], tf.float32) does. "
            f"Got: {like!r:.60}"
        )
    return tf.TensorSpec(
        [None if size is None else int(size) for size in tf.TensorShape(like.shape).as_list()], like.dtype, name
    )
