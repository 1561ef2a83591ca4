"""What a call of a converted function looks like to JAX, and when two calls look the same.

A `Signature` is the pytree structure, dtype and shape of the arguments, with sizes that
`polymorphic_shapes` leaves open replaced by None, and JAX's configuration: one export serves
all calls of one signature. `Signatures` makes them, reading the polymorphic shapes once for
each structure and tuple of ranks.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import jax
import numpy as np
import tensorflow as tf

from jaxtf.convert import _jax
from jaxtf.convert._errors import ArgumentTypeError, ConversionStateError
from jaxtf.convert._function.cache import Cache
from jaxtf.convert._values.arguments import WeakVariable, read, refuse_specification
from jaxtf.convert._values.dtypes import numpy_dtype
from jaxtf.serialization.interop import argument_paths, plain_containers, tracing_configuration, unwrapped
from jaxtf.shapepoly import ShapeSpecError, is_symbolic_dim, symbolic_args_specs

__all__ = ["LeafSpec", "Signature", "Signatures", "leaf_spec"]

# For more structures than this the polymorphic shapes are read again when they come back.
_STRUCTURES_KEPT = 256


@dataclass(frozen=True)
class LeafSpec:
    """Shape and dtype of one flat argument; the shape is all that `polymorphic_shapes` needs to see.

    Attributes:
      shape: Sizes; None where unknown to TensorFlow, or left open by the polymorphic shapes.
      dtype: The dtype in which JAX computes.
      weak_type: Whether it takes the dtype of the other operand, as a Python scalar does.
    """

    shape: tuple[int | None, ...]
    dtype: np.dtype[Any]
    weak_type: bool = False


@dataclass(frozen=True)
class Signature:
    """Everything about a call that decides what is exported.

    Attributes:
      tree: The JAX treedef of `(args, kwargs)`.
      leaves: The flat arguments.
      configuration: What of JAX's configuration changes tracing.
    """

    tree: Any
    leaves: tuple[LeafSpec, ...]
    configuration: Hashable


@dataclass
class Signatures:
    """The signatures of calls under given polymorphic shapes.

    Attributes:
      polymorphic_shapes: As the user wrote them, for the positional arguments.
      polymorphic_constraints: Likewise.
    """

    polymorphic_shapes: Any
    polymorphic_constraints: Sequence[str]
    # Which sizes the polymorphic shapes leave open, by treedef and ranks.
    _open_sizes: Cache[Hashable, tuple[tuple[bool, ...], ...]] = field(default_factory=lambda: Cache(_STRUCTURES_KEPT))

    def of_call(self, tree: Any, flat: list[Any]) -> tuple[Signature, list[Any]]:
        """The signature of a call of flat arguments, and the arguments, read, without containers of `tf.Module`."""
        flat, tree = unwrapped(flat, tree)
        flat = [read(value, partial(_path, tree, index)) for index, value in enumerate(flat)]
        leaves = tuple(leaf_spec(value, partial(_path, tree, index)) for index, value in enumerate(flat))
        if self._are_known(leaves):
            return Signature(tree, leaves, tracing_configuration()), flat
        ranks = tuple(len(leaf.shape) for leaf in leaves)
        open_sizes = self._open_sizes((tree, ranks), partial(self._find_open_sizes, tree, leaves))
        leaves = tuple(map(_leave_open, leaves, open_sizes))
        return Signature(tree, leaves, tracing_configuration()), flat

    def specifications(self, tree: Any, leaves: Sequence[LeafSpec]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments to trace with: pytrees of `jax.ShapeDtypeStruct`, in one symbolic scope."""
        specs = leaves if self._are_known(leaves) else self._symbolic(tree, leaves)
        with_weak_types = [
            jax.ShapeDtypeStruct(spec.shape, spec.dtype, weak_type=leaf.weak_type)
            for spec, leaf in zip(specs, leaves, strict=True)
        ]
        specified: tuple[tuple[Any, ...], dict[str, Any]] = jax.tree.unflatten(tree, with_weak_types)
        return specified

    def _find_open_sizes(self, tree: Any, leaves: Sequence[LeafSpec]) -> tuple[tuple[bool, ...], ...]:
        specs = jax.tree.leaves(self.specifications(tree, leaves))
        return tuple(tuple(map(is_symbolic_dim, spec.shape)) for spec in specs)

    def _are_known(self, leaves: Sequence[LeafSpec]) -> bool:
        """Whether all sizes are those of the arguments, and the user gave no shapes or constraints."""
        has_polymorphic = self.polymorphic_shapes is not None or self.polymorphic_constraints
        return not has_polymorphic and all(None not in leaf.shape for leaf in leaves)

    def _symbolic(self, tree: Any, leaves: Sequence[LeafSpec]) -> list[Any]:
        """The leaves with the shapes that the polymorphic shapes say; these apply to positional arguments only."""
        _refuse_unknown_keywords(tree, leaves)
        args, kwargs = jax.tree.unflatten(tree, leaves)
        _refuse_shapes_of_keywords(self.polymorphic_shapes, args, kwargs)
        args = symbolic_args_specs(args, self.polymorphic_shapes, constraints=self.polymorphic_constraints)
        return jax.tree.leaves((args, symbolic_args_specs(kwargs, None)))


