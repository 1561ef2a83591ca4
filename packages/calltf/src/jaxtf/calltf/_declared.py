"""The `output_shape_dtype` of a call: results declared by the user, and checked.

`Declared.of` reads the declaration; `check_tree` and `check_leaf` compare what TensorFlow
returned with it, as far as it is known: eagerly everything is, while TensorFlow traces a
dimension may not be, and the compiled function is compared once more when it is lowered.

Knows avals, pytrees and tensors' shapes; nothing of functions or primitives.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import tensorflow as tf
from jax.core import ShapedArray
from jax.tree_util import PyTreeDef

from jaxtf.calltf._errors import DeclarationError
from jaxtf.calltf._jax import is_symbolic
from jaxtf.calltf._transfer import canonical_dtype, jax_dtype, tensorflow_dtype
from jaxtf.serialization.interop import is_same_structure


@dataclass(frozen=True)
class Declared:
    """The `output_shape_dtype` of a call: the avals of the results, and their pytree."""

    avals: tuple[ShapedArray, ...]
    tree: PyTreeDef

    @classmethod
    def of(cls, output_shape_dtype: Any) -> Declared:
        """Reads a pytree of values that have `.shape` and `.dtype`, of JAX, NumPy or TensorFlow.

        Raises:
          TypeError: A leaf without shape and dtype.
          DeclarationError: A size that is negative or not known.
        """
        leaves, tree = jax.tree.flatten(output_shape_dtype)
        for leaf in leaves:
            if not (hasattr(leaf, "shape") and hasattr(leaf, "dtype")):
                raise TypeError(
                    f"call_tf: output_shape_dtype holds {leaf!r}, which has no .shape and .dtype\n"
                    "  remedy: declare each result by a jax.ShapeDtypeStruct(shape, dtype)"
                )
        return cls(tuple(map(_aval, leaves)), tree)

    def check_tree(self, tree: PyTreeDef) -> None:
        """Raises `DeclarationError` unless the results have the declared structure."""
        if not is_same_structure(tree, self.tree):
            raise DeclarationError(
                "The pytree of the TensorFlow function results does not match the pytree of the declared "
                f"output_shape_dtype:\n  results pytree: {tree}\n  output_shape_dtype tree: {self.tree}"
            )

    def check_leaf(self, index: int, tensor: Any) -> None:
        """Raises `DeclarationError` if a result is known to differ from the declared one."""
        aval = self.avals[index]
        if tensor.dtype != tensorflow_dtype(aval.dtype) or not tensor.shape.is_compatible_with(known_sizes(aval.shape)):
            raise self.mismatch(index, f"{tensor.dtype.name}{shape_text(tensor.shape)}")

    def mismatch(self, index: int, found: str) -> DeclarationError:
        """The error for one result; `found` is its type, like `float32[3]`."""
        aval = self.avals[index]
        return DeclarationError(
            "The shapes or dtypes returned by the TensorFlow function do not match the declared "
            f"output_shape_dtype:\n  Result[{index}] is {found} vs. expected "
            f"{aval.dtype.name}{shape_text(aval.shape)}\n"
            "  remedy: declare what the function returns, or tf.cast and tf.ensure_shape its results"
        )


def _aval(leaf: Any) -> ShapedArray:
    shape = leaf.shape
    if isinstance(shape, tf.TensorShape):
        shape = [None] if shape.rank is None else shape.as_list()
    if any(size is None or (not is_symbolic(size) and size < 0) for size in shape):
        raise DeclarationError(
            f"call_tf: output_shape_dtype holds {leaf!r}, whose sizes are not all known\n"
            "  remedy: declare each size, by a number or by an expression of the sizes of the arguments"
        )
    dtype = jax_dtype(leaf.dtype) if isinstance(leaf.dtype, tf.DType) else leaf.dtype
    return ShapedArray(tuple(shape), canonical_dtype(dtype))


def known_sizes(shape: Sequence[Any]) -> list[int | None]:
    """A shape as TensorFlow writes it: None for symbolic sizes."""
    return [None if is_symbolic(size) else int(size) for size in shape]


def shape_text(shape: Any) -> str:
    """A shape like `[2, 3]`, `[None]` or `<unknown>`."""
    if isinstance(shape, tf.TensorShape):
        return "<unknown>" if shape.rank is None else str(shape.as_list())
    return str(list(shape))
