"""Whether rules of differentiation hold arrays of NumPy that the program may write to. Imports JAX.

JAX traces the rules of `jax.custom_vjp` and `jax.custom_jvp`, and those of its own functions that have some (`odeint`,
`lax.custom_root`), when a derivative is asked for. They are callables among the parameters of an equation; what they
hold is looked for in closures, partials, methods, jaxprs, containers and the attributes of objects that are not JAX's,
and in the variables of the modules of functions that are not.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterable, Iterator
from contextlib import suppress
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import jax
import numpy as np
from jax.core import Tracer

from jaxtf.serialization import _jax
from jaxtf.serialization._export.constants import items_of
from jaxtf.serialization._export.frozen import is_writable

__all__ = ["rules_hold_writable"]

# More than that is not looked at: then an array may be among it.
_MOST_VALUES = 20_000

_ATTRIBUTES_IN_JAX = ("f", "f_transformed", "val", "fun", "jvp", "fwd", "bwd", "__wrapped__")
_LIBRARIES = ("jax", "jaxlib", "numpy")
_EMPTY_IN_JAX = {"DebugInfo", "DynamicJaxprTrace", "EqualStore", "PyTreeDef", "ShapedArray", "Store"}
_WITHOUT_PARTS = (type(None), bool, int, float, complex, str, bytes, type, ModuleType, np.dtype, jax.Array, Tracer)


def rules_hold_writable(jaxpr: Any) -> bool:
    """Whether a rule of an equation of a jaxpr, at any depth, holds an array that may be written to."""
    values, known = [], set[int]()
    jaxprs = [jaxpr]
    while jaxprs:
        inner = jaxprs.pop()
        if id(inner) in known:
            continue
        known.add(id(inner))
        for equation in inner.eqns:
            for item in items_of(equation.params):
                if hasattr(item, "eqns"):
                    jaxprs.append(item)
                elif callable(item) or hasattr(item, "call_wrapped"):  # JAX wraps rules in what is not callable
                    values.append(item)
    return bool(values) and _hold_writable(values)


def _hold_writable(values: list[Any]) -> bool:
    seen: dict[int, Any] = {}  # with the values, so that no other one gets the address of one
    while values:
        value = values.pop()
        if isinstance(value, np.ndarray):
            if is_writable(value):
                return True
        elif not isinstance(value, _WITHOUT_PARTS) and id(value) not in seen:
            seen[id(value)] = value
            if len(seen) > _MOST_VALUES:
                return True
            values.extend(_parts(value))
    return False


def _parts(value: Any) -> Iterator[Any]:
    """What a value holds."""
    if isinstance(value, dict):
        yield from value.values()
    elif type(value).__name__ in _EMPTY_IN_JAX and _package(type(value)) in _LIBRARIES:
        return
    elif isinstance(value, tuple | list | set | frozenset):
        yield from value
    elif hasattr(value, "eqns"):
        yield from getattr(value, "consts", ())
        for equation in value.eqns:
            yield from (atom.val for atom in equation.invars if _jax.is_literal(atom))
            yield equation.params
        yield from (atom.val for atom in getattr(value, "jaxpr", value).outvars if _jax.is_literal(atom))
    elif isinstance(value, functools.partial):
        yield from (value.func, value.args, value.keywords)
    elif isinstance(value, MethodType):
        yield from (value.__self__, value.__func__)
    elif isinstance(value, FunctionType):
        yield from _parts_of_function(value)
    elif _package(type(value)) in _LIBRARIES:
        yield from _attributes(value, _ATTRIBUTES_IN_JAX)
    else:
        names = [name for kind in type(value).__mro__ for name in _slots(kind)]
        yield from _attributes(value, names)
        yield from getattr(value, "__dict__", {}).values()


def _parts_of_function(function: FunctionType) -> Iterator[Any]:
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # nothing is in it yet
            continue
    yield from function.__defaults__ or ()
    yield from (function.__kwdefaults__ or {}).values()
    yield from vars(function).values()
    if _package(function) not in _LIBRARIES:
        variables = function.__globals__
        yield from (variables[name] for name in _names(function.__code__) if name in variables)


def _names(code: CodeType) -> Iterator[str]:
    """The names of global variables in a function and in those within it, and of attributes."""
    yield from code.co_names
    for constant in code.co_consts:
        if inspect.iscode(constant):
            yield from _names(constant)


def _attributes(value: Any, names: Iterable[str]) -> Iterator[Any]:
    for name in names:
        with suppress(Exception):  # it has none, or one that is not to be read yet
            yield getattr(value, name)


def _slots(kind: type) -> tuple[str, ...]:
    slots = vars(kind).get("__slots__", ())
    return (slots,) if isinstance(slots, str) else tuple(slots)


def _package(value: Any) -> str:
    return str(getattr(value, "__module__", None) or "").partition(".")[0]
