"""Values as arrays of JAX: constants, and sizes that are known in Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.dtypes
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxtf.serialization._lift.sizes import ELEMENTS, Known, Term

__all__ = ["as_array", "constant", "has_64_bits", "of_arrays"]

_COMPARISONS = ("EQ", "NE", "LT", "LE", "GT", "GE")


def has_64_bits() -> bool:
    """Whether JAX is set to have arrays of 64-bit dtypes."""
    return bool(jax.dtypes.canonicalize_dtype(np.float64) == np.float64)


def constant(value: np.ndarray[Any, Any]) -> Any:
    """A constant; of equal elements, one of them is in the program."""
    if value.size > 1 and not any(value.strides):
        return lax.full(value.shape, value.flat[0], value.dtype)
    return np.asarray(value)


def of_arrays(region: Callable[..., list[Any]]) -> Callable[..., list[Any]]:
    """A region as a function whose results are arrays, constants among them too."""
    return lambda *values: list(map(as_array, region(*values)))


def as_array(value: Any) -> Any:
    """A value as an array that `jax.lax` takes."""
    if not isinstance(value, Known):
        return value
    if value.is_constant:
        return np.array(value.elements.tolist(), value.dtype).reshape(value.shape)  # a list of nothing has no shape
    elements = [lax.reshape(_element(element, value.dtype), (1,)) for element in value.elements.flat]
    return lax.reshape(lax.concatenate(elements, 0), value.shape)


def _element(element: Any, dtype: np.dtype[Any]) -> Any:
    """An element as a scalar."""
    if isinstance(element, Term):
        return _term(element, dtype)
    if isinstance(element, int):
        return np.asarray(element, dtype)
    return lax.convert_element_type(jnp.asarray(element), dtype)  # JAX knows how sizes become arrays


def _term(term: Term, dtype: np.dtype[Any]) -> Any:
    """What an undecided operation gives at run time."""
    integers = np.dtype(np.int32)
    if term.name == "select":
        condition, *choices = term.operands
        return lax.select(_element(condition, np.dtype(np.bool_)), *(_element(choice, dtype) for choice in choices))
    if term.name in _COMPARISONS:
        kind = np.dtype(np.bool_) if any(isinstance(x, bool) for x in term.operands) else integers
        left, right = (_element(x, kind) for x in term.operands)
        return _COMPARED[term.name](left, right)
    return _COMPUTED[term.name](*(_element(x, dtype) for x in term.operands))


_COMPARED = {"EQ": lax.eq, "NE": lax.ne, "LT": lax.lt, "LE": lax.le, "GT": lax.gt, "GE": lax.ge}
_COMPUTED: Mapping[str, Callable[..., Any]] = {
    "abs": lax.abs,
    "add": lax.add,
    "and": lax.bitwise_and,
    "divide": lax.div,
    "maximum": lax.max,
    "minimum": lax.min,
    "multiply": lax.mul,
    "negate": lax.neg,
    "not": lax.bitwise_not,
    "or": lax.bitwise_or,
    "remainder": lax.rem,
    "sign": lax.sign,
    "subtract": lax.sub,
}
assert {*_COMPUTED, "select"} == set(ELEMENTS), "every operation on sizes is one on arrays"
