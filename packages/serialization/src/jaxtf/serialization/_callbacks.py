"""Which primitives of a traced function call back into the Python process that traced it.

Knows jaxprs by their shape (equations with a primitive and parameters). Imports JAX when a function is called.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

__all__ = ["callback_names", "equations"]


def callback_names(jaxpr: Any) -> tuple[str, ...]:
    """What the user wrote for each kind of callback in a jaxpr, each once, in the order they occur."""
    from jaxtf.serialization._jax import CALLBACKS

    names = dict.fromkeys(equation.primitive.name for equation in equations(jaxpr))
    return tuple(CALLBACKS.get(name, name) for name in names if name in CALLBACKS or "callback" in name)


def equations(value: Any) -> Iterator[Any]:
    """All equations of a jaxpr and of the jaxprs among the parameters of its equations."""
    value = getattr(value, "jaxpr", value)
    for equation in getattr(value, "eqns", ()):
        yield equation
        for parameter in equation.params.values():
            for item in parameter if isinstance(parameter, tuple | list) else (parameter,):
                yield from equations(item)
