"""docs/errors.md names every error class of every package, with the class that callers catch."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = ("shapepoly", "serialization", "convert", "calltf")


def defined(package):
    """The classes of the package's errors module: name -> base."""
    tree = ast.parse((ROOT / f"packages/{package}/src/jaxtf/{package}/_errors.py").read_text(encoding="utf-8"))
    return {node.name: ast.unparse(node.bases[0]) for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}


def documented(package):
    """The same from the table of the package's section."""
    page = (ROOT / "docs/errors.md").read_text(encoding="utf-8")
    section = page.partition(f"(`jaxtf.{package}`)")[2].partition("\n## ")[0]
    return dict(re.findall(r"^\| `(\w+)` \| (?:`(\w+)`|JAX's error of that name) \|", section, re.MULTILINE))


@pytest.mark.parametrize("package", PACKAGES)
def test_the_page_of_errors_names_every_class_and_what_it_is(package):
    # Where JAX is, this one derives from JAX's class of the same name.
    bases = {name: "" if name == "InconclusiveDimensionOperation" else base for name, base in defined(package).items()}
    assert documented(package) == bases
