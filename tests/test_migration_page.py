"""The page for users of jax2tf has a line for each public name of theirs, and what it sends them to exists."""

import re
from importlib import import_module
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[1] / "docs" / "migration.md").read_text()
TABLE = PAGE[PAGE.index("## Name by name") : PAGE.index("## What behaves differently")]


@pytest.mark.parametrize("module", ["jax.export", "jax.experimental.jax2tf"])
def test_every_public_name_has_a_line(module):
    upstream = import_module(module)
    public = [
        name for name in dir(upstream) if not name.startswith("_") and not hasattr(getattr(upstream, name), "__path__")
    ]
    assert public
    assert [name for name in public if not re.search(rf"^\| [^|]*\b{name}\b", TABLE, re.MULTILINE)] == []


def test_what_they_become_exists():
    lines = [line.split("|")[1:3] for line in TABLE.splitlines() if line.startswith("| ")]
    for was, becomes in lines:
        names = re.findall(r"`(?:[\w.]+\.)?(\w+)`", was if "the same" in becomes else "")
        for package in re.findall(r"`(jaxtf\.\w+)`", becomes):
            assert [name for name in names if not hasattr(import_module(package), name)] == []
        for package, name in re.findall(r"`(jaxtf\.\w+)\.(\w+)`", becomes):
            assert hasattr(import_module(package), name)
