"""Which primitives of a traced function call back into the Python process that traced it.

Knows jaxprs by their shape (equations with a primitive and parameters); imports nothing of JAX.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

__all__ = ["callback_names", "equations"]

_USER_NAMES = {
    "pure_callback": "jax.pure_callback",
    "io_callback": "jax.experimental.io_callback",
    "debug_callback": "jax.debug.callback or jax.debug.print",
    "debug_print": "jax.debug.print",
}


def callback_names(jaxpr: Any) -> tuple[str, ...]:
    """What the user wrote for each kind of callback in a jaxpr, each once, in the order they occur."""
    names = dict.fromkeys(equation.primitive.name for equation in equations(jaxpr))
    return tuple(_USER_NAMES.get(name, name) for name in names if name in _USER_NAMES or "callback" in name)


def equations(value: Any) -> Iterator[Any]:
    """All equations of a jaxpr and of the jaxprs among the parameters of its equations."""
    value = getattr(value, "jaxpr", value)
    for equation in getattr(value, "eqns", ()):
        yield equation
        for parameter in equation.params.values():
            for item in parameter if isinstance(parameter, tuple | list) else (parameter,):
                yield from equations(item)
