"""docs/errors.md names every error class of every package, with the class that callers catch."""

import ast
import re
from pathlib import Path

import pytest

import jaxtf.calltf
import jaxtf.convert

ROOT = Path(__file__).parent.parent
INTEROP = "jaxtf.serialization.interop"
SHARED = {"ArgumentTypeError": "TypeError"}  # defined in serialization, of convert and calltf
PACKAGES = ("shapepoly", "serialization", "convert", "calltf")


def defined(package):
    """The classes of the package's errors module that users see: name -> base."""
    tree = ast.parse(source(package))
    classes = {node.name: ast.unparse(node.bases[0]) for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom) and node.module == INTEROP]
    shared = {alias.name for node in imports for alias in node.names}
    own = {name: base for name, base in classes.items() if package != "serialization" or name not in SHARED}
    return own | {name: SHARED[name] for name in shared}


def source(package):
    """The text of the package's errors module."""
    return (ROOT / f"packages/{package}/src/jaxtf/{package}/_errors.py").read_text(encoding="utf-8")


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


def test_an_argument_that_cannot_be_taken_is_one_class_in_both_directions():
    assert jaxtf.convert.ArgumentTypeError is jaxtf.calltf.ArgumentTypeError
