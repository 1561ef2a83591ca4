"""What `jax.jit` makes of a callable, whatever the callable is.

JAX keeps what it traced by the callable: it must be hashable, and two that are equal are one to it. Instances of
classes that compare by value (Equinox's modules, Flax's bound ones) are not hashable where they hold arrays, or equal
to others with other arrays. Here each is itself, by a function around it. So is any callable while JAX is set to make
other random keys than by default (`jax.default_prng_impl`): by such settings JAX does not keep what it traced.

Arguments that are static in a function that was given to `jax.jit` stay so where a method or a `functools.partial`
fixes others of its arguments.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from types import MethodType
from typing import Any

import jax

from jaxtf.serialization import _jax

__all__ = ["as_jitted", "static_parameters"]

_JITTED = type(jax.jit(abs))
_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def as_jitted(fun: Callable[..., Any]) -> Any:
    """The result of `jax.jit` for a callable: the callable itself, if it is one."""
    # By its type: a method of which `jax.jit` made the function has that one's attributes, for arguments with `self`.
    if isinstance(fun, _JITTED):
        return fun
    return _jax.jitted(_by_identity(fun), *static_parameters(fun))


def static_parameters(fun: Callable[..., Any]) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """The positions and names of the arguments of a call that are static in what `jax.jit` made.

    Positions below zero count from the last positional argument of a call. There are none for a callable that is
    neither the result of `jax.jit` nor a method or a `functools.partial` of one.
    """
    if isinstance(fun, _JITTED):
        return _jax.static_parameters(fun)
    if isinstance(fun, MethodType):
        return _without_bound(fun, fun.__func__, 1)
    if isinstance(fun, functools.partial):
        return _without_bound(fun, fun.func, len(fun.args))
    return (), ()


def _without_bound(
    outer: Callable[..., Any], inner: Callable[..., Any], bound: int
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """The static arguments of `inner` that a call of `outer` may pass; `outer` fixes so many of the first."""
    positions, names = static_parameters(inner)
    left = tuple(position - bound if position >= 0 else position for position in positions if not 0 <= position < bound)
    try:
        parameters = inspect.signature(outer).parameters
    except (TypeError, ValueError):
        return left, names
    kinds = [parameter.kind for parameter in parameters.values()]
    end = float("inf") if inspect.Parameter.VAR_POSITIONAL in kinds else sum(kind in _POSITIONAL for kind in kinds)
    takes_any_name = inspect.Parameter.VAR_KEYWORD in kinds
    return (
        tuple(position for position in left if -end <= position < end),
        tuple(name for name in names if name in parameters or takes_any_name),
    )


def _by_identity(fun: Callable[..., Any]) -> Callable[..., Any]:
    """A callable that is equal to itself only, with the signature of `fun` and a name."""
    named: Any = fun
    while isinstance(named, functools.partial):
        named = named.func
    name = getattr(named, "__name__", None)
    is_named = name is not None or isinstance(fun, functools.partial)
    if _is_equal_to_itself_only(fun) and is_named and _jax.makes_default_keys():
        return fun

    def call(*args: Any, **kwargs: Any) -> Any:
        return fun(*args, **kwargs)

    call.__name__ = call.__qualname__ = name if isinstance(name, str) else type(named).__name__
    call.__wrapped__ = fun  # type: ignore[attr-defined]  # Python and JAX find the parameters there
    return call


def _is_equal_to_itself_only(fun: object) -> bool:
    inherited: object = object.__hash__
    return isinstance(fun, MethodType) or type(fun).__hash__ is inherited
