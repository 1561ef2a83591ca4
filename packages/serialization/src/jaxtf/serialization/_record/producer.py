"""Which releases exported a function."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Producer"]


@dataclass(frozen=True)
class Producer:
    """The releases that exported a function.

    Attributes:
      jaxtf: Of `jaxtf-serialization`; None where `jax.export` was used instead.
      jax: Of JAX; None in artifacts from before July 2026 that are not ours.
      jaxlib: Of jaxlib; None in artifacts that are not ours.
    """

    jaxtf: str | None = None
    jax: str | None = None
    jaxlib: str | None = None
