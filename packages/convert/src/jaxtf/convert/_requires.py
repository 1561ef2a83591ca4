"""The refusal of what needs JAX, where it is not installed: the package itself is imported without it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jaxtf.shapepoly import JaxRequiredError

__all__ = ["refusing", "require_jax"]


def require_jax(wanted: str) -> None:
    """Refuses `wanted`, the name of what was asked for, where JAX cannot be imported.

    Raises:
      JaxRequiredError: JAX cannot be imported; an `ImportError`.
    """
    try:
        import jax  # noqa: F401
    except ImportError as error:
        raise JaxRequiredError(
            f'{wanted} needs JAX, which cannot be imported here: {error}\n  remedy: pip install "jaxtf-convert[jax]"'
        ) from error


def refusing(wanted: str, error: ImportError, *, needs_jax: bool) -> Callable[..., Any]:
    """What takes the place of a function whose module cannot be imported here: called, it says what is missing.

    Args:
      wanted: Its name.
      error: Why its module cannot be imported.
      needs_jax: Whether it may be JAX that is missing.
    """

    def refuse(*args: Any, **kwargs: Any) -> Any:
        if needs_jax:
            require_jax(wanted)
        raise error

    return refuse
