"""What importing the package costs, and that it needs no JAX."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import jaxtf.serialization
from jaxtf.serialization import _with_jax, interop


def test_importing_the_package_loads_neither_jax_nor_tensorflow():
    program = (
        "import sys, jaxtf.serialization\n"
        "print(sorted({'jax', 'jaxlib', 'tensorflow'} & {name.split('.')[0] for name in sys.modules}))"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


@pytest.mark.parametrize("module", [jaxtf.serialization, _with_jax, interop])
def test_the_names_for_type_checkers_are_those_that_are_imported(module):
    tree = ast.parse(Path(module.__file__).read_text())
    [for_checkers] = [node for node in tree.body if isinstance(node, ast.If)]
    imported = {
        alias.name: node.module.removeprefix("jaxtf.serialization.")
        for node in for_checkers.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert imported == module._MODULES
    assert {*imported, "lazy_names"} - {"__version__"} == {*module.__all__, "lazy_names"}


@pytest.mark.parametrize("module", [jaxtf.serialization, _with_jax, interop])
def test_every_public_name_is_there(module):
    if module is not jaxtf.serialization:
        pytest.importorskip("jax")
    for name in module.__all__:
        assert getattr(module, name) is not None
    assert set(module.__all__) <= set(dir(module))
    with pytest.raises(AttributeError, match=rf"module '{module.__name__}' has no attribute 'exports'"):
        module.exports  # noqa: B018
