"""The modules of jax2tf as programs import them, with names of ours: nothing is imported before one is used.

`NAMES` says, for each module, where each of its names is. Of the names in older releases of JAX those are there that
programs use: `shape_poly`, and the library of examples that saves models. Submodules that hold upstream's own
implementation are absent, as programs expect where jax2tf is another one.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

__all__ = ["JAX2TF", "NAMES", "LazyModule", "new_modules"]

JAX2TF = "jax.experimental.jax2tf"

# Module -> name -> the module that has it.
NAMES: Mapping[str, Mapping[str, str]] = {
    JAX2TF: {
        **dict.fromkeys(
            (
                "DEFAULT_NATIVE_SERIALIZATION",
                "DisabledSafetyCheck",
                "PolyShape",
                "convert",
                "dtype_of_val",
                "eval_polymorphic_shape",
                "split_to_logical_devices",
            ),
            "jaxtf.convert",
        ),
        "call_tf": "jaxtf.convert._as_jax2tf.call_tf",
    },
    f"{JAX2TF}.shape_poly": {"PolyShape": "jaxtf.shapepoly"},
    f"{JAX2TF}.examples": {},
    f"{JAX2TF}.examples.saved_model_lib": {"convert_and_save_model": "jaxtf.convert._as_jax2tf.saved_model_lib"},
}


class LazyModule(ModuleType):
    """A module of names that are imported from elsewhere at first use.

    A package without files: what is not in `sys.modules` under its name cannot be imported.

    Args:
      name: Its full name.
      places: Name -> the module that has it.
    """

    def __init__(self, name: str, places: Mapping[str, str]) -> None:
        super().__init__(name, f"jaxtf in the place of {name} (jaxtf.convert.install_as_jax2tf).")
        self.__spec__ = ModuleSpec(name, None, is_package=True)
        self.__package__ = name
        self.__path__: list[str] = []
        self.__all__ = sorted(places)
        self._places = places

    def __getattr__(self, name: str) -> Any:
        place = self._places.get(name)
        if place is None:
            raise AttributeError(
                f"{self.__name__} is that of jaxtf (install_as_jax2tf), which has no {name!r}\n"
                "  remedy: jaxtf's page 'From jax2tf' lists each name of jax2tf, with its replacement"
            )
        value = getattr(importlib.import_module(place), name)
        setattr(self, name, value)
        return value

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._places})


def new_modules() -> dict[str, LazyModule]:
    """The modules by name, each an attribute of the one that it is in."""
    modules = {name: LazyModule(name, places) for name, places in NAMES.items()}
    for name, module in modules.items():
        parent, _, last = name.rpartition(".")
        if parent in modules:
            setattr(modules[parent], last, module)
    return modules
