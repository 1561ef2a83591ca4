"""Functions of another framework that a module calls by name, and that are kept next to it.

A custom call `tf.call_tf_function` says which function it calls by `called_name` in its attribute
`tf.backend_config`. Whoever lowers to such a call has a `CalledFunction` of that name in its equation: the attribute
`called_function` of a parameter; or lowers the equation by a function of JAX (`lowers_by`) that has such equations. The
exporter gathers them from the jaxpr, so that it is of no account which
lowerings JAX has cached, and numbers the calls in the module as the consumer wants it: `called_index`.

Knows nothing of the functions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["CalledFunction"]


@dataclass(frozen=True)
class CalledFunction:
    """A function that a module calls by its name.

    Attributes:
      name: Unique in this process.
      value: The function; for TensorFlow its concrete function.
    """

    name: str
    value: Any
