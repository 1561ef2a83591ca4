"""Effects, by a name that lasts.

In JAX an effect is an object of a class of its own; an artifact has only the name of the class,
as `str` prints it. A record holds both where it was exported, and only the name where it was
read: the object is found again, among the classes that JAX knows, when the record is called.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

__all__ = ["Effect"]


@dataclass(frozen=True)
class Effect:
    """An effect of an exported function.

    Attributes:
      name: The name of its class in JAX, as `str` prints the class.
      value: JAX's object, if available; two effects are equal if their names are.
    """

    name: str
    value: Any = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return self.name.removeprefix("<class '").removesuffix("'>")
