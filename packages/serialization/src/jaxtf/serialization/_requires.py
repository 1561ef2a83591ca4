"""The refusal of what needs JAX, where it is not installed: artifacts are read, described and written without it."""

from __future__ import annotations

from jaxtf.shapepoly import JaxRequiredError

__all__ = ["JaxRequiredError", "require_jax"]


def require_jax(wanted: str, distribution: str = "jaxtf-serialization") -> None:
    """Refuses what needs JAX, where JAX cannot be imported.

    Args:
      wanted: The name of the requested function.
      distribution: What to install with its extra `jax`.

    Raises:
      JaxRequiredError: JAX cannot be imported; an `ImportError`.
    """
    try:
        import jax  # noqa: F401
    except ImportError as error:
        raise JaxRequiredError(
            f'{wanted} needs JAX, which cannot be imported here: {error}\n  remedy: pip install "{distribution}[jax]"'
        ) from error
