"""Effects between JAX's objects and our records, which have the name of a class. Imports JAX."""

from __future__ import annotations

import itertools
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
        f"  remedy: import {_module(effect)} before calling the function"
    )


def _module(effect: Effect) -> str:
    """What to import for an effect: the module that defines its class, or the package that has it as a private part."""
    *parts, _ = str(effect).split(".")
    public = list(itertools.takewhile(lambda part: part.isidentifier() and not part.startswith("_"), parts))
    return ".".join(public) or "the module that defines it"


def _effect_of(known: type[Any]) -> Any:
    try:
        return known()
    except TypeError as error:
        raise ArtifactError(
            f"the exported function has an effect of {known}, which cannot be made without arguments: {error}"
        ) from error
