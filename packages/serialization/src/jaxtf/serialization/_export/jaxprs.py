"""What a jaxpr has: its equations, the primitives that call back into Python, the functions called by name.

Knows jaxprs by their shape (equations with a primitive and parameters). Imports JAX.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
from jax.core import Tracer

from jaxtf.serialization._export.constants import items_of
from jaxtf.serialization._export.fitting import ComputedSizes
from jaxtf.serialization._jax import CALLBACKS, equation_frames
from jaxtf.serialization._record.called import CalledFunction
from jaxtf.serialization._record.locations import users_line
from jaxtf.shapepoly import is_symbolic_dim

__all__ = [
    "callback_names",
    "called_functions",
    "equation_line",
    "equations",
    "has_values_of_other_traces",
    "is_callback",
    "is_check_of_equinox",
    "is_within_equinox",
    "lowers_by",
    "sizes_in",
]


def callback_names(jaxpr: Any) -> tuple[str, ...]:
    """What the user wrote for each kind of callback in a jaxpr, each once, in the order they occur."""
    names = dict.fromkeys(equation.primitive.name for equation in equations(jaxpr))
    return tuple(CALLBACKS.get(name, name) for name in names if _calls_back(name))


def is_callback(equation: Any) -> bool:
    """Whether an equation calls back into Python."""
    return _calls_back(equation.primitive.name)


def _calls_back(name: str) -> bool:
    return name in CALLBACKS or "callback" in name


def equation_line(equation: Any) -> str:
    """`file:line` of the innermost frame of the user's program where an equation was traced; empty if not known."""
    return users_line(equation_frames(equation))


def is_check_of_equinox(equation: Any) -> bool:
    """Whether an equation was traced by `eqx.error_if`, which Equinox has in a file of its own."""
    return any(path.endswith("/equinox/_errors.py") for path, _ in equation_frames(equation))


def is_within_equinox(equation: Any) -> bool:
    """Whether an equation was traced by a function that Equinox called, or by Equinox."""
    return any("/equinox/" in path for path, _ in equation_frames(equation))


# Primitives whose equations are lowered as those of a function of JAX are, which is of their operands and parameters.
_LOWERED_BY: dict[Any, Callable[..., Any]] = {}


def lowers_by(primitive: Any, function: Callable[..., Any]) -> None:
    """Has functions that are called by name found in what a primitive is lowered by (`mlir.lower_fun`)."""
    _LOWERED_BY[primitive] = function


def called_functions(jaxpr: Any, names: Sequence[str]) -> tuple[CalledFunction, ...]:
    """The functions of these names among the parameters of the equations of a jaxpr, in the order of the names.

    They are looked for also in what equations are lowered by, which is traced again if a name is still missing.
    """
    found: dict[str, CalledFunction] = {}
    waiting = [jaxpr]
    while waiting and not all(name in found for name in names):
        inner = waiting.pop()
        parameters = [parameter for equation in equations(inner) for parameter in equation.params.values()]
        candidates = [getattr(parameter, "called_function", None) for parameter in parameters]
        found |= {function.name: function for function in candidates if isinstance(function, CalledFunction)}
        waiting += map(_lowered, [equation for equation in equations(inner) if equation.primitive in _LOWERED_BY])
    return tuple(found[name] for name in names)


def _lowered(equation: Any) -> Any:
    """The jaxpr that an equation is lowered by."""
    operands = [jax.ShapeDtypeStruct(x.aval.shape, x.aval.dtype) for x in equation.invars]
    return jax.make_jaxpr(lambda *args: _LOWERED_BY[equation.primitive](*args, **equation.params))(*operands)


def has_values_of_other_traces(jaxpr: Any) -> bool:
    """Whether a constant of a jaxpr, or of those within it, is a value of another trace."""
    items = (item for equation in equations(jaxpr) for item in items_of(equation.params))
    constants = (constant for item in (jaxpr, *items) for constant in getattr(item, "consts", ()))
    return any(isinstance(constant, Tracer) for constant in constants)


_MAKES_ARRAYS = frozenset(
    (
        *("broadcast_in_dim", "iota", "pad", "empty", "random_bits", "random_gamma", "rng_bit_generator"),
        *("rng_uniform", "threefry2x32", "conv_general_dilated", "reduce_window", "reduce_window_sum"),
        *("reduce_window_max", "reduce_window_min"),
    )
)


_RESHAPES = ("reshape", "tile")


def sizes_in(jaxpr: Any) -> ComputedSizes:
    """The symbolic sizes that a jaxpr computes with.

    An array that is computed from others has no larger sizes than these, or as many elements; that says something of
    its sizes only if it has elements.
    """
    numbers: dict[Any, None] = {}
    shapes: dict[Any, None] = {}
    for equation in equations(jaxpr):
        numbers.update(dict.fromkeys(filter(is_symbolic_dim, equation.params.values())))
        name = equation.primitive.name
        for shape in (getattr(result.aval, "shape", ()) for result in equation.outvars):
            if name in _MAKES_ARRAYS or (name in _RESHAPES and _may_be_empty_beside(shape)):
                shapes.update(dict.fromkeys(filter(is_symbolic_dim, shape)))
    return ComputedSizes(tuple(numbers), tuple(shapes))


def _may_be_empty_beside(shape: Sequence[Any]) -> bool:
    """Whether an array may have no elements although one of its sizes is not zero."""
    return len(shape) > 1 and (0 in shape or sum(map(is_symbolic_dim, shape)) > 1)


def equations(value: Any) -> Iterator[Any]:
    """All equations of a jaxpr and of the jaxprs among the parameters of its equations."""
    value = getattr(value, "jaxpr", value)
    for equation in getattr(value, "eqns", ()):
        yield equation
        for item in items_of(equation.params):
            yield from equations(item)
