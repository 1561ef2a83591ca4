"""What is verified: a JAX function with the shapes of its arguments, or an exported one."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import tensorflow as tf

from jaxtf.convert._convert.callables import check_function
from jaxtf.convert._errors import ConversionOptionError, FunctionTypeError
from jaxtf.serialization import Exported, deserialize, export
from jaxtf.serialization.interop import as_jitted, static_parameters
from jaxtf.shapepoly import is_symbolic_dim, symbolic_shape

__all__ = ["Subject", "make_subject", "of_function"]


@dataclass(frozen=True)
class Subject:
    """What is verified.

    Attributes:
      exported: The artifact, or the function exported as a user exports it.
      function: The JAX function; None for an artifact, which is its own authority.
      specs: The specifications of its positional arguments; none for an artifact.
      no_gradient: Why it has no gradient in reverse mode; empty if it has one.
    """

    exported: Exported
    function: Callable[..., Any] | None
    specs: tuple[Any, ...]
    no_gradient: str

    def in_jax(self) -> Callable[..., list[Any]]:
        """The JAX function on flat arguments, to flat results."""
        jitted = as_jitted(self.function if self.function is not None else self.exported.call)

        def flat(*arguments: Any) -> list[Any]:
            args, kwargs = jax.tree.unflatten(self.exported.in_tree, arguments)
            return jax.tree.leaves(jitted(*args, **kwargs))

        return flat

    def polymorphic_shapes(self) -> Any:
        """The shapes as `convert` takes them: texts in the structure of the arguments; None if all sizes are known."""
        if not any(map(is_symbolic_dim, self._sizes())):
            return None
        return jax.tree.map(_text, self.specs)

    def polymorphic_constraints(self) -> list[str]:
        """The constraints as `convert` takes them: those that say more than the shapes, which are in normal form."""
        scopes = [size.scope for size in self._sizes() if is_symbolic_dim(size)]
        if not scopes:
            return []
        differences = ((c, symbolic_shape(c.difference_text, scope=scopes[0])[0]) for c in scopes[0].constraints)
        return [f"{difference} {c.relation} 0" for c, difference in differences if is_symbolic_dim(difference)]

    def _sizes(self) -> list[Any]:
        return [size for leaf in jax.tree.leaves(self.specs) for size in getattr(leaf, "shape", ())]


def make_subject(target: Any, specs: tuple[Any, ...]) -> Subject:
    """The subject that a caller of `verify` names.

    Raises:
      FunctionTypeError: Neither a JAX function, nor exported, nor the bytes of an artifact.
      ConversionOptionError: Specifications for a target that has its own, or of TensorFlow.
    """
    if isinstance(target, bytes | bytearray | memoryview):
        target = deserialize(target)
    if isinstance(target, Exported):
        if specs:
            raise ConversionOptionError("verify takes no shapes with an exported function: it has its own")
        return Subject(target, None, (), _no_gradient(target))
    if not callable(target):
        remedy = "\n  remedy: read the file first: pathlib.Path(path).read_bytes()"
        raise FunctionTypeError(
            f"verify needs a JAX function, an Exported or the bytes of an artifact, found {type(target).__name__}"
            + (remedy if isinstance(target, str | os.PathLike) else "")
        )
    check_function(target, "verify")
    _refuse_values_of_tensorflow(specs)
    return of_function(*_without_static(target, specs))


def _refuse_values_of_tensorflow(specs: tuple[Any, ...]) -> None:
    for path, leaf in jax.tree_util.tree_flatten_with_path(specs)[0]:
        if isinstance(leaf, tf.TypeSpec | tf.Tensor | tf.Variable):
            raise ConversionOptionError(
                f"verify needs specifications of JAX, and specs{jax.tree_util.keystr(path)} is a "
                f"{type(leaf).__name__}: {leaf!r:.80}\n"
                "  remedy: jax.ShapeDtypeStruct((3,), jnp.float32), open sizes by jaxtf.shapepoly.symbolic_shape"
            )


def _without_static(function: Callable[..., Any], specs: tuple[Any, ...]) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """The function of its arrays alone, and their specifications: values of what is static are fixed."""
    positions, _ = static_parameters(function)
    static = {position % len(specs) for position in positions if -len(specs) <= position < len(specs)}
    if not static:
        return function, specs

    def of_arrays(*arrays: Any) -> Any:
        rest = iter(arrays)
        return function(*(spec if place in static else next(rest) for place, spec in enumerate(specs)))

    of_arrays.__name__ = of_arrays.__qualname__ = getattr(function, "__name__", "function")
    return of_arrays, tuple(spec for place, spec in enumerate(specs) if place not in static)


def of_function(function: Callable[..., Any], specs: tuple[Any, ...], *, has_gradient: bool = True) -> Subject:
    """The subject that a JAX function is, with the specifications of its positional arguments.

    Args:
      function: The JAX function.
      specs: The specifications.
      has_gradient: Whether gradients are of interest.
    """
    exported = export(function)(*specs)
    return Subject(exported, function, specs, _no_gradient(exported) if has_gradient else "not of interest")


def _text(spec: Any) -> str:
    """The shape of a specification as a text."""
    return f"({', '.join(map(str, spec.shape))}{',' if len(spec.shape) == 1 else ''})"


def _no_gradient(exported: Exported) -> str:
    """What JAX says where it cannot differentiate a function, or that an artifact carries no VJP."""
    if not exported.has_vjp():
        return "the artifact carries no VJP"
    try:
        exported.vjp()
    except Exception as error:  # whatever JAX raises for the function at hand
        return f"JAX: {type(error).__name__}: {error}".splitlines()[0]
    return ""
