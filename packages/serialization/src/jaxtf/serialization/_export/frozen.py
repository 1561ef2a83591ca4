"""What a function closes over, as it is when the function is exported. Imports JAX.

JAX closes over an array of NumPy by its memory, which the program may write to later. The module of a function is made
at once and its VJPs on request: a function that is exported is traced to a jaxpr with copies of such arrays, so that
its value and its gradients are of the same numbers. Arrays of JAX are not copied, nor those of NumPy that are read-only
or that nothing else holds.

Does not know what a rule of `jax.custom_vjp` or `jax.custom_jvp` closes over, which JAX traces on request: see
`held_by_rules`.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from jax.extend.core import ClosedJaxpr, Literal

from jaxtf.serialization import _jax
from jaxtf.serialization._export.constants import memory_of

__all__ = ["frozen", "is_writable"]


def frozen(traced: Any, copy: Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]] = np.array) -> Any:
    """A traced function that closes over copies of the arrays that may be written to.

    Args:
      traced: What `trace` returned; it is returned where there is nothing to copy.
      copy: Makes a copy of an array; called once for each.
    """
    jaxpr = _Freezing(copy).jaxpr(traced.jaxpr)
    return traced if jaxpr is traced.jaxpr else _jax.with_jaxpr(traced, jaxpr)


def is_writable(array: Any) -> bool:
    """Whether the program can write to the memory of an array in a jaxpr; JAX has a view there of what is NumPy's."""
    if not isinstance(array, np.ndarray):
        return False
    if not isinstance(array.base, np.ndarray):
        return array.flags.writeable
    # Held by the view alone: made while JAX traced, as what JAX makes of a Python number is.
    if array.base.flags.owndata and sys.getrefcount(array.base) == _OF_VIEW_ALONE:
        return False
    return array.flags.writeable or is_writable(array.base)


_OF_VIEW_ALONE = 2  # the view, and the argument of `getrefcount`


class _Freezing:
    """Jaxprs with copies of arrays, each array and each jaxpr once."""

    def __init__(self, copied: Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]]) -> None:
        self._copy = copied
        self._copies: dict[Any, Any] = {}
        self._jaxprs: dict[int, Any] = {}

    def jaxpr(self, jaxpr: Any) -> Any:
        """A jaxpr, open or closed, that computes with copies; the same one where it closes over nothing writable."""
        if id(jaxpr) not in self._jaxprs:
            self._jaxprs[id(jaxpr)] = self._made(jaxpr)
        return self._jaxprs[id(jaxpr)]

    def _made(self, jaxpr: Any) -> Any:
        closed_over = getattr(jaxpr, "consts", ())
        equations, constants = list(map(self._equation, jaxpr.eqns)), list(map(self._constant, closed_over))
        results = list(map(self._atom, jaxpr.outvars))
        if _are_same((*equations, *constants, *results), (*jaxpr.eqns, *closed_over, *jaxpr.outvars)):
            return jaxpr
        if not isinstance(jaxpr, ClosedJaxpr):
            return jaxpr.replace(eqns=equations, outvars=results)
        return ClosedJaxpr(jaxpr.jaxpr.replace(eqns=equations, outvars=results), constants)

    def _equation(self, equation: Any) -> Any:
        operands = list(map(self._atom, equation.invars))
        parameters = {name: self._parameter(value) for name, value in equation.params.items()}
        if _are_same((*operands, *parameters.values()), (*equation.invars, *equation.params.values())):
            return equation
        return equation.replace(invars=operands, params=parameters)

    def _atom(self, atom: Any) -> Any:
        """An operand: an array without axes is a value there, not a variable."""
        value = atom.val if _jax.is_literal(atom) else None
        constant = self._constant(value)
        return atom if constant is value else Literal(constant, atom.aval)

    def _parameter(self, value: Any) -> Any:
        if hasattr(value, "eqns"):
            return self.jaxpr(value)
        if isinstance(value, dict):
            held = {key: self._parameter(item) for key, item in value.items()}
            return value if _are_same(held.values(), value.values()) else _with_items(value, held)
        if not isinstance(value, tuple | list):
            return value
        items = list(map(self._parameter, value))
        if _are_same(items, value):
            return value
        # Named tuples, as `custom_linear_solve` has, take their fields one by one.
        make = getattr(type(value), "_make", type(value))
        return make(items)

    def _constant(self, value: Any) -> Any:
        if not is_writable(value):
            return value
        key = memory_of(value)
        if key not in self._copies:
            copy = self._copy(np.asarray(value))
            copy.flags.writeable = False
            self._copies[key] = copy.view(type(value))
        return self._copies[key]


def _with_items(value: Any, items: Any) -> Any:
    """A dictionary of the class of another one, with other values."""
    changed = copy.copy(value)
    changed.update(items)
    return changed


def _are_same(left: Any, right: Any) -> bool:
    return all(a is b for a, b in zip(left, right, strict=True))
