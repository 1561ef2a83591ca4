"""The configuration of JAX that a call was made under: everything that what JAX traces depends on.

A TensorFlow function may contain one that was converted from JAX, and the dtypes of its results are those that JAX has.
So a trace is one for the configuration that it was made under. Its derivatives are taken under that one, wherever they
are asked for, as those of JAX's own functions are: JAX has traced these already.

Knows JAX; nothing of TensorFlow.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

from jaxtf.serialization.interop import calling_configuration, tracing_settings

__all__ = ["Configuration"]

_CONFIGURATIONS_KEPT = 64


@dataclass(frozen=True)
class Configuration:
    """Settings of JAX; equal where JAX traces alike.

    Attributes:
      context: What tracing depends on: settings, and the meshes and axes around it.
      settings: Makes a context in which each of these settings is as it is here.
    """

    context: Hashable
    settings: Callable[[], AbstractContextManager[None]] = field(compare=False, repr=False)

    @staticmethod
    def now() -> Configuration:
        """The one that is in force in this thread."""
        return _configuration(calling_configuration())

    def entered(self) -> AbstractContextManager[None]:
        """A context in which these settings are in force; meshes and axes are those around it."""
        return nullcontext() if self.context == calling_configuration() else self.settings()


@functools.lru_cache(_CONFIGURATIONS_KEPT)
def _configuration(context: Hashable) -> Configuration:
    """The one of a context that is in force. It is kept for the context, which all its settings are read from."""
    return Configuration(context, tracing_settings())
