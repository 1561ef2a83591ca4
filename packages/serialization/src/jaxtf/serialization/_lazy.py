"""Names of a module that are imported at first use: `__getattr__` and `__dir__` from a table."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["lazy_names"]


def lazy_names(
    namespace: dict[str, Any],
    modules: Mapping[str, str],
    prefix: str = "",
    absent: Callable[[str, ImportError], Any] | None = None,
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The `__getattr__` and `__dir__` of a module.

    Args:
      namespace: What `globals()` gives there; a name is kept in it once it is imported.
      modules: The module of each name.
      prefix: What the names of all these modules begin with.
      absent: The value of a name with a module that cannot be imported here; by default, the error is raised.
    """

    def getattribute(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {namespace['__name__']!r} has no attribute {name!r}")
        try:
            value = getattr(importlib.import_module(prefix + modules[name]), name)
        except ImportError as error:
            if absent is None:
                raise
            value = absent(name, error)
        namespace[name] = value
        return value

    def directory() -> list[str]:
        own = (name for name in namespace if name.startswith("__"))
        return sorted({*modules, *namespace.get("__all__", ()), *own})

    return getattribute, directory
