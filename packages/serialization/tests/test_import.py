"""What importing the package costs, and that it needs no JAX."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import jaxtf.serialization


def test_importing_the_package_loads_neither_jax_nor_tensorflow():
    program = (
        "import sys, jaxtf.serialization\n"
        "print(sorted({'jax', 'jaxlib', 'tensorflow'} & {name.split('.')[0] for name in sys.modules}))"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_the_names_for_type_checkers_are_those_that_are_imported():
    tree = ast.parse(Path(jaxtf.serialization.__file__).read_text())
    [for_checkers] = [node for node in tree.body if isinstance(node, ast.If)]
    imported = {
        alias.name: node.module.removeprefix("jaxtf.serialization.")
        for node in for_checkers.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert imported == jaxtf.serialization._MODULES
    assert sorted(imported) == sorted(jaxtf.serialization.__all__)


def test_every_public_name_is_there():
    for name in jaxtf.serialization.__all__:
        assert getattr(jaxtf.serialization, name) is not None
    assert set(jaxtf.serialization.__all__) <= set(dir(jaxtf.serialization))
    with pytest.raises(AttributeError, match=r"module 'jaxtf.serialization' has no attribute 'exports'"):
        jaxtf.serialization.exports  # noqa: B018