def _refuse_unknown_keywords(tree: Any, leaves: Sequence[LeafSpec]) -> None:
    """Refuses sizes of keyword arguments that TensorFlow does not know: nothing can say what they may be."""
    for index, leaf in enumerate(leaves):
        if None in leaf.shape and not (path := _path(tree, index)).startswith("args["):
            raise ShapeSpecError(
                f"{path} has shape {leaf.shape}, of unknown size, and polymorphic_shapes apply to positional "
                "arguments only\n  remedy: pass it by position"
            )


def _refuse_shapes_of_keywords(polymorphic_shapes: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Refuses more shapes than positional arguments where further arguments are passed by name."""
    if not kwargs or not isinstance(polymorphic_shapes, list | tuple) or len(polymorphic_shapes) <= len(args):
        return
    names = ", ".join(f"'{name}'" for name in kwargs)
    raise ShapeSpecError(
        f"polymorphic_shapes has {len(polymorphic_shapes)} entries and applies to positional arguments only; the call "
        f"passes {len(args)} by position, and {names} by name\n  remedy: pass {names} by position"
    )


def _leave_open(leaf: LeafSpec, open_sizes: tuple[bool, ...]) -> LeafSpec:
    if not any(open_sizes):
        return leaf
    shape = tuple(None if is_open else size for size, is_open in zip(leaf.shape, open_sizes, strict=True))
    return LeafSpec(shape, leaf.dtype, leaf.weak_type)


def leaf_spec(value: Any, path: Callable[[], str]) -> LeafSpec:
    """Shape and dtype of a flat argument, as JAX sees it.

    Args:
      value: The argument.
      path: Returns its path, for the message of an error; not called otherwise.

    Raises:
      ArgumentTypeError: It is not numeric, of unknown rank, or a Python integer too large for JAX.
      ConversionStateError: It is a value of a JAX transformation in progress.
    """
    # By exact type: NumPy's float64 is a Python float too, and has a dtype of its own.
    if type(value) in (bool, int, float, complex):
        dtype = _jax.python_scalar_dtype(value)
        if type(value) is int and not np.iinfo(dtype).min <= value <= np.iinfo(dtype).max:
            raise ArgumentTypeError(
                f"{path()} is {value}, too large for {dtype}, the dtype that JAX gives a Python integer\n"
                "  remedy: turn on jax_enable_x64, pass a float, or an array of the dtype that you want"
            )
        return LeafSpec((), dtype, weak_type=True)
    if isinstance(value, WeakVariable):
        return replace(leaf_spec(value.variable, path), weak_type=True)
    if isinstance(value, tf.Tensor | tf.Variable):
        dtype = _jax.canonical_dtype(numpy_dtype(value, path))
        if value.shape.rank is None:
            raise ArgumentTypeError(
                f"{path()} has an unknown rank; JAX needs to know the number of axes\n"
                "  remedy: give the tf.function an input_signature with a shape such as [None, 28, 28]"
            )
        return LeafSpec(tuple(value.shape.as_list()), dtype)
    if _jax.is_tracer(value):
        raise ConversionStateError(
            "convert must be used outside all JAX transformations: "
            f"{path()} is a value of a JAX transformation in progress, {value}\n"
            "  remedy: call the JAX function itself there; convert what jit, grad or vmap returns"
        )
    dtype = _jax.canonical_dtype(numpy_dtype(value, path))
    refuse_specification(value, path)
    return LeafSpec(tuple(np.shape(value)), dtype, weak_type=isinstance(value, jax.Array) and _jax.is_weak(value))


def _path(tree: Any, index: int) -> str:
    """The address of a flat argument as the caller would write it, also in containers of `tf.Module`."""
    indices, plain = jax.tree.flatten(plain_containers(jax.tree.unflatten(tree, range(tree.num_leaves))))
    return argument_paths(plain)[indices.index(index)]
