"""The static arguments of a function that was given to `jax.jit`.

A static argument is a value of Python's, not an array: a call with another one is another signature. It goes through
the conversion in a pytree node without leaves, so that treedefs, which tell signatures apart, hold it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax

from jaxtf.convert._errors import ArgumentTypeError
from jaxtf.serialization.interop import static_parameters

__all__ = ["StaticParameters", "without_marks"]


@jax.tree_util.register_static
@dataclass(frozen=True)
class _Static:
    value: Any
    type: type  # as in JAX, 1 is not True


@dataclass(frozen=True)
class StaticParameters:
    """Which arguments of a function are static.

    Attributes:
      positions: Of positional arguments; those below zero count from the last one of a call.
      names: Of keyword arguments.
    """

    positions: tuple[int, ...]
    names: tuple[str, ...]

    @classmethod
    def of(cls, fun: Callable[..., Any]) -> StaticParameters | None:
        """Those of the result of `jax.jit`, or of a method or a `functools.partial` of it; None if there are none."""
        positions, names = static_parameters(fun)
        return cls(positions, names) if positions or names else None

    def marked(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments of a call, with the static ones as nodes without leaves.

        Raises:
          ArgumentTypeError: A static argument that is not hashable: a tensor, an array, a list.
        """
        static = {position % len(args) for position in self.positions if -len(args) <= position < len(args)}
        by_name = {name: _mark(kwargs[name], f"kwargs[{name!r}]") for name in self.names if name in kwargs}
        by_position = (_mark(value, f"args[{index}]") if index in static else value for index, value in enumerate(args))
        return tuple(by_position), kwargs | by_name


def without_marks(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments as `jax.jit` takes them."""
    return tuple(map(_value, args)), {name: _value(value) for name, value in kwargs.items()}


def _mark(value: Any, path: str) -> _Static:
    try:
        hash(value)
    except TypeError as error:
        raise ArgumentTypeError(
            f"{path} is a static argument of the jax.jit function and must be hashable: found "
            f"{type(value).__name__} ({value!r:.60})\n"
            "  remedy: pass a Python value, such as an int, a str or a tuple of these; for a value that "
            "TensorFlow computes, leave it out of static_argnums and static_argnames"
        ) from error
    return _Static(value, type(value))


def _value(argument: Any) -> Any:
    return argument.value if isinstance(argument, _Static) else argument
