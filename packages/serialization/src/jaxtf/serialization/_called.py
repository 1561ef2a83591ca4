"""Functions of another framework that a module calls by name, and that travel beside it.

A custom call `tf.call_tf_function` says which function it calls by `called_name` in its attribute
`tf.backend_config`. Whoever lowers to such a call has a `CalledFunction` of that name in its equation: the attribute
`called_function` of a parameter. The exporter gathers them from the jaxpr, so that it is of no account which
lowerings JAX has cached, and numbers the calls in the module as the consumer wants it: `called_index`.

Knows jaxprs by their shape; nothing of the functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from jaxtf.serialization._callbacks import equations

__all__ = ["CalledFunction", "called_functions"]


@dataclass(frozen=True)
class CalledFunction:
    """A function that a module calls by its name.

    Attributes:
      name: Unique in this process.
      value: The function; for TensorFlow its concrete function.
    """

    name: str
    value: Any


def called_functions(jaxpr: Any, names: Sequence[str]) -> tuple[CalledFunction, ...]:
    """The functions of these names among the parameters of the equations of a jaxpr, in the order of the names."""
    if not names:
        return ()
    parameters = [parameter for equation in equations(jaxpr) for parameter in equation.params.values()]
    candidates = [getattr(parameter, "called_function", None) for parameter in parameters]
    found = {function.name: function for function in candidates if isinstance(function, CalledFunction)}
    return tuple(found[name] for name in names)
