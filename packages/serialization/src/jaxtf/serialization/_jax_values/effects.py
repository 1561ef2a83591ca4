"""Effects between JAX's objects and our records, which have the name of a class. Imports JAX."""

from __future__ import annotations

from typing import Any

from jaxtf.serialization import _jax
from jaxtf.serialization._errors import ArtifactError
from jaxtf.serialization._record.effects import Effect

__all__ = ["from_effect", "to_effect"]


def to_effect(effect: Any) -> Effect:
    """Our form of an effect: its class's name, which lasts, and the object."""
    return Effect(str(type(effect)), effect)


def from_effect(effect: Effect) -> Any:
    """JAX's object of an effect, found by its name among the classes of effects of this process.

    Raises:
      ArtifactError: There is no such class, or it cannot be made without arguments.
    """
    if effect.value is not None:
        return effect.value
    # A dataclass with slots takes the place of the class it decorates, which may linger: the later one is in use.
    for known in reversed(_jax.effect_classes()):
        if str(known) == effect.name:
            return _effect_of(known)
    raise ArtifactError(
        f"the exported function has the effect {effect}, a class that this process does not have\n"
        "  remedy: import the module that defines it before calling the function"
    )


def _effect_of(known: type[Any]) -> Any:
    try:
        return known()
    except TypeError as error:
        raise ArtifactError(
            f"the exported function has an effect of {known}, which cannot be made without arguments: {error}"
        ) from error
