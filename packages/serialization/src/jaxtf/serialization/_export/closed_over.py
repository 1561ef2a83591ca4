"""Large arrays that a function closes over, as arguments of it. Imports JAX.

Tracing finds them: they are the constants of the jaxpr, and of jaxprs of `jit` at any depth. What closes over them
becomes a function that takes them too, so that they are not in its module. Small arrays stay there, where the compiler
can fold them; and an array stays everywhere if it is in the body of an operation that is not rewritten.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from types import FunctionType, MethodType
from typing import Any

import jax
import numpy as np
from jax.extend.core import ClosedJaxpr

from jaxtf.serialization import _jax
from jaxtf.serialization._export.constants import is_large, large_constants, large_in, memory_of
from jaxtf.serialization._export.replaced import Replacing, not_rewritten

__all__ = ["ClosedOver", "closed_over", "parts_left", "paths_in_closure"]

_DEEPEST = 4
"""How many functions one in the other are looked into for the names of arrays."""


@dataclass(frozen=True)
class ClosedOver:
    """The large arrays that a traced function closes over.

    Attributes:
      jaxpr: Of the function.
      arrays: The arrays, each once.
      least_bytes: From how many bytes on an array is large.
      left: The equations in whose bodies there are arrays that stay there, each with the first of these.
    """

    jaxpr: ClosedJaxpr
    arrays: tuple[Any, ...]
    least_bytes: int
    left: tuple[tuple[Any, Any], ...]

    def evaluate(
        self,
        arguments: Sequence[Any],
        arrays: Sequence[Any],
        refused: Callable[[str, Any, Any], Exception] | None = None,
    ) -> Sequence[Any]:
        """The flat results of the function, for flat arguments and other values for the arrays.

        `refused` is as for `Replacing`; without it, derivatives by what functions with rules close over are left out.
        """
        keys = map(memory_of, self.arrays)
        values = dict(zip(keys, arrays, strict=True))
        return Replacing(values, self.least_bytes, refused).results(self.jaxpr, arguments)


def parts_left(large: ClosedOver) -> list[tuple[Any, Any]]:
    """Small arrays of NumPy that stay and are in the memory of one that is taken out, each with that one."""
    whole = [np.asarray(array) for array in large.arrays if isinstance(array, np.ndarray)]
    constants = large_constants(large.jaxpr, 1) if whole else ()
    small = [array for array in constants if isinstance(array, np.ndarray) and not is_large(array, large.least_bytes)]
    return [(array, part) for part in small for array in whole if np.may_share_memory(array, part)]


def closed_over(traced: Any, argument_count: int, least_bytes: int) -> ClosedOver | None:
    """The arrays of so many bytes that a traced function closes over.

    None where there are none, or where the jaxpr is not all there is of the function: static arguments, shardings,
    effects or donation.
    """
    if len(traced.jaxpr.in_avals) != argument_count or traced.jaxpr.effects or _jax.has_shardings(traced):
        return None
    distinct = {memory_of(array): array for array in large_constants(traced.jaxpr, least_bytes)}
    if not distinct:
        return None
    left = []
    for equation in not_rewritten(traced.jaxpr):
        held = {memory_of(array): array for array in large_in(equation, least_bytes)}
        left += [(equation, array) for array in list(held.values())[:1]]
        distinct = {key: array for key, array in distinct.items() if key not in held}
    return ClosedOver(traced.jaxpr, tuple(distinct.values()), least_bytes, tuple(left))


# Names


def paths_in_closure(fun: Callable[..., Any], arrays: Sequence[Any]) -> list[str]:
    """Where each array is among what a function closes over: `.params['dense']['kernel']`; `.constant_3` if nowhere.

    Looked for by variables of enclosing functions and of the module, arguments that a `functools.partial` fixes,
    attributes of objects, and in functions among those, but not in those of JAX and NumPy.
    """
    wanted = {(array.shape, array.dtype) for array in arrays}
    found: dict[Hashable, str] = {}
    for path, leaf in _leaves_of(fun, "", set(), _DEEPEST):
        if (getattr(leaf, "shape", None), getattr(leaf, "dtype", None)) in wanted:
            found.setdefault(memory_of(leaf), path)
    return [found.get(memory_of(array), f".constant_{number}") for number, array in enumerate(arrays)]


def _leaves_of(value: Any, path: str, seen: set[int], deepest: int) -> Iterator[tuple[str, Any]]:
    """Paths and leaves of a value, and of what the functions and objects among them hold."""
    try:
        flat, _ = jax.tree_util.tree_flatten_with_path(value)
    except (TypeError, ValueError):  # keys that cannot be compared, or a class that does not flatten
        return
    for keys, leaf in flat:
        here = path + jax.tree_util.keystr(keys)
        if hasattr(leaf, "shape"):
            yield here, leaf
        elif deepest and id(leaf) not in seen:
            seen.add(id(leaf))
            # A variable is called as in the function; the name of the function is of no account.
            outer = path.rpartition(".")[0] if isinstance(_function_of(leaf), FunctionType) else here
            for name, inner in _held_by(leaf).items():
                yield from _leaves_of(inner, f"{outer}.{name}", seen, deepest - 1)


def _function_of(value: Any) -> Any:
    return inspect.unwrap(value) if callable(value) else value


def _held_by(value: Any) -> dict[str, Any]:
    """What a function or an object of the user holds, by name."""
    if isinstance(value, functools.partial):
        return {"func": value.func, "args": value.args, **value.keywords}
    if isinstance(value, MethodType):
        return {"self": value.__self__}
    function = _function_of(value)
    if isinstance(value, type) or inspect.ismodule(value) or _package(function) in ("jax", "jaxlib", "numpy"):
        return {}
    if isinstance(function, FunctionType):
        variables = inspect.getclosurevars(function)
        return {**variables.globals, **variables.nonlocals}
    return dict(vars(value)) if hasattr(value, "__dict__") else {}


def _package(value: Any) -> str:
    """The package of a function, or of the class of an object."""
    module = getattr(value, "__module__", None) or ""
    return str(module).partition(".")[0]
