"""Each package says its version: that of its distribution, which is that of its pyproject.toml."""

import importlib
import tomllib
from pathlib import Path

import pytest

PACKAGES = Path(__file__).parent.parent / "packages"


@pytest.mark.parametrize("name", ["shapepoly", "serialization", "convert", "calltf"])
def test_the_version_of_a_package_is_that_of_its_distribution(name):
    project = tomllib.loads((PACKAGES / name / "pyproject.toml").read_text())["project"]
    module = importlib.import_module(f"jaxtf.{name}")
    assert module.__version__ == project["version"]
    assert "__version__" not in module.__all__
    with pytest.raises(AttributeError, match="has no attribute '_absent'"):
        module._absent  # noqa: B018
