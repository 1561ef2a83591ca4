"""A routine of this folder as a module: they are programs that import each other from their folder."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

__all__ = ["routine"]

FOLDER = Path(__file__).parent


def routine(name: str) -> ModuleType:
    """The program `name.py`, imported anew."""
    specification = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    with pytest.MonkeyPatch.context() as patched:
        patched.syspath_prepend(str(FOLDER))
        specification.loader.exec_module(module)
    return module
