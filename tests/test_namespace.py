"""Four distributions, one namespace: what each import brings in, and what it must not."""

import functools
import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("shapepoly", "serialization", "convert", "calltf")

PROGRAM = """
import inspect, json, sys
import jaxtf.{package} as package
public = [getattr(package, name, None) for name in package.__all__]
print(json.dumps({{
    "modules": sorted(sys.modules),
    "names": package.__all__,
    "missing": [name for name in package.__all__ if not hasattr(package, name)],
    "undocumented": [str(x) for x in public if (inspect.isclass(x) or inspect.isroutine(x)) and not inspect.getdoc(x)],
}}))
"""


@functools.cache
def imported(package: str) -> dict[str, Any]:
    """What a fresh interpreter has after `import jaxtf.PACKAGE`; asked once per package, TensorFlow takes seconds."""
    command = [sys.executable, "-c", PROGRAM.format(package=package)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_the_namespace_belongs_to_no_package():
    assert sorted(ROOT.glob("packages/*/src/jaxtf/__init__.py")) == []


def test_shapepoly_imports_no_framework():
    loaded = set(imported("shapepoly")["modules"])
    assert "jaxtf.shapepoly" in loaded
    assert loaded & {"jax", "jaxlib", "numpy", "ml_dtypes", "tensorflow"} == set()


@pytest.mark.parametrize("package", ["serialization", "convert"])
def test_importing_it_imports_no_jax_and_no_tensorflow(package):
    program = f"import jaxtf.{package}, sys; print(sorted({{'jax', 'jaxlib', 'tensorflow'}} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout == "[]\n", done.stderr


@pytest.mark.slow(1)
@pytest.mark.parametrize(("package", "other"), [("convert", "calltf"), ("calltf", "convert")])
def test_the_two_bridges_do_not_know_each_other(package, other):
    assert f"jaxtf.{other}" not in imported(package)["modules"]


@pytest.mark.slow
@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_exists_once_and_is_documented(package):
    found = imported(package)
    assert found["missing"] == found["undocumented"] == []
    assert len(set(found["names"])) == len(found["names"]) > 0


@pytest.mark.parametrize("package", PACKAGES)
def test_each_package_has_what_a_distribution_needs(package):
    home = ROOT / "packages" / package
    project = tomllib.loads((home / "pyproject.toml").read_text())["project"]
    assert project["name"] == f"jaxtf-{package}"
    assert "## Unreleased" in (home / "CHANGELOG.md").read_text()
    assert (home / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()
    assert (home / "src" / "jaxtf" / package / "py.typed").exists()
