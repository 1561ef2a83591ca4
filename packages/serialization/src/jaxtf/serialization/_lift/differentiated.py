"""Functions of each element that are differentiated as one operation, as JAX's own functions of that kind are.

The derivative is computed before a tangent is multiplied with it. So the rule has to stay with the function: JAX drops
one of `jax.custom_jvp` where it takes a loop apart for reverse mode, and a further derivative is then one of what the
function consists of. A primitive keeps it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
from jax import lax
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from jaxtf.serialization._jax import checked_as
from jaxtf.serialization._jax_values.varying import vary_alike

__all__ = ["differentiated_as_one"]

Function = Callable[[Any], Any]


def differentiated_as_one(function: Function, dtype: Any, alike: Function | None = None) -> Function:
    """A function of each element of an array whose derivative is computed before a tangent is multiplied with it.

    Args:
      function: Of one array of floating point, or of complex numbers; the result has its shape.
      dtype: Of the result.
      alike: A function that has the derivative, if that is not one of the operations of the function.
    """
    slope = _derivative(function if alike is None else alike)
    return partial(_elementwise_p.bind, function=function, slope=slope, dtype=dtype)


def _derivative(function: Function) -> Function:
    def derivative(x: Any) -> Any:
        [x, one] = vary_alike([x, lax.full_like(x, 1)])
        return jax.jvp(function, (x,), (one,))[1]

    return derivative


def _moved(slope: Any, tangent: Any) -> Any:
    return lax.mul(slope, lax.convert_element_type(tangent, slope.dtype))


def _jvp(primals: Any, tangents: Any, *, function: Function, slope: Function, dtype: Any) -> tuple[Any, Any]:
    [x], [tangent] = primals, tangents
    result = _elementwise_p.bind(x, function=function, slope=slope, dtype=dtype)
    moved = _elementwise_p.bind(x, function=slope, slope=_derivative(slope), dtype=dtype)
    return result, _moved(moved, ad.instantiate_zeros(tangent))


def _batch(operands: Any, axes: Any, *, function: Function, slope: Function, dtype: Any) -> tuple[Any, Any]:
    """The sizes that constants are broadcast to are those of one element of the batch."""
    [x], [axis] = operands, axes
    mapped, slopes = (jax.vmap(each, axis, axis) for each in (function, slope))
    return _elementwise_p.bind(x, function=mapped, slope=slopes, dtype=dtype), axis


def _lower(ctx: Any, x: Any, *, function: Function, slope: Function, dtype: Any) -> Any:
    return mlir.lower_fun(function, multiple_results=False)(ctx, x)


_elementwise_p = Primitive("jaxtf_elementwise")
_elementwise_p.def_impl(lambda x, *, function, slope, dtype: function(x))
_elementwise_p.def_abstract_eval(lambda x, *, function, slope, dtype: x.update(dtype=dtype, weak_type=False))
ad.primitive_jvps[_elementwise_p] = _jvp
batching.primitive_batchers[_elementwise_p] = _batch
mlir.register_lowering(_elementwise_p, _lower)
checked_as(_elementwise_p, lambda *, function, slope, dtype: function)
