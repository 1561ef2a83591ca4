"""A choice between an array and itself, as JAX writes it before a branch of `jax.vmap(jax.lax.cond)`.

There the elements for which another branch is taken are, in JAX, `jax.lax.stop_gradient` of the same array: a module
does not have that. Their cotangent is 0, but where it was multiplied with an infinite derivative: it is NaN, and counts
as 0 too. So it does where a module chooses between an array and itself for another reason, and the derivative is NaN.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jax import lax
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from jaxtf.serialization._jax_values.varying import vary_alike

__all__ = ["guarded"]


def guarded(condition: Any, operand: Any) -> Any:
    """The operand, of floating point, of whose cotangent NaN counts as 0 where the condition does not hold.

    Args:
      condition: Of the operand's shape, or a scalar.
      operand: An array.
    """
    return _guarded_p.bind(*vary_alike([condition, operand]))


def _jvp(primals: Any, tangents: Any) -> tuple[Any, Any]:
    (condition, operand), (_, tangent) = primals, tangents
    moved = tangent if isinstance(tangent, ad.Zero) else _guarded_p.bind(condition, tangent)
    return _guarded_p.bind(condition, operand), moved


def _transpose(cotangent: Any, condition: Any, operand: Any) -> tuple[None, Any]:
    if isinstance(cotangent, ad.Zero):
        return None, ad.Zero(operand.aval)
    is_kept = lax.bitwise_or(_in_shape(condition, cotangent), lax.eq(cotangent, cotangent))
    return None, lax.select(is_kept, cotangent, lax.full_like(cotangent, 0))


def _in_shape(condition: Any, array: Any) -> Any:
    return condition if condition.shape == array.shape else lax.broadcast(condition, array.shape)


def _batch(operands: Any, axes: Any) -> tuple[Any, int]:
    [size] = {x.shape[axis] for x, axis in zip(operands, axes, strict=True) if axis is not None}
    condition, operand = (
        lax.broadcast(x, (size,)) if axis is None else jnp.moveaxis(x, axis, 0)
        for x, axis in zip(operands, axes, strict=True)
    )
    if condition.ndim != operand.ndim:  # it was a scalar
        condition = lax.broadcast_in_dim(condition, operand.shape, (0,))
    return _guarded_p.bind(condition, operand), 0


_guarded_p = Primitive("jaxtf_guarded")
_guarded_p.def_impl(lambda condition, operand: operand)
_guarded_p.def_abstract_eval(lambda condition, operand: operand)
ad.primitive_jvps[_guarded_p] = _jvp
ad.primitive_transposes[_guarded_p] = _transpose
batching.primitive_batchers[_guarded_p] = _batch
# As the choice that it is: it marks a module that is lifted again or differentiated by tapes. Compilers leave it out.
mlir.register_lowering(
    _guarded_p, mlir.lower_fun(lambda condition, operand: lax.select(condition, operand, operand), False)
)
