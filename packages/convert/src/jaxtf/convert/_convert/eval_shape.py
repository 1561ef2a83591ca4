"""Shapes of results under polymorphic shapes, without converting or running anything."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax

from jaxtf.shapepoly import symbolic_args_specs

__all__ = ["eval_polymorphic_shape"]


def eval_polymorphic_shape(
    fun_jax: Callable[..., Any],
    *,
    polymorphic_shapes: Any = None,
    polymorphic_constraints: list[str] | tuple[str, ...] = (),
) -> Callable[..., tuple[Any, Any]]:
    """A function from argument specifications to the shapes of the results of `fun_jax`.

    Args:
      fun_jax: A JAX function.
      polymorphic_shapes: As for `convert`: a pytree prefix of the positional arguments with shape texts.
      polymorphic_constraints: Constraints between the names in them.

    Returns:
      A function that takes `fun_jax`'s arguments, with arrays replaced by anything that has a shape and
      a dtype, and returns two pytrees of the structure of the result: `jax.ShapeDtypeStruct`s, whose
      sizes may be dimension expressions, and texts that can be given as `polymorphic_shapes` to a
      function of these results.

    Raises:
      JaxRequiredError: JAX is not installed.
      ShapeSpecError: When called: a text cannot be read, or does not fit its argument.

    >>> import jax, jax.numpy as jnp
    >>> matrix = jax.ShapeDtypeStruct((2000, 3000), jnp.float32)
    >>> vectors = jax.ShapeDtypeStruct((3000, 1000), jnp.float32)
    >>> spec, text = eval_polymorphic_shape(jnp.dot, polymorphic_shapes=["a, b", "b, c"])(matrix, vectors)
    >>> spec.shape, text
    ((a, c), '(a, c)')
    >>> eval_polymorphic_shape(jnp.transpose, polymorphic_shapes=[text])(spec)[1]
    '(c, a)'
    """

    def shapes_of(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        specs = symbolic_args_specs(args, polymorphic_shapes, constraints=polymorphic_constraints)
        result = jax.eval_shape(fun_jax, *specs, **symbolic_args_specs(kwargs, None))
        return result, jax.tree.map(lambda spec: _text(spec.shape), result)

    return shapes_of


def _text(shape: Sequence[Any]) -> str:
    return f"({', '.join(map(str, shape))})"
