"""The page for users of jax2tf names each public name of theirs, and what it sends them to exists."""

import re
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

PAGE = (Path(__file__).parents[1] / "docs" / "migration.md").read_text()
NAMES = PAGE[PAGE.index("## Name by name") : PAGE.index("## What behaves differently")]


@pytest.mark.parametrize("module", ["jax.export", "jax.experimental.jax2tf"])
def test_every_public_name_is_there(module):
    upstream = import_module(module)
    public = {name: value for name, value in vars(upstream).items() if not name.startswith("_")}
    names = [name for name, value in public.items() if not isinstance(value, ModuleType)]
    assert names
    assert [name for name in names if not re.search(rf"`[\w.]*\b{name}`", NAMES)] == []


def test_what_they_become_exists():
    said = re.findall(r"Of the same name in `(jaxtf\.\w+)`: (.*?)\.$", NAMES, re.DOTALL | re.MULTILINE)
    assert said
    for package, names in said:
        assert [name for name in re.findall(r"`(\w+)`", names) if not hasattr(import_module(package), name)] == []
    lines = [line.split("|")[1:3] for line in NAMES.splitlines() if line.startswith("| ")]
    for was, becomes in lines:
        names = re.findall(r"`(?:[\w.]+\.)?(\w+)`", was if "the same" in becomes else "")
        for package in re.findall(r"`(jaxtf\.\w+)`", becomes):
            assert [name for name in names if not hasattr(import_module(package), name)] == []
        for package, name in re.findall(r"`(jaxtf\.\w+)\.(\w+)`", becomes):
            assert hasattr(import_module(package), name)
