"""The refusal of what needs JAX, where it is not installed: artifacts are read, described and written without it."""

from __future__ import annotations

from jaxtf.shapepoly import JaxRequiredError

__all__ = ["JaxRequiredError", "require_jax"]


def require_jax(wanted: str) -> None:
    """Refuses `wanted`, the name of what was asked for, where JAX cannot be imported.

    Raises:
      JaxRequiredError: JAX cannot be imported; an `ImportError`.
    """
    try:
        import jax  # noqa: F401
    except ImportError as error:
        raise JaxRequiredError(
            f"{wanted} needs JAX, which cannot be imported here: {error}\n"
            '  remedy: pip install "jaxtf-serialization[jax]"'
        ) from error
